//! What happens to the fleet meanwhile: it is made smaller and larger, its rooms are killed, and new versions replace them.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use fastrand::Rng;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Contest, SCHEDULER, SETTLE_WITHIN, recipe};
use crate::{Maestro, send_signal, until};

#[derive(Debug, Clone, Copy)]
enum Change {
    KillRooms,
    Shrink,
    Grow,
    NewVersion(u32),
}

const KILLINGS: u32 = 19;
/// Of so many rooms one is killed, each time.
const KILLED: u32 = 100;
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(super) struct Changes<'a> {
    pub(super) maestro: &'a Maestro,
    pub(super) contest: &'a Contest,
    pub(super) random: Rng,
}

impl Changes<'_> {
    /// Until the work is done and the last version is rolled out.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        for (at, change) in planned(self.contest.options.rollouts) {
            self.await_progress(at);
            self.make(change).with_context(|| format!("{change:?}"))?;
        }
        self.await_progress(1.0);
        let last = format!("v{}.", 1 + self.contest.options.rollouts);
        until("the last rollout to end", SETTLE_WITHIN, || {
            let versions = self.maestro.api().versions(SCHEDULER)?;
            let deployed = versions.iter().find(|version| version.is_active && version.status == "deployed");
            let is_last = deployed.is_some_and(|version| version.version.starts_with(&last));
            ensure!(is_last || self.contest.is_over(), "{versions:?}");
            Ok(())
        })
    }

    fn await_progress(&self, progress: f64) {
        while self.contest.progress() < progress && !self.contest.is_over() {
            thread::sleep(LOOK_EVERY);
        }
    }

    fn make(&mut self, change: Change) -> anyhow::Result<()> {
        let options = &self.contest.options;
        match change {
            Change::KillRooms => self.kill_rooms(),
            Change::Shrink => self.patch(&json!({"autoscaling": {"max": recipe::fewer(options)}})),
            Change::Grow => self.patch(&json!({"autoscaling": {"max": options.rooms}})),
            Change::NewVersion(number) => self.patch(&json!({"labels": {"number": number.to_string()}})),
        }
    }

    /// While another version is being made, this one is refused.
    fn patch(&self, patch: &Value) -> anyhow::Result<()> {
        let path = format!("/schedulers/{SCHEDULER}");
        until("a version to be accepted", SETTLE_WITHIN, || {
            let answer = self.maestro.api().send("PATCH", &path, "e2e", &patch.to_string())?;
            ensure!(answer.status == 200 || self.contest.is_over(), "{}", answer.text);
            Ok(())
        })
    }

    fn kill_rooms(&mut self) -> anyhow::Result<()> {
        let mut rooms = self.maestro.api().rooms(SCHEDULER)?;
        rooms.retain(|room| !room.pids.is_empty() && !room.validation);
        self.random.shuffle(&mut rooms);
        for room in rooms.iter().take(rooms.len().div_ceil(KILLED as usize)) {
            self.contest.ledger.kill(&room.id);
            // It may have ended since.
            let _ = send_signal(room.pids[0], Signal::KILL);
        }
        Ok(())
    }
}

/// What is done when, in parts of the work.
fn planned(rollouts: u32) -> Vec<(f64, Change)> {
    let share = |number: u32, of: u32| f64::from(number) / f64::from(of + 1);
    let mut planned: Vec<_> =
        (1..=KILLINGS).map(|number| (share(number, KILLINGS), Change::KillRooms)).collect();
    planned.extend([
        (0.15, Change::Shrink),
        (0.45, Change::Grow),
        (0.65, Change::Shrink),
        (0.85, Change::Grow),
    ]);
    planned.extend((1..=rollouts).map(|number| (share(number, rollouts) - 0.05, Change::NewVersion(number))));
    planned.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    planned
}
