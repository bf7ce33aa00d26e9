//! What holding a lock is good for, and how it ends.

use maestro_core::lock::LockKind::{self, Config, Downscaling, Scale, Termination};
use maestro_core::lock::{Locks, Obstacle};
use maestro_core::operation::{OperationStatus, Rollback, RollbackEnd, Token};
use maestro_core::time::Millis;

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, Guard, NewLock, NewOperation, Refusal, Renewal, Transaction};

/// The arena owned by worker-1, with operations 1 (in progress) and 2 (pending).
async fn open_owned(store: &dyn Store) -> Token {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), Change::Enqueue(new_operation(2)), start(1)]).await;
    store.own(&arena(), "worker-1", TTL).await.unwrap().unwrap()
}

fn owner_guard(token: Token) -> Guard {
    Guard { scheduler: arena(), token, operation: None, locks: Vec::new() }
}

fn guarded(token: Token, locks: &[(LockKind, Token)]) -> Transaction {
    let guard = Guard { locks: locks.into(), ..owner_guard(token) };
    Transaction::guarded("contract", guard, vec![adjust_fleet(&arena(), 1)])
}

fn lost(kind: LockKind) -> Refusal {
    Refusal::LockLost { scheduler: arena(), kind }
}

pub(super) async fn a_guard_holds_as_long_as_its_locks_do(store: &dyn Store) {
    let owned = open_owned(store).await;
    accept(store, vec![take(Scale, holder(1)), take(Config, holder(2))]).await;
    let (scale, config) = (lock(store, Scale).await.token, lock(store, Config).await.token);
    store.commit(guarded(owned, &[(Scale, scale), (Config, config)])).await.unwrap();
    accept(store, vec![take(Scale, holder(1)), await_lock(Scale, holder(2))]).await;
    store.commit(guarded(owned, &[(Scale, scale)])).await.unwrap();
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + 2);
}

pub(super) async fn a_guard_is_refused_when_a_lock_is_lost(store: &dyn Store) {
    let owned = open_owned(store).await;
    refuse_transaction(store, guarded(owned, &[(Scale, token(0))]), lost(Scale)).await;
    accept(store, vec![take(Config, holder(1))]).await;
    let config = (Config, lock(store, Config).await.token);
    for losing in ["released", "revoked", "taken by another", "handed over", "released and taken again"] {
        accept(store, vec![take(Scale, holder(1))]).await;
        let scale = lock(store, Scale).await.token;
        let changes = match losing {
            "released" => vec![release(Scale, holder(1))],
            "revoked" => vec![revoke(Scale, scale)],
            "taken by another" => vec![take_for_no_time(Scale, holder(1)), take(Scale, holder(2))],
            "handed over" => vec![hand_over(Scale, holder(1), holder(2))],
            _ => vec![release(Scale, holder(1)), take(Scale, holder(1))],
        };
        accept(store, changes).await;
        refuse_transaction(store, guarded(owned, &[config, (Scale, scale)]), lost(Scale)).await;
        accept(store, [1, 2].map(|number| release(Scale, holder(number))).into()).await;
    }
    store.commit(guarded(owned, &[config])).await.unwrap();
}

pub(super) async fn a_guard_is_refused_when_its_operation_rolls_back(store: &dyn Store) {
    let token = open_owned(store).await;
    let forward = |number| {
        let guard = Guard { operation: Some(operation_id(number)), ..owner_guard(token) };
        Transaction::guarded("contract", guard, vec![adjust_fleet(&arena(), 1)])
    };
    store.commit(forward(1)).await.unwrap();
    let rollback = Rollback { then: RollbackEnd::Error, why: "lock released by ann@laptop: stuck".into() };
    let roll_back = Change::RollBack { operation: operation_id(1), rollback, history: Vec::new() };
    accept(store, vec![roll_back]).await;
    refuse_transaction(store, forward(1), Refusal::RollsBack(operation_id(1))).await;
    store.commit(forward(2)).await.unwrap();
    store.commit(guarded(token, &[])).await.unwrap();
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE + 3);
}

pub(super) async fn an_expired_lock_that_nobody_took_still_guards(store: &dyn Store) {
    let owned = open_owned(store).await;
    accept(store, vec![take_for_no_time(Scale, holder(1))]).await;
    let scale = lock(store, Scale).await.token;
    accept(store, vec![await_lock(Scale, holder(2)), take(Config, holder(2))]).await;
    store.commit(guarded(owned, &[(Scale, scale)])).await.unwrap();
}

