//! Everything at once: several fleets, a user who never rests, and a server that is killed over and over.
//!
//! Some fleets are of fixed size and some autoscaled, versions come and go, good and broken ones, rollouts are paused
//! and canceled, rooms die. Beside them one fleet's rooms crash as fast as they are started, and clients begin requests
//! that they never finish; now and then the server's log cannot be written. Whatever the server has accepted is in a
//! ledger. When the last kill is over and the user has gone, everything must come to rest, and the ledger must be true:
//! nothing lost, nothing done twice, nothing stuck, no room that nobody knows.

mod crash_loop;
mod fleet;
mod history;
mod ledger;
mod rest;
mod slow_senders;
#[cfg(test)]
mod testing;
mod user;

use std::fmt;
use std::io::PipeReader;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fastrand::Rng;

use super::no_panic;
use crate::{BrokenLog, Maestro, Settings, until};
use ledger::Ledger;
pub use ledger::Tally;
use user::User;

#[derive(Debug, Clone)]
pub struct Options {
    pub kills: u32,
    /// Every second one is autoscaled; the last one is deleted now and then.
    pub fleets: u32,
    pub seed: u64,
}

/// One kill and the restart after it. `Display` is a line of the report.
#[derive(Debug)]
pub struct Killed {
    number: u32,
    moment: Moment,
    killed_after: Duration,
    rooms_at_kill: usize,
    /// `None`: it was to be killed before.
    serving_after: Option<Duration>,
}

/// What a kill follows.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Launched,
    Serving,
    /// A request has just begun.
    Asked,
}

const SETTINGS: Settings<'static> = &[
    // A broken version is over soon.
    ("SERVICES_ROOMMANAGER_ROOMVALIDATIONATTEMPTS", "2"),
    ("SERVICES_ROOMMANAGER_ROOMVALIDATIONTIMEOUTMILLIS", "1500"),
    // Rooms are added in several steps.
    ("OPERATIONS_ROOMS_ADD_BATCHSIZE", "1"),
];
/// Most times up are much shorter, so that recovery is met too; a rollout needs some longer ones to go on.
const UP_MAX: Duration = Duration::from_secs(4);
/// Of so many starts one has a log that cannot be written.
const WITH_BROKEN_LOG: u32 = 4;
const DOWN_MAX: Duration = Duration::from_millis(300);
/// Of so many starts one is killed before it serves, or soon after.
const KILLED_WHILE_STARTING: u32 = 6;
/// About as long as a start takes.
const START: Duration = Duration::from_millis(120);
/// Two rollouts one after the other, on a busy machine.
const SETTLE_WITHIN: Duration = Duration::from_secs(120);

/// Of so many kills of a server that serves, one waits for a request and comes while it is answered, or soon after.
const KILLED_WHILE_ASKED: u32 = 2;
/// About as long as a request takes, and the first steps of its operation.
const ASKED: Duration = Duration::from_millis(30);
/// The user may have nothing to ask for.
const ASKED_WITHIN: Duration = Duration::from_secs(2);

/// Kills and restarts, tells each, and checks what is left.
pub fn run(options: &Options, tell: impl FnMut(&Killed)) -> anyhow::Result<Tally> {
    let mut maestro = Maestro::started(SETTINGS)?;
    let outcome = run_on(&mut maestro, options, tell);
    outcome.with_context(|| maestro.log_tail()).with_context(|| {
        let Options { kills, fleets, seed } = options;
        let kept = maestro.keep().display();
        format!(
            "seed {seed}; data and log are kept in {kept}; run it again with \
             scripts/chaos mixed --kills {kills} --fleets {fleets} --seed {seed}"
        )
    })
}

