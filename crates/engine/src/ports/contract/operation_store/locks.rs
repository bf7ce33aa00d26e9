//! Who gets a lock.

use futures_util::future::join_all;
use maestro_core::lock::LockKind::{Config, Downscaling, Scale, Termination};
use maestro_core::lock::{Holder, Lock, LockKind, Locks, Obstacle, Waiter};
use maestro_core::operation::{DefinitionKind, Token};
use maestro_core::time::{Millis, after};

use crate::ports::Store;
use crate::ports::contract::StoreUnderTest;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, NewLock, Refusal, Transaction};

/// How many come at once.
const TAKERS: u128 = 32;

async fn refuse_held(store: &dyn Store, change: Change, lock: Lock) {
    refuse(store, vec![change], Refusal::LockHeld(Box::new(Obstacle::Held(lock)))).await;
}

/// Refused because the operation `first`, which waits, comes first.
async fn refuse_promised(store: &dyn Store, change: Change, first: u128) {
    let obstacle = Obstacle::Promised(waiter(Downscaling, holder(first)));
    refuse(store, vec![change], Refusal::LockHeld(Box::new(obstacle))).await;
}

async fn waiting(store: &dyn Store) -> Vec<(LockKind, Holder)> {
    locks(store).await.waiters.iter().map(|waiter| (waiter.kind, waiter.holder)).collect()
}

pub(super) async fn a_free_lock_is_taken_and_comes_back_as_it_was_taken(store: &dyn Store) {
    open(store).await;
    assert_eq!(locks(store).await, Locks::default());
    let changes = vec![take(Downscaling, holder(1)), take_for_rollout(Config, None)];
    let ((), taken) = in_window(store, accept(store, changes)).await;
    let Locks { held, waiters } = locks(store).await;
    assert_eq!(waiters, []);
    let [config, downscaling] = held.try_into().unwrap();
    taken.check(config.acquired_at, NO_TIME);
    let expected = Lock {
        kind: Config,
        holder: Holder::Rollout(version(2, 0)),
        reason: "taken by rollout v2.0.0".into(),
        token: config.token,
        acquired_at: config.acquired_at,
        expires_at: None,
    };
    assert_eq!(config, expected);
    taken.check(downscaling.acquired_at, NO_TIME);
    let expected = Lock {
        kind: Downscaling,
        holder: holder(1),
        reason: format!("taken by add_rooms {}", operation_id(1)),
        token: downscaling.token,
        acquired_at: downscaling.acquired_at,
        expires_at: Some(after(downscaling.acquired_at, TTL)),
    };
    assert_eq!(downscaling, expected);
}

pub(super) async fn locks_are_listed_in_the_order_of_taking_them(store: &dyn Store) {
    open(store).await;
    let taken = LockKind::ALL.into_iter().rev().map(|kind| take(kind, holder(1)));
    accept(store, taken.collect()).await;
    let kinds: Vec<_> = locks(store).await.held.iter().map(|lock| lock.kind).collect();
    assert_eq!(kinds, LockKind::ALL);
}

pub(super) async fn every_holder_comes_back(store: &dyn Store) {
    open(store).await;
    let operations =
        DefinitionKind::ALL.into_iter().map(|kind| Holder::Operation { kind, id: operation_id(1) });
    for holder in operations.chain([rollout_holder(), Holder::HealthController]) {
        accept(store, vec![take(Scale, holder), await_lock(Config, holder)]).await;
        let locks = locks(store).await;
        assert_eq!(locks.held(Scale).map(|lock| lock.holder), Some(holder));
        assert_eq!(locks.waits(Config, holder), Some(&waiter(Config, holder)));
        accept(store, vec![release(Scale, holder), stop_awaiting(Config, holder)]).await;
    }
}

pub(super) async fn a_held_lock_is_refused_and_its_holder_named(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take(Scale, holder(1))]).await;
    let held = lock(store, Scale).await;
    refuse_held(store, take(Scale, holder(2)), held.clone()).await;
    // The same operation by another name is another holder.
    let renamed = Holder::Operation { kind: DefinitionKind::RemoveRooms, id: operation_id(1) };
    refuse_held(store, take(Scale, renamed), held).await;
}

