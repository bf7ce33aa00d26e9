//! A call through a port as it goes over a wire: on its way, carried out, on its way back. It can be slow and fail on
//! both ways, and be the last thing that a node does.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use maestro_engine::ports::Clock;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::clock::VirtualClock;
use crate::coverage::{Coverage, RareEvent};
use crate::host::Span;
use crate::invariants::Inspector;
use crate::life::Life;
use crate::seed::fork;
use crate::trace::Trace;

use super::{ActiveFaults, Faults, PortFaults};

/// What all ports of one node have in common.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) node: Arc<str>,
    /// Forked anew for each port.
    pub(crate) seed: u64,
    pub(crate) life: Life,
    /// Of its host: it may be wrong.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) active_faults: ActiveFaults,
    pub(crate) trace: Trace,
    pub(crate) coverage: Coverage,
    pub(crate) inspector: Inspector,
}

/// One port of one node.
pub(crate) struct FaultInjector {
    around: Surroundings,
    port: Arc<str>,
    faults_of: fn(&Faults) -> PortFaults,
    random: Mutex<fastrand::Rng>,
}

/// The words for a call: made only when something is to be said of it.
pub(crate) type What<'a> = dyn Display + Sync + 'a;

/// What is called for.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) what: &'a What<'a>,
    /// It changes something: whether it did can stay unknown.
    pub(crate) writes: bool,
    /// What it takes on each way if nothing is wrong.
    pub(crate) latency: Span,
}

/// What a caller knows of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It was not carried out.
    NotDone,
    /// It was carried out, or it was not.
    Unknown,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Well,
    /// The other side cannot be reached, and the caller notices that.
    Unreachable,
    FailsBefore,
    FailsAfter,
    CrashesBefore,
    CrashesAfter,
}

struct Journey {
    there: Duration,
    back: Duration,
    fate: Fate,
}

impl<'a> Call<'a> {
    pub(crate) fn read(what: &'a What<'a>) -> Self {
        Self { what, writes: false, latency: Span::ZERO }
    }

    pub(crate) fn write(what: &'a What<'a>, latency: Span) -> Self {
        Self { what, writes: true, latency }
    }
}

impl Surroundings {
    /// Nothing goes wrong in them.
    pub(crate) fn quiet(life: Life, trace: Trace) -> Self {
        Self {
            node: "engine".into(),
            seed: 0,
            life,
            clock: Arc::new(VirtualClock::begin()),
            active_faults: ActiveFaults::none(),
            inspector: Inspector::new(trace.clone()),
            trace,
            coverage: Coverage::default(),
        }
    }
}

impl FaultInjector {
    pub(crate) fn new(around: Surroundings, port: &str, faults_of: fn(&Faults) -> PortFaults) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(fork(around.seed, port, 0)));
        Self { around, port: port.into(), faults_of, random }
    }

    pub(crate) fn around(&self) -> &Surroundings {
        &self.around
    }

    pub(crate) fn note(&self, text: impl Display) {
        self.around.trace.note(format_args!("{} {}: {text}", self.around.node, self.port));
    }

    /// Carries `act` out, or not. `lost` is the error of who hears no answer.
    pub(crate) async fn call<T, E>(
        &self,
        call: Call<'_>,
        act: impl Future<Output = Result<T, E>>,
        lost: impl Fn(Loss, &'static str) -> E,
    ) -> Result<T, E> {
        let life = &self.around.life;
        life.still_alive().await;
        self.around.active_faults.called(call.what);
        let Journey { there, back, fate } = self.draw(call);
        travel(there).await;
        life.still_alive().await;
        match fate {
            Fate::Unreachable => {
                self.saw(RareEvent::Unreachable, call, "not sent");
                return Err(lost(Loss::NotDone, "it cannot be reached"));
            }
            Fate::FailsBefore => {
                self.saw(RareEvent::LostRequest, call, "lost on its way");
                return Err(lost(Loss::Unknown, "it does not answer"));
            }
            Fate::CrashesBefore => {
                self.crash(RareEvent::CrashBeforeWrite, call, "the engine dies before").await;
            }
            Fate::Well | Fate::FailsAfter | Fate::CrashesAfter => {}
        }
        let outcome = act.await;
        if fate == Fate::CrashesAfter {
            self.crash(RareEvent::CrashAfterWrite, call, "the engine dies after").await;
        }
        life.still_alive().await;
        travel(back).await;
        life.still_alive().await;
        if fate == Fate::FailsAfter {
            self.saw(RareEvent::LostReply, call, "done, and its answer is lost");
            return Err(lost(Loss::Unknown, "its answer was lost"));
        }
        outcome
    }

    fn draw(&self, call: Call<'_>) -> Journey {
        let faults = (self.faults_of)(&self.around.active_faults.now());
        let mut random = self.random.lock();
        let slow = faults.slow.hits(&mut random);
        let mut way = || {
            let usual =
                if call.latency == Span::ZERO { Duration::ZERO } else { call.latency.draw(&mut random) };
            if slow { usual + faults.slow_for.draw(&mut random) } else { usual }
        };
        let (there, back) = (way(), if call.writes { way() } else { Duration::ZERO });
        let fate = match call.writes {
            true if faults.fails_before.hits(&mut random) => {
                if random.bool() {
                    Fate::FailsBefore
                } else {
                    Fate::Unreachable
                }
            }
            false if faults.fails_before.hits(&mut random) => Fate::Unreachable,
            true if faults.fails_after.hits(&mut random) => Fate::FailsAfter,
            true if faults.crashes_before.hits(&mut random) => Fate::CrashesBefore,
            true if faults.crashes_after.hits(&mut random) => Fate::CrashesAfter,
            true | false => Fate::Well,
        };
        if slow {
            self.around.coverage.saw(RareEvent::SlowCall);
        }
        Journey { there, back, fate }
    }

    /// Never returns.
    async fn crash(&self, event: RareEvent, call: Call<'_>, how: &str) {
        // The faults ended while the call was on its way.
        if (self.faults_of)(&self.around.active_faults.now()) == PortFaults::NONE {
            return;
        }
        self.saw(event, call, how);
        self.around.life.end();
        self.around.life.still_alive().await;
    }

    fn saw(&self, event: RareEvent, call: Call<'_>, how: &str) {
        self.note(format_args!("{how}: {}", call.what));
        self.around.coverage.saw(event);
    }
}

/// A way of no length takes no turn in the scheduler either.
async fn travel(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}
