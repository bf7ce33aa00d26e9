//! The suite of writing: a transaction is done wholly or not at all, alone or among many.

use std::future::Future;

use futures_util::future::join_all;
use maestro_core::allocation::{AllocationState, ClaimNumber};
use maestro_core::lock::LockKind;
use maestro_core::operation::{
    CancelRequest, Definition, OperationStatus, Rollback, RollbackEnd, SwitchVersion, Token,
};
use maestro_core::room::Region;
use maestro_core::scheduler::{Version, VersionStatus};
use serde_json::json;

use crate::ports::Store;
use crate::ports::store::{
    Change, ClaimedSince, ForgetAllocations, Guard, LastAddress, NewAllocation, NewOperation, NewRoomRecord,
    OperationUpdate, QueueId, Refusal, RolloutState, SchedulerState, Transaction, TransactionId,
};

use super::fixtures::*;
use super::{StoreUnderTest, run_cases};

/// How many write at once: more than any group of commits or pool of connections would be cut to by chance.
const WRITERS: u32 = 32;

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    run_cases!(
        "store's transactions",
        fresh,
        [
            nothing_is_a_transaction_too,
            changes_are_done_in_their_order,
            a_refusal_at_the_end_undoes_every_kind_of_change,
            a_guard_is_checked_before_anything_else,
            a_guard_may_end_what_it_guards,
            many_writers_lose_nothing,
            of_many_writers_one_gets_the_slot,
            of_many_writers_one_gets_the_port,
            of_many_writers_one_gets_to_the_versions,
            of_many_workers_one_owns,
            one_refusal_among_many_hurts_no_neighbour,
            sent_again_every_kind_of_change_is_done_once,
            sent_again_its_guard_is_not_asked,
            what_was_refused_is_decided_anew,
            several_are_sent_again_together,
        ]
    );
}

async fn nothing_is_a_transaction_too(store: &dyn Store) {
    open(store).await;
    let before = everything(store).await;
    accept(store, Vec::new()).await;
    assert_eq!(everything(store).await, before);
}

async fn changes_are_done_in_their_order(store: &dyn Store) {
    open(store).await;
    let adjust = |delta| adjust_fleet(&arena(), delta);
    accept(store, vec![set_fleet_size(0, 0), adjust(-5), set_fleet_size(2, 7), adjust(1)]).await;
    assert_eq!(scheduler(store, &arena()).await.fleet_size, 8);
    // What an earlier change of the same transaction made, a later one can use.
    let fresh = name("fresh");
    let operation = NewOperation { scheduler: fresh.clone(), ..new_operation(1) };
    let room = NewRoomRecord { scheduler: fresh.clone(), ..new_room(1, 40001) };
    accept(
        store,
        vec![
            Change::CreateScheduler(new_scheduler(&fresh)),
            Change::Enqueue(operation),
            start(1),
            Change::IntendRoom(room),
            end(1, OperationStatus::Finished),
        ],
    )
    .await;
    assert_eq!(store.live_rooms(&fresh).await.unwrap().len(), 1);
}

/// A store with one of everything: operation 1 executes, 2 is parked, 3 is pending, 4 has ended; room 1 wanted,
/// 2 to be stopped, 3 ended; operation 2 holds a lock that 3 waits for; four events wait.
async fn one_of_everything(store: &dyn Store) {
    open(store).await;
    let mut changes: Vec<_> = (1..=4).map(|number| Change::Enqueue(new_operation(number))).collect();
    changes.extend([start(2), set_activity(2, parked("a ping")), start(1)]);
    changes.push(end(4, OperationStatus::Canceled));
    changes.extend((1..=3).map(|number| Change::IntendRoom(new_room(number, 40000 + number as u16))));
    changes.push(intend_stop(2, 1));
    changes.push(end_room(3, 4));
    changes.extend([take(LockKind::Panic, holder(2)), await_lock(LockKind::Panic, holder(3))]);
    changes.extend([queue_event(1, 1), queue_event(2, 1), queue_event(3, 2), queue_event(4, 1)]);
    accept(store, changes).await;
}

