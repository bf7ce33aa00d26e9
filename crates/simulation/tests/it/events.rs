//! Events of rooms on their way to receivers that are down, slow or hang.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join;
use maestro_core::event::{EventKind, Message, RpcCode};
use maestro_core::operation::OperationStatus;
use maestro_core::room::{PingStatus, RoomId};
use maestro_core::scheduler::{Delivery, Forwarder, Recipe};
use maestro_core::time::{Millis, after};
use maestro_engine::ports::room_table::Ping;
use maestro_engine::ports::store::EventQueue;
use maestro_engine::{Parts, Settings};
use maestro_simulation::{HostFaults, NodePlan, Reception, Taken, World};
use serde_json::Map;
use tokio::time::{Instant, sleep};

use super::common::*;

const MATCHMAKER: &str = "matchmaker.example:50051";
const LOBBY: &str = "lobby.example:50051";

fn forwarder(name: &str, address: &str, delivery: Delivery) -> Forwarder {
    Forwarder {
        name: name.into(),
        enabled: true,
        address: address.into(),
        timeout_ms: 2_000,
        delivery,
        metadata: Map::new(),
    }
}

fn queued() -> Forwarder {
    forwarder("matchmaker", MATCHMAKER, Delivery::Queued)
}

async fn world_with(seed: u64, settings: Settings, rooms: u32, forwarders: Vec<Forwarder>) -> World {
    let mut world = World::with_settings(seed, settings);
    world.start_engine().await;
    world.engine().create_scheduler(Recipe { forwarders, ..recipe(rooms) }, "ann").await.unwrap();
    settle(&world, rooms, MINUTE).await;
    world
}

async fn say(world: &World, room: &RoomId, word: &str) -> Result<(), RpcCode> {
    let kind = EventKind::Room(word.into());
    let said = world.engine().forward_event(ARENA, room.as_str(), kind, Map::new()).await;
    said.map_err(|error| error.code)
}

/// What a receiver took of what rooms said, by room, in order.
fn heard(world: &World, address: &str) -> BTreeMap<String, Vec<String>> {
    let mut heard: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Taken { message, .. } in world.receivers().taken(address) {
        if !matches!(message, Message::Resync { .. }) {
            heard.entry(message.room().id.clone()).or_default().push(message.what().into());
        }
    }
    heard
}

async fn queues(world: &World) -> Vec<EventQueue> {
    world.store().event_queues(&arena()).await.unwrap()
}

async fn nothing_waits(world: &World) -> bool {
    queues(world).await.iter().all(|queue| queue.waiting == 0)
}

/// How long each of some pings took.
async fn pings(world: &World) -> Vec<Duration> {
    let mut took = Vec::new();
    for room in ids(world).await {
        for status in [PingStatus::Ready, PingStatus::Occupied, PingStatus::Ready] {
            let began = Instant::now();
            world.engine().ping(Ping::of(ARENA, room.as_str(), status)).await.unwrap();
            took.push(began.elapsed());
        }
    }
    took
}

#[test]
fn a_receiver_that_was_down_for_an_hour_gets_everything_afterwards() {
    const ROOMS: u32 = 12;
    const A_MINUTE: usize = 2;
    run(async {
        let world = world_with(1, Settings::default(), ROOMS, vec![queued()]).await;
        let rooms = ids(&world).await;
        world.receivers().set(MATCHMAKER, Reception::Down);
        let mut said = BTreeMap::new();
        for minute in 0..60 {
            for number in 0..A_MINUTE {
                for room in &rooms {
                    let word = format!("word {minute}.{number}");
                    say(&world, room, &word).await.unwrap();
                    said.entry(room.to_string()).or_insert_with(Vec::new).push(word);
                }
            }
            sleep(MINUTE).await;
            assert!(pings(&world).await.iter().all(Duration::is_zero), "a ping waited for the receiver");
        }
        assert_eq!(heard(&world, MATCHMAKER), BTreeMap::new());
        world.receivers().set(MATCHMAKER, Reception::Takes);
        world.run_until("all is delivered", 3 * MINUTE, nothing_waits).await;
        assert_eq!(heard(&world, MATCHMAKER), said, "everything, once and in order");
        assert_eq!(ids(&world).await, rooms, "the same rooms as before");
        settle(&world, ROOMS, MINUTE).await;
    });
}