fn run_on(maestro: &mut Maestro, options: &Options, tell: impl FnMut(&Killed)) -> anyhow::Result<Tally> {
    let mut random = Rng::with_seed(options.seed);
    let begun = Arc::new(AtomicU32::new(0));
    let user = User {
        client: maestro.api().clone(),
        store_id: maestro.store_id().context("it has no store")?.to_owned(),
        random: random.fork(),
        fleets: fleet::fleets(maestro, options.fleets)?,
        ledger: Ledger::default(),
        begun: begun.clone(),
    };
    crash_loop::begin(maestro)?;
    let over = AtomicBool::new(false);
    let (api_ports, of_senders) = (maestro.api_ports(), random.fork());
    let ledger = thread::scope(|scope| {
        scope.spawn(|| slow_senders::run(api_ports, of_senders, &over));
        let asking = scope.spawn(|| user.run(&over));
        let has_gone = || asking.is_finished();
        let killed = Killer { maestro, random, begun, log_reader: None }.run(options.kills, tell, has_gone);
        // Whatever came of it: the scope ends when the user does.
        over.store(true, Ordering::Relaxed);
        let ledger = asking.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        killed.map(|()| ledger)
    })?;
    crash_loop::end(maestro)?;
    until("everything to come to rest", SETTLE_WITHIN, || rest::at_rest(maestro))?;
    let tally = ledger.check(maestro.api())?;
    no_panic(maestro)?;
    Ok(tally)
}

struct Killer<'a> {
    maestro: &'a mut Maestro,
    random: Rng,
    /// How many requests have begun.
    begun: Arc<AtomicU32>,
    /// Does not read, and keeps the pipe full that is the log of the server that runs.
    log_reader: Option<PipeReader>,
}

impl Killer<'_> {
    /// In the end the server serves.
    fn run(
        mut self,
        kills: u32,
        mut tell: impl FnMut(&Killed),
        user_has_gone: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let mut serves = true;
        for number in 1..=kills {
            let moment = self.choose(serves);
            let killed_after = self.wait(moment);
            self.maestro.kill()?;
            let rooms_at_kill = self.maestro.processes()?.len();
            thread::sleep(DOWN_MAX.mul_f64(self.random.f64()));
            let is_last = number == kills || user_has_gone();
            let launched = Instant::now();
            // The last one tells what went wrong, if something does.
            self.launch(!is_last)?;
            serves = is_last || self.random.u32(..KILLED_WHILE_STARTING) > 0;
            let serving_after = match serves {
                true => Some(self.maestro.await_serving().map(|()| launched.elapsed())?),
                false => None,
            };
            tell(&Killed { number, moment, killed_after, rooms_at_kill, serving_after });
            if is_last {
                break;
            }
        }
        Ok(())
    }

    fn launch(&mut self, log_may_break: bool) -> anyhow::Result<()> {
        let breaks = log_may_break && self.random.u32(..WITH_BROKEN_LOG) == 0;
        let Some(broken) = self.random.choice(BrokenLog::ALL).filter(|_| breaks) else {
            return self.maestro.launch();
        };
        let (log, reader) = broken.open()?;
        self.log_reader = reader;
        self.maestro.launch_with_log(log)
    }

    fn choose(&mut self, serves: bool) -> Moment {
        match serves {
            false => Moment::Launched,
            true if self.random.u32(..KILLED_WHILE_ASKED) == 0 => Moment::Asked,
            true => Moment::Serving,
        }
    }

    /// How long it waited after the moment.
    fn wait(&mut self, moment: Moment) -> Duration {
        let drawn = self.random.f64();
        let after = match moment {
            Moment::Launched => START.mul_f64(drawn),
            Moment::Serving => UP_MAX.mul_f64(drawn.powi(3)),
            Moment::Asked => {
                self.await_request();
                ASKED.mul_f64(drawn)
            }
        };
        thread::sleep(after);
        after
    }

    fn await_request(&self) {
        let before = self.begun.load(Ordering::Relaxed);
        let started = Instant::now();
        while self.begun.load(Ordering::Relaxed) == before && started.elapsed() < ASKED_WITHIN {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Killed {
    pub fn serving_after(&self) -> Option<Duration> {
        self.serving_after
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.moment {
            Moment::Launched => "launch",
            Moment::Serving => "serving",
            Moment::Asked => "request",
        };
        let (after, rooms) = (self.killed_after.as_millis(), self.rooms_at_kill);
        write!(f, "kill {:>3}: {after:>4} ms after {when:<7} with {rooms:>2} rooms; ", self.number)?;
        match self.serving_after {
            Some(serving) => write!(f, "serving in {:>3} ms", serving.as_millis()),
            None => write!(f, "to be killed while it starts"),
        }
    }
}
