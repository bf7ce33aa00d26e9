//! What the inspector remembers of one scheduler, from the changes that were written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use maestro_core::allocation::AllocationState;
use maestro_core::invariant::{Invariant, InvariantViolation, legal_transition};
use maestro_core::lock::LockKind;
use maestro_core::operation::{Definition, DefinitionKind, OperationId, OperationStatus, Origin, Token};
use maestro_core::room::{Purpose, RoomId, RoomStatus};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp, age};
use maestro_engine::ports::room_table::RoomView;
use maestro_engine::ports::store::{Change, NewOperation, SchedulerRecord, SchedulerUpdate, Transaction};

use super::State;

/// Readings of the room table that are kept of a node, however old they are: its requests read it too, between the reading
/// that a step decides on and the step's own end.
const READINGS_KEPT: usize = 3;
/// And all that are younger: calls may be slow, and whoever looks for a panic reads the table again and again meanwhile.
const READINGS_KEPT_FOR: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Known {
    pub(super) operations: BTreeMap<OperationId, KnownOperation>,
    /// What people's operations made of the fleet size; `None`: its beginning was not seen.
    pub(super) size: Option<i64>,
    /// As it was after the last write that changed it.
    pub(super) record: Option<SchedulerRecord>,
    pub(super) lock_tokens: BTreeMap<LockKind, Token>,
    /// For how many matches rooms were waited for, by each process, and when that was said.
    pub(super) waiting: VecDeque<(Duration, String, u32)>,
    /// When allocations ended without a match: who read the room's row before still counts it as held.
    freed: VecDeque<Duration>,
    nodes: BTreeMap<String, Sight>,
}

#[derive(Debug, Clone)]
pub(super) struct KnownOperation {
    pub(super) definition: Definition,
    pub(super) origin: Origin,
    pub(super) status: OperationStatus,
    pub(super) fleet_delta: i64,
    /// It was asked for in need, by a room that pinged.
    pub(super) is_panic: bool,
    /// Of being enqueued.
    order: usize,
}

/// What one node has seen of a scheduler, and so may decide on.
#[derive(Default)]
pub(super) struct Sight {
    /// The table, latest reading last.
    pub(super) readings: VecDeque<Reading>,
    /// What the scheduler's record was since this node last wrote in a step of its own.
    pub(super) records: Vec<SchedulerRecord>,
    /// Rooms that it tried to claim since it last read the table.
    pub(super) offered: BTreeSet<RoomId>,
    /// Rooms whose end was written since this node last wrote in a step of its own, the beginning of a cycle aside.
    pub(super) ended: usize,
}

/// The rooms of a scheduler, as a node read them from the table.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Since the world began: its clock may be set.
    at: Duration,
    pub(super) rooms: Vec<SeenRoom>,
}

/// A room that was heard of, or made, this short a time ago has surely not expired, whatever the settings.
pub(super) const SURELY_ALIVE: Millis = Millis::from_seconds(20);

/// A room as a node saw it in the table.
#[derive(Debug, Clone)]
pub(super) struct SeenRoom {
    pub(super) id: RoomId,
    pub(super) version: Version,
    pub(super) purpose: Purpose,
    pub(super) status: RoomStatus,
    pub(super) matches: u32,
    pub(super) known: bool,
    pub(super) claimed_by: Option<OperationId>,
    pub(super) last_ping_at: Option<Timestamp>,
}

impl SeenRoom {
    pub(super) fn of(view: &RoomView) -> Self {
        Self {
            id: view.id.clone(),
            version: view.version,
            purpose: view.purpose,
            status: view.status,
            // Those who are expected want a place as much as those who play.
            matches: view.matches + view.expected,
            known: view.known,
            claimed_by: view.claimed_by,
            last_ping_at: view.last_ping_at,
        }
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self.status, RoomStatus::Pending | RoomStatus::Unready)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status == RoomStatus::Ready && self.known && self.purpose == Purpose::Fleet
    }

    /// Not one that has been silent for so long that it may have expired: such a room is not removed, it is replaced.
    pub(super) fn is_surely_alive(&self, at: Timestamp) -> bool {
        self.last_ping_at.is_some_and(|heard_at| age(at, heard_at) < SURELY_ALIVE)
    }

    pub(super) fn serves_players(&self) -> bool {
        matches!(self.status, RoomStatus::Active | RoomStatus::Occupied | RoomStatus::Allocated)
    }
}

