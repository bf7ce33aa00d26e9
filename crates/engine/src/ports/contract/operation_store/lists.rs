//! How operations are listed and forgotten.

use maestro_core::operation::{
    Definition, DefinitionKind, IdPrefix, Operation, OperationStatus, RemovalReason, RoomsToRemove, Stage,
    SwitchVersion,
};
use maestro_core::scheduler::SchedulerName;
use serde_json::Value;

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, NewOperation, OperationFilter, OperationPage, PageRequest};

/// Not the order of their ids nor of their times: clocks jump, and the queue is first in, first out.
const ENQUEUED: [(u128, i64); 5] = [(30, 5), (10, 5), (50, 2), (20, 9), (40, 2)];
const IN_ORDER: [u128; 5] = [30, 10, 50, 20, 40];

async fn enqueue_five(store: &dyn Store) {
    open(store).await;
    for (number, seconds) in ENQUEUED {
        let enqueued = NewOperation { created_at: at(seconds), ..new_operation(number) };
        let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(number + 1) };
        accept(store, vec![Change::Enqueue(enqueued), Change::Enqueue(elsewhere)]).await;
    }
}

async fn page(store: &dyn Store, stage: Stage, request: PageRequest) -> OperationPage {
    store.operations(&arena(), stage, request).await.unwrap()
}

fn ids(operations: &[Operation]) -> Vec<u128> {
    let number = |operation: &Operation| u128::from_be_bytes(*operation.id.as_bytes());
    operations.iter().map(number).collect()
}

pub(super) async fn unfinished_are_listed_whole_in_the_order_of_enqueuing(store: &dyn Store) {
    enqueue_five(store).await;
    assert_eq!(ids(&store.unfinished(&arena()).await.unwrap()), IN_ORDER);
    accept(store, vec![start(20)]).await;
    accept(store, vec![set_activity(20, parked("a ping")), start(10)]).await;
    accept(store, vec![end(10, OperationStatus::Finished), end(50, OperationStatus::Canceled)]).await;
    let unfinished = store.unfinished(&arena()).await.unwrap();
    assert_eq!(ids(&unfinished), [30, 20, 40], "a status moves nothing");
    for listed in unfinished {
        let number = u128::from_be_bytes(*listed.id.as_bytes());
        assert_eq!(listed, operation(store, number).await, "history and progress too");
    }
    assert_eq!(store.unfinished(&name("gone")).await.unwrap(), []);
}

pub(super) async fn version_operations_are_listed_whole_and_newest_first(store: &dyn Store) {
    enqueue_five(store).await;
    let switch = SwitchVersion { to: version(2, 0), only_from: None };
    let definitions = [
        (60, Definition::CreateVersion { recipe: Box::new(recipe(&arena())) }),
        (70, Definition::HealthController),
        (5, Definition::SwitchVersion(switch)),
    ];
    for (number, definition) in definitions {
        let elsewhere = NewOperation {
            scheduler: bystander(),
            definition: definition.clone(),
            ..new_operation(number + 1)
        };
        let enqueued = NewOperation { definition, ..new_operation(number) };
        accept(store, vec![Change::Enqueue(enqueued), Change::Enqueue(elsewhere)]).await;
    }
    accept(store, vec![end(60, OperationStatus::Canceled)]).await;
    let found = store.version_operations(&arena(), 10).await.unwrap();
    assert_eq!(ids(&found), [5, 60], "ended ones too");
    for listed in found {
        let number = u128::from_be_bytes(*listed.id.as_bytes());
        assert_eq!(listed, operation(store, number).await, "history and progress too");
    }
    assert_eq!(ids(&store.version_operations(&arena(), 1).await.unwrap()), [5]);
    assert_eq!(store.version_operations(&name("gone"), 10).await.unwrap(), []);
}

pub(super) async fn stages_are_listed_apart(store: &dyn Store) {
    enqueue_five(store).await;
    accept(store, vec![start(50)]).await;
    accept(store, vec![set_activity(50, parked("a ping")), start(20)]).await;
    accept(store, vec![end(20, OperationStatus::Error), start(30)]).await;
    accept(store, vec![end(10, OperationStatus::Evicted)]).await;
    for (stage, expected) in
        [(Stage::Pending, vec![40]), (Stage::Active, vec![30, 50]), (Stage::Final, vec![10, 20])]
    {
        let OperationPage { total, operations } = page(store, stage, all_operations()).await;
        assert_eq!(ids(&operations), expected, "{stage:?}");
        assert_eq!(total as usize, expected.len());
    }
}

