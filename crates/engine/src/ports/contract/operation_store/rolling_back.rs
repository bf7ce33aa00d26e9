//! Operations that somebody else has end their work.

use maestro_core::operation::{Activity, OperationStatus, Rollback, RollbackEnd, Wait};
use maestro_core::time::Timestamp;

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, Refusal};

use super::life::{bring_to, wrong_status};

fn rollback(why: &str) -> Rollback {
    Rollback { then: RollbackEnd::Error, why: why.into() }
}

fn roll_back(number: u128, why: &str) -> Change {
    Change::RollBack {
        operation: operation_id(number),
        rollback: rollback(why),
        history: vec![event(5, why)],
    }
}

pub(super) async fn only_unfinished_operations_roll_back(store: &dyn Store) {
    open(store).await;
    refuse(store, vec![roll_back(99, "late")], Refusal::OperationNotFound(operation_id(99))).await;
    for (number, status) in (1..).zip(OperationStatus::ALL) {
        bring_to(store, number, status).await;
        if status.is_final() {
            refuse(store, vec![roll_back(number, "late")], wrong_status(number, status)).await;
            continue;
        }
        let mut expected = operation(store, number).await;
        accept(store, vec![roll_back(number, "released by ann")]).await;
        expected.rollback = Some(rollback("released by ann"));
        expected.history.push(event(5, "released by ann"));
        assert_eq!(operation(store, number).await, expected, "nothing else changes while it is {status}");
        accept(store, vec![end(number, OperationStatus::Canceled)]).await;
    }
}

pub(super) async fn the_first_reason_to_roll_back_stays(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1))]).await;
    accept(store, vec![roll_back(1, "released by ann"), start(1), roll_back(1, "released by bob")]).await;
    let turned = operation(store, 1).await;
    assert_eq!(turned.rollback, Some(rollback("released by ann")), "also after it was started");
    let texts: Vec<_> = turned.history.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(texts, ["Created", "released by ann", "Started by worker-1", "released by bob"]);
}

/// It still waits without the slot, but for nothing: whoever works on it looks again at once.
pub(super) async fn a_parked_operation_turns_round_where_it_is(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), Change::Enqueue(new_operation(2)), start(1)]).await;
    accept(store, vec![set_activity(1, parked("a lock")), start(2), roll_back(1, "released by ann")]).await;
    let turned = operation(store, 1).await;
    let at_once = Wait { what: "a lock".into(), until: Timestamp::UNIX_EPOCH, unanswered: false };
    assert_eq!(turned.activity, Activity::Parked(at_once));
    assert_eq!(turned.rollback, Some(rollback("released by ann")));
    assert!(operation(store, 2).await.is_executing());
    // What it waits for on its way back is its own affair.
    accept(store, vec![set_activity(1, parked("rooms to be gone")), roll_back(1, "released by bob")]).await;
    assert_eq!(operation(store, 1).await.activity, parked("rooms to be gone"));
}
