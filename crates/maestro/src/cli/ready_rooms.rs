//! How many rooms of a fleet are ready, and waiting until it has as many as it should.

use std::time::Duration;

use super::{Client, Context, Exit, Failure, Poll, Progress, Resource, plain, poll};

/// So many rooms in a row that ended before they were ready are no accident: nobody has to wait for more of them.
const FAILED_ROOMS_MAX: usize = 3;

/// Lines of a failed room's log that are shown.
const LOG_LINES: &str = "5";

/// The server's word for rooms that end before they are ready.
const CRASHING: &str = "crashing";

/// What a fleet has, what it should have, and the server's word for what is wrong.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadyRooms {
    /// Occupied ones included.
    ready: u64,
    wanted: u64,
    word: String,
    reason: String,
    room: String,
}

impl ReadyRooms {
    pub(super) fn ask(client: &Client, scheduler: &str) -> Result<Self, Failure> {
        let answer = client.get(&Resource::new(&["schedulers"]).query("name", scheduler), "schedulers")?;
        let Some(listed) = answer.get("schedulers").items().first() else {
            return Err(Failure::new(Exit::NotFound, format!("scheduler {scheduler} is gone")));
        };
        let number = |key| listed.get(key).as_u64().unwrap_or(0);
        let text = |key| listed.get("problem").get(key).as_str().unwrap_or_default().to_owned();
        Ok(Self {
            ready: number("roomsReady") + number("roomsOccupied"),
            wanted: number("roomsWanted"),
            word: text("word"),
            reason: text("reason"),
            room: text("room"),
        })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.ready >= self.wanted
    }

    /// `2 of 3 rooms are ready`
    pub(super) fn count(&self) -> String {
        format!("{} of {} rooms are ready", self.ready, self.wanted)
    }

    /// `2 of 3 rooms are ready; starting: not pinged yet: 1 room`
    pub(super) fn with_problem(&self) -> String {
        match self.word.as_str() {
            "" => self.count(),
            word => format!("{}; {word}: {}", self.count(), self.reason),
        }
    }

    fn failure(&self, client: &Client, scheduler: &str, exit: Exit, when: &str) -> Failure {
        let Self { reason, room, .. } = self;
        let mut message = format!("scheduler {scheduler}: {}{when}", self.count());
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        if !room.is_empty() {
            let resource = Resource::new(&["schedulers", scheduler, "rooms", room, "logs"]);
            let log = client.get_text(&resource.query("tail", LOG_LINES)).unwrap_or_default();
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

/// Returns how many are ready, in words.
pub(super) fn wait(context: &Context, scheduler: &str, timeout: Duration) -> Result<String, Failure> {
    let client = context.client()?;
    let ask = |client: &Client| ReadyRooms::ask(client, scheduler);
    let poll = Poll { client: &client, ask: &ask, timeout: Some(timeout), interval: poll::INTERVAL };
    let mut seen = ReadyRooms::default();
    // Different ones, while no room has become ready.
    let mut failed_rooms: Vec<String> = Vec::new();
    let last = poll.run(Progress::beside_result(), |rooms, progress| {
        progress.state(&rooms.with_problem())?;
        if rooms.ready > seen.ready {
            failed_rooms.clear();
        }
        if rooms.word == CRASHING && !failed_rooms.contains(&rooms.room) {
            failed_rooms.push(rooms.room.clone());
        }
        if failed_rooms.len() >= FAILED_ROOMS_MAX {
            return Err(rooms.failure(&client, scheduler, Exit::Failed, ""));
        }
        seen = rooms.clone();
        Ok(rooms.is_complete())
    })?;
    match last {
        Some(rooms) => Ok(rooms.count()),
        None => Err(seen.failure(&client, scheduler, Exit::TimedOut, &format!(" after {timeout:?}"))),
    }
}
