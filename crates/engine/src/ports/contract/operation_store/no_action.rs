//! Operations that changed nothing, recorded as a whole.

use maestro_core::operation::{Activity, Definition, OperationStatus, Origin, Stage};
use maestro_core::scheduler::SchedulerName;
use serde_json::json;

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, NoAction, PageRequest, Refusal, Routine, SchedulerState};

fn record(number: u128, seconds: i64) -> Change {
    Change::RecordNoAction(no_action(number, seconds))
}

fn record_of(scheduler: SchedulerName, number: u128, seconds: i64) -> Change {
    Change::RecordNoAction(NoAction { scheduler, ..no_action(number, seconds) })
}

async fn listed(store: &dyn Store, newest_first: bool, page: u32, page_size: u32) -> (u32, Vec<u128>) {
    let request = PageRequest { page, page_size, newest_first, ..all_operations() };
    let page = store.operations(&arena(), Stage::Final, request).await.unwrap();
    let number = |id: &[u8; 16]| u128::from_be_bytes(*id);
    (page.total, page.operations.iter().map(|operation| number(operation.id.as_bytes())).collect())
}

pub(super) async fn a_record_comes_back_as_a_finished_operation(store: &dyn Store) {
    open(store).await;
    accept(store, vec![record(1, 7)]).await;
    let found = operation(store, 1).await;
    assert_eq!(found, no_action(1, 7).into_operation());
    assert_eq!((found.status, found.took_action), (OperationStatus::Finished, false));
    assert_eq!((found.definition, found.origin), (Definition::HealthController, Origin::Engine));
    assert_eq!((found.created_at, found.ended_at), (at(7), Some(at(7))));
    assert_eq!((found.activity, found.lease), (Activity::Executing, None));
    let events: Vec<_> = found.history.iter().map(|event| (event.at, event.event.as_str())).collect();
    assert_eq!(events, [(at(7), "Created"), (at(7), "3 rooms"), (at(7), "Operation finished")]);
    assert_eq!(store.unfinished(&arena()).await.unwrap(), []);
    assert_eq!(store.operation(&bystander(), operation_id(1)).await.unwrap(), None);
    let hidden = PageRequest { no_action: false, ..all_operations() };
    assert_eq!(store.operations(&arena(), Stage::Final, hidden).await.unwrap().total, 0);
}

pub(super) async fn records_are_listed_with_others_in_the_order_of_writing(store: &dyn Store) {
    open(store).await;
    let ended = |number| vec![Change::Enqueue(new_operation(number)), end(number, OperationStatus::Canceled)];
    accept(store, vec![record(100, 1)]).await;
    accept(store, ended(3)).await;
    accept(store, vec![record(101, 2), record_of(bystander(), 200, 2)]).await;
    accept(store, vec![record(102, 2)]).await;
    accept(store, vec![Change::Enqueue(new_operation(2))]).await;
    accept(store, ended(1)).await;
    accept(store, vec![record(103, 3)]).await;
    let all = [100, 3, 101, 102, 1, 103];
    assert_eq!(listed(store, false, 1, 10).await, (6, all.into()));
    assert_eq!(listed(store, true, 1, 10).await, (6, all.into_iter().rev().collect()));
    assert_eq!(listed(store, false, 2, 2).await, (6, vec![101, 102]));
    assert_eq!(listed(store, true, 3, 2).await, (6, vec![3, 100]));
    assert_eq!(listed(store, true, 4, 2).await, (6, vec![]));
    let page = store.operations(&arena(), Stage::Final, all_operations()).await.unwrap();
    assert!(page.operations.iter().all(|operation| operation.history.is_empty()), "lists have no histories");
}

pub(super) async fn records_that_say_the_same_or_not_are_told_apart(store: &dyn Store) {
    open(store).await;
    let records = [
        no_action(1, 1),
        no_action(2, 2),
        NoAction { data: json!({ "decision": { "total": 4 } }), ..no_action(3, 3) },
        NoAction { reason: "scheduled\n\"twice\"".into(), ..no_action(4, 4) },
        NoAction { events: vec!["4 rooms".into()], ..no_action(5, 5) },
        NoAction { routine: Routine::StorageCleanUp, ..no_action(6, 6) },
        NoAction { scheduler: bystander(), ..no_action(7, 7) },
        no_action(8, 8),
    ];
    for record in &records {
        accept(store, vec![Change::RecordNoAction(record.clone())]).await;
    }
    for record in records {
        let found = store.operation(&record.scheduler, record.id).await.unwrap();
        assert_eq!(found, Some(record.into_operation()));
    }
}

