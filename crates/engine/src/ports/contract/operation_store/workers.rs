//! Which workers are there, and what they own.

use maestro_core::lock::LockKind;
use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Millis;

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, Guard, Refusal, Renewal, Transaction, Workforce};

async fn own(store: &dyn Store, scheduler: &SchedulerName, owner: &str) -> Token {
    store.own(scheduler, owner, TTL).await.unwrap().expect("it is free")
}

/// For so long, and when that was.
async fn renew_for(store: &dyn Store, worker: &str, ownership_ttl: Millis) -> Window {
    let renewal = Renewal { ownership_ttl, ..renewal(worker) };
    let (renewed, window) = in_window(store, store.renew(renewal)).await;
    renewed.unwrap();
    window
}

async fn renew(store: &dyn Store, worker: &str) -> Window {
    renew_for(store, worker, TTL).await
}

async fn workforce(store: &dyn Store) -> Workforce {
    store.workers().await.unwrap()
}

/// Exactly these workers are known, and run out as long after they were renewed.
async fn check_workers(store: &dyn Store, expected: &[(&str, Window, Millis)]) {
    let workers = workforce(store).await.workers;
    let names: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, expected.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    for (worker, (_, window, ttl)) in workers.iter().zip(expected) {
        window.check(worker.expires_at, *ttl);
    }
}

/// Exactly these ownerships are there, and run out as long after they were given or renewed.
async fn check_ownerships(store: &dyn Store, expected: &[(SchedulerName, &str, Token, Window)]) {
    let found = workforce(store).await.ownerships;
    let owned = found.iter().map(|one| (one.scheduler.clone(), one.owner.as_str(), one.token));
    let wanted = expected.iter().map(|(scheduler, owner, token, _)| (scheduler.clone(), *owner, *token));
    assert_eq!(owned.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for (ownership, (.., window)) in found.iter().zip(expected) {
        window.check(ownership.expires_at, TTL);
    }
}

pub(super) async fn renewing_makes_a_worker_known(store: &dyn Store) {
    assert_eq!(workforce(store).await, Workforce::default());
    let first = renew(store, "worker-1").await;
    check_workers(store, &[("worker-1", first, TTL)]).await;
    let ttl = Millis::from_seconds(3);
    let second = renew_for(store, "worker-1", ttl).await;
    // Once, with its last time.
    check_workers(store, &[("worker-1", second, ttl)]).await;
}

pub(super) async fn owning_alone_makes_no_worker_known(store: &dyn Store) {
    open(store).await;
    let (token, owned) = in_window(store, own(store, &arena(), "worker-1")).await;
    check_workers(store, &[]).await;
    check_ownerships(store, &[(arena(), "worker-1", token, owned)]).await;
}

pub(super) async fn workers_and_ownerships_are_listed_by_name(store: &dyn Store) {
    open(store).await;
    let second = own(store, &bystander(), "worker-1").await;
    let first = own(store, &arena(), "worker-2").await;
    let two = renew(store, "worker-2").await;
    let three = renew(store, "worker-3").await;
    let one = renew(store, "worker-1").await;
    check_workers(store, &[("worker-1", one, TTL), ("worker-2", two, TTL), ("worker-3", three, TTL)]).await;
    let ownerships = [(arena(), "worker-2", first, two), (bystander(), "worker-1", second, one)];
    check_ownerships(store, &ownerships).await;
}

pub(super) async fn what_has_run_out_is_listed_until_it_is_taken(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1").await;
    let one = renew_for(store, "worker-1", NO_TIME).await;
    let two = renew(store, "worker-2").await;
    check_workers(store, &[("worker-1", one, NO_TIME), ("worker-2", two, TTL)]).await;
    let ownerships = workforce(store).await.ownerships;
    assert_eq!(ownerships.iter().map(|ownership| ownership.token).collect::<Vec<_>>(), [first]);
    one.check(ownerships[0].expires_at, NO_TIME);
    let (second, taken) = in_window(store, own(store, &arena(), "worker-2")).await;
    check_ownerships(store, &[(arena(), "worker-2", second, taken)]).await;
    check_workers(store, &[("worker-1", one, NO_TIME), ("worker-2", two, TTL)]).await;
    let back = renew(store, "worker-1").await;
    check_workers(store, &[("worker-1", back, TTL), ("worker-2", two, TTL)]).await;
}

pub(super) async fn retiring_ends_a_worker_and_what_it_owns_and_nothing_else(store: &dyn Store) {
    open(store).await;
    let other = name("other");
    accept(store, vec![Change::CreateScheduler(new_scheduler(&other))]).await;
    let retired = own(store, &arena(), "worker-1").await;
    own(store, &other, "worker-1").await;
    let stays = own(store, &bystander(), "worker-2").await;
    renew(store, "worker-1").await;
    let two = renew(store, "worker-2").await;
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    accept(store, vec![take(LockKind::Panic, holder(1))]).await;
    let before = everything(store).await;
    store.retire("worker-1").await.unwrap();
    store.retire("nobody").await.unwrap();
    check_workers(store, &[("worker-2", two, TTL)]).await;
    check_ownerships(store, &[(bystander(), "worker-2", stays, two)]).await;
    assert_eq!(everything(store).await, before, "operations go on with their leases and locks");
    let guard = Guard { scheduler: arena(), token: retired, operation: None, locks: Vec::new() };
    let stale = Refusal::StaleToken { scheduler: arena() };
    refuse_transaction(store, Transaction::guarded("contract", guard, Vec::new()), stale).await;
    assert!(own(store, &arena(), "worker-2").await > stays, "free at once");
}

pub(super) async fn a_retired_worker_that_is_back_owns_nothing(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1").await;
    store.retire("worker-1").await.unwrap();
    let (owned, back) = in_window(store, store.renew(renewal("worker-1"))).await;
    assert_eq!(owned.unwrap(), []);
    check_workers(store, &[("worker-1", back, TTL)]).await;
    check_ownerships(store, &[]).await;
    assert!(own(store, &arena(), "worker-1").await > first);
}

pub(super) async fn a_deleted_scheduler_is_owned_by_nobody(store: &dyn Store) {
    open(store).await;
    own(store, &arena(), "worker-1").await;
    let renewed = renew(store, "worker-1").await;
    let delete = Change::DeleteScheduler { scheduler: arena(), keep: operation_id(1) };
    accept(store, vec![delete]).await;
    check_workers(store, &[("worker-1", renewed, TTL)]).await;
    check_ownerships(store, &[]).await;
}
