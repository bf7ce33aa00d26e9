//! Holds that have to be settled, of all schedulers.
//!
//! Each scheduler's holds are in its own keys, by when they are due. Which schedulers have any is noted in a key of its own
//! before the first hold is made, and forgotten when there are none any more, so that nobody asks a thousand schedulers
//! every second.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use maestro_core::allocation::Hold;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::room_table::{DueHold, HoldKey};
use serde::Deserialize;

use crate::failure::Failure;
use crate::record::HoldRecord;
use crate::table::{AT_ONCE, Table};

/// Of each kind, at once. Whoever wants more looks again when these are settled.
const DUE_MAX: usize = 250;

/// Rooms whose holds are read at once.
const ROOMS_MAX: usize = 250;

/// The keys in which schedulers are noted.
const KEYS: &str = "holds";

#[derive(Deserialize)]
struct Held(String, HoldRecord);

impl Table {
    pub(crate) async fn note_holds(&self, scheduler: &SchedulerName) -> Result<(), Failure> {
        self.run_shared::<u8>(&self.scripts.hint, KEYS, &("note", scheduler.as_str())).await?;
        Ok(())
    }

    pub(crate) async fn due(
        self: &Arc<Self>,
        now: Timestamp,
        ping_timeout: Millis,
        holds_max: usize,
    ) -> Result<Vec<DueHold>, Failure> {
        let noted: Vec<(String, u64)> = self.run_shared(&self.scripts.hint, KEYS, &("list",)).await?;
        let found = stream::iter(noted)
            .map(|(name, since)| self.due_of(name, since, now, ping_timeout, holds_max))
            .buffer_unordered(AT_ONCE);
        let mut due: Vec<DueHold> = found.try_concat().await?;
        due.sort_by_cached_key(|due| (due.hold.due_at(ping_timeout), due.key.clone()));
        due.truncate(holds_max);
        Ok(due)
    }

    /// None of a scheduler whose rooms are lost: its holds come back with them.
    async fn due_of(
        self: &Arc<Self>,
        name: String,
        noted_since: u64,
        now: Timestamp,
        ping_timeout: Millis,
        holds_max: usize,
    ) -> Result<Vec<DueHold>, Failure> {
        let scheduler =
            SchedulerName::parse(&name).map_err(|error| Failure::unreadable("a noted scheduler", error))?;
        let millis = now.as_millisecond();
        let timeout = i64::try_from(ping_timeout.0).unwrap_or(i64::MAX);
        let asked = (millis.saturating_sub(timeout), millis, holds_max.min(DUE_MAX));
        let found = self.run::<(u8, Vec<Held>)>(&self.scripts.due, &scheduler, &asked).await;
        let (has_holds, found) = match found {
            Err(Failure::Lost(_)) => return Ok(Vec::new()),
            found => found?,
        };
        if has_holds == 0 {
            self.run_shared::<u8>(&self.scripts.hint, KEYS, &("drop", name, noted_since)).await?;
        }
        found.into_iter().map(|held| held.read(&scheduler)).collect()
    }

    pub(crate) async fn all_holds(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
    ) -> Result<Vec<DueHold>, Failure> {
        let (mut all, mut from) = (Vec::new(), String::new());
        loop {
            let (last, found): (String, Vec<Held>) =
                self.run(&self.scripts.held, scheduler, &(from, ROOMS_MAX)).await?;
            for held in found {
                all.push(held.read(scheduler)?);
            }
            if last.is_empty() {
                return Ok(all);
            }
            from = last;
        }
    }
}

impl Held {
    fn read(self, scheduler: &SchedulerName) -> Result<DueHold, Failure> {
        let Self(room, record) = self;
        let hold: Hold = record.read()?;
        let key = HoldKey { scheduler: scheduler.clone(), room: RoomId::new(&room), number: hold.number };
        Ok(DueHold { key, hold })
    }
}
