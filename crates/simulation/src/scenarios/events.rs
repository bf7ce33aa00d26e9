//! Rooms that have something to say, and receivers that do not always listen: they go down, also for an hour, hang, are slow,
//! refuse, and take things without saying so. People change forwarders meanwhile, and replay what could not be delivered.

use std::time::Duration;

use maestro_core::event::{EventKind, RpcCode};
use maestro_core::room::{PingStatus, RoomId};
use maestro_core::scheduler::{Delivery, Forwarder, Recipe, SchedulerName};
use maestro_core::time::Millis;
use maestro_engine::Settings;
use maestro_engine::ports::room_table::Ping;
use maestro_engine::services::ReplayOrder;
use serde_json::{Map, json};

use crate::coverage::RareEvent;
use crate::host::{Phase, RoomOnHost, Span};
use crate::invariants::MARK;
use crate::receivers::Reception;
use crate::seed::fork;

use super::script::{Script, Weights, Wish, a_few_nodes};
use super::stage::Stage;
use super::{people, recipes};

/// Events that rooms send at a time.
const WAVE: u32 = 6;
/// Rooms that are remembered, so that some speak when they are gone.
const SPEAKERS: usize = 20;
const NAMES: [&str; 3] = ["matchmaker", "lobby", "audit"];
/// A long outage, in parts in which rooms go on speaking.
const OUTAGE_PARTS: u32 = 6;
const OUTAGE_PART: Span = Span::exactly(Duration::from_secs(10 * 60));

/// What all that is about events draws from, and what it remembers.
pub(super) struct Talk {
    random: fastrand::Rng,
    said: u32,
    speakers: Vec<RoomOnHost>,
    had_long_outage: bool,
}

impl Talk {
    pub(super) fn new(seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(fork(seed, "events", 1));
        Self { random, said: 0, speakers: Vec::new(), had_long_outage: false }
    }
}

/// Some give up early, and some take few events.
pub(super) fn settings(settings: &Settings, seed: u64) -> Settings {
    let random = &mut fastrand::Rng::with_seed(fork(seed, "events", 2));
    Settings {
        events_kept: match random.bool() {
            true => settings.events_kept,
            false => Millis::from_seconds(random.u64(60..2_400)),
        },
        events_queue_max: match random.u32(0..3) {
            0 => random.u32(2..20),
            _ => settings.events_queue_max,
        },
        ..settings.clone()
    }
}

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let recipes = (1..=random.usize(1..=2)).map(|number| {
        let recipe = match random.u32(0..3) {
            0 => recipes::autoscaled(number, random),
            _ => {
                let rooms = random.u32(1..6);
                recipes::fixed(number, rooms, random)
            }
        };
        Recipe { forwarders: forwarders(&recipe.name, random), ..recipe }
    });
    Script {
        recipes: recipes.collect(),
        nodes: a_few_nodes(random),
        events: random.u32(20..70),
        pause: Span::millis(0, random.u64(500..8_000)),
        weights: Weights { people: 2, players: 2, nature: 3, machines: 3 },
        wishes: vec![
            (2, Wish::Add),
            (2, Wish::Remove),
            (2, Wish::Major),
            (2, Wish::Switch),
            (2, Wish::Delete),
            (3, Wish::Create),
            (1, Wish::CancelOperation),
        ],
    }
}

/// At least one, and mostly queued.
fn forwarders(scheduler: &SchedulerName, random: &mut fastrand::Rng) -> Vec<Forwarder> {
    let number = random.usize(1..=NAMES.len());
    NAMES[..number].iter().map(|name| forwarder(name, scheduler, random)).collect()
}

/// Each has an address of its own, and gets another one at times.
fn forwarder(name: &str, scheduler: &SchedulerName, random: &mut fastrand::Rng) -> Forwarder {
    Forwarder {
        name: name.to_owned(),
        enabled: random.u32(0..8) > 0,
        address: format!("{name}-{}.{scheduler}:50051", random.u32(1..=2)),
        timeout_ms: random.u64(200..3_000),
        delivery: if random.u32(0..3) > 0 { Delivery::Queued } else { Delivery::Direct },
        metadata: Map::new(),
    }
}

