//! Which operation of a scheduler goes next, and which must not be executed at all.

use crate::lock::Locks;
use crate::scheduler::Version;
use crate::time::Timestamp;

use super::{Activity, Definition, DefinitionKind, Operation, OperationId, OperationStatus};

/// What stands in the way of a pending operation for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Eviction {
    #[error("no executor is known for it")]
    UnknownDefinition,
    #[error("the scheduler is being deleted")]
    SchedulerBeingDeleted,
    #[error("another health_controller is already waiting")]
    SecondHealthController,
    #[error("version {0} is active already")]
    AlreadyActive(Version),
    #[error("it would roll back version {0}, which is no longer active")]
    NoLongerActive(Version),
}

/// So many unfinished operations of a scheduler are enough: people's further ones are refused. A worker reads all of
/// them at each of its turns.
pub const UNFINISHED_MAX: u32 = 1_000;

/// What the queue must know about its scheduler.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerFacts {
    pub being_deleted: bool,
    pub active_version: Version,
}

/// What a worker does next on a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextWork {
    /// It is in progress and holds the slot: go on with it (its worker died, or it was just woken).
    Continue(OperationId),
    /// It is parked and its wait is over: it takes the slot.
    Wake(OperationId),
    Start(OperationId),
    Evict(OperationId, Eviction),
    Nothing,
}

/// Decides over the unfinished operations of one scheduler, in the order in which they were enqueued.
/// `wait_is_over` says which parked ones may go on.
///
/// The slot first; then priority operations, so that players do not wait for housekeeping; then what was woken,
/// because it began earlier; then the rest. First in, first out among equals.
pub fn next(
    unfinished: &[Operation],
    state: SchedulerFacts,
    wait_is_over: impl Fn(&Operation) -> bool,
) -> NextWork {
    if let Some(holder) = unfinished.iter().find(|operation| operation.is_executing()) {
        return NextWork::Continue(holder.id);
    }
    if let Some((id, eviction)) = first_eviction(unfinished, state) {
        return NextWork::Evict(id, eviction);
    }
    let nothing_begins = unfinished.iter().any(Operation::keeps_others_out);
    let pending = |operation: &&Operation| operation.status == OperationStatus::Pending;
    let woken = || {
        unfinished
            .iter()
            .find(|operation| operation.is_parked() && wait_is_over(operation))
            .map(|operation| NextWork::Wake(operation.id))
    };
    let start = |priority: bool| {
        unfinished
            .iter()
            .filter(pending)
            .find(|operation| operation.priority == priority && !nothing_begins)
            .map(|operation| NextWork::Start(operation.id))
    };
    start(true).or_else(woken).or_else(|| start(false)).unwrap_or(NextWork::Nothing)
}

fn first_eviction(unfinished: &[Operation], state: SchedulerFacts) -> Option<(OperationId, Eviction)> {
    let mut health_controllers = 0;
    for operation in unfinished.iter().filter(|operation| operation.status == OperationStatus::Pending) {
        let kind = operation.definition.kind();
        if kind == DefinitionKind::Unknown {
            return Some((operation.id, Eviction::UnknownDefinition));
        }
        if state.being_deleted && kind != DefinitionKind::DeleteScheduler {
            return Some((operation.id, Eviction::SchedulerBeingDeleted));
        }
        if let Definition::SwitchVersion(switch) = &operation.definition {
            if let Some(left) = switch.only_from.filter(|from| *from != state.active_version) {
                return Some((operation.id, Eviction::NoLongerActive(left)));
            }
            if switch.to == state.active_version {
                return Some((operation.id, Eviction::AlreadyActive(switch.to)));
            }
        }
        if kind == DefinitionKind::HealthController {
            health_controllers += 1;
            if health_controllers > 1 {
                return Some((operation.id, Eviction::SecondHealthController));
            }
        }
    }
    None
}