pub(super) async fn a_record_is_refused_where_an_operation_would_be(store: &dyn Store) {
    open(store).await;
    refuse(store, vec![record_of(name("gone"), 1, 1)], Refusal::SchedulerNotFound(name("gone"))).await;
    accept(store, vec![record(1, 1), Change::Enqueue(new_operation(2))]).await;
    for (change, number) in [
        (record(1, 2), 1),
        (record(2, 2), 2),
        (record_of(bystander(), 1, 2), 1),
        (Change::Enqueue(new_operation(1)), 1),
    ] {
        refuse(store, vec![change], Refusal::OperationExists(operation_id(number))).await;
    }
    accept(store, vec![set_state(0, SchedulerState::Deleting)]).await;
    refuse(store, vec![record(3, 3)], Refusal::SchedulerBeingDeleted(arena())).await;
}

pub(super) async fn records_are_forgotten_by_age_of_all_schedulers(store: &dyn Store) {
    open(store).await;
    accept(store, vec![record(1, 10), record_of(bystander(), 2, 10), record(3, 20), record(4, 30)]).await;
    accept(store, vec![Change::Enqueue(new_operation(5)), end_at(5, OperationStatus::Evicted, false, 5)])
        .await;
    let (ended_before, no_action_before) = (at(100), at(100));
    accept(
        store,
        vec![Change::ForgetOperations { scheduler: Some(arena()), ended_before, no_action_before }],
    )
    .await;
    assert_eq!(listed(store, false, 1, 10).await, (3, vec![1, 3, 4]), "these are left alone");
    accept(store, vec![Change::Enqueue(new_operation(6)), end_at(6, OperationStatus::Evicted, false, 5)])
        .await;
    accept(store, vec![Change::ForgetNoAction { before: at(20) }]).await;
    assert_eq!(listed(store, false, 1, 10).await, (3, vec![3, 4, 6]));
    assert_eq!(store.operation(&bystander(), operation_id(2)).await.unwrap(), None);
    accept(store, vec![record(7, 40)]).await;
    accept(store, vec![Change::ForgetNoAction { before: at(40) }]).await;
    assert_eq!(operation(store, 7).await, no_action(7, 40).into_operation(), "what it says is kept");
}

pub(super) async fn a_deleted_scheduler_leaves_no_records_behind(store: &dyn Store) {
    open(store).await;
    accept(store, vec![record(1, 1), Change::Enqueue(new_operation(2))]).await;
    accept(store, vec![Change::DeleteScheduler { scheduler: arena(), keep: operation_id(2) }]).await;
    assert_eq!(store.operation(&arena(), operation_id(1)).await.unwrap(), None);
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena()))]).await;
    assert_eq!(listed(store, false, 1, 10).await, (0, vec![]));
}

pub(super) async fn what_clean_up_would_drop_is_seen_before(store: &dyn Store) {
    open(store).await;
    let has = async |ended: i64, no_action: i64| {
        store.has_operations_to_forget(&arena(), at(ended), at(no_action)).await.unwrap()
    };
    accept(store, vec![record(1, 1)]).await;
    assert!(!has(100, 100).await, "records go another way");
    accept(store, vec![Change::Enqueue(new_operation(2))]).await;
    assert!(!has(100, 100).await, "it has not ended");
    accept(store, vec![end_at(2, OperationStatus::Evicted, false, 10)]).await;
    assert!(has(11, 0).await && has(0, 11).await);
    assert!(!has(10, 10).await);
    accept(store, vec![Change::Enqueue(new_operation(3)), end_at(3, OperationStatus::Evicted, true, 5)])
        .await;
    assert!(has(6, 6).await);
    assert!(!has(5, 6).await, "it changed something");
    assert!(!store.has_operations_to_forget(&bystander(), at(100), at(100)).await.unwrap());
}
