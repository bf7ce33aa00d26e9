//! Who owns which scheduler, and what that is good for.

use maestro_core::operation::{Activity, OperationStatus, Token};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, after};

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, Guard, NewOperation, OperationUpdate, Refusal, Renewal, Transaction};

/// Owns the scheduler at `seconds`, for [`TTL`].
async fn own(store: &dyn Store, scheduler: &SchedulerName, owner: &str, seconds: i64) -> Option<Token> {
    store.own(scheduler, owner, at(seconds), TTL).await.unwrap()
}

async fn renew(store: &dyn Store, owner: &str, seconds: i64) -> Vec<(SchedulerName, Token)> {
    let operation_ttl = Millis::from_seconds(5);
    let mut owned = store.renew(Renewal { operation_ttl, ..renewal(owner, at(seconds)) }).await.unwrap();
    owned.sort();
    owned
}

fn guarded(scheduler: &SchedulerName, token: Token) -> Transaction {
    let guard = Guard { scheduler: scheduler.clone(), token, operation: None, locks: Vec::new() };
    Transaction::guarded("contract", guard, vec![adjust_fleet(scheduler, 1)])
}

async fn refuse_stale(store: &dyn Store, token: Token) {
    let stale = Refusal::StaleToken { scheduler: arena() };
    refuse_transaction(store, guarded(&arena(), token), stale).await;
}

pub(super) async fn a_free_scheduler_is_owned_by_who_comes_first(store: &dyn Store) {
    open(store).await;
    assert!(own(store, &arena(), "worker-1", 0).await.is_some());
    assert_eq!(own(store, &arena(), "worker-2", 1).await, None);
    assert_eq!(own(store, &arena(), "worker-2", 9).await, None);
    assert!(own(store, &bystander(), "worker-2", 1).await.is_some());
}

pub(super) async fn a_scheduler_that_is_not_there_is_owned_by_nobody(store: &dyn Store) {
    assert_eq!(own(store, &arena(), "worker-1", 0).await, None);
    assert_eq!(renew(store, "worker-1", 1).await, []);
    open(store).await;
    refuse_stale(store, token(0)).await;
    refuse_stale(store, token(1)).await;
}

pub(super) async fn an_owner_keeps_its_token(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await;
    assert_eq!(own(store, &arena(), "worker-1", 8).await, first);
    assert_eq!(own(store, &arena(), "worker-2", 15).await, None, "asking again renewed it");
    assert_eq!(own(store, &arena(), "worker-1", 500).await, first, "it ran out, but nobody took it");
}

pub(super) async fn an_expired_ownership_is_taken_with_a_greater_token(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await;
    let second = own(store, &arena(), "worker-2", 11).await;
    assert!(first.is_some() && second > first, "{second:?} after {first:?}");
    assert_eq!(own(store, &arena(), "worker-1", 12).await, None);
    let third = own(store, &arena(), "worker-1", 22).await;
    assert!(third > second, "a new owner, though it was one before");
}

/// Nobody may be there to renew it, and it would last as long as the step back was.
pub(super) async fn an_ownership_of_before_the_clock_was_set_back_runs_out(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 600).await;
    renew(store, "worker-1", 600).await;
    renew(store, "worker-2", 591).await;
    assert_eq!(own(store, &arena(), "worker-2", 609).await, None, "clocks may differ by a little");
    renew(store, "worker-2", 0).await;
    assert_eq!(own(store, &arena(), "worker-2", 9).await, None, "it may be alive");
    let expiries = store.workers().await.unwrap().workers.into_iter().map(|worker| worker.expires_at);
    assert_eq!(expiries.collect::<Vec<_>>(), [at(10), at(10)]);
    let second = own(store, &arena(), "worker-2", 11).await;
    assert!(second > first, "{second:?} after {first:?}");
}

pub(super) async fn tokens_are_one_sequence_for_all_schedulers(store: &dyn Store) {
    open(store).await;
    let mut last = None;
    for (scheduler, owner, seconds) in [
        (arena(), "worker-1", 0),
        (bystander(), "worker-1", 0),
        (arena(), "worker-2", 20),
        (bystander(), "worker-2", 20),
    ] {
        let token = own(store, &scheduler, owner, seconds).await;
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
    }
}

pub(super) async fn a_stale_guard_is_refused(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await.unwrap();
    store.commit(guarded(&arena(), first)).await.unwrap();
    let second = own(store, &arena(), "worker-2", 11).await.unwrap();
    refuse_stale(store, first).await;
    refuse_stale(store, Token(second.0 + 1)).await;
    store.commit(guarded(&arena(), second)).await.unwrap();
    let elsewhere = own(store, &bystander(), "worker-1", 11).await.unwrap();
    refuse_stale(store, elsewhere).await;
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + 2);
}

pub(super) async fn an_expired_guard_that_nobody_took_still_holds(store: &dyn Store) {
    open(store).await;
    let token = own(store, &arena(), "worker-1", 0).await.unwrap();
    own(store, &bystander(), "worker-2", 1000).await;
    store.commit(guarded(&arena(), token)).await.unwrap();
}

