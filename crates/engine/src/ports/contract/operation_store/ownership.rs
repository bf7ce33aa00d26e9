//! Who owns which scheduler, and what that is good for.

use maestro_core::operation::{Activity, OperationStatus, Token};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, after};

use crate::ports::Store;
use crate::ports::contract::StoreUnderTest;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, Guard, NewOperation, OperationUpdate, Refusal, Renewal, Transaction};

async fn own(store: &dyn Store, scheduler: &SchedulerName, owner: &str) -> Option<Token> {
    store.own(scheduler, owner, TTL).await.unwrap()
}

/// Another may own it at once.
async fn own_for_no_time(store: &dyn Store, scheduler: &SchedulerName, owner: &str) -> Option<Token> {
    store.own(scheduler, owner, NO_TIME).await.unwrap()
}

async fn renew(store: &dyn Store, owner: &str) -> Vec<(SchedulerName, Token)> {
    renew_as(store, renewal(owner)).await
}

async fn renew_for_no_time(store: &dyn Store, owner: &str) -> Vec<(SchedulerName, Token)> {
    renew_as(store, Renewal { ownership_ttl: NO_TIME, ..renewal(owner) }).await
}

async fn renew_as(store: &dyn Store, renewal: Renewal<'_>) -> Vec<(SchedulerName, Token)> {
    let mut owned = store.renew(renewal).await.unwrap();
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
    assert!(own(store, &arena(), "worker-1").await.is_some());
    assert_eq!(own(store, &arena(), "worker-2").await, None);
    assert!(own(store, &bystander(), "worker-2").await.is_some());
}

pub(super) async fn a_scheduler_that_is_not_there_is_owned_by_nobody(store: &dyn Store) {
    assert_eq!(own(store, &arena(), "worker-1").await, None);
    assert_eq!(renew(store, "worker-1").await, []);
    open(store).await;
    refuse_stale(store, token(0)).await;
    refuse_stale(store, token(1)).await;
}

pub(super) async fn an_owner_keeps_its_token(store: &dyn Store) {
    open(store).await;
    let first = own_for_no_time(store, &arena(), "worker-1").await;
    assert_eq!(own(store, &arena(), "worker-1").await, first, "it ran out, but nobody took it");
    assert_eq!(own(store, &arena(), "worker-2").await, None, "asking again renewed it");
}

pub(super) async fn an_expired_ownership_is_taken_with_a_greater_token(store: &dyn Store) {
    open(store).await;
    let first = own_for_no_time(store, &arena(), "worker-1").await;
    let second = own(store, &arena(), "worker-2").await;
    assert!(first.is_some() && second > first, "{second:?} after {first:?}");
    assert_eq!(own(store, &arena(), "worker-1").await, None);
    own_for_no_time(store, &arena(), "worker-2").await;
    let third = own(store, &arena(), "worker-1").await;
    assert!(third > second, "a new owner, though it was one before");
}

/// Whatever any worker's clock shows.
pub(super) async fn an_ownership_runs_out_by_the_stores_clock(store: &StoreUnderTest) {
    const TTL: Millis = Millis(30);
    open(&**store).await;
    let first = store.own(&arena(), "worker-1", TTL).await.unwrap();
    store.pass(TTL).await;
    let second = store.own(&arena(), "worker-2", TTL).await.unwrap();
    assert!(second > first, "{second:?} after {first:?}");
    let renewal = Renewal { ownership_ttl: TTL, ..renewal("worker-2") };
    store.renew(renewal).await.unwrap();
    store.pass(TTL).await;
    let third = own(&**store, &arena(), "worker-3").await;
    assert!(third > second, "{third:?} after {second:?}");
}

/// Nobody may be there to renew it, and it would last as long as the step back was.
pub(super) async fn an_ownership_of_before_the_clock_was_set_back_runs_out(store: &StoreUnderTest) {
    let hour = Millis::from_seconds(3600);
    open(&**store).await;
    let first = own(&**store, &arena(), "worker-1").await;
    renew(&**store, "worker-1").await;
    if !store.set_back(hour) {
        return;
    }
    renew(&**store, "worker-2").await;
    assert_eq!(own(&**store, &arena(), "worker-2").await, None, "it may be alive");
    let now = store.now().await.unwrap();
    let expiries = store.workers().await.unwrap().workers.into_iter().map(|worker| worker.expires_at);
    assert_eq!(expiries.collect::<Vec<_>>(), [after(now, TTL); 2]);
    store.pass(TTL).await;
    let second = own(&**store, &arena(), "worker-2").await;
    assert!(second > first, "{second:?} after {first:?}");
}

pub(super) async fn tokens_are_one_sequence_for_all_schedulers(store: &dyn Store) {
    open(store).await;
    let mut last = None;
    for (scheduler, owner) in
        [(arena(), "worker-1"), (bystander(), "worker-1"), (arena(), "worker-2"), (bystander(), "worker-2")]
    {
        let token = own_for_no_time(store, &scheduler, owner).await;
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
    }
}

