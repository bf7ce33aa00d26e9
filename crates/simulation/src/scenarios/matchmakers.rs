//! Matchmakers: they ask any engine for rooms, sometimes twice with the same id, wait or do not, and their players come,
//! come too late or never. Some give their rooms back, and some are gone before they are answered.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::allocation::{AllocationRequest, Wish};
use maestro_core::time::Millis;
use maestro_engine::{AllocationView, Engine};
use tokio::time::sleep;

use crate::coverage::RareEvent;
use crate::host::{Host, Span};
use crate::invariants::Caller;
use crate::seed::fork;

use super::recipes;
use super::script::{Script, Weights, Wish as Order, a_few_nodes};
use super::stage::Stage;

/// Ids that are chosen from, so that some are used twice.
const REQUEST_IDS: u32 = 12;
/// Requests that come together.
const WAVE: u32 = 5;

/// What becomes of rooms that a matchmaker got.
#[derive(Debug, Clone, Copy)]
enum NextMove {
    /// The players come after a while, and go after another.
    Play(Duration, Duration),
    GiveBack(Duration),
    /// Nobody comes.
    Nothing,
}

/// Fleets that grow and shrink, and more callers than rooms.
pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let recipes = (1..=random.usize(1..=2)).map(|number| match random.bool() {
        true => recipes::autoscaled(number, random),
        false => {
            let rooms = random.u32(1..8);
            recipes::fixed(number, rooms, random)
        }
    });
    Script {
        recipes: recipes.collect(),
        nodes: a_few_nodes(random),
        events: random.u32(20..80),
        pause: Span::millis(0, random.u64(500..8_000)),
        weights: Weights { people: 2, players: 3, nature: 2, machines: 2 },
        wishes: vec![(3, Order::Add), (3, Order::Remove), (1, Order::Major), (1, Order::CancelOperation)],
    }
}

/// The randomness of matchmakers.
pub(super) fn random(seed: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(fork(seed, "matchmakers", 1))
}

pub(super) fn ask_for_rooms(stage: &mut Stage) {
    let Some(mut random) = stage.matchmaking.take() else { return };
    for _ in 0..random.u32(0..=WAVE) {
        ask(stage, &mut random);
    }
    stage.matchmaking = Some(random);
}

fn ask(stage: &Stage, random: &mut fastrand::Rng) {
    let nodes = stage.world.nodes();
    if nodes.is_empty() || stage.recipes.is_empty() {
        return;
    }
    let node = nodes[random.usize(0..nodes.len())];
    let scheduler = stage.recipes[random.usize(0..stage.recipes.len())].name.clone();
    let request = request(stage, random);
    let then = next_move(random);
    let is_patient = random.u32(0..8) > 0;
    let (trace, inspector) = (stage.world.trace().clone(), stage.world.inspector().clone());
    let (coverage, players) = (stage.world.coverage().clone(), stage.world.tasks());
    let (hosts, store) = (stage.world.shared_hosts(), stage.world.shared_store());
    stage.world.spawn_on(node, "a matchmaker".to_owned(), |engine| async move {
        let caller = Caller::new(node, &scheduler, &request);
        inspector.asks(&caller);
        let asked = engine.allocate(scheduler.as_str(), request.clone());
        let answer = match is_patient {
            true => Some(asked.await),
            // It hangs up: nobody will ever know what it would have got.
            false => tokio::time::timeout(Duration::from_millis(3), asked).await.ok(),
        };
        match answer {
            Some(Ok(allocations)) => {
                coverage.saw(RareEvent::RoomAllocated);
                let rooms: Vec<_> = allocations.iter().map(|one| one.room.to_string()).collect();
                trace.note(format_args!("a matchmaker gets {} of {scheduler}", rooms.join(", ")));
                inspector.allocated(&caller, &allocations, &*store).await;
                match then {
                    // They do not care what becomes of the engine.
                    NextMove::Play(after, time) => {
                        players.spawn("players", play(hosts, allocations, after, time));
                    }
                    NextMove::GiveBack(after) => give_back(&engine, &allocations, after).await,
                    NextMove::Nothing => {}
                }
            }
            Some(Err(error)) => {
                inspector.turned_away(&caller);
                trace.note(format_args!("a matchmaker gets nothing of {scheduler}: {error}"));
            }
            None => inspector.turned_away(&caller),
        }
    });
}

fn request(stage: &Stage, random: &mut fastrand::Rng) -> AllocationRequest {
    let regions = stage.world.regions();
    let wishes = match random.u32(0..6) {
        0 => vec![Wish { regions: vec![regions[random.usize(0..regions.len())].clone()], ..Wish::default() }],
        1 => vec![
            Wish { regions: vec![regions[random.usize(0..regions.len())].clone()], ..Wish::default() },
            Wish::default(),
        ],
        _ => Vec::new(),
    };
    let id = random.u32(0..REQUEST_IDS * 3);
    AllocationRequest {
        request_id: (id < REQUEST_IDS).then(|| format!("request-{id}").into()),
        count: if random.u32(0..5) == 0 { random.u32(2..=3) } else { 1 },
        wishes,
        wait: Millis(if random.bool() { random.u64(500..20_000) } else { 0 }),
        ttl: Some(Millis(random.u64(1_000..45_000))),
        metadata: random.bool().then(|| r#"{"map":"ruins"}"#.into()),
    }
}

fn next_move(random: &mut fastrand::Rng) -> NextMove {
    let after = Duration::from_millis(random.u64(0..20_000));
    match random.u32(0..6) {
        0..=2 => NextMove::Play(after, Duration::from_millis(random.u64(1_000..40_000))),
        3 | 4 => NextMove::GiveBack(after),
        _ => NextMove::Nothing,
    }
}

async fn play(hosts: Vec<Arc<Host>>, allocations: Vec<AllocationView>, after: Duration, time: Duration) {
    let host_of = |one: &AllocationView| hosts.iter().find(|host| Some(host.region()) == one.region.as_ref());
    sleep(after).await;
    for one in &allocations {
        if let Some(host) = host_of(one) {
            host.begin_match(&one.room);
        }
    }
    sleep(time).await;
    for one in &allocations {
        if let Some(host) = host_of(one) {
            host.end_match(&one.room);
        }
    }
}

async fn give_back(engine: &Engine, allocations: &[AllocationView], after: Duration) {
    sleep(after).await;
    for one in allocations {
        // It may have begun, expired or been lost meanwhile.
        let _ = engine.return_allocation(one.scheduler.as_str(), &one.id.to_string()).await;
    }
}
