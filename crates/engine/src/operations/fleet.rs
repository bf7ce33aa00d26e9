//! Everything known about a fleet at one moment, gathered from registry, room table and queue: what plans are made
//! on.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::allocation::AllocationRules;
use maestro_core::condition::FailedRoom;
use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::lock::{LockKind, Locks};
use maestro_core::operation::{
    Operation, OperationId, OperationStatus, Origin, RemovalReason, RoomsToRemove,
};
use maestro_core::placement::Standing;
use maestro_core::plan::{
    Backoff, EndedFact, FleetSnapshot, Limits, Place, Places, Plan, ReplacementRules, RoomFact, Scaling,
    backoff, is_counted, is_replaced, is_unknown, plan,
};
use maestro_core::rollout::replacement_rules;
use maestro_core::room::{EndCause, Purpose, Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Timestamp, age};

use crate::Engine;
use crate::ports::room_table::{OrIfLost, RoomView};
use crate::ports::store::{Ended, FleetRecord, Intent, Refusal, RoomRecord, SchedulerRecord, StoreError};

use super::facts::{ended_fact, fact, failed_adds, took_too_long};
use super::{Result, add_rooms, placing, remove_rooms};

/// Ended rooms that a plan looks back at: enough to see that every attempt fails.
const ENDED_ROOMS_SEEN: usize = 200;

pub(crate) struct FleetState {
    /// When it was gathered: what plans are made at.
    now: Timestamp,
    limits: Limits,
    /// Rows of live rooms of the fleet.
    pub(crate) rows: Vec<RoomRecord>,
    pub(crate) facts: Vec<RoomFact>,
    pub(crate) claimed_by: BTreeMap<RoomId, OperationId>,
    /// The versions whose rooms are to be replaced.
    old_versions: Vec<Version>,
    ended: Vec<RoomRecord>,
    failed_adds: Vec<EndedFact>,
    adding: u32,
    /// Those of them that have a region already.
    promised: BTreeMap<Region, u32>,
    removing: u32,
    /// A panic is on its way: its add has not ended, so it holds the panic lock.
    pub(crate) panic: bool,
    /// All operations that have not ended, without their histories.
    pub(crate) unfinished: Vec<Operation>,
    /// By how much the fleet size will differ when all operations that roll back have ended.
    taken_back: i64,
    /// Rooms that stay, taken out of service for operations that have ended: by a worker that slept too long, say. The
    /// room table knows no tokens.
    pub(crate) orphans: BTreeMap<OperationId, Vec<RoomId>>,
    pub(crate) locks: Locks,
    /// The room table has lost rooms that run: they cannot be heard.
    pub(crate) is_unheard: bool,
    /// Of some rooms the table may know something that is not true any more.
    pub(crate) is_contradicted: bool,
    /// The regions that it may be in.
    pub(crate) places: Places,
    /// Matches that matchmakers wait for a room for.
    waiting: u32,
}

