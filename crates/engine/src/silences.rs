//! Rooms that fell silent together, region by region. `maestro_core::plan` decides when that is so. From then on, each of
//! them is spared until it pings, until somebody confirms that they are lost, or until `mass_silence_timeout` has passed.
//!
//! Which rooms are spared is not durable. After a restart, every room has one ping timeout to ping again; if most of them do
//! not, they are found to be silent together once more.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::plan::{self, Expiry, ListenedRoom, MassSilence, RoomFact};
use maestro_core::room::{InstanceStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after, age};
use parking_lot::Mutex;

use crate::Engine;
use crate::operations::{Result, StepError};
use crate::ports::room_table::{FleetCounts, OrIfLost, RoomView};
use crate::ports::store::{Intent, RoomRecord, StoreError};
use crate::regions::Contact;
use crate::services::RoomSilence;

/// How long it holds for starting rooms that a region was found to be silent or not: looking reads all rooms.
const LOOK_INTERVAL: Millis = Millis::from_seconds(5);

#[derive(Default)]
pub(crate) struct Silences(Mutex<BTreeMap<Region, Silence>>);

#[derive(Default)]
struct Silence {
    /// The rooms that fell silent together, with the time of their last ping. A room that has pinged since is not silent.
    rooms: Rooms,
    looked_at: Option<Timestamp>,
    /// When somebody last looked and found such rooms.
    silent_at: Option<Timestamp>,
}

type RoomKey = (SchedulerName, RoomId);
type Rooms = BTreeMap<RoomKey, Timestamp>;

/// Rooms that run and have pinged, or may have before a restart.
type Listened = BTreeMap<RoomKey, ListenedRoom>;

/// When it was last said of each region that its silent rooms are lost.
type LostAt = BTreeMap<Region, Timestamp>;

/// The counters of a fleet, for those who read.
pub(crate) struct SeenCounts {
    pub(crate) counts: FleetCounts,
    /// The room table has lost it, so they are what the registry says.
    pub(crate) is_lost: bool,
}

/// Of rooms of which nobody knows more than their rows.
fn counts_of(rows: &[RoomRecord]) -> FleetCounts {
    let mut counts = FleetCounts::default();
    for row in rows.iter().filter(|row| row.purpose == Purpose::Fleet) {
        let (status, instance) = match row.intent {
            Intent::Run => (RoomStatus::Pending, InstanceStatus::Unknown),
            Intent::Stop(_) => (RoomStatus::Terminating, InstanceStatus::Terminating),
        };
        counts.by_status.add(status);
        counts.by_region.entry(row.region.clone()).or_default().add(status);
        counts.by_instance.add(instance);
        counts.holds += u64::from(row.holds);
        counts.unknown += 1;
    }
    counts
}

impl Silences {
    fn includes(&self, region: &Region, room: &RoomKey, heard_at: Timestamp) -> bool {
        self.0.lock().get(region).is_some_and(|silence| silence.rooms.get(room) == Some(&heard_at))
    }

    /// Beside those that fell silent before, which stay until they ping. How many are new.
    fn add(&self, region: &Region, silent: Rooms) -> usize {
        let mut regions = self.0.lock();
        let rooms = &mut regions.entry(region.clone()).or_default().rooms;
        let is_new = |(room, heard_at): (&RoomKey, &Timestamp)| rooms.get(room) != Some(heard_at);
        let new = silent.iter().filter(|entry| is_new(*entry)).count();
        rooms.extend(silent);
        new
    }

    fn is_empty(&self, region: &Region) -> bool {
        self.0.lock().get(region).is_none_or(|silence| silence.rooms.is_empty())
    }

    fn are_none(&self) -> bool {
        self.0.lock().values().all(|silence| silence.rooms.is_empty())
    }

    /// Those that are still there and silent; the others are forgotten.
    fn still_silent(&self, region: &Region, listened: &Listened) -> Rooms {
        let mut regions = self.0.lock();
        let Some(Silence { rooms, .. }) = regions.get_mut(region) else { return Rooms::new() };
        rooms.retain(|room, heard_at| listened.get(room).is_some_and(|room| room.heard_at == *heard_at));
        rooms.clone()
    }

    fn looked(&self, region: &Region, now: Timestamp, is_silent: bool) {
        let mut regions = self.0.lock();
        let silence = regions.entry(region.clone()).or_default();
        silence.looked_at = Some(now);
        if is_silent {
            silence.silent_at = Some(now);
        }
    }

    fn looked_lately(&self, region: &Region, now: Timestamp) -> bool {
        let looked_at = self.0.lock().get(region).and_then(|silence| silence.looked_at);
        looked_at.is_some_and(|at| at <= now && age(now, at) < LOOK_INTERVAL)
    }