pub(super) async fn a_lock_is_released_by_its_holder_alone(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take(Scale, holder(1)), await_lock(Scale, holder(2))]).await;
    let before = locks(store).await;
    accept(store, vec![release(Scale, holder(2)), release(Config, holder(1))]).await;
    assert_eq!(locks(store).await, before);
    accept(store, vec![release(Scale, holder(1))]).await;
    assert_eq!(locks(store).await, Locks { held: vec![], ..before }, "who waits goes on waiting");
    accept(store, vec![release(Scale, holder(1))]).await;
}

pub(super) async fn a_lock_is_revoked_by_its_token_alone(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take_for_no_time(Scale, holder(1)), take(Config, holder(1))]).await;
    let (stale, config) = (lock(store, Scale).await.token, lock(store, Config).await.token);
    accept(store, vec![take(Scale, holder(2))]).await;
    for token in [stale, config, Token(0)] {
        refuse(store, vec![revoke(Scale, token)], lost(Scale)).await;
    }
    let current = lock(store, Scale).await.token;
    accept(store, vec![revoke(Scale, current)]).await;
    assert_eq!(locks(store).await.held(Scale), None);
    refuse(store, vec![revoke(Scale, current)], lost(Scale)).await;
    assert_eq!(lock(store, Config).await.token, config);
}

/// What a forced release is made of.
pub(super) async fn a_lock_is_revoked_and_its_holder_turned_round_together(store: &dyn Store) {
    open_owned(store).await;
    accept(store, vec![take(Downscaling, holder(1))]).await;
    let current = lock(store, Downscaling).await.token;
    let rollback = Rollback { then: RollbackEnd::Error, why: "lock released by ann@laptop: stuck".into() };
    let roll_back = Change::RollBack {
        operation: operation_id(1),
        rollback: rollback.clone(),
        history: vec![event(2, "downscaling released by ann@laptop: stuck")],
    };
    let stale = vec![roll_back.clone(), revoke(Downscaling, Token(current.0 + 1))];
    refuse(store, stale, lost(Downscaling)).await;
    accept(store, vec![revoke(Downscaling, current), roll_back]).await;
    assert_eq!(locks(store).await, Locks::default());
    assert_eq!(operation(store, 1).await.rollback, Some(rollback));
}

pub(super) async fn every_end_of_an_operation_frees_its_locks_and_places(store: &dyn Store) {
    open(store).await;
    let cancel_pending =
        |number| Change::CancelPending { operation: operation_id(number), history: vec![], at: at(9) };
    let ends: [(&str, Vec<Change>); 6] = [
        ("finished", vec![start(1), end(1, OperationStatus::Finished)]),
        ("error", vec![start(2), end(2, OperationStatus::Error)]),
        ("canceled", vec![start(3), end(3, OperationStatus::Canceled)]),
        ("canceled before it began", vec![end(4, OperationStatus::Canceled)]),
        ("evicted", vec![end(5, OperationStatus::Evicted)]),
        ("canceled while pending", vec![cancel_pending(6)]),
    ];
    let bystanders = [take(Termination, holder(99)), take_for_rollout(Config, None)];
    accept(store, [bystanders.into(), vec![await_lock(Config, holder(99))]].concat()).await;
    let before = locks(store).await;
    for (number, (how, changes)) in (1..).zip(ends) {
        let taken = [take(Scale, holder(number)), take(Downscaling, holder(number))];
        let places = [Config, Termination].map(|kind| await_lock(kind, holder(number)));
        accept(store, [vec![Change::Enqueue(new_operation(number))], taken.into(), places.into()].concat())
            .await;
        assert_ne!(locks(store).await, before);
        accept(store, changes).await;
        assert_eq!(locks(store).await, before, "{how}");
    }
}

pub(super) async fn what_an_end_frees_is_free_in_the_same_transaction(store: &dyn Store) {
    open_owned(store).await;
    accept(store, vec![take(Downscaling, holder(1))]).await;
    let first = lock(store, Downscaling).await;
    // Not before.
    let held = Refusal::LockHeld(Box::new(Obstacle::Held(first.clone())));
    let too_early = vec![take(Downscaling, holder(2)), end(1, OperationStatus::Finished)];
    refuse(store, too_early, held).await;
    let next = vec![
        end(1, OperationStatus::Finished),
        Change::Enqueue(new_operation(3)),
        take(Downscaling, holder(3)),
    ];
    accept(store, next).await;
    let second = lock(store, Downscaling).await;
    assert_eq!(second.holder, holder(3));
    assert!(second.token > first.token);
}

pub(super) async fn locks_of_a_rollout_stay_until_they_are_released(store: &dyn Store) {
    open_owned(store).await;
    let taken = [take_for_rollout(Config, None), take_for_rollout(Downscaling, None)];
    accept(store, taken.into()).await;
    let before = locks(store).await;
    let ends = vec![end(1, OperationStatus::Finished), end(2, OperationStatus::Canceled)];
    accept(store, ends).await;
    store.renew(renewal("worker-1")).await.unwrap();
    store.retire("worker-1").await.unwrap();
    assert_eq!(locks(store).await, before);
    accept(store, vec![release(Downscaling, rollout_holder())]).await;
    let kinds: Vec<_> = locks(store).await.held.iter().map(|lock| lock.kind).collect();
    assert_eq!(kinds, [Config]);
}

