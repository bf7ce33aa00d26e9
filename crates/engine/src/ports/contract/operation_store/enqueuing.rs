//! What is enqueued, and what is refused.

use maestro_core::operation::queue::UNFINISHED_MAX;
use maestro_core::operation::{Definition, OperationStatus, Origin, SwitchVersion};

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, NewOperation, Refusal, SchedulerState};

pub(super) async fn a_scheduler_being_deleted_takes_only_deletions(store: &dyn Store) {
    open(store).await;
    accept(store, vec![set_state(0, SchedulerState::Deleting)]).await;
    for definition in
        [Definition::AddRooms { amount: 1 }, Definition::HealthController, Definition::StorageCleanUp]
    {
        let other = NewOperation { definition, ..new_operation(1) };
        refuse(store, vec![Change::Enqueue(other)], Refusal::SchedulerBeingDeleted(arena())).await;
    }
    let deletion = NewOperation { definition: Definition::DeleteScheduler, ..new_operation(1) };
    accept(store, vec![Change::Enqueue(deletion)]).await;
}

pub(super) async fn an_id_is_given_once(store: &dyn Store) {
    open(store).await;
    let again = |number| {
        vec![
            Change::Enqueue(new_operation(number)),
            Change::Enqueue(NewOperation { scheduler: bystander(), ..new_operation(number) }),
        ]
    };
    let exists = |number| Refusal::OperationExists(operation_id(number));
    refuse(store, again(1), exists(1)).await;
    accept(
        store,
        vec![
            Change::Enqueue(new_operation(1)),
            Change::Enqueue(new_operation(2)),
            end(2, OperationStatus::Evicted),
        ],
    )
    .await;
    for number in [1, 2] {
        for change in again(number) {
            refuse(store, vec![change], exists(number)).await;
        }
    }
    let delete = Change::DeleteScheduler { scheduler: arena(), keep: operation_id(2) };
    accept(store, vec![delete]).await;
    let elsewhere = again(2).pop().unwrap();
    refuse(store, vec![elsewhere], exists(2)).await;
}

pub(super) async fn schedulers_in_hand_are_counted(store: &dyn Store) {
    open(store).await;
    let in_hand = async || store.schedulers_in_hand().await.unwrap();
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    assert_eq!(in_hand().await, 0, "it is about rooms");
    accept(store, vec![end(1, OperationStatus::Finished)]).await;
    let create = Definition::CreateScheduler { recipe: Box::new(recipe(&arena())) };
    let deletion = Definition::DeleteScheduler;
    let create = NewOperation { definition: create, ..new_operation(2) };
    let delete = NewOperation { definition: deletion, scheduler: bystander(), ..new_operation(3) };
    accept(store, vec![Change::Enqueue(create), Change::Enqueue(delete)]).await;
    assert_eq!(in_hand().await, 2);
    accept(store, vec![start(2), start(3)]).await;
    assert_eq!(in_hand().await, 2);
    accept(store, vec![set_activity(3, parked("region eu to be reached"))]).await;
    assert_eq!(in_hand().await, 1, "who waits keeps nobody waiting");
    accept(store, vec![end(2, OperationStatus::Finished)]).await;
    assert_eq!(in_hand().await, 0);
}

/// The engine's own operations are few, and a deletion and the way back of a rollout are ways out.
pub(super) async fn people_cannot_ask_without_end(store: &dyn Store) {
    open(store).await;
    let of = |number: u128, origin: Origin| NewOperation { origin, ..new_operation(number) };
    let ann = || Origin::Person("ann".into());
    let numbers = || 1..=u128::from(UNFINISHED_MAX);
    accept(store, numbers().map(|number| Change::Enqueue(of(number, ann()))).collect()).await;
    let full = || Refusal::QueueFull(arena());
    refuse(store, vec![Change::Enqueue(of(5_000, ann()))], full()).await;
    accept(
        store,
        vec![
            Change::Enqueue(NewOperation { scheduler: bystander(), ..of(5_001, ann()) }),
            Change::Enqueue(of(5_002, Origin::Controller)),
            Change::Enqueue(NewOperation { priority: true, ..of(5_005, ann()) }),
            Change::Enqueue(NewOperation { definition: Definition::DeleteScheduler, ..of(5_003, ann()) }),
        ],
    )
    .await;
    accept(store, (1..=4).map(|number| end(number, OperationStatus::Evicted)).collect()).await;
    accept(store, vec![Change::Enqueue(of(5_000, ann()))]).await;
    refuse(store, vec![Change::Enqueue(of(5_004, ann()))], full()).await;
}

fn switch() -> Definition {
    Definition::SwitchVersion(SwitchVersion { to: version(2, 0), only_from: None })
}

fn version_definitions() -> [Definition; 2] {
    let recipe = Box::new(recipe_with_image("example/game:2"));
    [Definition::CreateVersion { recipe }, switch()]
}

/// An operation of the arena that comes after nobody's.
fn enqueue(number: u128, definition: Definition) -> Change {
    Change::Enqueue(NewOperation { definition, ..new_operation(number) })
}