pub(super) async fn renewing_keeps_tokens_and_says_what_is_still_owned(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await.unwrap();
    let second = own(store, &bystander(), "worker-1", 0).await.unwrap();
    let both = [(arena(), first), (bystander(), second)];
    assert_eq!(renew(store, "worker-1", 8).await, both);
    assert_eq!(own(store, &arena(), "worker-2", 15).await, None, "renewed");
    assert_eq!(renew(store, "worker-1", 30).await, both, "they ran out, but nobody took them");
    let taken = own(store, &arena(), "worker-2", 50).await.unwrap();
    assert_eq!(renew(store, "worker-1", 51).await, [(bystander(), second)]);
    assert_eq!(renew(store, "worker-2", 51).await, [(arena(), taken)]);
    assert_eq!(renew(store, "worker-3", 51).await, []);
}

pub(super) async fn renewing_renews_leases_of_operations_in_progress(store: &dyn Store) {
    open(store).await;
    let mine = own(store, &arena(), "worker-1", 0).await.unwrap();
    let others = own(store, &bystander(), "worker-2", 0).await.unwrap();
    // An executing one, two parked ones (one of them from before the owner came), a pending and an ended one; and
    // one of another owner.
    let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(6) };
    let mut changes: Vec<_> = (1..=5).map(|number| Change::Enqueue(new_operation(number))).collect();
    changes.push(Change::Enqueue(elsewhere));
    for (number, token) in [(1, mine), (2, Token(0)), (5, mine), (3, mine), (6, others)] {
        changes.push(start_under(number, token));
        match number {
            1 | 2 => changes.push(set_activity(number, parked("a ping"))),
            5 => changes.push(end(number, OperationStatus::Finished)),
            _ => {}
        }
    }
    accept(store, changes).await;
    renew(store, "worker-1", 8).await;
    for (number, expected) in [
        (1, Some((mine, at(13)))),
        (2, Some((Token(0), at(4)))),
        (3, Some((mine, at(13)))),
        (4, None),
        (5, None),
    ] {
        let lease = operation(store, number).await.lease;
        let found = lease.map(|lease| (lease.token, lease.expires_at));
        assert_eq!(found, expected, "operation {number}");
    }
    let elsewhere = store.operation(&bystander(), operation_id(6)).await.unwrap();
    let lease = elsewhere.and_then(|operation| operation.lease);
    assert_eq!(lease.map(|lease| lease.expires_at), Some(at(4)));
    // A lease is shown to be renewed, not to be taken over: who takes the work over writes its own.
    let taken_over = OperationUpdate {
        activity: Some(parked("a ping")),
        lease: Some(lease_until_4(mine)),
        ..OperationUpdate::of(operation_id(2))
    };
    accept(store, vec![Change::UpdateOperation(taken_over)]).await;
    renew(store, "worker-1", 9).await;
    let lease = operation(store, 2).await.lease;
    assert_eq!(lease.map(|lease| lease.expires_at), Some(at(14)));
    assert_eq!(operation(store, 3).await.activity, Activity::Executing);
}

fn lease_until_4(token: Token) -> maestro_core::operation::Lease {
    lease(token, after(at(0), Millis::from_seconds(4)))
}

fn start_under(number: u128, token: Token) -> Change {
    Change::StartOperation {
        operation: operation_id(number),
        lease: lease_until_4(token),
        history: Vec::new(),
    }
}

pub(super) async fn several_are_owned_at_once_as_far_as_they_are_free(store: &dyn Store) {
    open(store).await;
    let taken = own(store, &bystander(), "worker-2", 0).await.unwrap();
    let wanted = [name("gone"), bystander(), arena()];
    let owned = store.own_all(&wanted, "worker-1", at(1), TTL).await.unwrap();
    let [(scheduler, token)] = &owned[..] else { panic!("{owned:?}") };
    assert!(*scheduler == arena() && *token > taken);
    assert_eq!(renew(store, "worker-2", 1).await, [(bystander(), taken)]);
    // When the other's time is over, both; who has one keeps its token.
    let owned = store.own_all(&wanted, "worker-1", at(60), TTL).await.unwrap();
    assert_eq!(
        owned.iter().map(|(scheduler, _)| scheduler.clone()).collect::<Vec<_>>(),
        [bystander(), arena()]
    );
    assert!(owned[0].1 > *token && owned[1].1 == *token);
    assert_eq!(store.own_all(&[], "worker-1", at(60), TTL).await.unwrap(), []);
}

pub(super) async fn disowning_frees_at_once(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await.unwrap();
    let elsewhere = own(store, &bystander(), "worker-1", 0).await.unwrap();
    store.disown(&arena(), first).await.unwrap();
    refuse_stale(store, first).await;
    assert_eq!(renew(store, "worker-1", 1).await, [(bystander(), elsewhere)]);
    let second = own(store, &arena(), "worker-2", 1).await.unwrap();
    assert!(second > first);
    store.disown(&arena(), second).await.unwrap();
    let third = own(store, &arena(), "worker-2", 2).await.unwrap();
    assert!(third > second, "it was given up in between");
}

pub(super) async fn a_stale_token_disowns_nothing(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await.unwrap();
    let second = own(store, &arena(), "worker-2", 11).await.unwrap();
    store.disown(&arena(), first).await.unwrap();
    store.disown(&bystander(), first).await.unwrap();
    store.disown(&name("gone"), second).await.unwrap();
    store.commit(guarded(&arena(), second)).await.unwrap();
    assert_eq!(own(store, &arena(), "worker-1", 12).await, None);
}
