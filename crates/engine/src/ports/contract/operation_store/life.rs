//! What an operation goes through.

use maestro_core::operation::{
    Activity, CancelRequest, Definition, DefinitionKind, Operation, OperationStatus, Origin, RemovalReason,
    Rollback, RollbackEnd, RoomsToRemove, SwitchVersion,
};
use maestro_core::region::Region;
use maestro_core::resize;
use serde_json::{Value, json};

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, NewOperation, OperationUpdate, Refusal};

pub(super) async fn an_operation_comes_back_as_it_was_enqueued(store: &dyn Store) {
    open(store).await;
    let enqueued = NewOperation { priority: true, fleet_delta: -4, created_at: at(3), ..new_operation(1) };
    accept(store, vec![Change::Enqueue(enqueued)]).await;
    let Operation {
        id,
        scheduler,
        definition,
        origin,
        priority,
        status,
        activity: _,
        rollback,
        progress,
        data: _,
        reason,
        fleet_delta,
        created_at,
        ended_at,
        lease,
        cancel,
        took_action: _,
        history,
    } = operation(store, 1).await;
    assert_eq!(id, operation_id(1));
    assert_eq!(scheduler, arena());
    assert_eq!(definition, Definition::AddRooms { amount: 1 });
    assert_eq!(origin, Origin::Person("ann@laptop".into()));
    assert!(priority);
    assert_eq!(status, OperationStatus::Pending);
    assert_eq!(rollback, None);
    assert_eq!(progress, json!({ "made": 0 }));
    assert_eq!(reason, "asked for by ann@laptop");
    assert_eq!(fleet_delta, -4);
    assert_eq!(created_at, at(3));
    assert_eq!(ended_at, None);
    assert_eq!(lease, None);
    assert_eq!(cancel, None);
    assert_eq!(history, [event(3, "Created")]);
}

pub(super) async fn every_definition_comes_back(store: &dyn Store) {
    open(store).await;
    let ids = RoomsToRemove::Ids(vec![room_id(2), room_id(1)]);
    let definitions = [
        Definition::CreateScheduler { recipe: Box::new(recipe(&arena())) },
        Definition::DeleteScheduler,
        Definition::CreateVersion { recipe: Box::new(recipe(&arena())) },
        Definition::SwitchVersion(SwitchVersion { to: version(2, 0), only_from: None }),
        Definition::SwitchVersion(SwitchVersion { to: version(2, 0), only_from: Some(version(3, 1)) }),
        Definition::AddRooms { amount: u32::MAX },
        Definition::RemoveRooms { rooms: RoomsToRemove::Amount(3), reason: RemovalReason::ScaleDown },
        Definition::RemoveRooms { rooms: ids, reason: RemovalReason::ExpiredRoom },
        Definition::Resize { asked: json!({ "number": 3 }), change: Ok(resize::Resized::Create(3)) },
        Definition::Resize { asked: json!({ "number": -3 }), change: Ok(resize::Resized::Delete(3)) },
        Definition::Resize { asked: json!({ "number": 0 }), change: Err("it is too small".into()) },
        Definition::CreateRoom { region: None },
        Definition::CreateRoom { region: Some(Region::parse("eu-west").unwrap()) },
        Definition::HealthController,
        Definition::StorageCleanUp,
        Definition::Unknown { name: "paint_rooms".into(), input: json!({ "colour": "red" }) },
    ];
    for kind in DefinitionKind::KNOWN {
        assert!(definitions.iter().any(|definition| definition.kind() == *kind), "{kind} is missing");
    }
    for (number, definition) in (1..).zip(definitions) {
        let enqueued = NewOperation { definition: definition.clone(), ..new_operation(number) };
        accept(store, vec![Change::Enqueue(enqueued)]).await;
        assert_eq!(operation(store, number).await.definition, definition);
    }
}

