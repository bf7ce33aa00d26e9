//! Someone who never rests: asks for all there is to ask for, plays, and breaks rooms, whether the server runs or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use fastrand::Rng;
use maestro_testkit::processes;
use rustix::process::Signal;
use serde_json::json;

use super::fleet::{Fault, Fleet, ROOMS};
use super::history::fleet_size_delta;
use super::ledger::{Ledger, Wish};
use crate::{Answer, Client};

#[derive(Debug, Clone, Copy)]
enum Act {
    Add,
    Remove,
    MinorVersion,
    MajorVersion,
    BrokenVersion,
    Switch,
    PauseRollout,
    ResumeRollout,
    CancelRollout,
    CancelOperation,
    Play,
    BreakRoom,
    Delete,
}

/// How often each is done, of their sum. Rollouts take longest and should be under way most of the time.
const SHARES: [(Act, u32); 13] = [
    (Act::Add, 7),
    (Act::Remove, 7),
    (Act::MinorVersion, 3),
    (Act::MajorVersion, 5),
    (Act::BrokenVersion, 2),
    (Act::Switch, 3),
    (Act::PauseRollout, 2),
    (Act::ResumeRollout, 4),
    (Act::CancelRollout, 2),
    (Act::CancelOperation, 4),
    (Act::Play, 8),
    (Act::BreakRoom, 2),
    (Act::Delete, 2),
];
/// A few requests in a second.
const PAUSE_MAX: Duration = Duration::from_millis(300);
const AMOUNT_MAX: u32 = 2;
/// A person who waits for so many changes of the fleet size does not ask for more. So it stays near to what it began
/// with, and far enough from 0 whatever is canceled: below that nothing could be taken back.
const RESIZES_UNDER_WAY_MAX: usize = 2;
/// A match is over soon after the user has gone.
const MATCH_SECONDS_MAX: u64 = 4;
/// Of so many that were accepted one is canceled at once. Few others can be: most have ended by then.
const REGRETTED: u32 = 5;

pub(super) struct User {
    pub(super) client: Client,
    /// Of the rooms that may be broken.
    pub(super) store_id: String,
    pub(super) random: Rng,
    pub(super) fleets: Vec<Fleet>,
    pub(super) ledger: Ledger,
    /// How many requests have begun, for who wants to kill the server while it answers one.
    pub(super) begun: Arc<AtomicU32>,
}

impl User {
    /// Until it is over. The error is an answer that a server must not give.
    pub(super) fn run(mut self, over: &AtomicBool) -> anyhow::Result<Ledger> {
        while !over.load(Ordering::Relaxed) {
            thread::sleep(PAUSE_MAX.mul_f64(self.random.f64()));
            let index = self.random.usize(..self.fleets.len());
            let act = self.choose();
            self.act(index, act)?;
        }
        Ok(self.ledger)
    }

    fn choose(&mut self) -> Act {
        let sum: u32 = SHARES.iter().map(|(_, share)| share).sum();
        let mut drawn = self.random.u32(..sum);
        for (act, share) in SHARES {
            if drawn < share {
                return act;
            }
            drawn -= share;
        }
        Act::Play
    }

    fn act(&mut self, index: usize, act: Act) -> anyhow::Result<()> {
        let fleet = self.fleets[index].clone();
        let path = format!("/schedulers/{}", fleet.name);
        if !fleet.exists {
            return self.ask(index, Wish::Create, |client, user| {
                client.post("/schedulers", user, &fleet.recipe().to_string())
            });
        }
        match act {
            Act::Add | Act::Remove => self.resize(index, matches!(act, Act::Add)),
            Act::MinorVersion | Act::MajorVersion | Act::BrokenVersion => self.submit(index, act),
            Act::Switch => {
                let Some(version) = self.pick_version(&fleet) else { return Ok(()) };
                let body = json!({ "version": version });
                self.ask(index, Wish::Switch, |client, user| {
                    client.send("PUT", &path, user, &body.to_string())
                })
            }
            Act::PauseRollout => self.post(index, &format!("{path}/rollout/pause")),
            Act::ResumeRollout => self.post(index, &format!("{path}/rollout/resume")),
            Act::CancelRollout => {
                let path = format!("{path}/rollout/cancel");
                self.ask(index, Wish::CancelRollout, |client, user| client.post(&path, user, "{}"))
            }
            Act::CancelOperation => {
                let unfinished = self.client.unfinished(&fleet.name).unwrap_or_default();
                let Some(operation) = self.random.choice(unfinished) else { return Ok(()) };
                self.cancel(index, &operation.id)
            }
            Act::Delete if fleet.passes => {
                self.ask(index, Wish::Delete, |client, user| client.send("DELETE", &path, user, ""))
            }
            Act::Play | Act::Delete => {
                self.play(&fleet);
                Ok(())
            }
            Act::BreakRoom => self.break_room(),
        }
    }