/// After something else has happened.
pub(super) async fn go_on(stage: &mut Stage) {
    let Some(mut talk) = stage.talk.take() else { return };
    speak(stage, &mut talk);
    match talk.random.u32(0..12) {
        0..=4 => treat_differently(stage, &mut talk.random),
        5 => change_forwarders(stage, &mut talk.random).await,
        6 => replay(stage, &mut talk.random),
        7 if !talk.had_long_outage && talk.random.u32(0..10) == 0 => long_outage(stage, &mut talk).await,
        _ => {}
    }
    stage.talk = Some(talk);
}

fn speak(stage: &Stage, talk: &mut Talk) {
    let rooms: Vec<_> =
        stage.world.rooms().into_iter().filter(|room| room.phase != Phase::Starting).collect();
    for _ in 0..talk.random.u32(0..=WAVE) {
        let Talk { random, speakers, .. } = talk;
        let is_late = random.u32(0..8) == 0;
        let room = if is_late { choose(speakers, random) } else { choose(&rooms, random) };
        let Some(room) = room.cloned() else { continue };
        if !is_late {
            speakers.push(room.clone());
            let surplus = speakers.len().saturating_sub(SPEAKERS);
            speakers.drain(..surplus);
        }
        say(stage, talk, room);
    }
}

fn choose<'a, T>(from: &'a [T], random: &mut fastrand::Rng) -> Option<&'a T> {
    from.get(random.usize(0..from.len().max(1)))
}

/// What a room says to whoever takes the connection, a frozen one included.
fn say(stage: &Stage, talk: &mut Talk, speaker: RoomOnHost) {
    let Some(node) = choose(&stage.world.nodes(), &mut talk.random).copied() else { return };
    talk.said += 1;
    let mark = talk.said.to_string();
    let status = status_of(&speaker);
    let kind = match talk.random.u32(0..10) {
        // Nobody says in its name that it is alive.
        0 if speaker.has_pinged && !speaker.is_silent => EventKind::Status(status),
        1 => EventKind::Room(PingStatus::Terminating.as_str().into()),
        2 => EventKind::Player("playerJoin".into()),
        3 => EventKind::Player("playerLeft".into()),
        _ => EventKind::Room(format!("word {mark}")),
    };
    let metadata = Map::from_iter([(MARK.into(), json!(mark)), ("playerId".into(), json!("ann"))]);
    let (trace, inspector) = (stage.world.trace().clone(), stage.world.inspector().clone());
    let store = stage.world.shared_store();
    let RoomOnHost { id: room, scheduler, matches, .. } = speaker;
    stage.world.spawn_on(node, "a room's event".to_owned(), |engine| async move {
        let since = trace.elapsed();
        let outcome = match &kind {
            EventKind::Status(status) => {
                let ping = Ping { matches, ..Ping::of(scheduler.as_str(), room.as_str(), *status) };
                engine.room_status(ping, metadata).await
            }
            _ => engine.forward_event(scheduler.as_str(), room.as_str(), kind.clone(), metadata).await,
        };
        let told = said(&room, &kind, &mark);
        match outcome {
            Ok(()) => {
                trace.note(format_args!("{told} to engine-{node}: ok"));
                inspector.event_accepted(&scheduler, &room, &mark, since, &*store).await;
            }
            Err(error) => trace.note(format_args!("{told} to engine-{node}: {error}")),
        }
    });
}

fn said(room: &RoomId, kind: &EventKind, mark: &str) -> String {
    let what = match kind {
        EventKind::Resync(status) | EventKind::Status(status) => status.as_str(),
        EventKind::Gone => "that it is gone",
        EventKind::Room(what) | EventKind::Player(what) => what,
    };
    format!("room {room} said {what} ({mark})")
}

fn status_of(room: &RoomOnHost) -> PingStatus {
    match (room.phase, room.matches) {
        (Phase::GoingDown, _) => PingStatus::Terminating,
        (Phase::Starting | Phase::Up, 0) => PingStatus::Ready,
        (Phase::Starting | Phase::Up, _) => PingStatus::Occupied,
    }
}