    fn silent_at(&self, region: &Region) -> Option<Timestamp> {
        self.0.lock().get(region).and_then(|silence| silence.silent_at)
    }
}

impl Engine {
    /// Says of each of these rooms until when it is to be spared, and since when a room could be heard that has never
    /// pinged.
    pub(crate) async fn spare_silent(&self, scheduler: &SchedulerName, facts: &mut [RoomFact]) -> Result {
        let (now, limits) = (self.now(), self.settings.limits());
        let expiry = |room: &RoomFact| plan::expiry(room, now, &limits).filter(|_| !room.leaving);
        let is_silent = |room: &RoomFact| matches!(expiry(room), Some(Expiry::Silent { .. }));
        let is_unheard = |room: &RoomFact| {
            matches!(expiry(room), Some(Expiry::NeverReady { .. })) && room.heard_at.is_none()
        };
        if facts.iter().any(is_silent) {
            self.spare_rooms(scheduler, facts.iter_mut().filter(|room| is_silent(room)).collect()).await?;
        }
        // Where nobody is heard, one that was never heard need not have failed.
        let regions: BTreeSet<Region> =
            facts.iter().filter(|room| is_unheard(room)).map(|room| room.region.clone()).collect();
        for region in regions {
            self.look_for_silence(&region).await?;
        }
        for room in facts.iter_mut().filter(|room| is_unheard(room)) {
            room.reachable_since = room.reachable_since.max(self.silences.silent_at(&room.region));
        }
        Ok(())
    }

    /// For who makes no plans, and so may not have noticed: unless one has looked a moment ago.
    pub(crate) async fn look_for_silence(&self, region: &Region) -> Result {
        match self.silences.looked_lately(region, self.now()) {
            true => Ok(()),
            false => self.look_for_mass_silence(region).await,
        }
    }

    async fn spare_rooms(&self, scheduler: &SchedulerName, silent: Vec<&mut RoomFact>) -> Result {
        let lost_at = self.confirmed_lost().await?;
        let unexplained = |room: &&&mut RoomFact| {
            let (heard_at, key) = (plan::heard_at(room), (scheduler.clone(), room.id.clone()));
            !self.is_lost(&lost_at, &room.region, heard_at)
                && !self.silences.includes(&room.region, &key, heard_at)
        };
        let regions: BTreeSet<Region> =
            silent.iter().filter(unexplained).map(|room| room.region.clone()).collect();
        for region in regions {
            self.look_for_mass_silence(&region).await?;
        }
        for room in silent {
            let key = (scheduler.clone(), room.id.clone());
            room.spared_until = self.spared_until(&lost_at, &room.region, &key, plan::heard_at(room));
        }
        Ok(())
    }

    /// How many rooms of a region are spared now.
    pub(crate) async fn spared(&self, region: &Region) -> Result<usize> {
        if self.silences.is_empty(region) {
            return Ok(0);
        }
        let silent = self.silences.still_silent(region, &self.listened(region).await?);
        let lost_at = self.confirmed_lost().await?;
        let is_spared = |(room, heard_at): &(&RoomKey, &Timestamp)| {
            self.spared_until(&lost_at, region, room, **heard_at).is_some()
        };
        Ok(silent.iter().filter(is_spared).count())
    }

