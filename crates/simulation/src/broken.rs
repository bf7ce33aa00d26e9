//! Guards that are taken out where an engine reaches its ports: what it writes is changed on the way, or what it reads is
//! not what is there. The engine itself stays as it is. See [`maestro_core::guards`].

use std::sync::Arc;

use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::operation::{Definition, Operation, OperationId};
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;
use maestro_engine::ports::room_table::{Claim, RoomView};
use maestro_engine::ports::runtime::Observation;
use maestro_engine::ports::store::{
    Change, OwnershipRecord, QueuedEvent, RoomRecord, SchedulerRecord, StoreError, Transaction,
};

/// What all rooms get without the guard of [`Invariant::PortOnce`].
const SAME_PORT: u16 = 20_000;

/// What is written instead of what the engine asked for; `None`: nothing, and the engine does not notice.
pub(crate) fn written(mut transaction: Transaction) -> Option<Transaction> {
    if !guards::stands(Invariant::OneExecutor) {
        transaction.guard = None;
    }
    if !guards::stands(Invariant::AnswersKept) && transaction.changes.iter().any(allocates) {
        return None;
    }
    if !guards::stands(Invariant::HoldsEnd) && transaction.changes.iter().any(ends_allocation) {
        return None;
    }
    if !guards::stands(Invariant::Converges) && transaction.changes.iter().any(enqueues_cycle) {
        return None;
    }
    if !guards::stands(Invariant::EffectOnce) {
        let takes_back = |change: &Change| matches!(change, Change::AdjustFleetSize { of: Some(_), .. });
        transaction.changes.retain(|change| !takes_back(change));
    }
    if !guards::stands(Invariant::AcceptedEventsArrive) {
        transaction.changes.retain(|change| !matches!(change, Change::QueueEvent(_)));
    }
    transaction.changes.iter_mut().for_each(spoil);
    Some(transaction)
}

fn allocates(change: &Change) -> bool {
    matches!(change, Change::Allocate(_))
}

fn ends_allocation(change: &Change) -> bool {
    matches!(change, Change::EndAllocation { .. })
}

fn enqueues_cycle(change: &Change) -> bool {
    matches!(change, Change::Enqueue(operation) if operation.definition == Definition::HealthController)
}

fn spoil(change: &mut Change) {
    match change {
        // Who executes it is not asked.
        Change::RequestCancel { operation, request, history }
            if !guards::stands(Invariant::LegalTransitions) =>
        {
            let history = std::mem::take(history);
            *change = Change::CancelPending { operation: *operation, history, at: request.at };
        }
        // Whoever was given the room is not asked.
        Change::IntendStop { unless, .. } if !guards::stands(Invariant::HeldStays) => {
            unless.takes_held = true;
        }
        Change::IntendRoom(room) if !guards::stands(Invariant::PortOnce) => {
            room.ports.iter_mut().for_each(|port| port.host_port = SAME_PORT);
        }
        _ => {}
    }
}

/// What someone who asked for something hears. Without the guard it counts as accepted, whether it was written or not.
pub(crate) fn answered(is_request: bool, outcome: Result<(), StoreError>) -> Result<(), StoreError> {
    match outcome {
        Err(StoreError::Unavailable { .. } | StoreError::Unknown { .. })
            if is_request && !guards::stands(Invariant::AcceptedWorkSurvives) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

/// What a store says that is asked for its time, without the guard of [`Invariant::RenewedStays`]: what the host's own clock
/// shows.
pub(crate) fn time(store: Timestamp, host: &dyn Clock) -> Timestamp {
    if guards::stands(Invariant::RenewedStays) { store } else { host.now() }
}

/// Then a worker also gets what has run out by the clock of its host.
pub(crate) fn runs_out(ownership: &OwnershipRecord, owner: &str, host: &dyn Clock) -> bool {
    !guards::stands(Invariant::RenewedStays) && ownership.owner != owner && ownership.expires_at <= host.now()
}

/// The first room is not found until there are two of it.
pub(crate) fn rooms_made(scheduler: &SchedulerName, operation: OperationId, rows: &mut Vec<RoomRecord>) {
    let id = |attempt| RoomId::derive(scheduler, operation, 0, attempt);
    if !guards::stands(Invariant::EffectOnce) && !rows.iter().any(|row| row.id == id(1)) {
        rows.retain(|row| row.id != id(0));
    }
}

/// Those that wait are not found, so nobody wakes them.
pub(crate) fn unfinished(operations: &mut Vec<Operation>) {
    if !guards::stands(Invariant::NothingInProgress) {
        operations.retain(|operation| !operation.is_parked());
    }
}

/// What was queued last comes first.
pub(crate) fn due(events: &mut [QueuedEvent]) {
    if !guards::stands(Invariant::EventsInOrder) {
        events.chunk_by_mut(|one, other| one.room == other.room).for_each(<[_]>::reverse);
    }
}

/// Regions have no cap.
pub(crate) fn scheduler(record: &mut SchedulerRecord) {
    if !guards::stands(Invariant::CapsKept)
        && let Some(placement) = &mut Arc::make_mut(&mut record.recipe).policies.placement
    {
        placement.regions.iter_mut().for_each(|region| region.cap = None);
    }
}

/// Rooms that were handed out look like any others that are ready.
pub(crate) fn seen(view: &mut RoomView) {
    if !guards::stands(Invariant::HeldStays) && view.status == RoomStatus::Allocated {
        view.status = RoomStatus::Ready;
        view.expected = 0;
    }
}

/// And their rows say nothing of it.
pub(crate) fn registered(row: &mut RoomRecord) {
    if !guards::stands(Invariant::HeldStays) {
        row.holds = 0;
    }
}

/// In which statuses a room may be taken out of service.
pub(crate) fn claimed<'a>(claim: Claim<'a>) -> Claim<'a> {
    match guards::stands(Invariant::HeldStays) {
        true => claim,
        false => Claim { statuses: &RoomStatus::ALL, ..claim },
    }
}

/// Whether a room that was handed out is kept from others.
pub(crate) fn holds() -> bool {
    guards::stands(Invariant::HeldOnce)
}

/// Whether an old dump of a room table counts as what it is of now.
pub(crate) fn trusts_old_tables() -> bool {
    !guards::stands(Invariant::OldIsLost)
}

/// Nobody is told of which instance it is.
pub(crate) fn observed(observation: &mut Observation) {
    if !guards::stands(Invariant::OwnEnd) {
        observation.instance = None;
    }
}

/// Whether a runtime lists a room that nobody asked for.
pub(crate) fn lists_unwanted() -> bool {
    guards::stands(Invariant::NoUnwantedRoom)
}
