//! What is to be sent, and when: all that the SDK decides, without thread, clock or network.

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};

use crate::allocation::Allocations;
use crate::http::Reply;
use crate::pace::Pace;
use crate::ping::{Answer, LastPing, Ping, Status};

#[derive(Debug)]
pub(crate) struct State {
    /// None: the game is still starting.
    pub(crate) status: Option<Status>,
    matches: u32,
    metadata: Map<String, Value>,
    pub(crate) allocations: Allocations,
    pace: Pace,
    watchdog: Option<Watchdog>,
    pub(crate) terminate_requested: bool,
    closing: bool,
    pub(crate) last_ping: Option<LastPing>,
}

/// What the pinging thread does next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Send(Ping),
    /// The last one: whatever the answer, the thread ends.
    Farewell(Ping),
    /// Until something changes, or for this long.
    Wait(Option<Duration>),
}

#[derive(Debug)]
struct Watchdog {
    within: Duration,
    silent_from: Instant,
}

impl State {
    pub(crate) fn new(pace: Pace, alive_within: Option<Duration>, now: Instant) -> Self {
        Self {
            status: None,
            matches: 0,
            metadata: Map::new(),
            allocations: Allocations::default(),
            pace,
            watchdog: alive_within.map(|within| Watchdog { within, silent_from: now + within }),
            terminate_requested: false,
            closing: false,
            last_ping: None,
        }
    }

    /// What the game says of itself. There is no way back from `terminating`: what ends is no longer offered to players.
    pub(crate) fn report(&mut self, now: Instant, status: Status, matches: u32) {
        let ending = self.status == Some(Status::Terminating);
        let status = if ending { Status::Terminating } else { status };
        if (self.status, self.matches) != (Some(status), matches) {
            self.status = Some(status);
            self.matches = matches;
            self.pace.change(now);
        }
    }

    /// The match of an allocation has begun, one of so many. In one ping with their number: a rise of that alone would
    /// begin the allocation that expires first.
    pub(crate) fn begin(&mut self, now: Instant, allocation: String, matches: u32) {
        self.allocations.begin(allocation);
        self.report(now, Status::of_matches(matches), matches);
        self.pace.change(now);
    }

    pub(crate) fn terminating(&mut self, now: Instant) {
        self.report(now, Status::Terminating, self.matches);
    }

    pub(crate) fn request_terminate(&mut self, now: Instant) {
        self.terminate_requested = true;
        self.terminating(now);
    }

    pub(crate) fn set_metadata(&mut self, key: String, value: Value) {
        self.metadata.insert(key, value);
    }

    /// The game is not stuck. Tells whether pings had fallen silent.
    pub(crate) fn alive(&mut self, now: Instant) -> bool {
        let was_silent = self.is_silent(now);
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.silent_from = now + watchdog.within;
        }
        was_silent
    }

    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Whatever it tells to send counts as sent.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        // Maestro should get `terminating` before `terminated`, also of a room that ends at once.
        let terminating_unsent = self.status == Some(Status::Terminating) && self.pace.changed;
        if self.closing && !terminating_unsent {
            return Next::Farewell(self.ping(Status::Terminated));
        }
        let Some(status) = self.status else {
            return Next::Wait(None);
        };
        // A stuck game still says that it was told to end; what it said before, it can no longer vouch for.
        if self.is_silent(now) && !terminating_unsent {
            return Next::Wait(None);
        }
        match self.pace.wait(now) {
            None => Next::Wait(None),
            Some(wait) if !wait.is_zero() && !self.closing => Next::Wait(Some(wait)),
            Some(_) => {
                self.pace.sent(now);
                Next::Send(self.ping(status))
            }
        }
    }

    pub(crate) fn answered(&mut self, now: Instant, sent: (&Ping, SystemTime), reply: Reply) {
        let (ping, at) = sent;
        let Reply { answer, allocations } = reply;
        self.pace.answered(now, answer == Answer::Accepted);
        self.last_ping = Some(LastPing { status: ping.status, at, answer, failures: self.pace.failures });
        if let Some(allocations) = allocations {
            self.allocations.confirm_begun(&ping.begun);
            self.allocations.update(allocations);
        }
    }

    fn ping(&self, status: Status) -> Ping {
        Ping {
            status,
            running_matches: self.matches,
            metadata: self.metadata.clone(),
            begun: self.allocations.begun().to_vec(),
        }
    }

    fn is_silent(&self, now: Instant) -> bool {
        self.watchdog.as_ref().is_some_and(|watchdog| now >= watchdog.silent_from)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
