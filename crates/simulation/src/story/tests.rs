use maestro_core::lock::{Taker, Waiter};
use maestro_core::operation::{CancelRequest, Definition, RemovalReason, RoomsToRemove};
use maestro_engine::ports::contract::fixtures::{self, arena, at, operation_id};
use maestro_engine::ports::store::NewOperation;

use super::*;

const FIRST: u128 = 0xabc1;
const SECOND: u128 = 0xabc2;

fn removal(number: u128) -> Change {
    let definition =
        Definition::RemoveRooms { rooms: RoomsToRemove::Amount(2), reason: RemovalReason::ScaleDown };
    let reason = "asked for by ann".to_owned();
    Change::Enqueue(NewOperation { definition, reason, ..fixtures::new_operation(number) })
}

fn holder(number: u128) -> Holder {
    Holder::Operation { kind: DefinitionKind::RemoveRooms, id: operation_id(number) }
}

fn take(kind: LockKind, number: u128) -> Change {
    Change::TakeLock(NewLock {
        scheduler: arena(),
        kind,
        taker: Taker::of(holder(number)),
        reason: "so it is".into(),
        ttl: None,
    })
}

fn start(number: u128) -> Change {
    let history = vec![fixtures::event(0, "Starting operation")];
    let lease = fixtures::lease(fixtures::token(1), at(10));
    Change::StartOperation { operation: operation_id(number), lease, history }
}

fn park(number: u128, what: &str, event: &str) -> Change {
    let mut update = OperationUpdate::of(operation_id(number));
    update.activity = Some(Activity::Parked(Wait { what: what.into(), until: at(30), unanswered: false }));
    update.history = vec![fixtures::event(0, event)];
    Change::UpdateOperation(update)
}

fn end(number: u128, status: OperationStatus, event: &str) -> Change {
    let history = vec![fixtures::event(0, event)];
    Change::EndOperation { operation: operation_id(number), status, took_action: true, history, at: at(0) }
}

fn await_lock(number: u128) -> Change {
    let waiter = Waiter { kind: LockKind::Downscaling, holder: holder(number), since: at(0), until: at(60) };
    Change::AwaitLock { scheduler: arena(), waiter }
}

fn check(writes: Vec<(&'static str, Vec<Change>)>, expected: &[&str]) {
    let mut story = Story::default();
    let told: Vec<String> = writes
        .into_iter()
        .map(|(label, changes)| story.tell(&Transaction::of_no_scheduler(label, changes), at(1)))
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn an_operation_is_followed_to_its_end() {
    check(
        vec![
            ("request resize", vec![removal(FIRST), removal(SECOND)]),
            ("start operation", vec![start(FIRST), take(LockKind::Downscaling, FIRST)]),
            ("step", vec![park(FIRST, "2 rooms to be gone", "2 rooms were asked to go")]),
            ("start operation", vec![start(SECOND)]),
            (
                "step",
                vec![await_lock(SECOND), park(SECOND, "downscaling held", "waiting for downscaling held")],
            ),
            ("end operation", vec![end(FIRST, OperationStatus::Finished, "Operation finished")]),
            (
                "step",
                vec![
                    take(LockKind::Downscaling, SECOND),
                    park(SECOND, "1 room to be gone", "so far so good"),
                ],
            ),
            ("end operation", vec![end(SECOND, OperationStatus::Error, "it did not go")]),
        ],
        &[
            "request resize of arena; new remove_rooms 0000abc1 (asked for by ann); \
             new remove_rooms 0000abc2 (asked for by ann)",
            "start operation of arena: remove_rooms 0000abc1; takes lock downscaling",
            "step of arena: remove_rooms 0000abc1; \
             waits for 2 rooms to be gone, and looks again after 29 s at the latest; “2 rooms were asked to go”",
            "start operation of arena: remove_rooms 0000abc2",
            "step of arena: remove_rooms 0000abc2; \
             waits for downscaling held, and looks again after 29 s at the latest; gets in line for lock downscaling",
            "end operation of arena: remove_rooms 0000abc1; ends as finished, and gives up lock downscaling",
            "step of arena: remove_rooms 0000abc2; \
             waits for 1 room to be gone, and looks again after 29 s at the latest; “so far so good”; \
             takes lock downscaling",
            "end operation of arena: remove_rooms 0000abc2; ends as error, and gives up lock downscaling; \
             “it did not go”",
        ],
    );
}

#[test]
fn what_is_asked_of_another_operation_is_told_of_that_one() {
    let operation = operation_id(FIRST);
    let request = CancelRequest { by: "eve".into(), at: at(0) };
    let cancel = Change::RequestCancel { operation, request, history: Vec::new() };
    check(
        vec![
            ("request resize", vec![removal(FIRST)]),
            ("request cancel", vec![cancel.clone()]),
            ("step", vec![cancel, park(SECOND, "1 operation to end", "so it is")]),
            ("cancel pending", vec![Change::CancelPending { operation, history: Vec::new(), at: at(0) }]),
        ],
        &[
            "request resize of arena; new remove_rooms 0000abc1 (asked for by ann)",
            "request cancel of arena: remove_rooms 0000abc1; is asked by eve to end",
            "step: operation 0000abc2; remove_rooms 0000abc1 is asked by eve to end; \
             waits for 1 operation to end, and looks again after 29 s at the latest; “so it is”",
            "cancel pending of arena: remove_rooms 0000abc1; ends as canceled before it began",
        ],
    );
}