/// Every kind of change, in an order in which they can be done one after the other on [`one_of_everything`].
/// `lock` is the token of the lock, `queue` that of the events.
fn every_kind_of_change(lock: Token, queue: QueueId) -> Vec<Vec<Change>> {
    let update = OperationUpdate {
        progress: Some(json!({ "made": 9 })),
        history: vec![event(5, "nine rooms made")],
        ..OperationUpdate::of(operation_id(1))
    };
    vec![
        vec![Change::CreateScheduler(new_scheduler(&name("fresh")))],
        vec![set_fleet_size(0, 3)],
        vec![adjust_fleet(&arena(), -3)],
        vec![set_version_status(Version::FIRST, VersionStatus::Error)],
        vec![insert_version(version(2, 0))],
        vec![set_active_version(2, version(2, 0))],
        vec![delete_version(Version::FIRST)],
        vec![set_rollout(3, Some(rollout(RolloutState::Rolling)))],
        vec![set_rollout(4, Some(rollout(RolloutState::Paused)))],
        vec![set_last_shrunk(5, 5)],
        vec![Change::Enqueue(new_operation(5))],
        vec![Change::CancelPending {
            operation: operation_id(5),
            history: vec![event(5, "Canceled by ann")],
            at: at(5),
        }],
        vec![Change::UpdateOperation(update)],
        vec![Change::RequestCancel {
            operation: operation_id(2),
            request: CancelRequest { by: "ann".into(), at: at(5) },
            history: vec![event(5, "Cancel asked for by ann")],
        }],
        vec![Change::RollBack {
            operation: operation_id(2),
            rollback: Rollback { then: RollbackEnd::Error, why: "released by ann".into() },
            history: vec![event(5, "lock released by ann")],
        }],
        vec![revoke(LockKind::Panic, lock)],
        vec![take(LockKind::Panic, holder(3))],
        vec![await_lock(LockKind::Panic, holder(1)), await_lock(LockKind::Panic, holder(2))],
        vec![stop_awaiting(LockKind::Panic, holder(1))],
        vec![release(LockKind::Panic, holder(3))],
        vec![take(LockKind::Downscaling, holder(1)), await_lock(LockKind::Config, holder(1))],
        vec![set_activity(1, parked("a lock")), start(3)],
        vec![end(1, OperationStatus::Error)],
        vec![Change::ForgetOperations {
            scheduler: Some(arena()),
            ended_before: at(99),
            no_action_before: at(99),
        }],
        vec![Change::IntendRoom(new_room(5, 40005))],
        vec![Change::RoomStarted { scheduler: arena(), room: room_id(5), handle: handle(5) }],
        vec![allocate(1, 1, 1)],
        vec![end_allocation(1, AllocationState::Begun, 12)],
        vec![spend(1, 2, 2)],
        vec![Change::Allocate(NewAllocation { request: request("a", 0), ..new_allocation(2, 1, 3) })],
        vec![withdraw(2, 13)],
        vec![allocate(3, 1, 4)],
        vec![
            allocate(4, 5, 1),
            intend_stop_unless(5, 1, ClaimedSince { number: ClaimNumber(1), takes_held: true }),
        ],
        vec![Change::ForgetFleetDeltas { scheduler: arena(), before: None }],
        vec![end_room(1, 5), end_room(2, 6), end_room(5, 7)],
        vec![Change::ForgetRooms { scheduler: arena(), rooms: vec![room_id(3)] }],
        vec![queue_event(5, 2)],
        vec![failed(queue, 2, 9)],
        vec![delivered(queue, &[1], 9)],
        vec![dead(queue, &[2, 3], 9, 9)],
        vec![Change::ReplayEvents { scheduler: arena(), events: vec![event_id(2)], at: at(9) }],
        vec![Change::ForgetDeadEvents { scheduler: arena(), before: at(99) }],
        vec![Change::ForgetAllocations(ForgetAllocations {
            scheduler: arena(),
            ended_before: at(99),
            requested_ended_before: at(99),
            keep_max: 1,
            allocations_max: 2,
        })],
        vec![set_state(6, SchedulerState::Deleting)],
        vec![Change::OrphanEvents {
            scheduler: arena(),
            addresses: vec![(MATCHMAKER.into(), LastAddress { address: "a:1".into(), timeout_ms: 1 })],
        }],
        vec![Change::DeleteScheduler { scheduler: arena(), keep: operation_id(2) }],
    ]
}

async fn a_refusal_at_the_end_undoes_every_kind_of_change(store: &dyn Store) {
    one_of_everything(store).await;
    let token = store.own(&arena(), "worker-1", TTL).await.unwrap();
    let refused = Change::RoomStarted { scheduler: bystander(), room: room_id(1), handle: handle(1) };
    let held = lock(store, LockKind::Panic).await.token;
    let queue = event_queue(store).await.id;
    for changes in every_kind_of_change(held, queue) {
        let then_refused = [changes.clone(), vec![refused.clone()]].concat();
        refuse(store, then_refused, Refusal::RoomNotFound(room_id(1))).await;
        let owned = store.renew(renewal("worker-1")).await.unwrap();
        assert_eq!(owned, [(arena(), token.unwrap())], "after {changes:?}");
        // As if it had never been: slots, ports and ids are as free as they were.
        accept(store, changes).await;
    }
}

