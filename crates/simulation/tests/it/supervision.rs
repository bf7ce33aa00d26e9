//! What the engine depends on crashes, one task after the other, and the fleet goes on.

use std::time::Duration;

use maestro_core::operation::OperationStatus;
use maestro_core::room::{Region, RoomId};
use maestro_core::time::Millis;
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::store::{Change, Ended, NewRoomRecord, Refusal, StoreError, Transaction};
use maestro_engine::{Readiness, Settings};
use maestro_simulation::{MemoryStore, Outage, World};

use super::common::*;

/// Each task, and whether the process is ready without it.
const TASKS: [(&str, bool); 8] = [
    ("observer", false),
    ("region watch", false),
    ("worker manager", false),
    ("scheduler loop", true),
    ("metrics reporter", true),
    ("panic watch", true),
    ("leftovers watch", true),
    ("store time watch", true),
];

const WELL: Readiness = Readiness { is_ready: true, problems: Vec::new() };

#[test]
fn a_task_that_crashes_is_counted_and_named_and_begins_anew() {
    for (task, ready_without) in TASKS {
        run(async {
            let world = world_with_fleet(1, 5).await;
            assert_eq!(world.engine().readiness().await, WELL, "{task}");
            for crashes in 1..=3 {
                world.crash_tasks(task);
                world.advance(Duration::from_millis(1)).await;
                assert_eq!(world.engine().tasks().crashes(task), crashes, "{task}");
                let Readiness { is_ready, problems } = world.engine().readiness().await;
                assert_eq!(is_ready, ready_without, "{task}");
                assert!(problems[0].starts_with(task) && problems[0].contains("panicked"), "{problems:?}");
                // What happens while it is down is seen when it is back.
                world.host().crash(&ids(&world).await[0]);
                world.advance(Duration::from_millis(100)).await;
                settle(&world, 5, MINUTE).await;
            }
            world.advance(MINUTE).await;
            assert_eq!(world.engine().readiness().await, WELL, "{task}");
            world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
            world.run_until("no room", 5 * MINUTE, async |world| world.rooms().is_empty()).await;
        });
    }
}

#[test]
fn the_end_of_a_room_that_was_heard_and_not_written_is_found() {
    for micros in (0..6000).step_by(500) {
        run(async {
            let world = world_with_fleet(micros, 3).await;
            let victim = ids(&world).await[0].clone();
            world.host().crash(&victim);
            world.advance(Duration::from_micros(micros)).await;
            world.crash_tasks("observer");
            world.advance(Duration::from_millis(1)).await;
            settle(&world, 3, MINUTE).await;
            assert!(!ids(&world).await.contains(&victim));
        });
    }
}

#[test]
fn a_server_that_is_told_to_stop_while_its_tasks_are_down_gives_up_what_it_owns() {
    run(async {
        let mut world = world_with_fleet(3, 2).await;
        for (task, _) in TASKS {
            world.crash_tasks(task);
        }
        world.stop_engine().await;
        let workforce = world.store().workers().await.unwrap();
        assert_eq!((workforce.workers, workforce.ownerships), (vec![], vec![]));
    });
}

fn ends(transaction: &Transaction, victim: &RoomId) -> bool {
    let is_end = |change: &Change| matches!(change, Change::EndRoom { room, .. } if room == victim);
    transaction.changes.iter().any(is_end)
}

#[test]
fn a_room_whose_row_cannot_be_written_holds_up_no_other() {
    run(async {
        let world = world_with_fleet(4, 5).await;
        let rooms = ids(&world).await;
        let (damaged, other) = (rooms[0].clone(), rooms[1].clone());
        let victim = damaged.clone();
        world.intercept_commits(Some(Box::new(move |transaction| {
            ends(transaction, &victim).then(|| StoreError::unavailable("write a row", "it is damaged"))
        })));
        world.host().crash(&damaged);
        world.advance(Duration::from_secs(1)).await;
        world.host().crash(&other);
        let replaced = async |world: &World| {
            let listed = ids(world).await;
            !listed.contains(&other) && listed.len() == 5 && world.host().rooms().len() == 4
        };
        world.run_until("the other to be replaced", MINUTE, replaced).await;
        world.intercept_commits(None);
        settle(&world, 5, MINUTE).await;
        assert!(!ids(&world).await.contains(&damaged));
    });
}

#[test]
fn an_operation_that_is_refused_for_good_ends() {
    run(async {
        let world = world_with_fleet(5, 3).await;
        world.intercept_commits(Some(Box::new(|transaction| {
            let adds = transaction.changes.iter().any(|change| matches!(change, Change::IntendRoom(_)));
            let gone = Refusal::VersionNotFound { scheduler: arena(), version: fixtures::version(9, 0) };
            adds.then(|| gone.into())
        })));
        world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        let ended = async |world: &World| {
            let last = done(world).await.pop().unwrap();
            last.status == OperationStatus::Error && last.definition.name() == "add_rooms"
        };
        world.run_until("the operation to end", MINUTE, ended).await;
        world.intercept_commits(None);
        settle(&world, 3, MINUTE).await;
    });
}

#[test]
fn old_rooms_are_forgotten_although_older_ones_cannot_be_reached() {
    const LOST: u32 = 450;
    let settings = Settings {
        storage_clean_up_interval: 5 * MINUTE,
        rooms_kept: Millis::from_seconds(60),
        ..Settings::default()
    };
    let regions @ [lost, reached] = &["eu-west", "us-east"].map(|name| Region(name.into()));
    run(async {
        let mut world = World::of_regions(6, settings, MemoryStore::on_clock, regions.to_vec());
        world.start_engine().await;
        create(&world, 2).await;
        settle(&world, 2, MINUTE).await;
        let began = world.now();
        let insert = async |number: u32, region: &Region| {
            let room = NewRoomRecord {
                region: region.clone(),
                ports: Vec::new(),
                created_at: began,
                ..fixtures::new_room(number, 0)
            };
            let (scheduler, id) = (arena(), room.id.clone());
            let ended = Ended { at: began + Duration::from_millis(number.into()), ..fixtures::ended(0) };
            let end = Change::EndRoom { scheduler, room: id, instance: None, ended };
            fixtures::accept(world.store(), vec![Change::IntendRoom(room), end]).await;
        };
        for number in 0..LOST {
            insert(number, lost).await;
        }
        insert(LOST, reached).await;
        world.cut_off(lost, Outage::Runtime);
        world.advance(10 * MINUTE).await;
        let left = ended(&world).await;
        assert_eq!(left.len(), LOST as usize);
        assert!(left.iter().all(|room| room.region == *lost));
        world.reconnect(lost);
        world.advance(10 * MINUTE).await;
        assert_eq!(ended(&world).await.iter().filter(|room| room.created_at == began).count(), 0);
    });
}
