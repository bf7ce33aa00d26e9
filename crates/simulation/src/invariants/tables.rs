//! What rooms have said, whatever became of the table that heard it, and of which instances ends were seen.

use std::collections::BTreeMap;

use maestro_core::invariant::{Invariant, InvariantViolation};
use maestro_core::room::{RoomId, RoomStatus};
use maestro_engine::ports::room_table::{Claim, RoomView};
use maestro_engine::ports::store::{Change, Store, Transaction};

use super::Inspector;

/// How many matches each room had when it was last heard, by scheduler and room.
pub(super) type Heard = BTreeMap<(String, String), u32>;

/// What an end is written with that a runtime has seen.
const SEEN_BY_RUNTIME: &str = "room ended";

impl Inspector {
    /// After a room table has taken in what a room says.
    pub fn heard(&self, scheduler: &str, room: &str, matches: u32) {
        self.state.lock().heard.insert((scheduler.to_owned(), room.to_owned()), matches);
    }

    /// After rooms were taken out of service. `before`: as the table had them.
    pub fn judge_table(&self, claim: &Claim<'_>, claimed: &[RoomId], before: &[RoomView]) {
        // One that has not pinged since a restart may be taken when its time is over.
        let idle = |view: &&RoomView| {
            let is_idle = matches!(view.status, RoomStatus::Ready | RoomStatus::Unready);
            is_idle && view.known && view.claimed_by.is_none()
        };
        let taken = before.iter().filter(idle).filter(|view| claimed.contains(&view.id));
        let found: Vec<_> = taken
            .filter_map(|RoomView { id, status, .. }| {
                let key = (claim.scheduler.to_string(), id.to_string());
                let matches = self.state.lock().heard.get(&key).copied().filter(|matches| *matches > 0)?;
                let what =
                    format!("room {id} was taken as {status}, and last said that it has {matches} matches");
                Some(InvariantViolation::new(Invariant::OldIsLost, what))
            })
            .collect();
        self.note_all(found);
    }

    pub(super) async fn judge_observed_ends(&self, transaction: &Transaction, store: &dyn Store) {
        for change in &transaction.changes {
            if let Change::EndRoom { scheduler, room, ended, .. } = change
                // Several see the same end, and only the first one ends the room.
                && self.state.lock().ended.insert(room.clone())
                && transaction.label == SEEN_BY_RUNTIME
                && let Ok(Some(row)) = store.room(scheduler, room).await
                && row.ended.as_ref() == Some(ended)
                && let Some(handle) = &row.handle
                && self.hosts.iter().any(|host| *host.region() == row.region && host.runs(handle))
            {
                let pids = &handle.pids;
                let what = format!(
                    "room {room} was written off as {:?}, and its instance (pids {pids:?}) runs",
                    ended.how
                );
                self.note_all([InvariantViolation::new(Invariant::OwnEnd, what)]);
            }
        }
    }
}