pub(super) async fn a_stale_guard_is_refused(store: &dyn Store) {
    open(store).await;
    let first = own_for_no_time(store, &arena(), "worker-1").await.unwrap();
    store.commit(guarded(&arena(), first)).await.unwrap();
    let second = own(store, &arena(), "worker-2").await.unwrap();
    refuse_stale(store, first).await;
    refuse_stale(store, Token(second.0 + 1)).await;
    store.commit(guarded(&arena(), second)).await.unwrap();
    let elsewhere = own(store, &bystander(), "worker-1").await.unwrap();
    refuse_stale(store, elsewhere).await;
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + 2);
}

pub(super) async fn an_expired_guard_that_nobody_took_still_holds(store: &dyn Store) {
    open(store).await;
    let token = own_for_no_time(store, &arena(), "worker-1").await.unwrap();
    own(store, &bystander(), "worker-2").await;
    store.commit(guarded(&arena(), token)).await.unwrap();
}

pub(super) async fn renewing_keeps_tokens_and_says_what_is_still_owned(store: &dyn Store) {
    open(store).await;
    let first = own_for_no_time(store, &arena(), "worker-1").await.unwrap();
    let second = own_for_no_time(store, &bystander(), "worker-1").await.unwrap();
    let both = [(arena(), first), (bystander(), second)];
    assert_eq!(renew(store, "worker-1").await, both, "they ran out, but nobody took them");
    assert_eq!(own(store, &arena(), "worker-2").await, None, "renewed");
    assert_eq!(renew_for_no_time(store, "worker-1").await, both);
    let taken = own(store, &arena(), "worker-2").await.unwrap();
    assert_eq!(renew(store, "worker-1").await, [(bystander(), second)]);
    assert_eq!(renew(store, "worker-2").await, [(arena(), taken)]);
    assert_eq!(renew(store, "worker-3").await, []);
}

pub(super) async fn renewing_renews_leases_of_operations_in_progress(store: &dyn Store) {
    open(store).await;
    let mine = own(store, &arena(), "worker-1").await.unwrap();
    let others = own(store, &bystander(), "worker-2").await.unwrap();
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
    let (_, renewed) = in_window(store, renew(store, "worker-1")).await;
    for number in [1, 3] {
        let lease = operation(store, number).await.lease.expect("it is in progress");
        assert_eq!(lease.token, mine, "operation {number}");
        renewed.check(lease.expires_at, TTL);
    }
    assert_eq!(operation(store, 2).await.lease, Some(lease_until_4(Token(0))));
    for number in [4, 5] {
        assert_eq!(operation(store, number).await.lease, None, "operation {number}");
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
    let (_, renewed) = in_window(store, renew(store, "worker-1")).await;
    renewed.check(operation(store, 2).await.lease.expect("it is in progress").expires_at, TTL);
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
    let taken = own(store, &bystander(), "worker-2").await.unwrap();
    let wanted = [name("gone"), bystander(), arena()];
    let owned = store.own_all(&wanted, "worker-1", TTL).await.unwrap();
    let [(scheduler, token)] = &owned[..] else { panic!("{owned:?}") };
    assert!(*scheduler == arena() && *token > taken);
    assert_eq!(renew_for_no_time(store, "worker-2").await, [(bystander(), taken)]);
    // When the other's time is over, both; who has one keeps its token.
    let owned = store.own_all(&wanted, "worker-1", TTL).await.unwrap();
    assert_eq!(
        owned.iter().map(|(scheduler, _)| scheduler.clone()).collect::<Vec<_>>(),
        [bystander(), arena()]
    );
    assert!(owned[0].1 > *token && owned[1].1 == *token);
    assert_eq!(store.own_all(&[], "worker-1", TTL).await.unwrap(), []);
}

pub(super) async fn disowning_frees_at_once(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1").await.unwrap();
    let elsewhere = own(store, &bystander(), "worker-1").await.unwrap();
    store.disown(&arena(), first).await.unwrap();
    refuse_stale(store, first).await;
    assert_eq!(renew(store, "worker-1").await, [(bystander(), elsewhere)]);
    let second = own(store, &arena(), "worker-2").await.unwrap();
    assert!(second > first);
    store.disown(&arena(), second).await.unwrap();
    let third = own(store, &arena(), "worker-2").await.unwrap();
    assert!(third > second, "it was given up in between");
}

pub(super) async fn a_stale_token_disowns_nothing(store: &dyn Store) {
    open(store).await;
    let first = own_for_no_time(store, &arena(), "worker-1").await.unwrap();
    let second = own(store, &arena(), "worker-2").await.unwrap();
    store.disown(&arena(), first).await.unwrap();
    store.disown(&bystander(), first).await.unwrap();
    store.disown(&name("gone"), second).await.unwrap();
    store.commit(guarded(&arena(), second)).await.unwrap();
    assert_eq!(own(store, &arena(), "worker-1").await, None);
}