    fn resize(&mut self, index: usize, grow: bool) -> anyhow::Result<()> {
        let name = self.fleets[index].name.clone();
        let amount = self.random.u32(1..=AMOUNT_MAX);
        let add = |client: &Client, user: &str| client.add(&name, amount, user);
        match self.look_at_size(&name) {
            // Nobody answers: most likely nobody will.
            None => self.ask(index, Wish::Add(amount), add),
            Some((_, under_way)) if under_way >= RESIZES_UNDER_WAY_MAX => Ok(()),
            Some((size, _)) if grow && size <= ROOMS => self.ask(index, Wish::Add(amount), add),
            Some((size, _)) if !grow && size >= ROOMS => {
                self.ask(index, Wish::Remove(amount), |client, user| client.remove(&name, amount, user))
            }
            Some(_) => Ok(()),
        }
    }

    /// The fleet size, and how many changes of it are under way.
    fn look_at_size(&self, name: &str) -> Option<(u32, usize)> {
        let fleets = self.client.fleet_infos().ok()?;
        let fleet = fleets.iter().find(|fleet| fleet.name == name)?;
        let unfinished = self.client.unfinished(name).ok()?;
        let resizes = unfinished.iter().filter(|operation| fleet_size_delta(operation).is_some());
        Some((fleet.rooms_replicas, resizes.count()))
    }

    fn submit(&mut self, index: usize, act: Act) -> anyhow::Result<()> {
        let fleet = &self.fleets[index];
        let look = match act {
            Act::MinorVersion => fleet.minor_change(),
            Act::BrokenVersion if self.random.bool() => fleet.broken_change(Fault::NeverReady),
            Act::BrokenVersion => fleet.broken_change(Fault::ExitsAtOnce),
            _ => fleet.major_change(),
        };
        let path = format!("/schedulers/{}", fleet.name);
        let patch = fleet.patch_to(look);
        // Whether or not it was accepted: the same change twice would be none.
        self.fleets[index].took(look);
        self.ask(index, Wish::Version, |client, user| client.send("PATCH", &path, user, &patch.to_string()))
    }

    fn pick_version(&mut self, fleet: &Fleet) -> Option<String> {
        let mut versions = self.client.versions(&fleet.name).ok()?;
        versions.retain(|version| !version.is_active);
        self.random.choice(versions).map(|version| version.version)
    }

    /// A player looks for a room that has a place. There may be none.
    fn play(&mut self, fleet: &Fleet) {
        let Ok(mut rooms) = self.client.rooms(&fleet.name) else { return };
        rooms.retain(|room| room.status == "ready" && !room.validation);
        let length = Duration::from_secs(self.random.u64(1..=MATCH_SECONDS_MAX));
        if let Some(room) = self.random.choice(rooms) {
            // It may have been asked to go since.
            let _ = room.join(length);
        }
    }

    fn break_room(&mut self) -> anyhow::Result<()> {
        let processes = processes::of_store(&self.store_id)?;
        if let Some(process) = self.random.choice(processes) {
            // It may have ended since.
            let _ = processes::send_signal(process.pid, Signal::KILL);
        }
        Ok(())
    }

    /// What makes no operation.
    fn post(&mut self, index: usize, path: &str) -> anyhow::Result<()> {
        let answer = self.client.post(path, "chaos", "{}").ok();
        self.ledger.note_other();
        self.heed(index, answer.as_ref())
    }

    fn ask(
        &mut self,
        index: usize,
        wish: Wish,
        send: impl FnOnce(&Client, &str) -> anyhow::Result<Answer>,
    ) -> anyhow::Result<()> {
        let request = self.ledger.begin(&self.fleets[index].name, wish);
        self.begun.fetch_add(1, Ordering::Relaxed);
        let answer = send(&self.client, &request.user).ok();
        let accepted = self.ledger.note(request, answer.as_ref())?;
        self.heed(index, answer.as_ref())?;
        match accepted {
            Some(operation) if self.random.u32(..REGRETTED) == 0 => self.cancel(index, &operation),
            Some(_) | None => Ok(()),
        }
    }

    fn cancel(&mut self, index: usize, operation: &str) -> anyhow::Result<()> {
        let fleet = &self.fleets[index].name;
        self.post(index, &format!("/schedulers/{fleet}/operations/{operation}/cancel"))
    }

    /// A server that has nothing to do but this has no reason to fail, and the requests are right.
    fn heed(&mut self, index: usize, answer: Option<&Answer>) -> anyhow::Result<()> {
        let Some(answer) = answer else { return Ok(()) };
        self.fleets[index].exists = answer.status != 404;
        // Code 9: another version operation is under way.
        let is_legal = match answer.status {
            200 | 404 | 409 => true,
            400 => answer.json()?["code"] == 9,
            _ => false,
        };
        ensure!(is_legal, "answered {} to a right request: {}", answer.status, answer.text);
        Ok(())
    }
}
