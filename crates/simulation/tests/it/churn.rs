//! Schedulers that are made faster than anybody can make them.

use std::cell::Cell;

use futures_util::future::join_all;
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_engine::{Error, Parts};
use maestro_simulation::{NodePlan, World};

use super::common::*;

const SCHEDULERS: usize = 1000;
/// What may be in hand, and what is taken on while somebody counts.
const IN_HAND_MAX: u32 = 300;

async fn create_many(world: &World, number: usize) -> Vec<Result<(), Error>> {
    let most = Cell::new(0);
    let create = async |number: usize| {
        let name = SchedulerName::parse(&format!("arena-{number}")).unwrap();
        let created = world.engine().create_scheduler(Recipe { name, ..recipe(0) }, "ann").await;
        most.set(most.get().max(world.store().schedulers_in_hand().await.unwrap()));
        created.map(|_| ())
    };
    let answers = join_all((0..number).map(create)).await;
    assert!(most.get() <= IN_HAND_MAX, "{} schedulers were in hand", most.get());
    answers
}

#[test]
fn who_makes_schedulers_waits_for_those_before() {
    run(async {
        let mut world = World::new(1);
        world.start_engine().await;
        for answer in create_many(&world, SCHEDULERS).await {
            answer.unwrap();
        }
    });
}

/// What cannot be done is not accepted without end.
#[test]
fn without_anybody_to_make_them_no_more_are_accepted() {
    run(async {
        let mut world = World::new(2);
        let parts = Parts::ROOMS_API;
        world.start_node(NodePlan { parts, ..NodePlan::PLAIN }).await.unwrap();
        let answers = create_many(&world, SCHEDULERS).await;
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        let texts: Vec<String> = refused.map(ToString::to_string).collect();
        assert!(texts.len() > SCHEDULERS / 2, "{} were refused", texts.len());
        assert!(
            texts.iter().all(|text| text.contains("are being created or deleted: try again")),
            "{texts:?}"
        );
    });
}