/// With the scheduler as it was at that moment. `without` is the operation that asks: its own wishes are not on their way to
/// someone else.
pub(crate) async fn fleet(
    engine: &Engine,
    name: &SchedulerName,
    without: Option<OperationId>,
) -> Result<(SchedulerRecord, FleetState)> {
    let found = engine.ports.store.fleet(name, ENDED_ROOMS_SEEN).await?;
    let gone = || StoreError::from(Refusal::SchedulerNotFound(name.clone()));
    let FleetRecord { scheduler, unfinished, locks, live: mut rows, mut ended } = found.ok_or_else(gone)?;
    let started: Vec<RoomId> =
        rows.iter().filter(|row| row.handle.is_some()).map(|row| row.id.clone()).collect();
    rows.retain(|row| row.purpose == Purpose::Fleet || !guards::stands(Invariant::ValidationNotCounted));
    ended.retain(|row| row.purpose == Purpose::Fleet);
    let old = versions_to_replace(engine, &scheduler, rows.iter().chain(&ended)).await?;
    let views = engine.ports.table.rooms(name).await.or_if_created_now(&scheduler, Vec::new())?;
    let views: BTreeMap<RoomId, RoomView> = views.into_iter().map(|view| (view.id.clone(), view)).collect();
    let contacts = engine.regions.contacts();
    let places = engine.places_of(&scheduler).await?;
    let fact = |row: &RoomRecord| RoomFact {
        old: old.contains(&row.version),
        draining: places.regions.get(&row.region).is_some_and(|place| place.draining),
        ..fact(engine, row, views.get(&row.id), contacts.get(&row.region))
    };
    let mut facts: Vec<RoomFact> = rows.iter().map(fact).collect();
    engine.spare_silent(name, &mut facts).await?;
    let claimed = |view: &RoomView| Some((view.id.clone(), view.claimed_by?));
    let claimed_by = views.values().filter_map(claimed).collect();
    let failed_adds = failed_adds(engine, &scheduler).await?;
    let mut fleet = FleetState {
        now: engine.now(),
        limits: engine.settings.limits(),
        rows,
        facts,
        claimed_by,
        old_versions: old,
        ended,
        failed_adds,
        adding: 0,
        promised: BTreeMap::new(),
        removing: 0,
        panic: false,
        unfinished: Vec::new(),
        taken_back: 0,
        orphans: BTreeMap::new(),
        locks,
        is_unheard: started.iter().any(|room| !views.contains_key(room)),
        is_contradicted: views.values().any(RoomView::is_contradicted),
        places,
        waiting: engine.ports.table.waiting(name, engine.now()).await.or_if_created_now(&scheduler, 0)?,
    };
    for operation in unfinished.iter().filter(|operation| Some(operation.id) != without) {
        fleet.count_on_their_way(engine, operation).await?;
    }
    fleet.find_orphans(&unfinished);
    fleet.unfinished = unfinished;
    Ok((scheduler, fleet))
}

/// The versions of these rooms whose rooms are to be replaced.
async fn versions_to_replace(
    engine: &Engine,
    scheduler: &SchedulerRecord,
    rooms: impl Iterator<Item = &RoomRecord>,
) -> Result<Vec<Version>> {
    let versions: BTreeSet<Version> = rooms.map(|row| row.version).collect();
    let old = engine.old_versions(scheduler, versions.into_iter()).await?;
    Ok(match &scheduler.rollout {
        Some(rollout) => rollout.versions_to_replace(old),
        None => old,
    })
}

impl FleetState {
    /// The plan for a cycle in which rooms with players stay.
    pub(crate) fn plan(&self, scheduler: &SchedulerRecord) -> Plan {
        self.plan_with(scheduler, false)
    }

    /// `players_turn`: rooms with players may be removed too.
    pub(super) fn plan_with(&self, scheduler: &SchedulerRecord, players_turn: bool) -> Plan {
        self.with_snapshot(scheduler, players_turn, plan)
    }

    /// How many of so many rooms must not be started now, and why: rooms of this fleet end early.
    pub(crate) fn starts_held(&self, scheduler: &SchedulerRecord, needed: u32) -> Option<Backoff> {
        self.with_snapshot(scheduler, false, |snapshot| backoff(snapshot, needed))
    }

