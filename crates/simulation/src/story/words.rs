//! The words for single changes that need nothing but the change itself.

use maestro_core::operation::{OperationStatus, Wait};
use maestro_core::text::count_of;
use maestro_core::time::{Timestamp, age};
use maestro_engine::ports::store::{Change, RegionRecord, SchedulerUpdate};

pub(super) fn waits(wait: &Wait, now: Timestamp) -> String {
    let Wait { what, until, unanswered: _ } = wait;
    match age(*until, now).0 {
        0 => format!("waits for {what}"),
        millis => format!("waits for {what}, and looks again after {} s at the latest", seconds(millis)),
    }
}

pub(super) fn ends(status: OperationStatus, took_action: bool) -> String {
    match (status, took_action) {
        (OperationStatus::Finished, false) => format!("ends as {status} without having changed anything"),
        _ => format!("ends as {status}"),
    }
}

/// What is about no operation and no lock; `None`: nothing that anybody would want to read.
pub(super) fn of_other(change: &Change) -> Option<String> {
    Some(match change {
        Change::UpdateScheduler(update) => return of_scheduler(update),
        Change::AdjustFleetSize { delta, .. } => format!("fleet size {delta:+}"),
        Change::InsertVersion { version, status, .. } => {
            format!("new version {version}, {}", status.as_str())
        }
        Change::SetVersionStatus { version, status, .. } => {
            format!("version {version} is {}", status.as_str())
        }
        Change::DeleteVersion { version, .. } => format!("version {version} is gone"),
        Change::DeleteScheduler { .. } => "the scheduler is gone".into(),
        Change::SetRegion { to, .. } => of_region(to),
        Change::QueueEvent(new) => {
            format!("event {} of room {} for {}", new.message.what(), new.room, new.forwarder)
        }
        Change::EventsDelivered { events, .. } => format!("{} delivered", count_of(events.len(), "event")),
        Change::EventFailed { event, error, .. } => format!("event {event} is not delivered: {error}"),
        Change::EventsDead { events, error, .. } => format!("{} events are dead: {error}", events.len()),
        Change::ReplayEvents { events, .. } => format!("{} events are replayed", events.len()),
        Change::OrphanEvents { addresses, .. } => format!("{} forwarders outlive it", addresses.len()),
        Change::Allocate(new) => {
            format!("room {} is allocated with number {} ({})", new.room, new.number.0, new.id)
        }
        Change::EndAllocation { allocation, state, .. } => format!("allocation {allocation} is {state}"),
        Change::WithdrawAllocation { allocation, .. } => format!("allocation {allocation} is withdrawn"),
        Change::SpendClaim { room, number, .. } => format!("number {} of room {room} is spent", number.0),
        Change::CreateScheduler(_)
        | Change::Enqueue(_)
        | Change::EndRoom { .. }
        | Change::StartOperation { .. }
        | Change::UpdateOperation(_)
        | Change::RollBack { .. }
        | Change::EndOperation { .. }
        | Change::CancelPending { .. }
        | Change::RequestCancel { .. }
        | Change::ForgetOperations { .. }
        | Change::RecordNoAction(_)
        | Change::ForgetNoAction { .. }
        | Change::ForgetFleetDeltas { .. }
        | Change::TakeLock(_)
        | Change::AwaitLock { .. }
        | Change::StopAwaiting { .. }
        | Change::ReleaseLock { .. }
        | Change::RevokeLock { .. }
        | Change::IntendRoom(_)
        | Change::RoomStarted { .. }
        | Change::IntendStop { .. }
        | Change::ForgetRooms { .. }
        | Change::ForgetAllocations(_)
        | Change::ForgetDeadEvents { .. } => return None,
    })
}

fn of_region(region: &RegionRecord) -> String {
    let RegionRecord { name, cordoned, draining, by, reason, .. } = region;
    let state = match (cordoned, draining) {
        (_, true) => "is drained",
        (true, false) => "is cordoned",
        (false, false) => "may have new rooms",
    };
    format!("region {name} {state}, by {by}: {reason}")
}

/// Rooms of which one transaction changes many.
pub(super) fn numbers(changes: &[Change]) -> impl Iterator<Item = String> {
    let (mut wanted, mut started, mut to_go, mut forgotten) = (0, 0, 0, 0);
    for change in changes {
        match change {
            Change::IntendRoom(_) => wanted += 1,
            Change::RoomStarted { .. } => started += 1,
            Change::IntendStop { .. } => to_go += 1,
            Change::ForgetRooms { rooms, .. } => forgotten += rooms.len(),
            _ => {}
        }
    }
    let told = [
        (wanted, "wanted", "wanted"),
        (started, "started", "started"),
        (to_go, "is to go", "are to go"),
        (forgotten, "that ended is forgotten", "that ended are forgotten"),
    ];
    told.into_iter().filter_map(|(rooms, one, several)| match rooms {
        0 => None,
        1 => Some(format!("1 room {one}")),
        rooms => Some(format!("{rooms} rooms {several}")),
    })
}

/// As people write them: `1.5`, `30`.
pub(crate) fn seconds(millis: u64) -> String {
    (millis as f64 / 1_000.0).to_string()
}

/// `None`: it only checks that the scheduler is still the same.
fn of_scheduler(update: &SchedulerUpdate) -> Option<String> {
    let rollout = update.rollout.as_ref().map(|rollout| match rollout {
        Some(rollout) => format!("rollout to {} is {}", rollout.to, rollout.state.as_str()),
        None => "no rollout any more".into(),
    });
    let told = [
        update.state.map(|state| format!("the scheduler is {}", state.as_str())),
        update.active_version.map(|version| format!("active version {version}")),
        update.fleet_size.map(|size| format!("fleet size {size}")),
        rollout,
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}