impl Sight {
    pub(super) fn read(&mut self, rooms: Vec<SeenRoom>, at: Duration) {
        let is_old = |reading: &Reading| at - reading.at > READINGS_KEPT_FOR;
        while self.readings.len() >= READINGS_KEPT && self.readings.front().is_some_and(is_old) {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading { at, rooms });
        self.offered.clear();
    }
}

impl Known {
    pub(super) fn node(&mut self, node: &str) -> &mut Sight {
        self.nodes.entry(node.to_owned()).or_default()
    }

    /// How many matches may still be expected by who is about to decide.
    pub(super) fn freed_lately(&mut self, now: Duration) -> u64 {
        while self.freed.front().is_some_and(|at| now.saturating_sub(*at) > READINGS_KEPT_FOR) {
            self.freed.pop_front();
        }
        self.freed.len() as u64
    }

    /// The record is another one by now.
    pub(super) fn changed(&mut self, record: Option<SchedulerRecord>) {
        if let Some(record) = &record {
            for sight in self.nodes.values_mut() {
                sight.records.push(record.clone());
            }
        }
        self.record = record;
    }

    /// The owner has written, in a step: what it decides next, it decides on what is there from now on. Only a cycle
    /// that begins decides on the look that it was begun for, which is from before.
    pub(super) fn step_ended(&mut self, node: &str, transaction: &Transaction) {
        let begins_cycle = transaction.changes.iter().any(|change| self.begins_cycle(change));
        let record = self.record.clone();
        let sight = self.node(node);
        sight.records = record.into_iter().collect();
        if !begins_cycle {
            sight.ended = 0;
        }
    }

    fn begins_cycle(&self, change: &Change) -> bool {
        match change {
            Change::Enqueue(new) => new.definition == Definition::HealthController,
            Change::StartOperation { operation, .. } => {
                let started = self.operations.get(operation);
                started.is_some_and(|started| started.definition == Definition::HealthController)
            }
            _ => false,
        }
    }

    fn enqueued(&mut self, new: &NewOperation, is_panic: bool) {
        let operation = KnownOperation {
            definition: new.definition.clone(),
            origin: new.origin.clone(),
            status: OperationStatus::Pending,
            fleet_delta: new.fleet_delta,
            is_panic,
            order: self.operations.len(),
        };
        if self.operations.insert(new.id, operation).is_none() {
            self.size = self.size.map(|size| size + new.fleet_delta);
        }
    }

    /// `from`: the status that the change needs, if it needs a certain one.
    fn becomes(
        &mut self,
        id: OperationId,
        from: Option<OperationStatus>,
        to: OperationStatus,
    ) -> Option<InvariantViolation> {
        let operation = self.operations.get_mut(&id)?;
        let was = std::mem::replace(&mut operation.status, to);
        if to.is_final() && to != OperationStatus::Finished {
            self.size = self.size.map(|size| (size - operation.fleet_delta).max(0));
        }
        if was.is_final() || from.is_some_and(|from| was != from) {
            let what = format!("operation {id} was {was}, and a write made it {to}");
            return Some(InvariantViolation::new(Invariant::LegalTransitions, what));
        }
        legal_transition(id, Some(was), to)
    }

    /// The fleet size was set anew: what is unfinished does not take its part back any more.
    fn forget_deltas(&mut self, before: Option<OperationId>) {
        let limit = before.and_then(|before| self.operations.get(&before)).map(|before| before.order);
        for operation in self.operations.values_mut() {
            if limit.is_none_or(|limit| operation.order < limit) {
                operation.fleet_delta = 0;
            }
        }
    }

