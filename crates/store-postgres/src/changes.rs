//! What each kind of change is done by, and why it may not be done.

use std::future::Future;
use std::pin::Pin;

use maestro_core::allocation::AllocationId;
use maestro_core::lock::LockKind;
use maestro_core::operation::{OperationId, OperationStatus};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{Change, NewAllocation, NewEvent, NewRoomRecord, NoAction, Refusal};

use crate::failure::Result;
use crate::rooms::RoomEnd;
use crate::session::{Answer, Session, Statement};
use crate::{allocations, locks, no_action, operations, outbox, regions, rooms, schedulers, versions};

/// Nothing happens before it is sent, or waited for.
pub(crate) enum Step<'a> {
    /// One statement, which answers whether it was done.
    One(Statement<'a>, WhyNot<'a>),
    /// What is asked first decides what is asked next.
    Several(Pin<Box<dyn Future<Output = Result> + Send + 'a>>),
}

/// What is to be found out if the statement of a change did nothing.
pub(crate) enum WhyNot<'a> {
    /// It is always done.
    Never,
    Adjusted(&'a SchedulerName),
    /// With the status in which it is only the slot that may be in the way.
    Changed(OperationId, Option<OperationStatus>),
    Recorded(&'a NoAction),
    LockLost(&'a SchedulerName, LockKind),
    Intended(&'a NewRoomRecord),
    RoomNotFound(&'a RoomId),
    Stopped(&'a SchedulerName, &'a RoomId),
    RoomEnded(RoomEnd<'a>),
    Queued(&'a NewEvent),
    Allocated(&'a NewAllocation),
    Ended(&'a SchedulerName, AllocationId),
    AllocationExists(AllocationId),
}

pub(crate) fn step<'a>(session: &'a Session, change: &'a Change) -> Step<'a> {
    match change {
        Change::CreateScheduler(new) => several(schedulers::create(session, new)),
        Change::UpdateScheduler(update) => several(schedulers::update(session, update)),
        Change::AdjustFleetSize { scheduler, delta, of } => {
            Step::One(schedulers::adjust_fleet_size(scheduler, *delta, *of), WhyNot::Adjusted(scheduler))
        }
        Change::SetVersionStatus { scheduler, version, status, cause } => {
            several(versions::set_status(session, scheduler, *version, *status, cause))
        }
        Change::InsertVersion { scheduler, recipe, version, status, at } => {
            several(versions::create(session, scheduler, recipe, *version, *status, *at))
        }
        Change::DeleteVersion { scheduler, version } => {
            several(versions::delete(session, scheduler, *version))
        }
        Change::DeleteScheduler { scheduler, keep } => several(schedulers::delete(session, scheduler, *keep)),
        Change::Enqueue(new) => several(operations::enqueue(session, new)),
        Change::StartOperation { operation, lease, history } => Step::One(
            operations::start(*operation, lease, history),
            WhyNot::Changed(*operation, Some(OperationStatus::Pending)),
        ),
        Change::UpdateOperation(update) => Step::One(
            operations::update(update),
            WhyNot::Changed(update.operation, Some(OperationStatus::InProgress)),
        ),
        Change::RollBack { operation, rollback, history } => {
            Step::One(operations::roll_back(*operation, rollback, history), WhyNot::Changed(*operation, None))
        }
        Change::EndOperation { operation, status, took_action, history, at } => Step::One(
            operations::end(*operation, *status, *took_action, *at, history),
            WhyNot::Changed(*operation, None),
        ),
        Change::CancelPending { operation, history, at } => {
            Step::One(operations::cancel_pending(*operation, *at, history), WhyNot::Changed(*operation, None))
        }
        Change::RequestCancel { operation, request, history } => Step::One(
            operations::request_cancel(*operation, request, history),
            WhyNot::Changed(*operation, None),
        ),
        Change::ForgetOperations { scheduler, ended_before, no_action_before } => {
            Step::One(operations::forget(scheduler.as_ref(), *ended_before, *no_action_before), WhyNot::Never)
        }
        Change::RecordNoAction(new) => Step::One(no_action::record(new), WhyNot::Recorded(new)),
        Change::ForgetNoAction { before } => several(no_action::forget(session, *before)),
        Change::ForgetFleetDeltas { scheduler, before } => {
            Step::One(operations::forget_fleet_deltas(scheduler, *before), WhyNot::Never)
        }
        Change::TakeLock(new) => several(locks::take(session, new)),
        Change::AwaitLock { scheduler, waiter } => several(locks::take_place(session, scheduler, waiter)),
        Change::StopAwaiting { scheduler, kind, holder } => {
            Step::One(locks::stop_awaiting(scheduler, *kind, *holder), WhyNot::Never)
        }
        Change::ReleaseLock { scheduler, kind, holder } => {
            Step::One(locks::release(scheduler, *kind, *holder), WhyNot::Never)
        }
        Change::RevokeLock { scheduler, kind, token } => {
            Step::One(locks::revoke(scheduler, *kind, *token), WhyNot::LockLost(scheduler, *kind))
        }
        Change::IntendRoom(new) => Step::One(rooms::intend(new), WhyNot::Intended(new)),
        Change::RoomStarted { scheduler, room, handle } => {
            Step::One(rooms::started(scheduler, room, handle), WhyNot::RoomNotFound(room))
        }
        Change::IntendStop { scheduler, room, stop, unless } => {
            Step::One(rooms::intend_stop(scheduler, room, stop, *unless), WhyNot::Stopped(scheduler, room))
        }
        Change::EndRoom { scheduler, room, instance, ended } => {
            let end = RoomEnd { scheduler, room, instance: instance.as_ref(), ended };
            Step::One(rooms::end(end), WhyNot::RoomEnded(end))
        }
        Change::ForgetRooms { scheduler, rooms } => Step::One(rooms::forget(scheduler, rooms), WhyNot::Never),
        Change::QueueEvent(new) => Step::One(outbox::queue(new), WhyNot::Queued(new)),
        Change::EventsDelivered { scheduler: _, queue, events, at } => {
            Step::One(outbox::delivered(*queue, events, *at), WhyNot::Never)
        }
        Change::EventFailed { scheduler: _, queue, event, error, next_at } => {
            Step::One(outbox::failed(*queue, *event, error, *next_at), WhyNot::Never)
        }
        Change::EventsDead { scheduler: _, queue, events, error, dead_max, at } => {
            several(outbox::dead(session, *queue, events, error, *dead_max, *at))
        }
        Change::ReplayEvents { scheduler, events, at } => {
            several(outbox::replay(session, scheduler, events, *at))
        }
        Change::ForgetDeadEvents { scheduler, before } => {
            several(outbox::forget_dead(session, scheduler, *before))
        }
        Change::OrphanEvents { scheduler, addresses } => {
            several(outbox::orphan(session, scheduler, addresses))
        }
        Change::Allocate(new) => Step::One(allocations::allocate(new), WhyNot::Allocated(new)),
        Change::EndAllocation { scheduler, allocation, state, cause, at } => Step::One(
            allocations::end(scheduler, *allocation, *state, cause, *at),
            WhyNot::Ended(scheduler, *allocation),
        ),
        Change::WithdrawAllocation { scheduler, allocation, cause, at } => {
            Step::One(allocations::withdraw(scheduler, *allocation, cause, *at), WhyNot::Never)
        }
        Change::SpendClaim { scheduler, room, number, allocation } => Step::One(
            allocations::spend(scheduler, room, *number, *allocation),
            WhyNot::AllocationExists(*allocation),
        ),
        Change::ForgetAllocations(forget) => several(allocations::forget(session, forget)),
        Change::SetRegion { from, to } => several(regions::set(session, from.as_ref(), to)),
    }
}

fn several<'a>(steps: impl Future<Output = Result> + Send + 'a) -> Step<'a> {
    Step::Several(Box::pin(steps))
}

impl WhyNot<'_> {
    /// `answer`: of the statement. `None`: it did nothing, and is as good as done.
    pub(crate) async fn find_out(self, session: &Session, answer: &Answer) -> Result<Option<Refusal>> {
        Ok(Some(match self {
            Self::Never => return Ok(None),
            Self::Adjusted(scheduler) => schedulers::why_not_adjusted(session, scheduler).await?,
            Self::Changed(operation, wanted) => {
                operations::why_not_changed(session, operation, wanted).await?
            }
            Self::Recorded(new) => no_action::why_not_recorded(session, new).await?,
            Self::LockLost(scheduler, kind) => Refusal::LockLost { scheduler: scheduler.clone(), kind },
            Self::Intended(new) => rooms::why_not_intended(session, new, answer.also("is_new")?).await?,
            Self::RoomNotFound(room) => Refusal::RoomNotFound(room.clone()),
            Self::Stopped(scheduler, room) => {
                return rooms::why_not_stopped(session, scheduler, room).await;
            }
            Self::RoomEnded(end) => return rooms::end_if_same(session, end).await,
            Self::Queued(new) => outbox::why_not_queued(session, new, answer.also("wanted")?).await?,
            Self::Allocated(new) => {
                allocations::why_not_allocated(session, new, answer.also("taken")?).await?
            }
            Self::Ended(scheduler, id) => allocations::why_not_ended(session, scheduler, id).await?,
            Self::AllocationExists(id) => Refusal::AllocationExists(id),
        }))
    }
}
