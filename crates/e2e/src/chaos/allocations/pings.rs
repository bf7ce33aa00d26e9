//! What rooms do: a few threads ping for all of them, and begin and end their matches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::ensure;
use fastrand::Rng;
use parking_lot::RwLock;
use serde_json::json;

use super::{Contest, SCHEDULER};
use crate::client::Client;
use crate::{Maestro, Room};

/// They wait more than they work.
const PINGERS: usize = 32;
const LIST_EVERY: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// In ping intervals.
const MATCH_MAX: f64 = 3.0;

pub(super) struct Pings<'a> {
    maestro: &'a Maestro,
    contest: &'a Contest,
    rooms: RwLock<Vec<Room>>,
}

/// One room, as its pinger knows it.
struct Pinged {
    /// A little later for each, so that they do not all ping at once.
    next: Instant,
    map: &'static str,
    /// The allocations whose players it waits for, as the server has said.
    expected: Vec<String>,
    playing: Option<Match>,
}

struct Match {
    allocation: String,
    ends: Instant,
}

impl<'a> Pings<'a> {
    pub(super) fn new(maestro: &'a Maestro, contest: &'a Contest) -> Self {
        Self { maestro, contest, rooms: RwLock::default() }
    }

    /// They end when everything is at rest.
    pub(super) fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        random: &mut Rng,
    ) -> Vec<ScopedJoinHandle<'scope, anyhow::Result<()>>> {
        let listing = scope.spawn(|| self.contest.or_over(self.list()));
        let pinging = (0..PINGERS).map(|shard| {
            let random = random.fork();
            scope.spawn(move || self.contest.or_over(self.ping_all(shard, random)))
        });
        pinging.collect::<Vec<_>>().into_iter().chain([listing]).collect()
    }

    fn is_at_rest(&self) -> bool {
        self.contest.at_rest.load(Ordering::Relaxed)
    }

    fn list(&self) -> anyhow::Result<()> {
        let client = self.maestro.api().keeping_connections(TIMEOUT);
        while !self.is_at_rest() {
            let rooms = client.rooms(SCHEDULER)?;
            self.contest.ledger.count(rooms.iter().map(|room| room.id.as_str()));
            *self.rooms.write() = rooms;
            thread::sleep(LIST_EVERY);
        }
        Ok(())
    }

    /// Those of a part of the rooms.
    fn ping_all(&self, shard: usize, mut random: Rng) -> anyhow::Result<()> {
        let client = self.maestro.rooms_api().keeping_connections(TIMEOUT);
        let mut known: BTreeMap<String, Pinged> = BTreeMap::new();
        while !self.is_at_rest() {
            let rooms: BTreeSet<String> = {
                let rooms = self.rooms.read();
                let ids = rooms.iter().map(|room| room.id.as_str());
                ids.filter(|id| shard_of(id) == shard).map(str::to_owned).collect()
            };
            known.retain(|id, _| rooms.contains(id));
            for id in rooms.into_iter().filter(|id| !self.contest.ledger.is_killed(id)) {
                let room = known.entry(id.clone()).or_insert_with(|| self.first(&mut random));
                if room.next <= Instant::now() {
                    self.ping(&client, &id, room, &mut random)?;
                    room.next = Instant::now() + self.contest.options.ping_every;
                }
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn first(&self, random: &mut Rng) -> Pinged {
        let map = if random.bool() { "lava" } else { "ice" };
        let later = self.contest.options.ping_every.mul_f64(random.f64());
        Pinged { next: Instant::now() + later, map, expected: Vec::new(), playing: None }
    }

    fn ping(&self, client: &Client, id: &str, room: &mut Pinged, random: &mut Rng) -> anyhow::Result<()> {
        let ledger = &self.contest.ledger;
        if let Some(over) = room.playing.take_if(|playing| playing.ends <= Instant::now()) {
            ledger.end_match(id, &over.allocation);
        }
        if room.playing.is_none()
            && let Some(allocation) = ledger.begin_match(id, &room.expected)
        {
            let length = self.contest.options.ping_every.mul_f64(MATCH_MAX * random.f64());
            room.playing = Some(Match { allocation, ends: Instant::now() + length });
        }
        let mut body = json!({"status": "ready", "metadata": {"map": room.map}});
        if let Some(Match { allocation, .. }) = &room.playing {
            body["status"] = "occupied".into();
            body["runningMatches"] = 1.into();
            body["begun"] = json!([allocation]);
        }
        let answer = client.ping(SCHEDULER, id, &body)?;
        self.contest.counts.pinged();
        // What it said may have come, or not: it knows nothing for certain until the next answer.
        room.expected.clear();
        if matches!(answer.status, 503 | 504) {
            self.contest.counts.unavailable();
            return Ok(());
        }
        let told = answer.expect(200)?.json()?;
        let expected = told["allocations"].as_array().into_iter().flatten();
        room.expected.extend(expected.filter_map(|one| one["id"].as_str().map(str::to_owned)));
        ensure!(room.expected.len() <= 1, "{id} holds one match, and expects more: {told}");
        Ok(())
    }
}

fn shard_of(id: &str) -> usize {
    id.bytes().map(usize::from).sum::<usize>() % PINGERS
}
