//! What happens in a simulated world: people, players, machines and bad luck, and in the end no more faults. A seed
//! chooses all of it.
//!
//! First safety: whatever fails, the invariants hold. Then liveness: with all faults off the world comes to rest within
//! a bound, and stays so.

mod autoscaling;
mod deletion;
mod events;
mod fleet;
mod frozen_adder;
mod machines;
mod matchmakers;
mod mixed;
mod nature;
mod outages;
mod people;
mod placing;
mod players;
mod quiesce;
mod recipes;
mod regions;
mod rollouts;
mod script;
mod stage;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_engine::ports::{Clock, Store};
use maestro_store_embedded::EmbeddedStore;

use crate::coverage::RareEvent;
use crate::faults::Faults;
use crate::memory::MemoryStore;
use crate::seed::fork;
use crate::world::World;

use script::Script;
use stage::Stage;

/// What a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Fleets of a fixed size, and people who change it.
    Fleet,
    /// Fleets that follow their players.
    Autoscaling,
    /// New versions, good and bad.
    Rollouts,
    /// Many schedulers on three workers that freeze and crash.
    Workers,
    /// Schedulers that come and go.
    Deletion,
    /// Everything at once.
    Mixed,
    /// A worker that is frozen in the middle of an add_rooms for longer than it owns its scheduler.
    FrozenAdder,
    /// Fleets over several regions, which are cut off, come back, are cordoned and drained.
    Regions,
    /// Fleets whose rooms are handed out.
    Matchmakers,
    /// Rooms that have something to say, and receivers that do not always listen.
    Events,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::Fleet,
        Self::Autoscaling,
        Self::Rollouts,
        Self::Workers,
        Self::Deletion,
        Self::Mixed,
        Self::FrozenAdder,
        Self::Regions,
        Self::Matchmakers,
        Self::Events,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Autoscaling => "autoscaling",
            Self::Rollouts => "rollouts",
            Self::Workers => "workers",
            Self::Deletion => "deletion",
            Self::Mixed => "mixed",
            Self::FrozenAdder => "frozen_adder",
            Self::Regions => "regions",
            Self::Matchmakers => "matchmakers",
            Self::Events => "events",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// What a seed chooses. A kind that is younger than seeds whose runs are known takes its share of them by a fork of
    /// its own: the others stay what they were.
    fn draw(seed: u64, options: &Options, random: &mut fastrand::Rng) -> Self {
        let chosen = Self::ALL[random.usize(0..OLDEST_KINDS)];
        let is_about_regions = fork(seed, "regions", 1).is_multiple_of(REGIONS_SHARE);
        let is_about_matchmakers = fork(seed, "matchmakers", 2).is_multiple_of(MATCHMAKERS_SHARE);
        let is_about_events = fork(seed, "events", 0).is_multiple_of(EVENTS_SHARE);
        match options.several_regions {
            None | Some(true) if is_about_regions => Self::Regions,
            None | Some(_) if is_about_matchmakers => Self::Matchmakers,
            None | Some(_) if is_about_events => Self::Events,
            None | Some(_) => chosen,
        }
    }
}

/// What is not left to the seed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub kind: Option<Kind>,
    pub sqlite: Option<bool>,
    /// Those that are asked for by a kind that is about regions have several all the same.
    pub several_regions: Option<bool>,
    /// The clock is set now and then.
    pub clock_leaps: Option<bool>,
    /// Wake-ups between engines are lost.
    pub no_wake_ups: Option<bool>,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    pub kind: Kind,
    pub on_sqlite: bool,
    pub trace: Vec<String>,
    pub simulated: Duration,
    /// `invariant-name: what happened`.
    pub violations: Vec<String>,
    pub coverage: BTreeMap<RareEvent, u64>,
}

/// One of so many seeds runs on SQLite, which is three to four times slower: see docs/simulation.md.
const SQLITE_SHARE: u64 = 16;
/// Kinds that were there first, in the order in which seeds know them.
const OLDEST_KINDS: usize = 7;
/// One of so many seeds is about regions.
const REGIONS_SHARE: u64 = 8;

/// One of so many of the others is about matchmakers.
const MATCHMAKERS_SHARE: u64 = 8;

