//! Hosts whose clocks are wrong: they are hosts like any other, because all go by the store's time.

use std::time::Duration;

use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::{
    Autoscaling, FixedBuffer, OtherParameters, Recipe, ScalingPolicy, SchedulerName,
};
use maestro_engine::ports::store::OwnershipRecord;
use maestro_simulation::{NodeNumber, NodePlan, RareEvent, Skew, World};

use super::common::*;

const SECOND: Duration = Duration::from_secs(1);
const AHEAD: Skew = Skew { millis: 600_000 };
const BEHIND: Skew = Skew { millis: -3_600_000 };

async fn join(world: &mut World, skew: Skew) -> NodeNumber {
    world.start_node(NodePlan { skew, ..NodePlan::PLAIN }).await.unwrap()
}

/// Two that know the time, and fleets that are well.
async fn two_right_ones(seed: u64, fleets: &[Recipe]) -> World {
    let mut world = World::new(seed);
    join(&mut world, Skew::NONE).await;
    join(&mut world, Skew::NONE).await;
    for recipe in fleets {
        world.engine().create_scheduler(recipe.clone(), "ann").await.unwrap();
    }
    world.advance(2 * MINUTE).await;
    world
}

fn fleets(names: &[&str], rooms: u32) -> Vec<Recipe> {
    let name = |text: &&str| SchedulerName::parse(text).unwrap();
    names.iter().map(|text| Recipe { name: name(text), ..recipe(rooms) }).collect()
}

async fn ownerships(world: &World) -> Vec<OwnershipRecord> {
    world.store().workers().await.unwrap().ownerships
}

/// By nobody else either: what changes hands was given up. That is what the inspector checks.
#[test]
fn nothing_is_taken_from_who_renews_it_and_no_room_expires() {
    run(async {
        let fleets = fleets(&["arena", "court", "dome", "field", "pitch", "rink"], 3);
        let mut world = two_right_ones(1, &fleets).await;
        let rooms = ids_of_all(&world);
        assert_eq!(rooms.len(), 18);
        join(&mut world, AHEAD).await;
        join(&mut world, BEHIND).await;
        let all_have_some = async |world: &World| {
            let mut owners: Vec<_> = ownerships(world).await.into_iter().map(|one| one.owner).collect();
            owners.sort();
            owners.dedup();
            owners.len() == 4
        };
        world.run_until("a share for each of the four", MINUTE, all_have_some).await;
        let shared = ownerships(&world).await;
        let tokens = |ownerships: &[OwnershipRecord]| -> Vec<_> {
            ownerships.iter().map(|one| (one.scheduler.clone(), one.owner.clone(), one.token)).collect()
        };
        // The pings of all rooms come by all four engines.
        world.advance(2 * HOUR).await;
        assert_eq!(tokens(&ownerships(&world).await), tokens(&shared), "each keeps its share");
        assert_eq!(ids_of_all(&world), rooms, "no room expired");
        assert_eq!(world.coverage().counts().get(&RareEvent::WrongClock), Some(&2));
        assert_eq!(world.violations(), Vec::<String>::new());
    });
}

fn ids_of_all(world: &World) -> Vec<RoomId> {
    let mut ids: Vec<RoomId> = world.rooms().into_iter().map(|room| room.id).collect();
    ids.sort();
    ids
}

async fn rooms_in(world: &World, status: RoomStatus) -> Vec<RoomId> {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    rooms.into_iter().filter(|room| room.status == status).map(|room| room.id).collect()
}

async fn until_rooms(world: &World, ready: usize, occupied: usize, bound: Duration) -> Duration {
    let reached = async |world: &World| {
        rooms_in(world, RoomStatus::Ready).await.len() == ready
            && rooms_in(world, RoomStatus::Occupied).await.len() == occupied
            && work_in_hand(world).await.is_empty()
    };
    world.run_until(&format!("{ready} ready and {occupied} occupied rooms"), bound, reached).await
}

/// One of them asks for fewer rooms, and dies; the next one keeps what is left of the cooldown, by whatever clock.
#[test]
fn no_cooldown_is_cut_short_and_none_lasts_longer() {
    const COOLDOWN: Duration = Duration::from_secs(600);
    let policy = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 2 });
    let autoscaling = Autoscaling {
        enabled: true,
        min: 1,
        max: None,
        cooldown_seconds: 600,
        policy,
        other_parameters: OtherParameters::default(),
        panic: None,
    };
    for (first, then) in [(AHEAD, BEHIND), (BEHIND, AHEAD), (Skew::NONE, AHEAD), (BEHIND, Skew::NONE)] {
        run(async {
            let mut world = World::new(2);
            let began = join(&mut world, first).await;
            let recipe = Recipe { autoscaling: Some(autoscaling.clone()), ..recipe(0) };
            world.engine().create_scheduler(recipe, "ann").await.unwrap();
            until_rooms(&world, 2, 0, MINUTE).await;
            // The first scale-down is free, the next one waits.
            for ready in [2, 3] {
                let room = rooms_in(&world, RoomStatus::Ready).await[0].clone();
                world.host().begin_match(&room);
                until_rooms(&world, 2, 1, MINUTE).await;
                world.host().end_match(&room);
                until_rooms(&world, ready, 0, MINUTE).await;
            }
            let next = join(&mut world, then).await;
            world.crash_node(began).await;
            let took = until_rooms(&world, 2, 0, 2 * COOLDOWN).await;
            assert!(took > COOLDOWN - 2 * MINUTE, "{first:?}, {then:?}: {took:?}");
            assert!(took < COOLDOWN + MINUTE, "{first:?}, {then:?}: {took:?}");
            assert_eq!(world.violations(), Vec::<String>::new());
            world.stop_node(next).await;
        });
    }
}

/// A worker that dies is replaced when its time is over, not before and not an hour later.
#[test]
fn what_is_not_renewed_is_taken_in_time() {
    for skew in [AHEAD, BEHIND] {
        run(async {
            let mut world = World::new(3);
            let first = join(&mut world, Skew::NONE).await;
            create(&world, 2).await;
            settle(&world, 2, MINUTE).await;
            join(&mut world, skew).await;
            let ttl = world.settings().ownership_ttl.as_duration();
            let before = ownerships(&world).await;
            world.crash_node(first).await;
            let moved = async |world: &World| ownerships(world).await[0].token > before[0].token;
            let took = world.run_until("another owner", ttl + 2 * SECOND, moved).await;
            assert!(took > ttl / 2, "{skew:?}: {took:?}");
            assert_eq!(world.violations(), Vec::<String>::new());
        });
    }
}

/// What a node that starts on a host with a wrong clock writes has the right times.
#[test]
fn times_that_are_written_down_are_those_of_the_store() {
    for skew in [AHEAD, BEHIND] {
        run(async {
            let mut world = World::new(4);
            join(&mut world, skew).await;
            let asked_at = world.now();
            create(&world, 1).await;
            settle(&world, 1, MINUTE).await;
            let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
            let operations = done(&world).await;
            let now = world.now();
            let of_operations = operations.iter().map(|operation| operation.created_at);
            for at in of_operations.chain([record.created_at]) {
                assert!(asked_at <= at && at <= now, "{skew:?}: {at} is not between {asked_at} and {now}");
            }
        });
    }
}
