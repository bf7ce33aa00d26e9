//! Operations for tests of this crate.

use serde_json::Value;

use super::{
    Activity, Definition, HistoryEvent, Lease, Operation, OperationId, OperationStatus, Origin,
    RemovalReason, RoomsToRemove, Token,
};
use crate::scheduler::SchedulerName;
use crate::time::Timestamp;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn lease(owner: &str, until: i64) -> Lease {
    Lease { owner: owner.into(), token: Token(3), expires_at: at(until) }
}

/// A removal; in progress, it holds the slot, and its lease lasts until 1005.
pub(crate) fn operation(number: u128, status: OperationStatus, created: i64) -> Operation {
    Operation {
        id: OperationId::from_u128(number),
        scheduler: SchedulerName::parse("arena").unwrap(),
        definition: Definition::RemoveRooms {
            rooms: RoomsToRemove::Amount(1),
            reason: RemovalReason::ScaleDown,
        },
        origin: Origin::Controller,
        priority: false,
        status,
        activity: Activity::Executing,
        rollback: None,
        progress: Value::Null,
        data: Value::Null,
        reason: String::new(),
        fleet_delta: 0,
        created_at: at(created),
        ended_at: None,
        lease: (status == OperationStatus::InProgress).then(|| lease("worker-1", 1005)),
        cancel: None,
        took_action: true,
        history: vec![HistoryEvent { at: at(created), event: "Created".into() }],
    }
}