pub(super) async fn every_origin_comes_back(store: &dyn Store) {
    open(store).await;
    let origins = [
        Origin::Person(String::new()),
        Origin::Person("controller".into()),
        Origin::Controller,
        Origin::Panic,
        Origin::Engine,
    ];
    for (number, origin) in (1..).zip(origins) {
        let enqueued = NewOperation { origin: origin.clone(), ..new_operation(number) };
        accept(store, vec![Change::Enqueue(enqueued)]).await;
        assert_eq!(operation(store, number).await.origin, origin);
    }
}

pub(super) async fn an_unknown_operation_is_not_found(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1))]).await;
    let elsewhere = store.operation(&bystander(), operation_id(1)).await.unwrap();
    assert_eq!(elsewhere, None, "it belongs to another scheduler");
    for change in [
        start(7),
        end(7, OperationStatus::Canceled),
        Change::UpdateOperation(OperationUpdate::of(operation_id(7))),
        cancel(7, "ann"),
    ] {
        refuse(store, vec![change], Refusal::OperationNotFound(operation_id(7))).await;
    }
}

pub(super) async fn starting_grants_the_lease_and_the_slot(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    let started = operation(store, 1).await;
    assert!(started.is_executing());
    assert_eq!(started.lease, Some(lease(token(1), at(10))));
    assert_eq!(started.history, [event(0, "Created"), event(1, "Started by worker-1")]);
}

pub(super) async fn an_update_changes_what_it_names_and_no_more(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    let before = operation(store, 1).await;
    let nothing = OperationUpdate::of(operation_id(1));
    accept(store, vec![Change::UpdateOperation(nothing.clone())]).await;
    assert_eq!(operation(store, 1).await, before);

    let update = OperationUpdate { data: Some(json!({ "status": "OK" })), ..nothing.clone() };
    accept(store, vec![Change::UpdateOperation(update)]).await;
    let update = OperationUpdate {
        progress: Some(json!({ "made": 1 })),
        lease: Some(lease(token(2), at(20))),
        history: vec![event(2, "one room made")],
        ..nothing
    };
    accept(store, vec![Change::UpdateOperation(update)]).await;
    let mut expected = before;
    expected.data = json!({ "status": "OK" });
    expected.progress = json!({ "made": 1 });
    expected.lease = Some(lease(token(2), at(20)));
    expected.history.push(event(2, "one room made"));
    assert_eq!(operation(store, 1).await, expected);
}

pub(super) async fn history_is_kept_in_the_order_of_writing(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    // Clocks jump back; what happened later still stands later.
    for (seconds, text) in [(8, "b"), (3, "a"), (3, "c")] {
        let update = OperationUpdate {
            history: vec![event(seconds, text), event(seconds, "and more")],
            ..OperationUpdate::of(operation_id(1))
        };
        accept(store, vec![Change::UpdateOperation(update)]).await;
    }
    accept(store, vec![end_at(1, OperationStatus::Finished, true, 2)]).await;
    let history = operation(store, 1).await.history;
    let texts: Vec<_> = history.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(
        texts,
        ["Created", "Started by worker-1", "b", "and more", "a", "and more", "c", "and more", "Ended"]
    );
}

pub(super) async fn ending_takes_lease_and_slot(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), Change::Enqueue(new_operation(2)), start(1)]).await;
    accept(store, vec![end(1, OperationStatus::Finished), start(2)]).await;
    let ended = operation(store, 1).await;
    assert_eq!(ended.status, OperationStatus::Finished);
    assert_eq!(ended.lease, None);
    assert_eq!(ended.ended_at, Some(at(9)));
    assert!(ended.took_action);
    assert!(!ended.is_executing() && !ended.is_parked());
    assert_eq!(ended.progress, json!({ "made": 0 }), "it stays, for who reads it");
    assert!(operation(store, 2).await.is_executing());
}

