//! A disk that is really full: writes fail, nothing is half done, and it goes on when there is space again.
//!
//! The kernel limits how large a file may grow. A process learns of it by a signal that kills it, unless it is
//! ignored; that can be arranged without unsafe code only by who starts the process, which is a shell here.

use std::process::Command;

use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{Change, NewOperation, OperationStore, StoreError, Transaction};
use maestro_store_embedded::EmbeddedStore;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::child;

#[test]
fn a_full_disk_loses_nothing_and_may_have_space_again() {
    let directory = tempfile::tempdir().unwrap();
    let part = child::command("disk_full::child_runs_out_of_space", directory.path());
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(part.get_program())
        .args(part.get_args())
        .envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(child::said(&output), ["all is well"]);
}

/// No file of this process may become longer; `None`: any may.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: bytes.or(maximum), maximum };
    setrlimit(Resource::Fsize, limit).unwrap();
}

fn large(number: u128) -> Transaction {
    let operation = NewOperation { reason: "x".repeat(20_000), ..new_operation(number) };
    Transaction::new("enqueue", &arena(), vec![adjust_fleet(&arena(), 1), Change::Enqueue(operation)])
}

/// In a process of its own: a part of a_full_disk_loses_nothing_and_may_have_space_again.
#[tokio::test]
async fn child_runs_out_of_space() {
    let Some(directory) = child::directory() else {
        return;
    };
    let store = EmbeddedStore::open(&directory).unwrap();
    open(&store).await;
    let log = directory.join("maestro.db-wal");
    let full_at = std::fs::metadata(&log).unwrap().len() + 100_000;

    let mut written = Vec::new();
    for round in 0..3 {
        limit_files(Some(full_at + round * 100_000));
        let mut failures = 0;
        for number in 0..20 {
            let number = u128::from(round) * 100 + number;
            match store.commit(large(number)).await {
                Ok(()) => written.push(operation_id(number)),
                Err(StoreError::Unavailable { .. }) => failures += 1,
                Err(refused) => panic!("{refused}"),
            }
            // It can still be read.
            check(&store, &written).await;
        }
        assert!(failures > 0, "the disk was not full");
    }
    limit_files(None);
    for number in 1000..1020 {
        store.commit(large(number)).await.unwrap();
        written.push(operation_id(number));
    }
    check(&store, &written).await;
    drop(store);
    check(&EmbeddedStore::open(&directory).unwrap(), &written).await;
    child::say("all is well");
}

/// What was answered is there; of what failed, nothing.
async fn check(store: &EmbeddedStore, written: &[maestro_core::operation::OperationId]) {
    let queue = store.unfinished(&arena()).await.unwrap();
    let found: Vec<_> = queue.iter().map(|operation| operation.id).collect();
    assert_eq!(found, written);
    let size = scheduler(store, &arena()).await.fleet_size;
    assert_eq!(size as usize, FLEET_SIZE as usize + written.len());
}