pub(super) async fn pages_are_cut_in_order_without_history_and_progress(store: &dyn Store) {
    enqueue_five(store).await;
    for (number, newest_first, expected) in [
        (1, false, [30, 10].as_slice()),
        (2, false, &[50, 20]),
        (3, false, &[40]),
        (1, true, &[40, 20]),
        (2, true, &[50, 10]),
        (3, true, &[30]),
    ] {
        let request = PageRequest {
            page: number,
            page_size: 2,
            newest_first,
            no_action: false,
            only: OperationFilter::default(),
        };
        let OperationPage { total, operations } = page(store, Stage::Pending, request).await;
        assert_eq!(ids(&operations), expected, "page {number}, newest first: {newest_first}");
        assert_eq!(total, 5);
        for listed in operations {
            let mut whole = operation(store, u128::from_be_bytes(*listed.id.as_bytes())).await;
            whole.history.clear();
            whole.progress = Value::Null;
            assert_eq!(listed, whole);
        }
    }
}

pub(super) async fn a_page_beyond_the_end_is_empty_and_knows_the_total(store: &dyn Store) {
    enqueue_five(store).await;
    for (number, page_size) in [(4, 2), (2, 5), (u32::MAX, u32::MAX)] {
        let request = PageRequest {
            page: number,
            page_size,
            newest_first: true,
            no_action: false,
            only: OperationFilter::default(),
        };
        let beyond = page(store, Stage::Pending, request).await;
        let nothing = OperationPage { total: 5, operations: Vec::new() };
        assert_eq!(beyond, nothing, "page {number} of {page_size}");
    }
    let unknown = store.operations(&name("gone"), Stage::Pending, all_operations()).await;
    assert_eq!(unknown.unwrap().total, 0);
}

pub(super) async fn operations_that_changed_nothing_are_hidden_unless_asked_for(store: &dyn Store) {
    enqueue_five(store).await;
    accept(store, vec![start(30)]).await;
    accept(store, vec![end_at(30, OperationStatus::Finished, false, 3), start(10)]).await;
    accept(store, vec![end_at(10, OperationStatus::Finished, true, 3), start(50)]).await;
    assert!(!operation(store, 30).await.took_action);
    for (no_action, expected) in [(true, [30, 10].as_slice()), (false, &[10])] {
        let request = PageRequest { no_action, ..all_operations() };
        let OperationPage { total, operations } = page(store, Stage::Final, request).await;
        assert_eq!(ids(&operations), expected);
        assert_eq!(total as usize, expected.len());
        // What has not ended may still change something.
        assert_eq!(page(store, Stage::Active, request).await.total, 1);
        assert_eq!(page(store, Stage::Pending, request).await.total, 2);
    }
}

