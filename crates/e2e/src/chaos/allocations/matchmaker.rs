//! Somebody who asks for rooms all the time, in every way that there is, and now and then hangs up.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fastrand::Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ledger::{Fate, Given};
use super::{Contest, SCHEDULER};
use crate::client::{Client, Time};
use crate::{Answer, Maestro};

/// Longer than any answer takes.
const PATIENT: Duration = Duration::from_secs(60);
/// Whoever hangs up does it before, or after, the server has written what it gives.
const IMPATIENT: Duration = Duration::from_millis(15);
/// Of so many requests one is hung up on.
const HUNG_UP: u32 = 20;
/// Without an answer, or with one that is no decision, it is asked again.
const ATTEMPTS_MAX: u32 = 20;
const COUNT_MAX: u32 = 3;
/// So many pairs of players there are, in percent of the most rooms that the fleet has.
const PLAYERS_PERCENT: usize = 110;
const WAIT_MAX_MILLIS: u64 = 500;
/// The server allows no less.
const TTL_MIN: Duration = Duration::from_secs(1);
/// In ping intervals: a room hears of its players with one ping, and says with the next that they are there.
const TTL: std::ops::RangeInclusive<u32> = 4..=10;
const THINKS_MAX: Duration = Duration::from_millis(50);
const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) struct Matchmaker<'a> {
    contest: &'a Contest,
    patient: Client,
    impatient: Client,
    path: String,
    number: u32,
    random: Rng,
}

struct Request {
    id: Option<String>,
    waits: bool,
    hangs_up: bool,
    fate: Fate,
    body: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Allocation {
    id: String,
    room_id: String,
    host: String,
    expires_at: Time,
}

impl<'a> Matchmaker<'a> {
    pub(super) fn new(maestro: &Maestro, contest: &'a Contest, number: u32, random: Rng) -> Self {
        // Both APIs have allocations.
        let api = if number.is_multiple_of(2) { maestro.api().clone() } else { maestro.rooms_api() };
        Self {
            contest,
            patient: api.keeping_connections(PATIENT),
            impatient: api.keeping_connections(IMPATIENT),
            path: format!("/schedulers/{SCHEDULER}/allocations"),
            number,
            random,
        }
    }