/// One of so many of those that are left is about events.
const EVENTS_SHARE: u64 = 8;

/// In one of so many runs nobody gives up waiting for a lock.
const PATIENT_SHARE: u64 = 4;

/// In one of so many runs the clock is set now and then.
const LEAPING_SHARE: u64 = 6;

/// In one of so many runs all wake-ups between engines are lost.
const NO_WAKE_UPS_SHARE: u64 = 6;

/// Runs a seed on this thread, with a clock of its own. The same seed and options give the same run again.
pub fn run(seed: u64, options: &Options) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(run_on(seed, options)),
        Err(error) => panic!("no runtime for a run: {error}"),
    }
}

/// The same, on a runtime with one thread and a paused clock.
pub async fn run_on(seed: u64, options: &Options) -> Outcome {
    let random = &mut fastrand::Rng::with_seed(fork(seed, "life", 0));
    let kind = options.kind.unwrap_or_else(|| Kind::draw(seed, options, random));
    let on_sqlite = options.sqlite.unwrap_or_else(|| fork(seed, "sqlite", 0).is_multiple_of(SQLITE_SHARE));
    let settings = recipes::settings(random, fork(seed, "patience", 0).is_multiple_of(PATIENT_SHARE));
    let settings = if kind == Kind::Events { events::settings(&settings, seed) } else { settings };
    let store = |clock: Arc<dyn Clock>| -> Arc<dyn Store> {
        match on_sqlite {
            true => Arc::new(EmbeddedStore::in_memory(clock).unwrap_or_else(|error| panic!("{error}"))),
            false => MemoryStore::on_clock(clock),
        }
    };
    let world = World::of_regions(seed, settings, store, placing::regions(seed, kind, options));
    world.trace().note(format_args!("seed {seed}: a run of kind {}", kind.as_str()));
    if options.no_wake_ups.unwrap_or_else(|| fork(seed, "deaf", 0).is_multiple_of(NO_WAKE_UPS_SHARE)) {
        world.lose_wake_ups();
    }
    let leaps = options.clock_leaps.unwrap_or_else(|| fork(seed, "leaps", 0).is_multiple_of(LEAPING_SHARE));
    let mut stage = Stage::new(world, fork(seed, "stage", 0), leaps);
    stage.matchmaking = (kind == Kind::Matchmakers).then(|| matchmakers::random(seed));
    stage.talk = (kind == Kind::Events).then(|| events::Talk::new(seed));
    match kind {
        Kind::Fleet => play(&mut stage, fleet::script(random), seed).await,
        Kind::Autoscaling => play(&mut stage, autoscaling::script(random), seed).await,
        Kind::Rollouts => play(&mut stage, rollouts::script(random), seed).await,
        Kind::Workers => play(&mut stage, workers::script(random), seed).await,
        Kind::Deletion => play(&mut stage, deletion::script(random), seed).await,
        Kind::Mixed => play(&mut stage, mixed::script(random), seed).await,
        Kind::FrozenAdder => frozen_adder::play(&mut stage, random).await,
        Kind::Regions => play(&mut stage, regions::script(random), seed).await,
        Kind::Matchmakers => play(&mut stage, matchmakers::script(random), seed).await,
        Kind::Events => play(&mut stage, events::script(random), seed).await,
    }
    let violations = stage.violations();
    let world = stage.end();
    Outcome {
        kind,
        on_sqlite,
        trace: world.trace().take(),
        simulated: world.elapsed(),
        violations,
        coverage: world.coverage().counts(),
    }
}

/// Faults, then none, then rest.
async fn play(stage: &mut Stage, script: Script, seed: u64) {
    let script = placing::spread(script, &stage.world.regions(), &mut stage.random_of_regions());
    let faults = Faults::draw(fork(seed, "faults", 0));
    let faults = match stage.talk {
        Some(_) => faults.with_receivers(fork(seed, "faults", 1)),
        None => faults,
    };
    stage.set_up(&script, faults).await;
    for _ in 0..script.events {
        stage.pass_time(script.pause).await;
        stage.let_something_happen(&script).await;
        if stage.has_failed() {
            return;
        }
    }
    quiesce::quiesce(stage).await;
    quiesce::come_to_rest(stage).await;
}
