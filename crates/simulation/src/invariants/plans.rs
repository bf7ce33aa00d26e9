//! What health cycles decide: no more rooms than desired + surge, and no validation room among those counted.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::invariant::{Invariant, InvariantViolation, surge_kept};
use maestro_core::operation::{Definition, Operation, OperationId, Origin, RemovalReason, RoomsToRemove};
use maestro_core::room::{Purpose, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, age};
use maestro_engine::ports::store::{Change, Intent, RoomRecord, SchedulerRecord, Store, Transaction};

use super::Inspector;
use super::fleet::Demand;
use super::memory::{KnownOperation, SURELY_ALIVE, SeenRoom};

/// Ended rooms that are looked at for players who need another one.
const ENDED_SEEN: usize = 200;

impl Inspector {
    pub(super) async fn judge_plan(
        &self,
        node: &str,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        store: &dyn Store,
    ) {
        let added = transaction.changes.iter().find_map(|change| match change {
            Change::Enqueue(new) if new.origin == Origin::Controller => {
                new.definition.adds().map(|_| (new.id, new.created_at))
            }
            _ => None,
        });
        let counted = transaction.changes.iter().find_map(counted_total);
        if added.is_none() && counted.is_none() {
            return;
        }
        let Some(facts) = self.gather(node, scheduler, store).await else {
            return;
        };
        if let Some((id, at)) = added
            && !facts.known.get(&id).is_some_and(|operation| operation.is_panic)
        {
            self.note_all(facts.judge_surge(at));
        }
        if let Some(total) = counted {
            self.note_all(facts.judge_counted(total, transaction));
        }
    }

    async fn gather(&self, node: &str, scheduler: &SchedulerName, store: &dyn Store) -> Option<Facts> {
        let rows = store.live_rooms(scheduler).await.ok()?;
        let unfinished = store.unfinished(scheduler).await.ok()?;
        let mut made = BTreeMap::new();
        for operation in &unfinished {
            if operation.definition.adds().is_some() {
                made.insert(operation.id, store.rooms_made_by(scheduler, operation.id).await.ok()?.len());
            }
        }
        let record = store.scheduler(scheduler).await.ok()??;
        let rejoining = rejoining(&record, store).await;
        let now = self.trace.elapsed();
        let mut state = self.state.lock();
        let regions: BTreeSet<_> = rows.iter().map(|row| row.region.clone()).collect();
        let is_seen = |region: &Region| state.regions.is_seen(node, region, now);
        let seen = regions.iter().filter(|region| is_seen(region)).cloned().collect();
        let drained =
            regions.into_iter().filter(|region| state.regions.may_be_drained(region, now)).collect();
        let known = state.known(scheduler);
        let rejoining = rejoining + known.freed_lately(now);
        let sight = known.node(node);
        let readings = sight.readings.iter().map(|reading| reading.rooms.clone()).collect();
        let ended = sight.ended;
        let mut records = sight.records.clone();
        records.push(record);
        Some(Facts {
            rows,
            seen,
            drained,
            unfinished,
            made,
            records,
            readings,
            ended,
            rejoining,
            waiting: known.waited_for(now),
            known: known.operations.clone(),
        })
    }
}

/// What there is at the moment of a decision, and what its node had seen.
struct Facts {
    rows: Vec<RoomRecord>,
    /// Regions of these that the node surely sees.
    seen: BTreeSet<Region>,
    /// Regions of these whose rooms may have to be replaced.
    drained: BTreeSet<Region>,
    unfinished: Vec<Operation>,
    made: BTreeMap<OperationId, usize>,
    records: Vec<SchedulerRecord>,
    readings: Vec<Vec<SeenRoom>>,
    /// Rooms that ended since the node last wrote.
    ended: usize,
    /// Players who are counted although they are in no room of a reading.
    rejoining: u64,
    waiting: u64,
    known: BTreeMap<OperationId, KnownOperation>,
}

impl Facts {
    /// Wrong only if it is by everything that the node may have seen.
    fn judge_surge(&self, at: Timestamp) -> Option<InvariantViolation> {
        let turned_round = self.turned_round();
        let live = self.rows.iter().map(|row| row.id.clone()).collect();
        let mut found = None;
        for record in &self.records {
            for rooms in &self.readings {
                let (turned_round, rejoining, waiting) = (&turned_round, self.rejoining, self.waiting);
                let demand = Demand { record, rooms, live: &live, turned_round, rejoining, waiting };
                let surge = if self.is_replacing(record) { demand.surge() } else { 0 };
                let total = self.total(record, rooms, at);
                found = Some(surge_kept(total, demand.desired_at_most(), surge)?);
            }
        }
        found
    }

    fn turned_round(&self) -> Vec<KnownOperation> {
        let turned = self.unfinished.iter().filter(|operation| operation.rollback.is_some());
        turned.filter_map(|operation| self.known.get(&operation.id).cloned()).collect()
    }