/// What `waitingFor` says of an operation that is not at work. Who holds a lock may have changed since it parked.
pub fn waiting_for(
    operation: &Operation,
    unfinished: &[Operation],
    locks: &Locks,
    now: Timestamp,
) -> Option<String> {
    match (operation.status, &operation.activity) {
        (OperationStatus::InProgress, Activity::Parked(wait)) => {
            let obstacle = locks.obstacle_of(operation.id, now);
            Some(obstacle.map_or_else(|| wait.what.clone(), |obstacle| obstacle.to_string()))
        }
        (OperationStatus::Pending, _) => {
            let at_work = unfinished.iter().find(|other| other.keeps_others_out());
            Some(match at_work {
                Some(other) => format!("{} {} to finish or park", other.definition.name(), other.id),
                None => "a worker to pick it up".into(),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Wait;
    use crate::operation::testing::{at, operation};

    const STATE: SchedulerFacts = SchedulerFacts { being_deleted: false, active_version: Version::FIRST };

    fn pending(number: u128) -> Operation {
        operation(number, OperationStatus::Pending, 0)
    }

    fn urgent(number: u128) -> Operation {
        Operation { priority: true, ..pending(number) }
    }

    fn executing(number: u128) -> Operation {
        operation(number, OperationStatus::InProgress, 0)
    }

    fn parked(number: u128, unanswered: bool) -> Operation {
        let activity = Activity::Parked(Wait { what: "rooms".into(), until: at(10), unanswered });
        Operation { activity, ..executing(number) }
    }

    fn of(definition: Definition, operation: Operation) -> Operation {
        Operation { definition, ..operation }
    }

    fn cycle(number: u128) -> Operation {
        of(Definition::HealthController, pending(number))
    }

    fn id(number: u128) -> OperationId {
        OperationId::from_u128(number)
    }

    #[test]
    fn who_goes_next() {
        let deletion = || of(Definition::DeleteScheduler, parked(1, true));
        for (what, unfinished, woken, expected) in [
            ("nobody", vec![], None, NextWork::Nothing),
            ("who has the slot", vec![urgent(1), executing(2)], None, NextWork::Continue(id(2))),
            ("who came first", vec![pending(1), pending(2)], None, NextWork::Start(id(1))),
            ("who cannot wait", vec![pending(1), urgent(2), urgent(3)], None, NextWork::Start(id(2))),
            ("not who waits", vec![parked(1, false), pending(2)], None, NextWork::Start(id(2))),
            ("who has waited", vec![pending(1), parked(2, false)], Some(2), NextWork::Wake(id(2))),
            ("an urgent one before it", vec![parked(1, false), urgent(2)], Some(1), NextWork::Start(id(2))),
            ("beside one without an answer", vec![parked(1, true), pending(2)], None, NextWork::Start(id(2))),
            ("none beside a deletion", vec![deletion(), pending(2), urgent(3)], None, NextWork::Nothing),
            ("the deletion itself", vec![deletion(), urgent(2)], Some(1), NextWork::Wake(id(1))),
            (
                "one cycle of two",
                vec![cycle(1), cycle(2)],
                None,
                NextWork::Evict(id(2), Eviction::SecondHealthController),
            ),
        ] {
            let next = next(&unfinished, STATE, |operation| Some(operation.id) == woken.map(id));
            assert_eq!(next, expected, "{what}");
        }
    }

    #[test]
    fn a_deletion_leaves_nothing_to_do() {
        let state = SchedulerFacts { being_deleted: true, ..STATE };
        let deletion = of(Definition::DeleteScheduler, pending(2));
        let others = next(&[pending(1), deletion.clone()], state, |_| false);
        assert_eq!(others, NextWork::Evict(id(1), Eviction::SchedulerBeingDeleted));
        assert_eq!(next(&[deletion], state, |_| false), NextWork::Start(id(2)));
    }

    #[test]
    fn what_pending_ones_wait_for() {
        let deletion = of(Definition::DeleteScheduler, parked(1, true));
        let waiting = |others: &[Operation]| {
            let locks = Locks::default();
            let text = waiting_for(&pending(2), others, &locks, at(0)).unwrap_or_default();
            text.replace("00000000-0000-0000-0000-00000000000", "op")
        };
        assert_eq!(waiting(&[deletion]), "delete_scheduler op1 to finish or park");
        assert_eq!(waiting(&[executing(1)]), "remove_rooms op1 to finish or park");
        assert_eq!(waiting(&[parked(1, true)]), "a worker to pick it up");
    }
}