pub(super) async fn a_lock_whose_time_is_over_is_taken_by_another(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take_for_no_time(Scale, holder(1))]).await;
    let before = lock(store, Scale).await;
    let ((), taken) = in_window(store, accept(store, vec![take(Scale, holder(2))])).await;
    let after = lock(store, Scale).await;
    assert_eq!(after.holder, holder(2));
    taken.check(after.acquired_at, NO_TIME);
    assert!(after.token > before.token);
    refuse_held(store, take(Scale, holder(1)), after).await;
}

/// Whatever the clock of anybody who wants it shows.
pub(super) async fn a_lock_runs_out_by_the_stores_clock(store: &StoreUnderTest) {
    let ttl = Millis(30);
    open(&**store).await;
    let short = NewLock { ttl: Some(ttl), ..new_lock(Scale, holder(1)) };
    accept(&**store, vec![Change::TakeLock(short), take_for_rollout(Config, None)]).await;
    let held = lock(&**store, Config).await;
    store.pass(ttl).await;
    accept(&**store, vec![take(Scale, holder(2))]).await;
    refuse_held(&**store, take(Config, holder(2)), held).await;
}

pub(super) async fn a_place_runs_out_by_the_stores_clock(store: &StoreUnderTest) {
    let ttl = Millis(30);
    open(&**store).await;
    let since = store.now().await.unwrap();
    let place = Waiter { until: after(since, ttl), ..waiter(Scale, holder(1)) };
    accept(&**store, vec![Change::AwaitLock { scheduler: arena(), waiter: place }]).await;
    accept(&**store, vec![await_lock(Scale, holder(2))]).await;
    store.pass(ttl).await;
    accept(&**store, vec![take(Scale, holder(2))]).await;
}

pub(super) async fn a_lock_without_an_end_is_never_over(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take_for_rollout(Config, None)]).await;
    let held = lock(store, Config).await;
    refuse_held(store, take(Config, holder(1)), held).await;
}

pub(super) async fn a_holder_keeps_token_and_beginning_and_gets_the_new_time(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take_for_no_time(Scale, holder(1)), await_lock(Scale, holder(2))]).await;
    let first = lock(store, Scale).await;
    // When its time is over, and also while it holds it, whoever waits.
    for ttl in [TTL, Millis::from_seconds(40)] {
        let reason = format!("again for {ttl}");
        let again = NewLock { reason: reason.clone(), ttl: Some(ttl), ..new_lock(Scale, holder(1)) };
        let ((), taken) = in_window(store, accept(store, vec![Change::TakeLock(again)])).await;
        let second = lock(store, Scale).await;
        taken.check(second.expires_at.expect("it has an end"), ttl);
        assert_eq!(second, Lock { reason, expires_at: second.expires_at, ..first.clone() });
    }
    let for_ever = NewLock { ttl: None, ..new_lock(Scale, holder(1)) };
    accept(store, vec![Change::TakeLock(for_ever)]).await;
    assert_eq!(lock(store, Scale).await, Lock { expires_at: None, ..first });
    assert_eq!(waiting(store).await, [(Scale, holder(2))]);
}

pub(super) async fn a_lock_is_handed_over(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take(Config, holder(1)), await_lock(Config, holder(2))]).await;
    let before = lock(store, Config).await;
    let handed = vec![take_for_rollout(Config, Some(holder(1)))];
    let ((), taken) = in_window(store, accept(store, handed)).await;
    let after = lock(store, Config).await;
    assert_eq!((after.holder, after.expires_at), (rollout_holder(), None));
    taken.check(after.acquired_at, NO_TIME);
    assert!(after.token > before.token, "who held it before has lost it");
    refuse_held(store, take(Config, holder(1)), after).await;
    assert_eq!(waiting(store).await, [(Config, holder(2))], "it was not free in between");
}

pub(super) async fn only_what_its_giver_holds_is_handed_over(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take(Config, holder(1))]).await;
    let held = lock(store, Config).await;
    refuse_held(store, hand_over(Config, holder(2), holder(3)), held).await;
    // From nobody it is taken as by anyone.
    accept(store, vec![hand_over(Scale, holder(2), holder(3))]).await;
    assert_eq!(lock(store, Scale).await.holder, holder(3));
}

