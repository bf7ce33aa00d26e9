//! The room's main loop: the game, its players, and what Maestro is told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use maestro_sdk::{Allocation, Handle, Options, Room, Value};
use signal_hook::consts::SIGTERM;

use crate::configuration::Configuration;
use crate::game::{Game, Phase};
use crate::lobby::Lobby;
use crate::output::say;
use crate::protocol::{self, Begun};

/// The port's name in the recipe.
const PORT_NAME: &str = "game";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Terminated,
    Crashed,
}

/// What is to happen at which time; none: never.
struct Schedule {
    ready_at: Option<Instant>,
    crash_at: Option<Instant>,
    end_at: Option<Instant>,
}

pub(crate) fn run(room: Room, configuration: &Configuration) -> anyhow::Result<Ending> {
    let started = Instant::now();
    let faults = &configuration.faults;
    let port = room.host_port(PORT_NAME)?;
    let mut lobby = Lobby::open(port).with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
    say(&format!("room {} of {} listens on 127.0.0.1:{port}", room.id(), room.scheduler()));

    let handle = room.start(options(configuration)).context("cannot start the SDK")?;
    if faults.ignore_sigterm {
        signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false)))?;
    }
    let waker = lobby.waker()?;
    handle.on_terminate(move || waker.wake());
    handle.on_allocated(|allocation| say(&allocated(&allocation)));

    let mut game = Game::new(configuration.matches_max);
    let mut schedule = Schedule {
        ready_at: (!faults.never_ready).then_some(started + configuration.start_delay),
        crash_at: faults.crash_after.map(|after| started + after),
        end_at: None,
    };
    loop {
        let now = Instant::now();
        if let Some(ending) = step(now, &mut game, &mut schedule, &handle, configuration.drain) {
            say(&format!("ended: {ending:?}"));
            if ending == Ending::Crashed {
                // A crash says no farewell.
                std::mem::forget(handle);
            }
            return Ok(ending);
        }
        let timeout = schedule.next(&game).map(|at| at.saturating_duration_since(now));
        lobby.serve(timeout, |line| answer(line, &mut game, &handle))?;
    }
}

fn options(configuration: &Configuration) -> Options {
    let default = Options::default();
    Options {
        ping_interval: configuration.ping_interval.unwrap_or(default.ping_interval),
        handle_sigterm: !configuration.faults.ignore_sigterm,
        // This program never says that it is alive, so that this is when its pings stop.
        alive_within: configuration.faults.stop_pinging_after,
        ..default
    }
}

/// What time and signals bring.
fn step(
    now: Instant,
    game: &mut Game,
    schedule: &mut Schedule,
    handle: &Handle,
    drain: Duration,
) -> Option<Ending> {
    let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
    if is_due(schedule.crash_at) {
        return Some(Ending::Crashed);
    }
    if is_due(schedule.ready_at) {
        schedule.ready_at = None;
        game.open();
        handle.ready();
        say("ready");
    }
    if game.end_matches(now) > 0 {
        handle.occupied(game.matches());
        say(&format!("match ended, {} running", game.matches()));
    }
    if handle.terminate_requested() && game.phase() != Phase::Closed {
        schedule.ready_at = None;
        schedule.end_at = Some(now + drain);
        game.close();
        say(&format!("told to end, {} matches running", game.matches()));
    }
    let drained = game.phase() == Phase::Closed && game.matches() == 0;
    (drained || is_due(schedule.end_at)).then_some(Ending::Terminated)
}

fn answer(line: &str, game: &mut Game, handle: &Handle) -> String {
    let (reply, begun) = protocol::answer(line, game, Instant::now());
    let Some(Begun { allocation }) = begun else { return reply };
    match allocation {
        Some(allocation) => handle.begun(allocation, game.matches()),
        None => handle.occupied(game.matches()),
    }
    say(&format!("match started, {} running", game.matches()));
    reply
}

/// A game would load the map and wait for these players.
fn allocated(allocation: &Allocation) -> String {
    let metadata = Value::from(allocation.metadata.clone());
    format!("allocated: {} {metadata}", allocation.id)
}

impl Schedule {
    fn next(&self, game: &Game) -> Option<Instant> {
        [self.ready_at, self.crash_at, self.end_at, game.next_end()].into_iter().flatten().min()
    }
}