/// After an hour in which it was down, it must not go down again.
#[test]
fn a_receiver_gets_a_thousand_events_a_second_at_most() {
    const ROOMS: u32 = 20;
    const EACH: usize = 100;
    /// Of each room, in one round.
    const AT_ONCE: usize = 16;
    run(async {
        let mut world = world_with(5, Settings::default(), ROOMS, vec![queued()]).await;
        let rooms = ids(&world).await;
        world.crash_engine().await;
        // Nobody delivers what this one takes.
        world.start_node(NodePlan { parts: Parts::ROOMS_API, ..NodePlan::PLAIN }).await.unwrap();
        for number in 0..EACH {
            for room in &rooms {
                say(&world, room, &number.to_string()).await.unwrap();
            }
        }
        world.start_node(NodePlan::PLAIN).await.unwrap();
        world.run_until("all is delivered", MINUTE, nothing_waits).await;
        let mut times = world.receivers().taken(MATCHMAKER);
        times.retain(|taken| matches!(taken.message, Message::RoomEvent { .. }));
        assert_eq!(times.len(), rooms.len() * EACH);
        for first in &times {
            let later = first.at + Duration::from_secs(1);
            let within = times.iter().filter(|taken| (first.at..later).contains(&taken.at)).count();
            assert!(within <= 1000 + AT_ONCE * rooms.len(), "{within} events within a second");
        }
    });
}

#[test]
fn pings_take_as_long_with_receivers_that_hang_as_without_any() {
    let direct = || forwarder("lobby", LOBBY, Delivery::Direct);
    let of = |forwarders: Vec<Forwarder>| {
        run(async {
            let world = world_with(2, Settings::default(), 5, forwarders).await;
            for address in [MATCHMAKER, LOBBY] {
                world.receivers().set(address, Reception::Hangs);
            }
            let mut took = pings(&world).await;
            // Calls are under way now, and more of them wait.
            for _ in 0..10 {
                sleep(Duration::from_millis(300)).await;
                took.extend(pings(&world).await);
            }
            took
        })
    };
    let without = of(Vec::new());
    for forwarders in [vec![direct()], vec![queued()], vec![direct(), queued()]] {
        assert_eq!(of(forwarders), without);
    }
}

#[test]
fn what_a_room_says_while_it_ends_comes_before_its_end_or_is_refused() {
    let mut refused = 0;
    for seed in 0..seeds(12) {
        run(async {
            let world = world_with(seed, Settings::default(), 12, vec![queued()]).await;
            let rooms = ids(&world).await;
            for (number, room) in (0..).zip(&rooms) {
                let end = async {
                    sleep(Duration::from_millis(number % 4)).await;
                    world.host().crash(room);
                };
                // The end is on its way when the room speaks: the event is composed before it, and written after it.
                let speak = async {
                    sleep(Duration::from_millis(number % 3)).await;
                    say(&world, room, "last words").await
                };
                let (said, ()) = join(speak, end).await;
                assert!(matches!(said, Ok(()) | Err(RpcCode::NotFound)), "{said:?}");
                refused += u32::from(said.is_err());
            }
            settle(&world, 12, MINUTE).await;
            world.run_until("all is delivered", MINUTE, nothing_waits).await;
            let heard = heard(&world, MATCHMAKER);
            for room in &rooms {
                assert_eq!(heard[room.as_str()].last().map(String::as_str), Some("terminated"), "{heard:?}");
            }
        });
    }
    assert!(refused > 0, "no room ended while it spoke");
}

