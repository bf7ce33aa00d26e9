//! Changes of single rooms, several in one script.

use std::collections::BTreeMap;
use std::sync::Arc;

use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::HoldKey;
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::record::HoldRecord;
use crate::table::Table;

/// Changing so many rooms takes a script some milliseconds.
const CHANGED_MAX: usize = 250;

/// What is done to a room, as change.lua knows it.
pub(crate) enum Change<'a> {
    Observe(&'a str, u8),
    Address(&'a str, String),
    Unclaim(&'a str, &'a str),
    Confirm(&'a str, u64),
    Mark(&'a str, u64, u8),
    Release(&'a str, u64),
    Restore(&'a str, HoldRecord),
}

impl Serialize for Change<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Observe(room, instance) => ("observe", room, instance).serialize(serializer),
            Self::Address(room, address) => ("address", room, address).serialize(serializer),
            Self::Unclaim(room, operation) => ("unclaim", room, operation).serialize(serializer),
            Self::Confirm(room, number) => ("confirm", room, number).serialize(serializer),
            Self::Mark(room, number, stage) => ("mark", room, number, stage).serialize(serializer),
            Self::Release(room, number) => ("release", room, number).serialize(serializer),
            Self::Restore(room, hold) => ("restore", room, hold).serialize(serializer),
        }
    }
}

impl Table {
    pub(crate) async fn change_room(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        change: Change<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let answers = self.change_rooms(scheduler, &[change]).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// An answer for each: numbers, none if there is nothing to say.
    pub(crate) async fn change_rooms(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        changes: &[Change<'_>],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let mut answers = Vec::with_capacity(changes.len());
        for part in changes.chunks(CHANGED_MAX) {
            answers.append(&mut self.run(&self.scripts.change, scheduler, &part).await?);
        }
        Ok(answers)
    }

    /// An answer for each, of whichever schedulers they are; nothing is done to those that are lost.
    pub(crate) async fn change_holds<'a>(
        self: &Arc<Self>,
        holds: &'a [HoldKey],
        change: impl Fn(&'a HoldKey) -> Change<'a>,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let mut by_scheduler: BTreeMap<&SchedulerName, Vec<usize>> = BTreeMap::new();
        for (place, key) in holds.iter().enumerate() {
            by_scheduler.entry(&key.scheduler).or_default().push(place);
        }
        let mut answers = vec![Vec::new(); holds.len()];
        for (scheduler, places) in by_scheduler {
            let changes: Vec<Change<'_>> = places.iter().map(|place| change(&holds[*place])).collect();
            let changed = match self.change_rooms(scheduler, &changes).await {
                Err(Failure::Lost(_)) => continue,
                changed => changed?,
            };
            for (place, answer) in places.into_iter().zip(changed) {
                answers[place] = answer;
            }
        }
        Ok(answers)
    }
}