    fn with_snapshot<T>(
        &self,
        scheduler: &SchedulerRecord,
        players_turn: bool,
        decide: impl FnOnce(&FleetSnapshot<'_>) -> T,
    ) -> T {
        let fact = |row| ended_fact(row, &self.old_versions);
        let mut ended: Vec<EndedFact> = self.ended.iter().filter_map(fact).collect();
        ended.extend_from_slice(&self.failed_adds);
        ended.sort_by_key(|fact| std::cmp::Reverse(fact.ended_at));
        decide(&FleetSnapshot {
            now: self.now,
            scaling: self.scaling(scheduler),
            matches_max: scheduler.recipe.match_allocation.max_matches,
            replacement: self.replacement(scheduler, players_turn),
            places: Some(&self.places),
            rooms: &self.facts,
            adding: self.adding,
            removing: self.removing,
            rejoining: self.rejoining(scheduler),
            waiting: self.waiting,
            panic: self.panic,
            ended: &ended,
            limits: self.limits,
        })
    }

    /// What matchmakers get of it.
    pub(super) fn allocation_rules(&self, scheduler: &SchedulerRecord) -> AllocationRules {
        let those = |is_one: fn(&Place) -> bool| {
            let regions = self.places.regions.iter().filter(move |(_, place)| is_one(place));
            regions.map(|(region, _)| region.clone()).collect()
        };
        AllocationRules {
            old_versions: self.old_versions.clone(),
            draining_regions: those(|place| place.draining),
            unreachable_regions: those(|place| !place.reachable),
            version_of_new_rooms: Some(scheduler.version_to_make()),
            growing_regions: Some(self.places.growing(&self.standings(scheduler))),
        }
    }

    /// What stands where, as policies see it that place new rooms. Those that are being replaced take place, and have no
    /// share: what comes after them is what is distributed.
    pub(crate) fn standings(&self, scheduler: &SchedulerRecord) -> BTreeMap<Region, Standing> {
        let rules = self.replacement(scheduler, false);
        let counts = |room: &RoomFact| self.counts(room) && !is_replaced(room, &rules);
        let mut standings = self.places.standings(&self.facts, counts);
        for (region, rooms) in &self.promised {
            if let Some(standing) = standings.get_mut(region) {
                standing.counted += u64::from(*rooms);
            }
        }
        standings
    }

    pub(crate) fn standings_for_removal(
        &self,
        candidates: &[&RoomFact],
        count: u64,
    ) -> BTreeMap<Region, Standing> {
        self.places.standings_for_removal(&self.facts, candidates, count, |room| self.counts(room))
    }

    /// Whether it is part of the fleet after everything that is under way.
    pub(super) fn counts(&self, room: &RoomFact) -> bool {
        is_counted(room, self.now, &self.limits)
    }

    /// How rooms are replaced now.
    pub(super) fn replacement(&self, scheduler: &SchedulerRecord, players_turn: bool) -> ReplacementRules {
        replacement_rules(scheduler.rollout.as_ref(), &scheduler.recipe, self.now, players_turn)
    }

    /// How many more rooms its regions have capacity for, apart from those on their way; `None`: any number.
    pub(crate) fn place_left(&self, scheduler: &SchedulerRecord) -> Option<u64> {
        let left = self.places.left(&self.standings(scheduler))?;
        let without_region = self.adding.saturating_sub(self.promised.values().sum());
        Some(left.saturating_sub(without_region.into()))
    }

    fn scaling<'a>(&self, scheduler: &'a SchedulerRecord) -> Scaling<'a> {
        match scheduler.autoscaling() {
            Some(autoscaling) => Scaling::Auto { autoscaling, last_shrunk_at: scheduler.last_shrunk_at },
            None => Scaling::FleetSize(self.size_to_be(scheduler)),
        }
    }

    /// How many of the rooms that may be chosen stay, have not pinged since a restart, and still may.
    pub(crate) fn unknown(&self, chosen: &RoomsToRemove) -> usize {
        let may_be_chosen = |room: &&RoomFact| match chosen {
            RoomsToRemove::Amount(_) => true,
            RoomsToRemove::Ids(ids) => ids.contains(&room.id),
        };
        self.facts
            .iter()
            .filter(may_be_chosen)
            .filter(|room| is_unknown(room, self.now, &self.limits))
            .count()
    }

    /// What an operation that rolls back asked for does not count any more, although its fleet size stands until it
    /// has ended: otherwise a canceled addition would be made again while its rooms go.
    pub(super) fn size_to_be(&self, scheduler: &SchedulerRecord) -> u32 {
        let size = i64::from(scheduler.fleet_size) + self.taken_back;
        u32::try_from(size.max(0)).unwrap_or(u32::MAX)
    }

    /// Matches whose room a rollout took away less than `rollout.rejoinGrace` ago.
    fn rejoining(&self, scheduler: &SchedulerRecord) -> u32 {
        let grace = scheduler.recipe.rollout().rejoin_grace;
        let just_ended =
            |row: &&RoomRecord| row.ended.as_ref().is_some_and(|ended| age(self.now, ended.at) < grace);
        let taken = self.ended.iter().filter(just_ended).filter_map(|row| match &row.intent {
            Intent::Stop(stop) if stop.cause == Some(RemovalReason::RollingUpdate) => Some(stop.matches),
            Intent::Stop(_) | Intent::Run => None,
        });
        taken.fold(0, u32::saturating_add)
    }

    /// When rooms of this version were made that had been ready before they ended.
    pub(crate) fn succeeded_rooms(&self, version: Version) -> Vec<Timestamp> {
        let well = |row: &&RoomRecord| {
            row.version == version && row.ended.as_ref().is_some_and(|ended| ended.was_ready)
        };
        self.ended.iter().filter(well).map(|row| row.created_at).collect()
    }

    /// When rooms of this version were made that ended without having been ready: by themselves, or because they
    /// took too long.
    pub(crate) fn failed_rooms(&self, version: Version) -> Vec<Timestamp> {
        self.failed().filter(|(row, _)| row.version == version).map(|(row, _)| row.created_at).collect()
    }

    /// The one of them that ended last.
    pub(crate) fn latest_failed_room(&self, version: Version) -> Option<(&RoomRecord, &Ended)> {
        self.failed().find(|(row, _)| row.version == version)
    }

    /// The latest room that failed, unless one that was made after it became ready.
    pub(crate) fn latest_failure(&self) -> Option<FailedRoom<'_>> {
        let succeeded = self.facts.iter().filter(|room| room.was_ready).map(|room| room.created_at).max();
        let (row, ended) = self.failed().find(|(row, _)| succeeded.is_none_or(|at| row.created_at >= at))?;
        Some(FailedRoom { id: &row.id, how: &ended.how })
    }

    /// The latest to end first.
    fn failed(&self) -> impl Iterator<Item = (&RoomRecord, &Ended)> {
        self.ended.iter().filter_map(|row| {
            let ended = row.ended.as_ref()?;
            let has_failed = ended.cause != EndCause::Asked || took_too_long(row);
            (!ended.was_ready && has_failed).then_some((row, ended))
        })
    }

    /// Rooms of unfinished adds count as pending, rooms of unfinished removals as gone; otherwise two plans in a
    /// row would ask for the same rooms twice.
    async fn count_on_their_way(&mut self, engine: &Engine, operation: &Operation) -> Result {
        self.panic |= operation.origin == Origin::Panic;
        if operation.rollback.is_some() {
            self.taken_back -= operation.fleet_delta;
            return Ok(());
        }
        if operation.definition.adds().is_some() {
            let made = match operation.status == OperationStatus::InProgress {
                true => engine.ports.store.rooms_made_by(&operation.scheduler, operation.id).await?,
                false => Vec::new(),
            };
            self.count_addition(operation, &made);
        }
        let progress = remove_rooms::progress_of(operation);
        match operation.definition.removes() {
            // Once they are chosen, rows and claims say who leaves; who was spared stays.
            Some(_) if progress.chosen => {}
            Some(_) if self.comes_after_rollout(operation) => {}
            Some((RoomsToRemove::Amount(amount), _)) => {
                self.removing += amount.saturating_sub(progress.asked);
            }
            Some((RoomsToRemove::Ids(ids), _)) => {
                let ids: BTreeSet<&RoomId> = ids.iter().collect();
                for fact in self.facts.iter_mut().filter(|fact| ids.contains(&fact.id)) {
                    fact.leaving = true;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// What waits for a rollout's lock takes nothing before the rollout is done. Were its rooms counted as gone, the
    /// rollout would leave that many old ones to it, and each would wait for the other.
    fn comes_after_rollout(&self, operation: &Operation) -> bool {
        operation.origin.is_person() && self.locks.held_by_rollout(LockKind::Downscaling)
    }

    fn count_addition(&mut self, operation: &Operation, made: &[RoomRecord]) {
        let count = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
        self.adding += add_rooms::amount(operation).saturating_sub(count(made.len()));
        for (region, rooms) in placing::promised(operation) {
            let made_there = count(made.iter().filter(|row| row.region == region).count());
            *self.promised.entry(region).or_default() += rooms.saturating_sub(made_there);
        }
    }

    fn find_orphans(&mut self, unfinished: &[Operation]) {
        for row in self.rows.iter().filter(|row| row.intent == Intent::Run) {
            let Some(claimant) = self.claimed_by.get(&row.id) else { continue };
            if !unfinished.iter().any(|operation| operation.id == *claimant) {
                self.orphans.entry(*claimant).or_default().push(row.id.clone());
            }
        }
    }

    /// How the latest rooms ended, so that a replacement says what it replaces.
    pub(crate) fn latest_ends(&self) -> String {
        let latest = self.ended.first().and_then(|row| Some((&row.id, row.ended.as_ref()?)));
        latest
            .map_or_else(String::new, |(id, ended)| format!("; the last room to end was {id}: {}", ended.how))
    }
}