    fn is_replacing(&self, record: &SchedulerRecord) -> bool {
        let is_old = |row: &RoomRecord| {
            row.version.major != record.active_version.major || self.drained.contains(&row.region)
        };
        record.rollout.is_some() || self.rows.iter().any(is_old)
    }

    /// The rooms that are surely part of the fleet, with those that are surely on their way, those of a panic aside.
    fn total(&self, record: &SchedulerRecord, rooms: &[SeenRoom], at: Timestamp) -> u64 {
        let seen: BTreeMap<&RoomId, &SeenRoom> = rooms.iter().map(|room| (&room.id, room)).collect();
        let leaving: BTreeSet<&RoomId> = self.unfinished.iter().flat_map(removed_ids).collect();
        let is_panic = |id: &OperationId| self.known.get(id).is_some_and(|operation| operation.is_panic);
        let counts = |row: &&RoomRecord| {
            let room = seen.get(&row.id);
            // One that takes too long to become ready has expired, however often it pings.
            let last_ping_at = room.filter(|room| !room.is_starting()).and_then(|room| room.last_ping_at);
            let heard_at = last_ping_at.unwrap_or(row.created_at);
            // What lies ahead was before the clock was set back, nobody knows how long ago.
            let surely_alive = heard_at <= at && age(at, heard_at) < SURELY_ALIVE;
            row.purpose == Purpose::Fleet
                && row.intent == Intent::Run
                && self.seen.contains(&row.region)
                && room.is_none_or(|room| room.status.counts() && room.claimed_by.is_none())
                && surely_alive
                && !leaving.contains(&row.id)
                && !is_panic(&row.operation)
        };
        let there = self.rows.iter().filter(counts).count() as u64;
        // What a person asks for beside autoscaling may come between a plan and its writing.
        let planned = |operation: &&Operation| {
            let beside = record.autoscaling().is_some() && operation.origin.is_person();
            !beside && !is_panic(&operation.id)
        };
        let coming: u64 = self.unfinished.iter().filter(planned).map(|one| self.coming(one)).sum();
        (there + coming).saturating_sub(self.unfinished.iter().map(going).sum())
    }

    /// Rooms of an addition that have no row yet.
    fn coming(&self, operation: &Operation) -> u64 {
        let amount = operation.definition.adds().filter(|_| operation.rollback.is_none()).unwrap_or(0);
        let made = self.made.get(&operation.id).copied().unwrap_or(0);
        u64::from(amount).saturating_sub(made as u64)
    }

    /// A decision that counts more rooms than the fleet can have, while there is a validation room.
    fn judge_counted(&self, total: u64, transaction: &Transaction) -> Option<InvariantViolation> {
        let (fleet, others): (Vec<_>, Vec<_>) =
            self.rows.iter().partition(|row| row.purpose == Purpose::Fleet);
        let there = fleet.iter().filter(|row| row.intent == Intent::Run).count() + self.ended;
        let enqueued_here = |id: OperationId| {
            let is_it = |change: &Change| matches!(change, Change::Enqueue(new) if new.id == id);
            transaction.changes.iter().any(is_it)
        };
        let before = self.unfinished.iter().filter(|operation| !enqueued_here(operation.id));
        let at_most = there as u64 + before.map(|operation| self.coming(operation)).sum::<u64>();
        let stranger = others.first().filter(|_| total > at_most)?;
        let what = format!(
            "{total} rooms are counted and the fleet has at most {at_most}: {} is for validation",
            stranger.id
        );
        Some(InvariantViolation::new(Invariant::ValidationNotCounted, what))
    }
}

/// The number of rooms that a health cycle says it decided on.
fn counted_total(change: &Change) -> Option<u64> {
    let Change::UpdateOperation(update) = change else { return None };
    update.data.as_ref()?.get("decision")?.get("total")?.as_u64()
}

fn removed_ids(operation: &Operation) -> &[RoomId] {
    match &operation.definition {
        Definition::RemoveRooms { rooms: RoomsToRemove::Ids(ids), .. } => ids,
        _ => &[],
    }
}

/// The most rooms that an unfinished removal by number may still take.
fn going(operation: &Operation) -> u64 {
    let amount = operation.definition.removes().and_then(|(rooms, _)| rooms.amount());
    amount.unwrap_or(0).into()
}

/// Rooms that a rollout took away and whose players may still be on their way to another.
async fn rejoining(record: &SchedulerRecord, store: &dyn Store) -> u64 {
    if record.recipe.rollout().rejoin_grace == Millis(0) {
        return 0;
    }
    let ended = store.ended_rooms(&record.name, ENDED_SEEN).await.unwrap_or_default();
    let matches = ended.iter().map(|row| match &row.intent {
        Intent::Stop(stop) if stop.cause == Some(RemovalReason::RollingUpdate) => u64::from(stop.matches),
        Intent::Stop(_) | Intent::Run => 0,
    });
    matches.sum()
}