pub(super) async fn only_what_is_asked_for_is_listed_and_counted(store: &dyn Store) {
    enqueue_five(store).await;
    let removal =
        Definition::RemoveRooms { rooms: RoomsToRemove::Amount(1), reason: RemovalReason::ScaleDown };
    let removal = NewOperation { definition: removal, created_at: at(7), ..new_operation(60) };
    accept(store, vec![Change::Enqueue(removal)]).await;
    let ends =
        [(30, OperationStatus::Evicted), (10, OperationStatus::Canceled), (60, OperationStatus::Evicted)];
    for (number, status) in ends {
        accept(store, vec![end(number, status)]).await;
    }
    let kind = Some(DefinitionKind::RemoveRooms);
    let (evicted, since) = (Some(OperationStatus::Evicted), Some(at(5)));
    let whole = IdPrefix::parse(&operation_id(10).to_string());
    let any = OperationFilter::default();
    for (stage, only, expected) in [
        (Stage::Final, any, [30, 10, 60].as_slice()),
        (Stage::Final, OperationFilter { kind, ..any }, &[60]),
        (Stage::Pending, OperationFilter { kind, ..any }, &[]),
        (Stage::Final, OperationFilter { status: evicted, ..any }, &[30, 60]),
        (Stage::Final, OperationFilter { status: evicted, since: Some(at(6)), ..any }, &[60]),
        (Stage::Pending, OperationFilter { since, ..any }, &[20]),
        (Stage::Final, OperationFilter { since, ..any }, &[30, 10, 60]),
        (Stage::Final, OperationFilter { id: whole, ..any }, &[10]),
        (Stage::Final, OperationFilter { id: IdPrefix::parse("00000000"), ..any }, &[30, 10, 60]),
        (Stage::Final, OperationFilter { id: IdPrefix::parse("1"), ..any }, &[]),
        (Stage::Final, OperationFilter { kind, status: evicted, since, id: whole }, &[]),
    ] {
        let request = PageRequest { only, ..all_operations() };
        let OperationPage { total, operations } = page(store, stage, request).await;
        assert_eq!(ids(&operations), expected, "{only:?}");
        assert_eq!(total as usize, expected.len(), "{only:?}");
    }
    let second = PageRequest {
        page: 2,
        page_size: 1,
        only: OperationFilter { status: evicted, ..any },
        ..all_operations()
    };
    assert_eq!(ids(&page(store, Stage::Final, second).await.operations), [60]);
}

pub(super) async fn final_operations_are_forgotten_by_age(store: &dyn Store) {
    open(store).await;
    for (number, took_action, seconds) in
        [(1, true, 10), (2, true, 20), (3, false, 30), (4, false, 40), (5, true, 30)]
    {
        accept(
            store,
            vec![
                Change::Enqueue(new_operation(number)),
                end_at(number, OperationStatus::Evicted, took_action, seconds),
            ],
        )
        .await;
    }
    // However old they are: what has not ended stays, and so does what others have.
    let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(8) };
    accept(
        store,
        vec![
            Change::Enqueue(new_operation(6)),
            Change::Enqueue(new_operation(7)),
            Change::Enqueue(elsewhere),
            start(7),
            end_at(8, OperationStatus::Evicted, false, 1),
        ],
    )
    .await;
    accept(store, vec![forget(Some(arena()), 20, 40)]).await;
    let stayed = page(store, Stage::Final, all_operations()).await;
    assert_eq!(ids(&stayed.operations), [2, 4, 5]);
    assert_eq!(ids(&store.unfinished(&arena()).await.unwrap()), [6, 7]);
    assert_eq!(store.operation(&arena(), operation_id(1)).await.unwrap(), None, "nothing is left of it");
    let elsewhere = store.operation(&bystander(), operation_id(8)).await.unwrap();
    assert!(elsewhere.is_some());
}

pub(super) async fn operations_of_gone_schedulers_are_forgotten_apart(store: &dyn Store) {
    open(store).await;
    for (scheduler, number, seconds) in [("old", 1, 10), ("new", 2, 30)] {
        let deletion = NewOperation {
            scheduler: name(scheduler),
            definition: Definition::DeleteScheduler,
            ..new_operation(number)
        };
        let deleted = Change::DeleteScheduler { scheduler: name(scheduler), keep: operation_id(number) };
        accept(
            store,
            vec![
                Change::CreateScheduler(new_scheduler(&name(scheduler))),
                Change::Enqueue(deletion),
                start(number),
                end_at(number, OperationStatus::Finished, true, seconds),
                deleted,
            ],
        )
        .await;
    }
    accept(store, vec![Change::Enqueue(new_operation(3)), end_at(3, OperationStatus::Canceled, true, 1)])
        .await;
    accept(store, vec![forget(None, 20, 20)]).await;
    for (scheduler, number, stays) in [("old", 1, false), ("new", 2, true), ("arena", 3, true)] {
        let found = store.operation(&name(scheduler), operation_id(number)).await;
        assert_eq!(found.unwrap().is_some(), stays, "of {scheduler}");
    }
}

fn forget(scheduler: Option<SchedulerName>, ended_before: i64, no_action_before: i64) -> Change {
    Change::ForgetOperations {
        scheduler,
        ended_before: at(ended_before),
        no_action_before: at(no_action_before),
    }
}