pub(super) async fn every_transition_of_the_table_and_no_other(store: &dyn Store) {
    open(store).await;
    let mut number = 0;
    for from in OperationStatus::ALL {
        for to in OperationStatus::ALL {
            number += 1;
            bring_to(store, number, from).await;
            let change = match to {
                OperationStatus::InProgress => start(number),
                other => end(number, other),
            };
            if from.become_(to).is_ok() {
                accept(store, vec![change]).await;
                assert_eq!(operation(store, number).await.status, to, "{from} → {to}");
            } else {
                refuse(store, vec![change], wrong_status(number, from)).await;
            }
            // `EndOperation` leads to final statuses only, also where the table would let another one pass.
            let is = operation(store, number).await.status;
            let no_end = end(number, OperationStatus::InProgress);
            refuse(store, vec![no_end], wrong_status(number, is)).await;
            if is == OperationStatus::InProgress {
                accept(store, vec![end(number, OperationStatus::Error)]).await;
            }
        }
    }
}

pub(super) async fn bring_to(store: &dyn Store, number: u128, status: OperationStatus) {
    let mut changes = vec![Change::Enqueue(new_operation(number))];
    match status {
        OperationStatus::Pending => {}
        OperationStatus::InProgress => changes.push(start(number)),
        OperationStatus::Evicted => changes.push(end(number, status)),
        OperationStatus::Finished | OperationStatus::Error | OperationStatus::Canceled => {
            changes.extend([start(number), end(number, status)]);
        }
    }
    accept(store, changes).await;
}

pub(super) async fn only_pending_operations_start(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    refuse(store, vec![start(1)], wrong_status(1, OperationStatus::InProgress)).await;
    accept(store, vec![set_activity(1, parked("rooms to be gone"))]).await;
    refuse(store, vec![start(1)], wrong_status(1, OperationStatus::InProgress)).await;
}

pub(super) async fn only_operations_in_progress_are_updated_or_asked_to_end(store: &dyn Store) {
    open(store).await;
    for (number, status) in (1..).zip(OperationStatus::ALL) {
        bring_to(store, number, status).await;
        let update =
            OperationUpdate { progress: Some(Value::Null), ..OperationUpdate::of(operation_id(number)) };
        for change in [Change::UpdateOperation(update), cancel(number, "ann")] {
            if status == OperationStatus::InProgress {
                accept(store, vec![change]).await;
            } else {
                refuse(store, vec![change], wrong_status(number, status)).await;
            }
        }
        if status == OperationStatus::InProgress {
            accept(store, vec![end(number, OperationStatus::Canceled)]).await;
        }
    }
}

pub(super) async fn only_pending_operations_are_canceled_at_once(store: &dyn Store) {
    open(store).await;
    for (number, status) in (1..).zip(OperationStatus::ALL) {
        bring_to(store, number, status).await;
        let change = Change::CancelPending {
            operation: operation_id(number),
            history: vec![event(9, "Canceled by ann before it began")],
            at: at(9),
        };
        if status == OperationStatus::Pending {
            accept(store, vec![change]).await;
            let canceled = operation(store, number).await;
            assert_eq!(canceled.status, OperationStatus::Canceled);
            assert_eq!((canceled.ended_at, canceled.took_action), (Some(at(9)), true));
        } else {
            refuse(store, vec![change], wrong_status(number, status)).await;
        }
        if status == OperationStatus::InProgress {
            accept(store, vec![end(number, OperationStatus::Canceled)]).await;
        }
    }
}

pub(super) async fn the_slot_is_given_once(store: &dyn Store) {
    open(store).await;
    let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(3) };
    accept(
        store,
        vec![
            Change::Enqueue(new_operation(1)),
            Change::Enqueue(new_operation(2)),
            Change::Enqueue(elsewhere),
            start(1),
        ],
    )
    .await;
    let taken = Refusal::SlotTaken { by: operation_id(1) };
    refuse(store, vec![start(2)], taken).await;
    accept(store, vec![set_activity(1, Activity::Executing)]).await;
    accept(store, vec![start(3)]).await;
}