pub(super) async fn renewing_renews_locks_of_unfinished_operations(store: &dyn Store) {
    open_owned(store).await;
    store.own(&bystander(), "worker-2", TTL).await.unwrap();
    let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(4) };
    let theirs = NewLock { scheduler: bystander(), ..new_lock(Scale, holder(4)) };
    let ended = [Change::Enqueue(new_operation(3)), end(3, OperationStatus::Evicted)];
    let without_an_end = Change::TakeLock(NewLock { ttl: None, ..new_lock(Config, holder(1)) });
    let rollout_with_an_end = take(LockKind::Panic, rollout_holder());
    let taken = [
        // One that ran out, but nobody took it.
        take_for_no_time(Scale, holder(1)),
        take(Downscaling, holder(2)),
        // Of one that has ended by then: nobody will release it, so it has to run out.
        take(Termination, holder(3)),
        without_an_end,
        rollout_with_an_end,
    ];
    accept(store, ended.into()).await;
    accept(store, taken.into()).await;
    accept(store, vec![Change::Enqueue(elsewhere), Change::TakeLock(theirs)]).await;
    let (before, before_theirs) = (locks(store).await, store.locks(&bystander()).await.unwrap());
    let lock_ttl = Millis::from_seconds(30);
    let renewal = Renewal { lock_ttl, ..renewal("worker-1") };
    let (owned, renewed) = in_window(store, store.renew(renewal)).await;
    owned.unwrap();
    let (mut expected, after) = (before, locks(store).await);
    for lock in &mut expected.held {
        if matches!(lock.kind, Scale | Downscaling) {
            lock.expires_at = after.held(lock.kind).and_then(|lock| lock.expires_at);
            renewed.check(lock.expires_at.expect("it has an end"), lock_ttl);
        }
    }
    assert_eq!(after, expected);
    assert_eq!(store.locks(&bystander()).await.unwrap(), before_theirs, "another worker's");
}

pub(super) async fn a_refused_transaction_leaves_locks_and_places_as_they_were(store: &dyn Store) {
    open_owned(store).await;
    accept(store, vec![take_for_no_time(Scale, holder(1)), take_for_rollout(Config, None)]).await;
    accept(store, vec![await_lock_too_long(Config, holder(1)), await_lock(Config, holder(2))]).await;
    let (scale, config) = (lock(store, Scale).await, lock(store, Config).await);
    let held = Refusal::LockHeld(Box::new(Obstacle::Held(config)));
    for changes in [
        vec![take(Downscaling, holder(1))],
        vec![take(Scale, holder(1))],
        vec![take(Scale, holder(2))],
        vec![hand_over(Scale, holder(1), holder(2))],
        vec![release(Scale, holder(1)), take(Scale, holder(2))],
        vec![revoke(Scale, scale.token)],
        vec![await_lock(Downscaling, holder(1))],
        vec![await_lock(Config, holder(1))],
        vec![stop_awaiting(Config, holder(1)), await_lock(Config, holder(1))],
        vec![end(1, OperationStatus::Finished)],
        vec![end(2, OperationStatus::Evicted)],
    ] {
        refuse(store, [changes, vec![take(Config, holder(3))]].concat(), held.clone()).await;
    }
}

pub(super) async fn a_deleted_scheduler_leaves_no_locks_behind(store: &dyn Store) {
    open_owned(store).await;
    let elsewhere = NewLock { scheduler: bystander(), ..new_lock(Scale, holder(9)) };
    let taken = [take(Scale, holder(1)), take_for_rollout(Config, None), Change::TakeLock(elsewhere)];
    accept(store, [taken.into(), vec![await_lock(Config, holder(2))]].concat()).await;
    let guard = lock(store, Scale).await.token;
    let delete = Change::DeleteScheduler { scheduler: arena(), keep: operation_id(1) };
    accept(store, vec![delete]).await;
    assert_eq!(locks(store).await, Locks::default());
    assert!(store.locks(&bystander()).await.unwrap().held(Scale).is_some());
    accept(store, vec![end(1, OperationStatus::Finished)]).await;
    // One of the same name begins with nothing.
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena()))]).await;
    assert_eq!(locks(store).await, Locks::default());
    let owned = store.own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    refuse_transaction(store, guarded(owned, &[(Scale, guard)]), lost(Scale)).await;
    accept(store, vec![take(Config, holder(3)), take(Scale, holder(3))]).await;
}
