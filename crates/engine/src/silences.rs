//! Rooms that fell silent together, region by region. `maestro_core::plan` says when that is so; from then on each of
//! them is spared until it pings, until somebody confirms that they are lost, or until `mass_silence_timeout` is over.
//!
//! Which rooms are spared is not durable. After a restart every room has the time of a ping to be heard of again; if
//! most are not, they are found to be silent together once more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use maestro_core::plan::{self, Expiry, ListenedRoom, MassSilence, RoomFact};
use maestro_core::room::{Purpose, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, after};

use crate::ports::room_table::{RoomView, TableError};
use crate::ports::store::StoreError;
use crate::regions::Contact;
use crate::{Engine, Error};

/// Rooms that are spared, by region, and when they were last heard: who was heard since is not silent any more.
#[derive(Default)]
pub(crate) struct Silences(Mutex<BTreeMap<Region, Rooms>>);

type Rooms = BTreeMap<(SchedulerName, RoomId), Timestamp>;

/// Rooms that run and have pinged, or may have before a restart.
type Listened = BTreeMap<(SchedulerName, RoomId), ListenedRoom>;

/// Why it cannot be said which rooms are silent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotListed {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<NotListed> for Error {
    fn from(error: NotListed) -> Self {
        match error {
            NotListed::Store(error) => error.into(),
            NotListed::Table(error) => error.into(),
        }
    }
}

impl Silences {
    fn includes(&self, scheduler: &SchedulerName, room: &RoomFact) -> bool {
        let regions = self.lock();
        let Some(rooms) = regions.get(&room.region) else { return false };
        rooms.get(&(scheduler.clone(), room.id.clone())) == Some(&plan::heard_at(room))
    }

    /// Beside those that fell silent before, which stay until they ping. How many are new.
    fn add(&self, region: &Region, silent: Rooms) -> usize {
        let mut regions = self.lock();
        let rooms = regions.entry(region.clone()).or_default();
        let is_new =
            |(room, heard_at): (&(SchedulerName, RoomId), &Timestamp)| rooms.get(room) != Some(heard_at);
        let new = silent.iter().filter(|entry| is_new(*entry)).count();
        rooms.extend(silent);
        new
    }

    fn is_empty(&self, region: &Region) -> bool {
        self.lock().get(region).is_none_or(BTreeMap::is_empty)
    }

    /// When those were last heard that are still there and silent; the others are forgotten.
    fn still_silent(&self, region: &Region, listened: &Listened) -> Vec<Timestamp> {
        let mut regions = self.lock();
        let Some(rooms) = regions.get_mut(region) else { return Vec::new() };
        rooms.retain(|room, heard_at| listened.get(room).is_some_and(|room| room.heard_at == *heard_at));
        rooms.values().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Region, Rooms>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Says of each of these rooms until when it is to be spared.
    pub(crate) async fn spare_silent(
        &self,
        scheduler: &SchedulerName,
        facts: &mut [RoomFact],
    ) -> Result<(), NotListed> {
        let (now, limits) = (self.now(), self.settings.limits());
        let is_silent =
            |room: &RoomFact| matches!(plan::expiry(room, now, &limits), Some(Expiry::Silent { .. }));
        if !facts.iter().any(is_silent) {
            return Ok(());
        }
        let lost_at = self.confirmed_lost().await?;
        let timeout = self.settings.room_ping_timeout;
        // Whoever confirmed it meant those that were silent then.
        let is_lost = |room: &RoomFact| {
            let confirmed_at = lost_at.get(&room.region);
            confirmed_at.is_some_and(|at| after(plan::heard_at(room), timeout) <= *at)
        };
        let unexplained =
            |room: &&RoomFact| is_silent(room) && !is_lost(room) && !self.silences.includes(scheduler, room);
        let regions: BTreeSet<Region> =
            facts.iter().filter(unexplained).map(|room| room.region.clone()).collect();
        for region in regions {
            self.look_for_mass_silence(&region).await?;
        }
        for room in facts.iter_mut().filter(|room| is_silent(room) && !is_lost(room)) {
            if self.silences.includes(scheduler, room) {
                room.spared_until = Some(after(plan::heard_at(room), self.settings.mass_silence_timeout));
            }
        }
        Ok(())
    }

    /// How many rooms of a region are spared now.
    pub(crate) async fn spared(&self, region: &Region) -> Result<usize, NotListed> {
        if self.silences.is_empty(region) {
            return Ok(0);
        }
        let silent = self.silences.still_silent(region, &self.listened(region).await?);
        let lost_at = self.confirmed_lost().await?.get(region).copied().unwrap_or(Timestamp::MIN);
        let settings = &self.settings;
        let is_spared = |heard_at: &Timestamp| {
            after(*heard_at, settings.room_ping_timeout) > lost_at
                && after(*heard_at, settings.mass_silence_timeout) > self.now()
        };
        Ok(silent.into_iter().filter(is_spared).count())
    }

    /// When it was last said of a region that its silent rooms are lost.
    async fn confirmed_lost(&self) -> Result<BTreeMap<Region, Timestamp>, StoreError> {
        let said = self.ports.store.regions().await?;
        Ok(said.into_iter().filter_map(|record| Some((record.name, record.lost_at?))).collect())
    }

    async fn look_for_mass_silence(&self, region: &Region) -> Result<(), NotListed> {
        let listened = self.listened(region).await?;
        let rooms: Vec<ListenedRoom> = listened.values().copied().collect();
        let Some(silence) = plan::mass_silence(&rooms, self.now(), self.settings.room_ping_timeout) else {
            return Ok(());
        };
        let silent = listened.iter().filter(|(_, room)| silence.includes(room));
        let silent: Rooms = silent.map(|(room, listened)| (room.clone(), listened.heard_at)).collect();
        if self.silences.add(region, silent) > 0 {
            let MassSilence { rooms, of, from, to } = silence;
            tracing::warn!(%region, rooms, of, %from, %to, "rooms stopped pinging together; they are not taken for dead");
        }
        Ok(())
    }

    /// Of all schedulers.
    async fn listened(&self, region: &Region) -> Result<Listened, NotListed> {
        let reachable_since = match self.regions.contact(region) {
            Contact::Reachable { since } => since,
            Contact::Unsettled { .. } | Contact::Unreachable { .. } => None,
        };
        let since = reachable_since.max(self.listening.since(self.now())).unwrap_or(Timestamp::MIN);
        let mut listened = Listened::new();
        for scheduler in self.ports.store.schedulers().await? {
            for view in self.ports.table.rooms(&scheduler.name).await? {
                if is_listened_to(&view, region) {
                    let heard_at = view.last_ping_at.unwrap_or(view.listened_since);
                    let heard_at = heard_at.max(view.listened_since).max(since);
                    let room = ListenedRoom { created_at: view.created_at, heard_at };
                    listened.insert((scheduler.name.clone(), view.id), room);
                }
            }
        }
        Ok(listened)
    }
}

/// The runtime says that it runs, and it said so itself at some time.
fn is_listened_to(view: &RoomView, region: &Region) -> bool {
    let has_pinged = view.last_ping_at.is_some() || !view.known;
    view.region == *region
        && view.purpose == Purpose::Fleet
        && view.claimed_by.is_none()
        && view.status.counts()
        && has_pinged
}
