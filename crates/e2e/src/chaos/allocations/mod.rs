//! Many matchmakers compete for the rooms of a fleet that scales, rolls out new versions and loses rooms.
//!
//! Rooms are real processes that do nothing; the test pings for all of them, and plays the matches for which they are
//! allocated. What the server has answered is in a ledger, which fails the moment a room is given to a second matchmaker.
//! In the end every hold must be over, and the store must have every answer as it was given.

mod changes;
mod ledger;
mod matchmaker;
mod pings;
mod recipe;
mod rows;
mod tally;

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fastrand::Rng;

use super::no_panic;
use crate::{Maestro, Settings, until};
use changes::Changes;
use ledger::Ledger;
use matchmaker::Matchmaker;
use pings::Pings;
use tally::Counts;
pub use tally::Tally;

#[derive(Debug, Clone)]
pub struct Options {
    /// The most that the fleet has, apart from rollouts.
    pub rooms: u32,
    /// Matchmakers at the same time.
    pub callers: u32,
    pub work: Work,
    /// How often each room pings.
    pub ping_every: Duration,
    /// New major versions.
    pub rollouts: u32,
    pub seed: u64,
}

/// How long it goes on. The last rollout is waited for in any case.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Until so many rooms were given.
    Rooms(usize),
    Time(Duration),
}

const SCHEDULER: &str = "contested";
/// In every cycle rooms are replaced that are held or have players.
const SETTINGS: Settings<'static> = &[("WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL", "1s")];
/// Very many rooms start or end, on a machine that is busy with other things.
const SETTLE_WITHIN: Duration = Duration::from_secs(300);

/// What everybody shares.
struct Contest {
    options: Options,
    ledger: Ledger,
    counts: Counts,
    begun_at: OnceLock<Instant>,
    /// Nobody asks for rooms any more, or somebody has found that something is wrong.
    over: AtomicBool,
    /// Rooms need not ping any more.
    at_rest: AtomicBool,
}

impl Contest {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// 1 when the work is done.
    fn progress(&self) -> f64 {
        match self.options.work {
            Work::Rooms(rooms) => self.counts.given() as f64 / rooms as f64,
            Work::Time(time) => {
                self.begun_at.get().map_or(0.0, |at| at.elapsed().as_secs_f64() / time.as_secs_f64())
            }
        }
    }

    /// Passes the error on; the others need not go on.
    fn or_over<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        outcome.inspect_err(|_| self.over.store(true, Ordering::Relaxed))
    }
}

pub fn run(options: &Options) -> anyhow::Result<Tally> {
    let mut maestro = Maestro::started(SETTINGS)?;
    let outcome = run_on(&maestro, options);
    outcome.with_context(|| maestro.log_tail()).with_context(|| {
        let kept = maestro.keep().display();
        format!("{options:?}; data and log are kept in {kept}")
    })
}

fn run_on(maestro: &Maestro, options: &Options) -> anyhow::Result<Tally> {
    maestro.api().create(&recipe::of(maestro, options)?)?.expect(200)?;
    let contest = Contest {
        options: options.clone(),
        ledger: Ledger::default(),
        counts: Counts::default(),
        begun_at: OnceLock::new(),
        over: AtomicBool::new(false),
        at_rest: AtomicBool::new(false),
    };
    let mut random = Rng::with_seed(options.seed);
    let pings = Pings::new(maestro, &contest);
    let took = thread::scope(|scope| {
        let pinging = pings.spawn(scope, &mut random);
        let took = compete(maestro, &contest, &mut random);
        contest.at_rest.store(true, Ordering::Relaxed);
        for pinger in pinging {
            pinger.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        took
    })?;
    no_panic(maestro)?;
    no_violation(maestro)?;
    let rows = rows::read(maestro)?;
    contest.ledger.look(|entries| rows::check(entries, &rows))?;
    Ok(Tally::of(&contest, maestro.rooms_ever_made(SCHEDULER)?, &rows, took))
}

/// How long the matchmakers competed.
fn compete(maestro: &Maestro, contest: &Contest, random: &mut Rng) -> anyhow::Result<Duration> {
    until("the first fleet", SETTLE_WITHIN, || {
        ensure!(!contest.is_over(), "something else went wrong");
        let rooms = maestro.api().rooms(SCHEDULER)?;
        let ready = rooms.iter().filter(|room| room.status == "ready").count();
        ensure!(ready >= recipe::least(&contest.options) as usize, "{ready} rooms are ready");
        Ok(())
    })?;
    let begun_at = *contest.begun_at.get_or_init(Instant::now);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..contest.options.callers)
            .map(|number| {
                let matchmaker = Matchmaker::new(maestro, contest, number, random.fork());
                scope.spawn(move || contest.or_over(matchmaker.run()))
            })
            .collect();
        let changed = contest.or_over(Changes { maestro, contest, random: random.fork() }.run());
        contest.over.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        changed
    })?;
    let took = begun_at.elapsed();
    until("every hold to be over", SETTLE_WITHIN, || {
        let held = maestro.api().get(&format!("/schedulers/{SCHEDULER}/allocations?state=held"))?;
        let held = held.expect(200)?.json()?;
        ensure!(held["total"] == 0, "{held}");
        let rooms = maestro.api().rooms(SCHEDULER)?;
        let taken = rooms.iter().find(|room| matches!(room.status.as_str(), "allocated" | "occupied"));
        ensure!(taken.is_none(), "{taken:?}");
        Ok(())
    })?;
    Ok(took)
}

/// The server looks itself at what must always hold, and counts what it finds.
fn no_violation(maestro: &Maestro) -> anyhow::Result<()> {
    let metrics = maestro.internal().get("/metrics")?.expect(200)?.text;
    let mut counted = metrics.lines().filter(|line| line.starts_with("maestro_invariant_violations"));
    let violated = counted.clone().find(|line| !line.ends_with(" 0"));
    ensure!(violated.is_none(), "{violated:?}");
    counted.next().context("violations are not counted")?;
    Ok(())
}