/// It stood still for longer than it owned the scheduler: what it finds due then is not its own any more.
#[test]
fn a_worker_that_wakes_up_too_late_does_not_look_at_queues_in_a_loop() {
    run(async {
        let world = world_with(3, Settings::default(), 1, vec![queued()]).await;
        let room = ids(&world).await.remove(0);
        world.receivers().set(MATCHMAKER, Reception::Down);
        say(&world, &room, "hello").await.unwrap();
        sleep(Duration::from_secs(3)).await;
        let node = world.nodes()[0];
        world.freeze(node);
        sleep(MINUTE).await;
        world.receivers().set(MATCHMAKER, Reception::Takes);
        world.thaw(node);
        world.run_until("it is delivered", 2 * MINUTE, nothing_waits).await;
        assert_eq!(heard(&world, MATCHMAKER)[room.as_str()], ["hello"]);
    });
}

/// It was to be tried again later, and its time is over before that.
#[test]
fn events_of_a_disabled_forwarder_die_when_their_time_is_over() {
    run(async {
        let settings = Settings { events_kept: Millis::from_seconds(100), ..Settings::default() };
        let world = world_with(4, settings, 1, vec![queued()]).await;
        let room = ids(&world).await.remove(0);
        world.receivers().set(MATCHMAKER, Reception::Down);
        say(&world, &room, "hello").await.unwrap();
        // Each wait is longer than the one before.
        let is_late = async |world: &World| {
            let queue = queues(world).await.remove(0);
            queue.next_at.unwrap() > after(queue.oldest_at.unwrap(), world.settings().events_kept)
        };
        world.run_until("it is tried again when its time is over", 2 * MINUTE, is_late).await;
        let next_at = queues(&world).await.remove(0).next_at.unwrap();
        let disabled = Forwarder { enabled: false, ..queued() };
        let recipe = Recipe { forwarders: vec![disabled], ..recipe(1) };
        world.engine().create_version(ARENA, recipe, "ann").await.unwrap();
        let is_dead = async |world: &World| queues(world).await.iter().any(|queue| queue.dead == 1);
        world.run_until("it is dead", MINUTE, is_dead).await;
        assert!(world.now() < next_at, "nobody waits for an attempt that is not made");
    });
}

/// Rooms of an earlier scheduler of that name may still run, and say that they end.
#[test]
fn what_waits_outlives_a_creation_that_is_canceled() {
    for is_begun in [true, false] {
        run(async {
            let mut world = World::new(6);
            let parts = if is_begun { Parts::ALL } else { Parts::ROOMS_API };
            world.start_node(NodePlan { parts, ..NodePlan::PLAIN }).await.unwrap();
            world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
            world.receivers().set(MATCHMAKER, Reception::Down);
            let recipe = Recipe { forwarders: vec![queued()], ..recipe(0) };
            world.engine().create_scheduler(recipe, "ann").await.unwrap();
            world.advance(Duration::from_secs(1)).await;
            let kind = EventKind::Status(PingStatus::Terminating);
            world.engine().forward_event(ARENA, "arena-old", kind, Map::new()).await.unwrap();
            let creation = world.store().unfinished(&arena()).await.unwrap().remove(0);
            let status = if is_begun { OperationStatus::InProgress } else { OperationStatus::Pending };
            assert_eq!(creation.status, status);
            world.engine().cancel_operation(ARENA, &creation.id.to_string(), "ann").await.unwrap();
            world.host().set_host_faults(HostFaults::default());
            let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
            world.run_until("the scheduler to be gone", MINUTE, gone).await;
            world.receivers().set(MATCHMAKER, Reception::Takes);
            world.start_node(NodePlan::PLAIN).await.unwrap();
            let is_heard = async |world: &World| {
                heard(world, MATCHMAKER).get("arena-old").is_some_and(|said| said == &["terminating"])
            };
            world.run_until("it is delivered", 3 * MINUTE, is_heard).await;
        });
    }
}