    /// Rooms of one of these regions fell silent together, and may still be.
    pub(crate) fn may_be_silent<'a>(&self, mut regions: impl Iterator<Item = &'a Region>) -> bool {
        regions.any(|region| !self.silences.is_empty(region))
    }

    /// The rooms of a scheduler that are spared.
    pub(crate) async fn spared_rooms(
        &self,
        scheduler: &SchedulerName,
        views: impl IntoIterator<Item = &RoomView>,
    ) -> Result<BTreeMap<RoomId, RoomSilence>, StoreError> {
        if self.silences.are_none() {
            return Ok(BTreeMap::new());
        }
        let lost_at = self.confirmed_lost().await?;
        let spared = views.into_iter().filter(|view| is_listened_to(view)).filter_map(|view| {
            let since = self.heard_at(view);
            let key = (scheduler.clone(), view.id.clone());
            let until = self.spared_until(&lost_at, &view.region, &key, since)?;
            Some((key.1, RoomSilence { since, until }))
        });
        Ok(spared.collect())
    }

    /// What the room table counts, but rooms that are spared are not ready. If it has lost the scheduler, what the registry
    /// counts.
    pub(crate) async fn fleet_counts(&self, scheduler: &SchedulerName) -> Result<SeenCounts> {
        match self.known_counts(scheduler).await {
            Err(StepError::Lost(_)) => {
                let rows = self.ports.store.live_rooms(scheduler).await?;
                Ok(SeenCounts { counts: counts_of(&rows), is_lost: true })
            }
            counts => Ok(SeenCounts { counts: counts?, is_lost: false }),
        }
    }

    async fn known_counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts> {
        let table = &self.ports.table;
        let mut counts = table.counts(scheduler).await?;
        if self.silences.are_none() {
            return Ok(counts);
        }
        let views = table.rooms(scheduler).await?;
        let spared = self.spared_rooms(scheduler, &views).await?;
        let is_shown_ready =
            |view: &&RoomView| view.status == RoomStatus::Ready && spared.contains_key(&view.id);
        for view in views.iter().filter(is_shown_ready) {
            let by_region = counts.by_region.entry(view.region.clone()).or_default();
            // It may have changed between counting and listing.
            if by_region.of(RoomStatus::Ready) > 0 && counts.by_status.of(RoomStatus::Ready) > 0 {
                for counts in [by_region, &mut counts.by_status] {
                    counts.remove(RoomStatus::Ready);
                    counts.add(RoomStatus::Unready);
                }
            }
        }
        Ok(counts)
    }

    /// Until when a room is spared that was last heard then; `None`: it is not silent, or is taken for dead.
    fn spared_until(
        &self,
        lost_at: &LostAt,
        region: &Region,
        room: &RoomKey,
        heard_at: Timestamp,
    ) -> Option<Timestamp> {
        let now = self.now();
        let until = after(heard_at, self.settings.mass_silence_timeout);
        let is_silent = after(heard_at, self.settings.room_ping_timeout) <= now;
        let is_spared = is_silent
            && now < until
            && !self.is_lost(lost_at, region, heard_at)
            && self.silences.includes(region, room, heard_at);
        is_spared.then_some(until)
    }

    /// Whoever confirmed it meant those that were silent then.
    fn is_lost(&self, lost_at: &LostAt, region: &Region, heard_at: Timestamp) -> bool {
        let silent_at = after(heard_at, plan::silent_after(self.settings.room_ping_timeout));
        lost_at.get(region).is_some_and(|confirmed_at| silent_at <= *confirmed_at)
    }

    async fn confirmed_lost(&self) -> Result<LostAt, StoreError> {
        let said = self.ports.store.regions().await?;
        Ok(said.into_iter().filter_map(|record| Some((record.name, record.lost_at?))).collect())
    }

    async fn look_for_mass_silence(&self, region: &Region) -> Result {
        let (now, listened) = (self.now(), self.listened(region).await?);
        let rooms: Vec<ListenedRoom> = listened.values().copied().collect();
        if let Some(silence) = plan::mass_silence(&rooms, now, self.settings.room_ping_timeout) {
            let silent = listened.iter().filter(|(_, room)| silence.includes(room));
            let silent: Rooms = silent.map(|(room, listened)| (room.clone(), listened.heard_at)).collect();
            if self.silences.add(region, silent) > 0 {
                let MassSilence { rooms, of, from, to } = silence;
                tracing::warn!(%region, rooms, of, %from, %to, "rooms stopped pinging together; they are not considered dead yet");
            }
        }
        let silent = self.silences.still_silent(region, &listened);
        let lost_at = self.confirmed_lost().await?;
        let timeout = self.settings.mass_silence_timeout;
        let is_silent = |heard_at: &Timestamp| {
            now < after(*heard_at, timeout) && !self.is_lost(&lost_at, region, *heard_at)
        };
        self.silences.looked(region, now, silent.values().any(is_silent));
        Ok(())
    }

    /// Of all schedulers.
    async fn listened(&self, region: &Region) -> Result<Listened> {
        let mut listened = Listened::new();
        for scheduler in self.ports.store.scheduler_names().await? {
            // Rooms that nobody hears now are not silent.
            let views = self.ports.table.rooms(&scheduler).await.or_if_lost(Vec::new())?;
            for view in views.into_iter().filter(|view| view.region == *region && is_listened_to(view)) {
                let room = ListenedRoom { created_at: view.created_at, heard_at: self.heard_at(&view) };
                listened.insert((scheduler.clone(), view.id), room);
            }
        }
        Ok(listened)
    }

    /// When a room was last heard, or since when it could have been: as plans see it.
    fn heard_at(&self, view: &RoomView) -> Timestamp {
        let reachable_since = match self.regions.contact(&view.region) {
            Contact::Reachable { since } => since,
            Contact::Unsettled { .. } | Contact::Unreachable { .. } => None,
        };
        let could_be_heard = reachable_since.max(self.listening.since(self.now()));
        view.last_ping_at.max(could_be_heard).map_or(view.listened_since, |at| at.max(view.listened_since))
    }
}

/// The runtime says that it runs, and it said so itself at some time.
fn is_listened_to(view: &RoomView) -> bool {
    let has_pinged = view.last_ping_at.is_some() || !view.known;
    view.purpose == Purpose::Fleet && view.claimed_by.is_none() && view.status.counts() && has_pinged
}