pub(super) async fn a_lock_with_waiters_is_given_first_come_first_served(store: &dyn Store) {
    open(store).await;
    let places = [3, 1, 2].map(|number| await_lock(Downscaling, holder(number)));
    accept(store, [vec![take(Downscaling, holder(9))], places.into()].concat()).await;
    accept(store, vec![release(Downscaling, holder(9))]).await;
    let mut left = vec![3, 1, 2];
    while let [first, rest @ ..] = left.as_slice() {
        for other in rest {
            refuse_promised(store, take(Downscaling, holder(*other)), *first).await;
        }
        refuse_promised(store, take(Downscaling, holder(9)), *first).await;
        accept(store, vec![take(Downscaling, holder(*first))]).await;
        let expected: Vec<_> = rest.iter().map(|number| (Downscaling, holder(*number))).collect();
        assert_eq!(waiting(store).await, expected, "who got it waits no more");
        accept(store, vec![release(Downscaling, holder(*first))]).await;
        left.remove(0);
    }
    accept(store, vec![take(Downscaling, holder(9))]).await;
}

pub(super) async fn a_lock_whose_time_is_over_is_given_in_the_order_too(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take_for_no_time(Downscaling, holder(1)), await_lock(Downscaling, holder(2))]).await;
    refuse_promised(store, take(Downscaling, holder(3)), 2).await;
    accept(store, vec![take(Downscaling, holder(2))]).await;
}

pub(super) async fn a_place_that_is_too_old_does_not_count(store: &dyn Store) {
    open(store).await;
    accept(store, vec![await_lock_too_long(Downscaling, holder(1)), await_lock(Downscaling, holder(2))])
        .await;
    refuse_promised(store, take(Downscaling, holder(3)), 2).await;
    accept(store, vec![take(Downscaling, holder(2))]).await;
    assert_eq!(lock(store, Downscaling).await.holder, holder(2));
}

pub(super) async fn who_waits_keeps_its_place(store: &dyn Store) {
    open(store).await;
    accept(store, vec![await_lock(Scale, holder(1)), await_lock(Scale, holder(2))]).await;
    let before = locks(store).await;
    let later = Waiter { since: at(60), until: at(2_000_000_000), ..waiter(Scale, holder(1)) };
    accept(store, vec![Change::AwaitLock { scheduler: arena(), waiter: later }]).await;
    assert_eq!(locks(store).await, before, "as it is, its time too");
}

pub(super) async fn a_place_that_is_too_old_is_given_up_for_one_at_the_end(store: &dyn Store) {
    open(store).await;
    accept(store, vec![await_lock_too_long(Scale, holder(1)), await_lock(Scale, holder(2))]).await;
    accept(store, vec![await_lock(Scale, holder(1))]).await;
    let expected = [waiter(Scale, holder(2)), waiter(Scale, holder(1))];
    assert_eq!(locks(store).await.waiters, expected);
}

pub(super) async fn a_place_is_handed_over(store: &dyn Store) {
    open(store).await;
    let wish = Holder::HealthController;
    accept(store, vec![await_lock(Downscaling, wish), await_lock(Downscaling, holder(2))]).await;
    accept(store, vec![hand_over(Downscaling, wish, holder(3))]).await;
    assert_eq!(lock(store, Downscaling).await.holder, holder(3));
    assert_eq!(waiting(store).await, [(Downscaling, holder(2))]);
}

pub(super) async fn a_place_is_given_up_alone(store: &dyn Store) {
    open(store).await;
    let places = [(Config, 1), (Scale, 1), (Config, 2)];
    accept(store, places.map(|(kind, number)| await_lock(kind, holder(number))).into()).await;
    let give_up = vec![stop_awaiting(Config, holder(1)), stop_awaiting(Termination, holder(2))];
    accept(store, give_up).await;
    assert_eq!(waiting(store).await, [(Scale, holder(1)), (Config, holder(2))]);
}

pub(super) async fn each_kind_has_an_order_of_its_own(store: &dyn Store) {
    open(store).await;
    accept(store, vec![await_lock(Scale, holder(1)), await_lock(Config, holder(2))]).await;
    accept(store, vec![take(Termination, holder(3)), take(Config, holder(2))]).await;
    assert_eq!(waiting(store).await, [(Scale, holder(1))]);
    accept(store, vec![await_lock(Config, holder(1)), take(Scale, holder(1))]).await;
    assert_eq!(waiting(store).await, [(Config, holder(1))], "it got one and waits for the other");
}

