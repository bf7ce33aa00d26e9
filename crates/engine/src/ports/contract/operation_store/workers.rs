//! Which workers are there, and what they own.

use maestro_core::lock::LockKind;
use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{
    Change, Guard, OwnershipRecord, Refusal, Renewal, Transaction, WorkerRecord, Workforce,
};

async fn own(store: &dyn Store, scheduler: &SchedulerName, owner: &str, seconds: i64) -> Token {
    store.own(scheduler, owner, at(seconds), TTL).await.unwrap().expect("it is free")
}

async fn renew(store: &dyn Store, worker: &str, seconds: i64) {
    store.renew(renewal(worker, at(seconds))).await.unwrap();
}

async fn workforce(store: &dyn Store) -> Workforce {
    store.workers().await.unwrap()
}

fn worker(name: &str, expires_at: Timestamp) -> WorkerRecord {
    WorkerRecord { name: name.into(), expires_at }
}

fn ownership(scheduler: SchedulerName, owner: &str, token: Token, seconds: i64) -> OwnershipRecord {
    OwnershipRecord { scheduler, owner: owner.into(), token, expires_at: at(seconds) }
}

pub(super) async fn renewing_makes_a_worker_known(store: &dyn Store) {
    assert_eq!(workforce(store).await, Workforce::default());
    renew(store, "worker-1", 0).await;
    assert_eq!(workforce(store).await.workers, [worker("worker-1", at(10))]);
    let ownership_ttl = Millis::from_seconds(3);
    store.renew(Renewal { ownership_ttl, ..renewal("worker-1", at(5)) }).await.unwrap();
    assert_eq!(workforce(store).await.workers, [worker("worker-1", at(8))], "once, with its last time");
}

pub(super) async fn owning_alone_makes_no_worker_known(store: &dyn Store) {
    open(store).await;
    let token = own(store, &arena(), "worker-1", 0).await;
    let ownerships = vec![ownership(arena(), "worker-1", token, 10)];
    assert_eq!(workforce(store).await, Workforce { workers: vec![], ownerships });
}

pub(super) async fn workers_and_ownerships_are_listed_by_name(store: &dyn Store) {
    open(store).await;
    let second = own(store, &bystander(), "worker-1", 0).await;
    let first = own(store, &arena(), "worker-2", 1).await;
    for (name, seconds) in [("worker-2", 2), ("worker-3", 3), ("worker-1", 4)] {
        renew(store, name, seconds).await;
    }
    let expected = Workforce {
        workers: vec![worker("worker-1", at(14)), worker("worker-2", at(12)), worker("worker-3", at(13))],
        ownerships: vec![
            ownership(arena(), "worker-2", first, 12),
            ownership(bystander(), "worker-1", second, 14),
        ],
    };
    assert_eq!(workforce(store).await, expected);
}

pub(super) async fn what_has_run_out_is_listed_until_it_is_taken(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await;
    renew(store, "worker-1", 0).await;
    renew(store, "worker-2", 50).await;
    let workers = vec![worker("worker-1", at(10)), worker("worker-2", at(60))];
    let ownerships = vec![ownership(arena(), "worker-1", first, 10)];
    assert_eq!(workforce(store).await, Workforce { workers: workers.clone(), ownerships });
    let second = own(store, &arena(), "worker-2", 50).await;
    let ownerships = vec![ownership(arena(), "worker-2", second, 60)];
    assert_eq!(workforce(store).await, Workforce { workers, ownerships });
    renew(store, "worker-1", 51).await;
    assert_eq!(workforce(store).await.workers[0], worker("worker-1", at(61)), "it is back");
}

pub(super) async fn retiring_ends_a_worker_and_what_it_owns_and_nothing_else(store: &dyn Store) {
    open(store).await;
    let other = name("other");
    accept(store, vec![Change::CreateScheduler(new_scheduler(&other))]).await;
    let retired = own(store, &arena(), "worker-1", 0).await;
    own(store, &other, "worker-1", 0).await;
    let stays = own(store, &bystander(), "worker-2", 0).await;
    for name in ["worker-1", "worker-2"] {
        renew(store, name, 0).await;
    }
    accept(store, vec![Change::Enqueue(new_operation(1)), start(1)]).await;
    accept(store, vec![take(LockKind::Panic, holder(1), 0)]).await;
    let before = everything(store).await;
    store.retire("worker-1").await.unwrap();
    store.retire("nobody").await.unwrap();
    let expected = Workforce {
        workers: vec![worker("worker-2", at(10))],
        ownerships: vec![ownership(bystander(), "worker-2", stays, 10)],
    };
    assert_eq!(workforce(store).await, expected);
    assert_eq!(everything(store).await, before, "operations go on with their leases and locks");
    let guard = Guard { scheduler: arena(), token: retired, operation: None, locks: Vec::new() };
    let stale = Refusal::StaleToken { scheduler: arena() };
    refuse_transaction(store, Transaction::guarded("contract", guard, Vec::new()), stale).await;
    assert!(own(store, &arena(), "worker-2", 1).await > stays, "free at once");
}

pub(super) async fn a_retired_worker_that_is_back_owns_nothing(store: &dyn Store) {
    open(store).await;
    let first = own(store, &arena(), "worker-1", 0).await;
    store.retire("worker-1").await.unwrap();
    assert_eq!(store.renew(renewal("worker-1", at(1))).await.unwrap(), []);
    let workers = vec![worker("worker-1", at(11))];
    assert_eq!(workforce(store).await, Workforce { workers, ownerships: vec![] });
    assert!(own(store, &arena(), "worker-1", 2).await > first);
}

pub(super) async fn a_deleted_scheduler_is_owned_by_nobody(store: &dyn Store) {
    open(store).await;
    own(store, &arena(), "worker-1", 0).await;
    renew(store, "worker-1", 0).await;
    let delete = Change::DeleteScheduler { scheduler: arena(), keep: operation_id(1) };
    accept(store, vec![delete]).await;
    let workers = vec![worker("worker-1", at(10))];
    assert_eq!(workforce(store).await, Workforce { workers, ownerships: vec![] });
}