    /// Until it is over. The error is an answer that a server must not give.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        for number in 0_u64.. {
            self.await_players();
            if self.contest.is_over() {
                break;
            }
            let request = self.draw(number);
            if let Some(given) = self.ask(&request)? {
                self.use_up(&request, &given)?;
            }
        }
        Ok(())
    }

    /// There are more than the fleet has rooms, but not without end: during a rollout, a fleet has room for all players.
    fn await_players(&self) {
        let most = self.contest.options.rooms as usize * PLAYERS_PERCENT / 100;
        while self.contest.ledger.taken().0 >= most && !self.contest.is_over() {
            thread::sleep(AGAIN_AFTER);
        }
    }

    fn draw(&mut self, number: u64) -> Request {
        let has_id = self.random.u32(..4) > 0;
        let id = has_id.then(|| format!("{}-{number}", self.number));
        let waits = self.random.bool();
        let count = if self.random.u32(..5) == 0 { self.random.u32(2..=COUNT_MAX) } else { 1 };
        let mut body = json!({
            "count": count,
            "waitMillis": if waits { self.random.u64(1..=WAIT_MAX_MILLIS) } else { 0 },
            "ttlMillis": (self.contest.options.ping_every * self.random.u32(TTL)).max(TTL_MIN).as_millis() as u64,
            "wishes": self.draw_wishes(),
            "metadata": {"for": number},
        });
        if let Some(id) = &id {
            body["requestId"] = id.as_str().into();
        }
        let fate = match self.random.u32(..10) {
            0..6 => Fate::Play,
            6..9 => Fate::GiveBack,
            _ => Fate::Forget,
        };
        Request { id, waits, hangs_up: self.random.u32(..HUNG_UP) == 0, fate, body }
    }

    fn draw_wishes(&mut self) -> Value {
        match self.random.u32(..6) {
            0 => json!([{"version": "v1.0.0"}, {}]),
            1 => json!([{"metadata": {"map": "lava"}}, {"regions": ["default"]}]),
            2 => json!([{"metadata": {"map": "sea"}}, {}]),
            _ => json!([]),
        }
    }

    /// `None`: there is no room, or nobody knows.
    fn ask(&self, request: &Request) -> anyhow::Result<Option<Vec<Given>>> {
        let counts = &self.contest.counts;
        let body = request.body.to_string();
        for attempt in 1..=ATTEMPTS_MAX {
            let hangs_up = request.hangs_up && attempt == 1;
            let client = if hangs_up { &self.impatient } else { &self.patient };
            let asked = Instant::now();
            let answer = client.post(&self.path, "matchmaker", &body);
            match answer {
                Ok(answer) if answer.status == 200 => {
                    if attempt == 1 && !request.waits {
                        counts.answered_in(asked.elapsed());
                    }
                    return given(request, &answer).map(Some);
                }
                Ok(answer) if answer.status == 429 => {
                    counts.refused();
                    return Ok(None);
                }
                // What the first attempt was given has expired meanwhile, or its room is gone.
                Ok(answer) if answer.status == 409 && attempt > 1 => return Ok(None),
                Ok(answer) if matches!(answer.status, 503 | 504) => counts.unavailable(),
                Ok(answer) => bail!("{} was answered with {}: {}", request.body, answer.status, answer.text),
                Err(_) if hangs_up => counts.hung_up(),
                Err(error) => return Err(error),
            }
            if request.id.is_none() {
                return Ok(None);
            }
            counts.repeated();
            thread::sleep(AGAIN_AFTER);
        }
        bail!("{} was not answered in {ATTEMPTS_MAX} attempts", request.body)
    }

    fn use_up(&mut self, request: &Request, given: &[Given]) -> anyhow::Result<()> {
        self.contest.counts.gave(given.len());
        let rooms: std::collections::BTreeSet<_> = given.iter().map(|one| one.room.as_str()).collect();
        ensure!(rooms.len() == given.len(), "a room was given twice at once: {given:?}");
        ensure!(request.body["count"] == given.len(), "{} was given {given:?}", request.body);
        for one in given {
            self.contest.ledger.give(one.clone())?;
        }
        if request.fate != Fate::GiveBack {
            return Ok(());
        }
        thread::sleep(THINKS_MAX.mul_f64(self.random.f64()));
        given.iter().try_for_each(|one| self.give_back(one))
    }

    fn give_back(&self, given: &Given) -> anyhow::Result<()> {
        self.contest.ledger.give_back(given);
        for _ in 0..ATTEMPTS_MAX {
            let answer = self.patient.delete(&format!("{}/{}", self.path, given.id))?;
            match answer.status {
                204 => {
                    self.contest.ledger.was_given_back(given);
                    return Ok(());
                }
                // Its room is gone, or it has expired.
                409 => return Ok(()),
                503 | 504 => thread::sleep(AGAIN_AFTER),
                _ => bail!("{given:?} could not be given back: {} {}", answer.status, answer.text),
            }
        }
        bail!("{given:?} could not be given back in {ATTEMPTS_MAX} attempts")
    }
}

fn given(request: &Request, answer: &Answer) -> anyhow::Result<Vec<Given>> {
    let allocations: Vec<Allocation> = serde_json::from_value(answer.json()?["allocations"].take())
        .with_context(|| format!("allocations in {}", answer.text))?;
    let given = |allocation: Allocation| {
        ensure!(!allocation.host.is_empty(), "a room without an address: {allocation:?}");
        Ok(Given {
            id: allocation.id,
            room: allocation.room_id,
            request_id: request.id.clone(),
            expires_at: allocation.expires_at.0,
            fate: request.fate,
        })
    };
    allocations.into_iter().map(given).collect()
}