    /// Operations other than the clockwork that are in progress.
    pub(super) fn in_progress(&self) -> impl Iterator<Item = (&OperationId, &KnownOperation)> {
        self.operations.iter().filter(|(_, operation)| {
            operation.status == OperationStatus::InProgress && !is_clockwork(operation.definition.kind())
        })
    }
}

impl KnownOperation {
    pub(super) fn removed_ids(&self) -> &[RoomId] {
        use maestro_core::operation::RoomsToRemove;
        match &self.definition {
            Definition::RemoveRooms { rooms: RoomsToRemove::Ids(ids), .. } => ids,
            _ => &[],
        }
    }
}

/// What comes and goes in a fleet that is at rest.
pub(super) fn is_clockwork(kind: DefinitionKind) -> bool {
    matches!(kind, DefinitionKind::HealthController | DefinitionKind::StorageCleanUp)
}

impl State {
    /// Takes in what was written, and says which transitions were none.
    pub(super) fn remember(
        &mut self,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        now: Duration,
    ) -> Vec<InvariantViolation> {
        let changes = &transaction.changes;
        let is_panic = changes
            .iter()
            .any(|change| matches!(change, Change::TakeLock(lock) if lock.kind == LockKind::Panic));
        let asks =
            changes.iter().any(|change| matches!(change, Change::Enqueue(new) if new.fleet_delta != 0));
        let mut found = Vec::new();
        for change in changes {
            match change {
                Change::CreateScheduler(new) => {
                    let size = Some(new.recipe.rooms_replicas.into());
                    // Some wait for rooms of a scheduler before it exists, or again.
                    let waiting = self.forget(scheduler).waiting;
                    self.schedulers.insert(scheduler.clone(), Known { size, waiting, ..Known::default() });
                }
                Change::DeleteScheduler { .. } => {
                    let waiting = self.forget(scheduler).waiting;
                    self.schedulers.insert(scheduler.clone(), Known { waiting, ..Known::default() });
                }
                Change::Enqueue(new) => {
                    self.enqueued.insert(new.id, new.scheduler.clone());
                    self.known(&new.scheduler).enqueued(new, is_panic);
                }
                Change::EndRoom { scheduler, .. } => {
                    self.known(scheduler).nodes.values_mut().for_each(|sight| sight.ended += 1);
                }
                Change::UpdateScheduler(SchedulerUpdate { fleet_size: Some(size), .. }) if !asks => {
                    self.known(scheduler).size = Some((*size).into());
                }
                Change::EndAllocation { scheduler, state, .. } if *state != AllocationState::Begun => {
                    self.known(scheduler).freed.push_back(now);
                }
                Change::ForgetFleetDeltas { scheduler, before } => {
                    self.known(scheduler).forget_deltas(*before);
                }
                change => found.extend(self.known(scheduler).transition(change)),
            }
        }
        found
    }

    pub(super) fn left_in_progress(&self) -> Vec<InvariantViolation> {
        let mut left = Vec::new();
        for (scheduler, known) in &self.schedulers {
            for (id, operation) in known.in_progress() {
                let what = format!("{} {id} of {scheduler} is in progress", operation.definition.name());
                left.push(InvariantViolation::new(Invariant::NothingInProgress, what));
            }
        }
        left
    }
}

impl Known {
    fn transition(&mut self, change: &Change) -> Option<InvariantViolation> {
        use OperationStatus::{Canceled, InProgress, Pending};
        match change {
            Change::StartOperation { operation, .. } => self.becomes(*operation, Some(Pending), InProgress),
            Change::CancelPending { operation, .. } => self.becomes(*operation, Some(Pending), Canceled),
            Change::EndOperation { operation, status, .. } => self.becomes(*operation, None, *status),
            Change::UpdateOperation(update) => {
                let was = self.operations.get(&update.operation)?.status;
                (was != InProgress).then(|| {
                    let what =
                        format!("operation {} is {was}, and a step of it was written", update.operation);
                    InvariantViolation::new(Invariant::LegalTransitions, what)
                })
            }
            _ => None,
        }
    }
}