pub(super) async fn a_parked_operation_frees_the_slot(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), Change::Enqueue(new_operation(2)), start(1)]).await;
    accept(store, vec![set_activity(1, parked("rooms to be gone")), start(2)]).await;
    let first = operation(store, 1).await;
    assert!(first.is_parked());
    assert_eq!(first.activity, parked("rooms to be gone"));
    assert!(first.lease.is_some(), "it is in progress all the same");

    let wake = set_activity(1, Activity::Executing);
    let taken = Refusal::SlotTaken { by: operation_id(2) };
    refuse(store, vec![wake.clone()], taken).await;
    accept(store, vec![set_activity(1, parked("a lock"))]).await;
    accept(store, vec![set_activity(2, parked("a ping")), wake]).await;
    assert!(operation(store, 1).await.is_executing());
    assert!(operation(store, 2).await.is_parked());
}

pub(super) async fn a_rollback_is_remembered(store: &dyn Store) {
    open(store).await;
    for (number, then) in (1..).zip([RollbackEnd::Error, RollbackEnd::Canceled]) {
        accept(store, vec![Change::Enqueue(new_operation(number)), start(number)]).await;
        let rollback = Rollback { then, why: "room arena-00001 never became ready".into() };
        let operation_id = operation_id(number);
        let turn =
            Change::RollBack { operation: operation_id, rollback: rollback.clone(), history: Vec::new() };
        accept(store, vec![turn]).await;
        accept(store, vec![set_activity(number, parked("rooms to be gone"))]).await;
        assert_eq!(operation(store, number).await.rollback, Some(rollback));
    }
}

pub(super) async fn the_first_cancel_request_stays(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    accept(store, vec![cancel(1, "ann"), cancel(1, "bob")]).await;
    let asked = operation(store, 1).await;
    assert_eq!(asked.status, OperationStatus::InProgress);
    assert_eq!(asked.cancel, Some(cancel_request("ann")));
    let texts: Vec<_> = asked.history[2..].iter().map(|event| &event.event).collect();
    assert_eq!(texts, ["Cancel asked for by ann", "Cancel asked for by bob"], "both did ask");
    accept(store, vec![end(1, OperationStatus::Canceled)]).await;
    assert_eq!(operation(store, 1).await.cancel, Some(cancel_request("ann")));
}

fn cancel_request(by: &str) -> CancelRequest {
    CancelRequest { by: by.into(), at: at(4) }
}

fn cancel(number: u128, by: &str) -> Change {
    Change::RequestCancel {
        operation: operation_id(number),
        request: cancel_request(by),
        history: vec![event(4, &format!("Cancel asked for by {by}"))],
    }
}

pub(super) fn wrong_status(number: u128, is: OperationStatus) -> Refusal {
    Refusal::WrongStatus { operation: operation_id(number), is }
}

pub(super) async fn only_unfinished_operations_forget_their_part_of_the_fleet_size(store: &dyn Store) {
    open(store).await;
    let enqueue = |number| Change::Enqueue(NewOperation { fleet_delta: 3, ..new_operation(number) });
    accept(store, vec![enqueue(1), start(1), end(1, OperationStatus::Finished)]).await;
    accept(store, vec![enqueue(2), start(2), enqueue(3)]).await;
    let forget = |before: Option<u128>| {
        let before = before.map(operation_id);
        vec![Change::ForgetFleetDeltas { scheduler: arena(), before }]
    };
    for (before, deltas) in [(Some(2), [3, 3, 3]), (Some(3), [3, 0, 3]), (None, [3, 0, 0])] {
        accept(store, forget(before)).await;
        for (number, delta) in (1..).zip(deltas) {
            assert_eq!(operation(store, number).await.fleet_delta, delta, "operation {number}");
        }
    }
}