async fn a_guard_is_checked_before_anything_else(store: &dyn Store) {
    open(store).await;
    let guard = Guard { scheduler: arena(), token: token(1), operation: None, locks: Vec::new() };
    let impossible = vec![Change::CreateScheduler(new_scheduler(&arena()))];
    let transaction = Transaction::guarded("contract", guard, impossible);
    let stale = Refusal::StaleToken { scheduler: arena() };
    refuse_transaction(store, transaction, stale).await;
}

async fn a_guard_may_end_what_it_guards(store: &dyn Store) {
    open(store).await;
    let token = store.own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    let guard = Guard { scheduler: arena(), token, operation: None, locks: Vec::new() };
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    let delete = Change::DeleteScheduler { scheduler: arena(), keep: operation_id(1) };
    let changes = vec![delete, end(1, OperationStatus::Finished)];
    let transaction = Transaction::guarded("contract", guard, changes);
    store.commit(transaction.clone()).await.unwrap();
    assert_eq!(operation(store, 1).await.status, OperationStatus::Finished);
    let stale = Refusal::StaleToken { scheduler: arena() };
    refuse_transaction(store, transaction, stale).await;
}

/// Commits all at once, and says for each one what became of it.
async fn commit_at_once(store: &dyn Store, transactions: Vec<Vec<Change>>) -> Vec<Result<(), Refusal>> {
    let commits = transactions.into_iter().map(|changes| async move {
        let outcome = store.commit(Transaction::new("contract", &arena(), changes)).await;
        outcome.map_err(|error| error.refusal().cloned().expect("nothing is broken"))
    });
    join_all(commits).await
}

async fn many_writers_lose_nothing(store: &dyn Store) {
    open(store).await;
    let transactions = (1..=WRITERS)
        .map(|number| {
            vec![
                adjust_fleet(&arena(), 1),
                Change::Enqueue(new_operation(number.into())),
                adjust_fleet(&bystander(), 2),
            ]
        })
        .collect();
    let outcomes = commit_at_once(store, transactions).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + WRITERS);
    assert_eq!(scheduler(store, &bystander()).await.fleet_size, FLEET_SIZE + 2 * WRITERS);
    let unfinished = store.unfinished(&arena()).await.unwrap();
    assert_eq!(unfinished.len(), WRITERS as usize);
}

async fn of_many_writers_one_gets_the_slot(store: &dyn Store) {
    open(store).await;
    let enqueued = (1..=WRITERS).map(|number| Change::Enqueue(new_operation(number.into())));
    accept(store, enqueued.collect()).await;
    let starts = (1..=WRITERS).map(|number| vec![start(number.into())]).collect();
    let outcomes = commit_at_once(store, starts).await;
    let unfinished = store.unfinished(&arena()).await.unwrap();
    let executing: Vec<_> = unfinished.iter().filter(|operation| operation.is_executing()).collect();
    assert_eq!(executing.len(), 1);
    let taken = Refusal::SlotTaken { by: executing[0].id };
    let refused = outcomes.iter().filter(|outcome| **outcome == Err(taken.clone())).count();
    assert_eq!(refused, WRITERS as usize - 1);
}

async fn of_many_writers_one_gets_the_port(store: &dyn Store) {
    open(store).await;
    let intents = (1..=WRITERS).map(|number| vec![Change::IntendRoom(new_room(number, 40001))]).collect();
    let outcomes = commit_at_once(store, intents).await;
    let taken = Err(Refusal::PortTaken { region: Region::default_region(), port: 40001 });
    let refused = outcomes.iter().filter(|outcome| **outcome == taken).count();
    assert_eq!(refused, WRITERS as usize - 1);
    assert_eq!(store.all_live_rooms().await.unwrap().len(), 1);
}

async fn of_many_writers_one_gets_to_the_versions(store: &dyn Store) {
    open(store).await;
    let enqueue = |number: u32| {
        let switch = SwitchVersion { to: version(2, 0), only_from: None };
        vec![Change::Enqueue(NewOperation {
            definition: Definition::SwitchVersion(switch),
            only_version_operation: true,
            ..new_operation(number.into())
        })]
    };
    let outcomes = commit_at_once(store, (1..=WRITERS).map(enqueue).collect()).await;
    let unfinished = store.unfinished(&arena()).await.unwrap();
    assert_eq!(unfinished.len(), 1);
    let under_way =
        Err(Refusal::VersionOperationUnderWay { scheduler: arena(), operation: unfinished[0].id });
    let refused = outcomes.iter().filter(|outcome| **outcome == under_way).count();
    assert_eq!(refused, WRITERS as usize - 1);
}