/// An operation of the arena that asks to be the only one on versions.
fn enqueue_only(number: u128) -> Change {
    Change::Enqueue(NewOperation {
        definition: switch(),
        only_version_operation: true,
        ..new_operation(number)
    })
}

fn under_way(number: u128) -> Refusal {
    Refusal::VersionOperationUnderWay { scheduler: arena(), operation: operation_id(number) }
}

pub(super) async fn a_version_operation_is_refused_while_another_is_unfinished(store: &dyn Store) {
    open(store).await;
    for (number, definition) in [10, 20].into_iter().zip(version_definitions()) {
        accept(store, vec![enqueue(number, definition)]).await;
        refuse(store, vec![enqueue_only(1)], under_way(number)).await;
        accept(store, vec![start(number)]).await;
        refuse(store, vec![enqueue_only(1)], under_way(number)).await;
        accept(store, vec![set_activity(number, parked("a ping"))]).await;
        refuse(store, vec![enqueue_only(1)], under_way(number)).await;
        accept(store, vec![end(number, OperationStatus::Finished)]).await;
    }
    accept(store, vec![enqueue_only(1)]).await;
}

pub(super) async fn a_second_deletion_is_refused_while_one_is_unfinished(store: &dyn Store) {
    open(store).await;
    let under_way =
        |number| Refusal::DeletionUnderWay { scheduler: arena(), operation: operation_id(number) };
    accept(store, vec![enqueue(1, Definition::DeleteScheduler)]).await;
    refuse(store, vec![enqueue(2, Definition::DeleteScheduler)], under_way(1)).await;
    accept(store, vec![start(1)]).await;
    refuse(store, vec![enqueue(2, Definition::DeleteScheduler)], under_way(1)).await;
    accept(store, vec![end(1, OperationStatus::Error)]).await;
    accept(store, vec![enqueue(2, Definition::DeleteScheduler)]).await;
}

pub(super) async fn a_version_operation_may_follow_one_that_ended(store: &dyn Store) {
    open(store).await;
    let finals = OperationStatus::ALL.into_iter().filter(|status| status.is_final());
    for (number, status) in (1..).zip(finals) {
        accept(store, vec![enqueue_only(number)]).await;
        if status != OperationStatus::Evicted {
            accept(store, vec![start(number)]).await;
        }
        accept(store, vec![end(number, status)]).await;
    }
    accept(store, vec![enqueue_only(9)]).await;
}

/// How one hands over to the next, with no moment between them for anybody else.
pub(super) async fn a_version_operation_may_follow_one_that_ends_in_the_same_transaction(store: &dyn Store) {
    open(store).await;
    accept(store, vec![enqueue_only(1), start(1)]).await;
    let ending = end(1, OperationStatus::Finished);
    refuse(store, vec![enqueue_only(2), ending.clone()], under_way(1)).await;
    accept(store, vec![ending, enqueue_only(2)]).await;
    refuse(store, vec![enqueue_only(3)], under_way(2)).await;
}

pub(super) async fn of_two_version_operations_in_a_transaction_the_second_is_refused(store: &dyn Store) {
    open(store).await;
    refuse(store, vec![enqueue_only(1), enqueue_only(2)], under_way(1)).await;
}

pub(super) async fn the_first_of_several_version_operations_is_named(store: &dyn Store) {
    open(store).await;
    // Not the order of their ids.
    accept(store, vec![enqueue(7, switch()), enqueue(3, switch())]).await;
    refuse(store, vec![enqueue_only(1)], under_way(7)).await;
    accept(store, vec![end(7, OperationStatus::Canceled)]).await;
    refuse(store, vec![enqueue_only(1)], under_way(3)).await;
}

pub(super) async fn only_who_asks_for_it_is_kept_from_a_second_version_operation(store: &dyn Store) {
    open(store).await;
    accept(store, vec![enqueue_only(1)]).await;
    for (number, definition) in (2..).zip(version_definitions()) {
        accept(store, vec![enqueue(number, definition)]).await;
    }
    accept(store, vec![Change::Enqueue(new_operation(4))]).await;
}

pub(super) async fn other_operations_and_other_schedulers_keep_no_version_operation_away(store: &dyn Store) {
    open(store).await;
    let elsewhere = NewOperation { scheduler: bystander(), definition: switch(), ..new_operation(2) };
    accept(
        store,
        vec![
            Change::Enqueue(new_operation(1)),
            Change::Enqueue(elsewhere),
            enqueue(3, Definition::HealthController),
            start(1),
        ],
    )
    .await;
    accept(store, vec![enqueue_only(4)]).await;
}

/// Who sends the same operation again, because the answer was lost, hears that it is there.
pub(super) async fn a_version_operation_is_not_under_way_to_itself(store: &dyn Store) {
    open(store).await;
    accept(store, vec![enqueue_only(1)]).await;
    let exists = Refusal::OperationExists(operation_id(1));
    refuse(store, vec![enqueue_only(1)], exists).await;
}
