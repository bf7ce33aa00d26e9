//! Which regions a node surely sees, and which are being emptied. What happens to rooms that it may not see is nothing
//! that its decisions can be judged by; what it must not do is to take them for gone.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::room::{Purpose, Region};
use maestro_engine::ports::store::{Change, Intent, RoomRecord, Store, Transaction};

use super::Inspector;

/// A step may have begun this long before its write, and a region may be adopted in several attempts, each with many slow
/// calls.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// What was heard of regions. Times are since the world began: its clock may be set.
#[derive(Default)]
pub(super) struct KnownRegions {
    /// By node; of one that was never heard of, nothing speaks against it.
    contacts: BTreeMap<(String, Region), Contact>,
    /// Since when they are not drained any more; `None`: they still are.
    drained: BTreeMap<Region, Option<Duration>>,
}

#[derive(Debug, Clone, Copy)]
enum Contact {
    Unseen,
    /// It begins to adopt what runs there.
    Adopted,
    TakenUp(Duration),
}

impl KnownRegions {
    /// The node sees the region now, and did when it decided what it writes now.
    pub(super) fn is_seen(&self, node: &str, region: &Region, now: Duration) -> bool {
        match self.contacts.get(&(node.to_owned(), region.clone())) {
            Some(Contact::Unseen | Contact::Adopted) => false,
            Some(Contact::TakenUp(at)) => now - *at >= SETTLES_WITHIN,
            None => true,
        }
    }

    /// Rooms there are, or were a moment ago, to be replaced.
    pub(super) fn may_be_drained(&self, region: &Region, now: Duration) -> bool {
        let ended = self.drained.get(region);
        ended.is_some_and(|ended| ended.is_none_or(|at| now - at < SETTLES_WITHIN))
    }

    fn remember(&mut self, change: &Change, now: Duration) {
        let Change::SetRegion { from, to } = change else { return };
        if to.draining {
            self.drained.insert(to.name.clone(), None);
        } else if from.as_ref().is_some_and(|from| from.draining) {
            self.drained.insert(to.name.clone(), Some(now));
        }
    }
}

impl Inspector {
    /// The node has not looked at the region yet, or has asked it often enough without an answer.
    pub fn region_unseen(&self, node: &str, region: &Region) {
        self.state.lock().regions.contacts.insert((node.to_owned(), region.clone()), Contact::Unseen);
    }

    /// The node has begun to watch what runs there, for the first time or again. One that has done so for long looks again
    /// at single rooms.
    pub fn region_adopted(&self, node: &str, region: &Region) {
        let now = self.trace.elapsed();
        let regions = &mut self.state.lock().regions;
        if !regions.is_seen(node, region, now) {
            regions.contacts.insert((node.to_owned(), region.clone()), Contact::Adopted);
        }
    }

    /// What it asks for last when it takes up a region. Should that not have been all, it begins again soon.
    pub fn region_listed(&self, node: &str, region: &Region) {
        let now = self.trace.elapsed();
        if let Some(contact @ Contact::Adopted) =
            self.state.lock().regions.contacts.get_mut(&(node.to_owned(), region.clone()))
        {
            *contact = Contact::TakenUp(now);
        }
    }

    pub(super) async fn judge_regions(&self, transaction: &Transaction, store: &dyn Store) {
        for change in &transaction.changes {
            self.state.lock().regions.remember(change, self.trace.elapsed());
            if let Change::EndRoom { scheduler, room, .. } = change
                && let Ok(Some(row)) = store.room(scheduler, room).await
            {
                self.judge_end(&row);
            }
        }
    }

    /// The end of a room that was to run on. Validation rooms, those that are to go and those whose start nobody heard of
    /// may be given up with their region: should one run, it is stopped as unwanted.
    fn judge_end(&self, row: &RoomRecord) {
        let RoomRecord {
            id, region, purpose: Purpose::Fleet, intent: Intent::Run, handle: Some(handle), ..
        } = row
        else {
            return;
        };
        if let Some(host) = self.hosts.iter().find(|host| host.region() == region) {
            host.written_off(id, handle);
        }
    }
}