async fn of_many_workers_one_owns(store: &dyn Store) {
    open(store).await;
    let owners: Vec<_> = (0..WRITERS).map(|number| format!("worker-{number}")).collect();
    let arena = arena();
    let attempts = owners.iter().map(|owner| store.own(&arena, owner, TTL));
    let tokens = join_all(attempts).await;
    let won: Vec<_> = tokens.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(won.len(), 1);
}

async fn one_refusal_among_many_hurts_no_neighbour(store: &dyn Store) {
    open(store).await;
    let transactions = (1..=WRITERS)
        .map(|number| {
            let mut changes = vec![adjust_fleet(&arena(), 1), Change::Enqueue(new_operation(number.into()))];
            if number % 3 == 0 {
                changes.push(start(999));
            }
            changes
        })
        .collect();
    let outcomes = commit_at_once(store, transactions).await;
    for (number, outcome) in (1..).zip(&outcomes) {
        let expected =
            if number % 3 == 0 { Err(Refusal::OperationNotFound(operation_id(999))) } else { Ok(()) };
        assert_eq!(*outcome, expected, "transaction {number}");
    }
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let size = scheduler(store, &arena()).await.fleet_size;
    assert_eq!(size as usize, FLEET_SIZE as usize + done);
    assert_eq!(store.unfinished(&arena()).await.unwrap().len(), done);
}

async fn sent_again_every_kind_of_change_is_done_once(store: &dyn Store) {
    one_of_everything(store).await;
    let held = lock(store, LockKind::Panic).await.token;
    let queue = event_queue(store).await.id;
    for (number, changes) in (1..).zip(every_kind_of_change(held, queue)) {
        let transaction = sent_as(number, changes);
        store.commit(transaction.clone()).await.unwrap();
        let done = everything(store).await;
        for _ in 0..2 {
            let again = store.commit(transaction.clone()).await;
            assert!(again.is_ok(), "{again:?} of {transaction:?}, which was done");
            assert_eq!(everything(store).await, done, "done twice: {transaction:?}");
        }
    }
}

async fn sent_again_its_guard_is_not_asked(store: &dyn Store) {
    open(store).await;
    let token = store.own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    let guard = Guard { scheduler: arena(), token, operation: None, locks: Vec::new() };
    let adjusted = Transaction { guard: Some(guard.clone()), ..sent_as(1, vec![adjust_fleet(&arena(), 1)]) };
    store.commit(adjusted.clone()).await.unwrap();
    store.disown(&arena(), token).await.unwrap();
    store.own(&arena(), "worker-2", TTL).await.unwrap().unwrap();
    store.commit(adjusted.clone()).await.unwrap();
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + 1);
    // The same under another id is another transaction.
    let another = Transaction { id: Some(TransactionId(2)), ..adjusted };
    refuse_transaction(store, another, Refusal::StaleToken { scheduler: arena() }).await;
}

async fn what_was_refused_is_decided_anew(store: &dyn Store) {
    open(store).await;
    let transaction = sent_as(1, vec![start(1)]);
    let refused = store.commit(transaction.clone()).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::OperationNotFound(operation_id(1))));
    accept(store, vec![Change::Enqueue(new_operation(1))]).await;
    store.commit(transaction).await.unwrap();
    assert!(operation(store, 1).await.is_executing());
}

async fn several_are_sent_again_together(store: &dyn Store) {
    open(store).await;
    let transactions = vec![
        sent_as(1, vec![adjust_fleet(&arena(), 1)]),
        sent_as(2, vec![start(1)]),
        sent_as(3, vec![adjust_fleet(&arena(), 2)]),
    ];
    let answers = store.commit_each(transactions.clone()).await.unwrap();
    assert_eq!(answers, [Ok(()), Err(Refusal::OperationNotFound(operation_id(1))), Ok(())]);
    assert_eq!(store.commit_each(transactions.clone()).await.unwrap(), answers);
    // In another company, too.
    store.commit(transactions[2].clone()).await.unwrap();
    let answers = store.commit_each(vec![sent_as(4, Vec::new()), transactions[0].clone()]).await.unwrap();
    assert_eq!(answers, [Ok(()), Ok(())]);
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + 3);
}

fn sent_as(id: u128, changes: Vec<Change>) -> Transaction {
    Transaction { id: Some(TransactionId(id)), ..Transaction::new("contract", &arena(), changes) }
}