pub(super) async fn tokens_of_locks_and_ownerships_are_one_sequence(store: &dyn Store) {
    open(store).await;
    let mut last = Token(0);
    for round in 0..3 {
        let owned = store.own(&arena(), &format!("worker-{round}"), NO_TIME).await.unwrap().unwrap();
        assert!(owned > last, "{owned:?} after {last:?}");
        accept(store, [Config, Scale].map(|kind| take_for_no_time(kind, holder(round))).into()).await;
        let (config, scale) = (lock(store, Config).await.token, lock(store, Scale).await.token);
        assert!(owned < config && config < scale, "{config:?} and {scale:?} after {owned:?}");
        last = scale;
    }
}

pub(super) async fn schedulers_do_not_see_each_others_locks(store: &dyn Store) {
    open(store).await;
    accept(store, vec![take(Scale, holder(1)), await_lock(Config, holder(1))]).await;
    assert_eq!(store.locks(&bystander()).await.unwrap(), Locks::default());
    let elsewhere = |kind| NewLock { scheduler: bystander(), ..new_lock(kind, holder(2)) };
    accept(store, vec![Change::TakeLock(elsewhere(Scale)), Change::TakeLock(elsewhere(Config))]).await;
    let before = locks(store).await;
    let theirs = store.locks(&bystander()).await.unwrap();
    assert!(theirs.held(Scale).unwrap().token > before.held(Scale).unwrap().token);
    for kind in [Scale, Config] {
        let release = Change::ReleaseLock { scheduler: bystander(), kind, holder: holder(2) };
        let give_up = Change::StopAwaiting { scheduler: bystander(), kind, holder: holder(1) };
        accept(store, vec![release, give_up]).await;
    }
    assert_eq!(store.locks(&bystander()).await.unwrap(), Locks::default());
    assert_eq!(locks(store).await, before);
}

pub(super) async fn a_scheduler_that_is_not_there_has_no_locks(store: &dyn Store) {
    open(store).await;
    let gone = name("gone");
    assert_eq!(store.locks(&gone).await.unwrap(), Locks::default());
    let not_found = Refusal::SchedulerNotFound(gone.clone());
    let taken = NewLock { scheduler: gone.clone(), ..new_lock(Scale, holder(1)) };
    refuse(store, vec![Change::TakeLock(taken)], not_found.clone()).await;
    let place = Change::AwaitLock { scheduler: gone.clone(), waiter: waiter(Scale, holder(1)) };
    refuse(store, vec![place], not_found).await;
    let lost = Refusal::LockLost { scheduler: gone.clone(), kind: Scale };
    let revoke = Change::RevokeLock { scheduler: gone.clone(), kind: Scale, token: token(1) };
    refuse(store, vec![revoke], lost).await;
    let release = Change::ReleaseLock { scheduler: gone.clone(), kind: Scale, holder: holder(1) };
    let give_up = Change::StopAwaiting { scheduler: gone.clone(), kind: Scale, holder: holder(1) };
    accept(store, vec![release, give_up]).await;
    assert_eq!(store.locks(&gone).await.unwrap(), Locks::default());
}

pub(super) async fn of_many_takers_one_gets_the_lock(store: &dyn Store) {
    open(store).await;
    let attempts = (1..=TAKERS).map(|number| {
        let taken = vec![take(Downscaling, holder(number))];
        async move { (number, store.commit(Transaction::new("contract", &arena(), taken)).await) }
    });
    let outcomes = join_all(attempts).await;
    let held = lock(store, Downscaling).await;
    let refusal = Refusal::LockHeld(Box::new(Obstacle::Held(held.clone())));
    for (number, outcome) in outcomes {
        if held.holder == holder(number) {
            outcome.unwrap();
        } else {
            assert_eq!(outcome.unwrap_err().refusal(), Some(&refusal), "taker {number}");
        }
    }
}

pub(super) async fn many_who_come_at_once_get_a_place_each(store: &dyn Store) {
    open(store).await;
    // Each one twice.
    let attempts = (0..2 * TAKERS).map(|number| {
        let place = vec![await_lock(Downscaling, holder(number / 2))];
        store.commit(Transaction::new("contract", &arena(), place))
    });
    assert!(join_all(attempts).await.iter().all(Result::is_ok));
    let mut holders: Vec<_> = waiting(store).await.into_iter().map(|(_, holder)| holder).collect();
    holders.sort();
    assert_eq!(holders, (0..TAKERS).map(holder).collect::<Vec<_>>());
}