/// One receiver does not do any more what it did, or does again.
fn treat_differently(stage: &Stage, random: &mut fastrand::Rng) {
    let Some(address) = an_address(stage, random) else { return };
    let (how, reception) = match random.u32(0..12) {
        0 | 1 => ("is down", Reception::Down),
        2 => ("does not answer", Reception::Hangs),
        3 => ("loses its answers", Reception::LosesAnswers),
        4 => ("is slow", Reception::Slow(Span::millis(0, random.u64(10..4_000)))),
        5 => ("does not want anything", Reception::Refuses(a_code(random))),
        6 => {
            stage.world.receivers().make_picky(&address);
            ("is picky", Reception::Takes)
        }
        _ => ("is well", Reception::Takes),
    };
    if matches!(reception, Reception::Down | Reception::Hangs) {
        stage.world.coverage().saw(RareEvent::ReceiverDown);
    }
    stage.world.trace().note(format_args!("receiver {address} {how}"));
    stage.world.receivers().set(&address, reception);
}

fn a_code(random: &mut fastrand::Rng) -> RpcCode {
    let errors = || RpcCode::ALL.into_iter().filter(|code| *code != RpcCode::Ok);
    errors().nth(random.usize(0..errors().count())).unwrap_or(RpcCode::Internal)
}

/// One of those that events of the first recipes go to.
fn an_address(stage: &Stage, random: &mut fastrand::Rng) -> Option<String> {
    let of_recipes = stage.recipes.iter().flat_map(|recipe| &recipe.forwarders);
    let addresses: Vec<&String> = of_recipes.map(|forwarder| &forwarder.address).collect();
    choose(&addresses, random).map(|address| (*address).clone())
}

/// Rooms go on speaking, and nobody hears them for an hour.
async fn long_outage(stage: &mut Stage, talk: &mut Talk) {
    talk.had_long_outage = true;
    let Some(address) = an_address(stage, &mut talk.random) else { return };
    stage.world.trace().note(format_args!("receiver {address} is down for an hour"));
    stage.world.coverage().saw(RareEvent::ReceiverDownLong);
    stage.world.receivers().set(&address, Reception::Down);
    for _ in 0..OUTAGE_PARTS {
        stage.pass_time(OUTAGE_PART).await;
        speak(stage, talk);
    }
    stage.world.trace().note(format_args!("receiver {address} is well"));
    stage.world.receivers().set(&address, Reception::Takes);
}

async fn change_forwarders(stage: &mut Stage, random: &mut fastrand::Rng) {
    let Ok(schedulers) = stage.world.store().schedulers().await else { return };
    let Some(scheduler) = choose(&schedulers, random) else { return };
    let mut recipe = Recipe::clone(&scheduler.recipe);
    let known = recipe.forwarders.len();
    match (random.u32(0..4), known) {
        (0, 1..) => drop(recipe.forwarders.remove(random.usize(0..known))),
        (1, 1..) => {
            let one = &mut recipe.forwarders[random.usize(0..known)];
            one.enabled = !one.enabled;
        }
        (2, 1..) => {
            let one = &mut recipe.forwarders[random.usize(0..known)];
            *one = forwarder(&one.name, &recipe.name, random);
        }
        _ => recipe.forwarders = forwarders(&recipe.name, random),
    }
    people::new_version(stage, recipe, "a version with other forwarders");
}

fn replay(stage: &Stage, random: &mut fastrand::Rng) {
    let Some(node) = choose(&stage.world.nodes(), random).copied() else { return };
    let Some(recipe) = choose(&stage.recipes, random) else { return };
    let order = match random.u32(0..3) {
        0 => ReplayOrder::Forwarder(NAMES[random.usize(0..NAMES.len())].into()),
        _ => ReplayOrder::All,
    };
    let (name, trace) = (recipe.name.clone(), stage.world.trace().clone());
    stage.world.spawn_on(node, "a replay".to_owned(), |engine| async move {
        match engine.replay_events(name.as_str(), order, "ann").await {
            Ok(replayed) => trace.note(format_args!("ann replays {replayed} dead letters of {name}")),
            Err(error) => trace.note(format_args!("ann cannot replay dead letters of {name}: {error}")),
        }
    });
}
