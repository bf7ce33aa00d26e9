//! Waiting until a fleet has the rooms that it should have.

use std::time::Duration;

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::json::Json;
use crate::cli::output::plain;
use crate::cli::poll::{self, Observer, Poll};
use crate::cli::resource::Resource;
use crate::cli::watch::Progress;

/// So many rooms in a row that ended before they were ready are no accident: nobody has to wait for more of them.
const FAILED_ROOMS_MAX: usize = 3;

/// Lines of a failed room's log that are shown.
const LOG_LINES: &str = "5";

/// The server's word for rooms that end before they are ready.
const CRASHING: &str = "crashing";

/// Returns how many are ready, in words.
pub(super) fn wait(context: &Context, scheduler: &str, timeout: Duration) -> Result<String, Failure> {
    let client = context.client()?;
    let resource = Resource::new(&["schedulers"]).query("name", scheduler);
    let ask = |client: &Client| client.get(&resource, "schedulers");
    let poll = Poll { client: &client, ask: &ask, timeout: Some(timeout), interval: poll::INTERVAL };
    let mut waiting = Waiting {
        client: &client,
        scheduler,
        progress: Progress::beside_result(),
        line: String::new(),
        seen: Seen::default(),
        failed_rooms: Vec::new(),
    };
    poll.run(&mut waiting)?;
    Ok(waiting.seen.rooms())
}

struct Waiting<'a> {
    client: &'a Client,
    scheduler: &'a str,
    progress: Progress,
    /// What was said last.
    line: String,
    seen: Seen,
    /// Different ones, while no room has become ready.
    failed_rooms: Vec<String>,
}

#[derive(Debug, Default)]
struct Seen {
    ready: u64,
    occupied: u64,
    wanted: u64,
    word: String,
    reason: String,
    room: String,
}

impl Seen {
    fn of(scheduler: &Json) -> Self {
        let number = |key| scheduler.get(key).as_u64().unwrap_or(0);
        let text = |key| scheduler.get("problem").get(key).as_str().unwrap_or_default().to_owned();
        Self {
            ready: number("roomsReady"),
            occupied: number("roomsOccupied"),
            wanted: number("roomsWanted"),
            word: text("word"),
            reason: text("reason"),
            room: text("room"),
        }
    }

    fn is_complete(&self) -> bool {
        self.ready + self.occupied >= self.wanted
    }

    /// `2 of 3 rooms are ready`
    fn rooms(&self) -> String {
        format!("{} of {} rooms are ready", self.ready + self.occupied, self.wanted)
    }
}

impl Waiting<'_> {
    fn failure(&self, exit: Exit, when: &str) -> Failure {
        let Seen { reason, room, .. } = &self.seen;
        let scheduler = self.scheduler;
        let mut message = format!("scheduler {scheduler}: {}{when}", self.seen.rooms());
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        if !room.is_empty() {
            let resource = Resource::new(&["schedulers", scheduler, "rooms", room, "logs"]);
            let log = self.client.get_text(&resource.query("tail", LOG_LINES)).unwrap_or_default();
            for line in log.lines() {
                message.push_str(&format!("\n  | {}", plain(line)));
            }
            message.push_str(&format!("\nits log: maestro room logs {scheduler} {room}"));
        }
        message.push_str(&format!(
            "\nthe scheduler keeps trying; change it with maestro scheduler apply, or remove it: maestro scheduler delete {scheduler}"
        ));
        Failure::new(exit, message)
    }
}

impl Observer for Waiting<'_> {
    fn saw(&mut self, answer: &Json) -> Result<bool, Failure> {
        let Some(scheduler) = answer.get("schedulers").items().first() else {
            let message = format!("scheduler {} is gone", self.scheduler);
            return Err(Failure::new(Exit::NotFound, message));
        };
        let seen = Seen::of(scheduler);
        let problem = if seen.word.is_empty() { String::new() } else { format!(" ({})", seen.word) };
        let line = format!("{}{problem}", seen.rooms());
        if line != self.line {
            self.progress.say(&line)?;
            self.line = line;
        }
        if seen.ready + seen.occupied > self.seen.ready + self.seen.occupied {
            self.failed_rooms.clear();
        }
        if seen.word == CRASHING && !self.failed_rooms.contains(&seen.room) {
            self.failed_rooms.push(seen.room.clone());
        }
        self.seen = seen;
        if self.failed_rooms.len() >= FAILED_ROOMS_MAX {
            return Err(self.failure(Exit::Failed, ""));
        }
        Ok(self.seen.is_complete())
    }

    fn unreachable(&mut self, message: &str) {
        self.progress.unreachable(message);
    }

    fn end(&mut self) {
        self.progress.end();
    }

    fn timed_out(&self, after: Duration) -> Failure {
        self.failure(Exit::TimedOut, &format!(" after {after:?}"))
    }
}
