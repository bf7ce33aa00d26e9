//! Many at once.

use std::sync::Arc;

use futures_util::future::join_all;
use maestro_core::operation::Token;
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{Change, NewOperation, OperationStore, Refusal, Transaction};
use maestro_store_embedded::EmbeddedStore;

const TASKS: u128 = 64;
const WRITES_PER_TASK: u128 = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_that_is_committed_at_once_is_there_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(directory.path()).unwrap());
    open(&*store).await;
    let tasks = (0..TASKS).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for write in 0..WRITES_PER_TASK {
                let operation = new_operation(task * 1000 + write);
                accept(&*store, vec![Change::Enqueue(operation)]).await;
                // What is answered can be read, whichever connection reads it.
                let id = operation_id(task * 1000 + write);
                assert!(store.operation(&arena(), id).await.unwrap().is_some());
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    let queue = store.unfinished(&arena()).await.unwrap();
    for task in 0..TASKS {
        let writes: Vec<_> = queue
            .iter()
            .map(|operation| u128::from_be_bytes(*operation.id.as_bytes()))
            .filter(|number| number / 1000 == task)
            .collect();
        let expected: Vec<_> = (0..WRITES_PER_TASK).map(|write| task * 1000 + write).collect();
        assert_eq!(writes, expected, "of task {task}");
    }
    let counts = store.write_counts();
    assert_eq!(u128::from(counts.writes), 1 + TASKS * WRITES_PER_TASK);
    assert!(counts.commits < counts.writes, "{counts:?}");
}

/// One of all wins, and the others are told who did.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slot_is_given_to_one_of_many() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(directory.path()).unwrap());
    open(&*store).await;
    let enqueue = |number| Change::Enqueue(NewOperation { ..new_operation(number) });
    accept(&*store, (0..TASKS).map(enqueue).collect()).await;
    let tasks = (0..TASKS).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let started = store.commit(Transaction::new("start", &arena(), vec![start(number)])).await;
            (operation_id(number), started)
        })
    });
    let mut winners = Vec::new();
    let mut told = Vec::new();
    for task in join_all(tasks).await {
        match task.unwrap() {
            (id, Ok(())) => winners.push(id),
            (_, Err(error)) => match error.refusal() {
                Some(Refusal::SlotTaken { by }) => told.push(*by),
                other => panic!("{other:?} instead of a taken slot"),
            },
        }
    }
    assert_eq!(winners.len(), 1);
    assert!(told.iter().all(|by| *by == winners[0]));
}

/// Everyone wants it at the same moment; one gets it, and no token comes twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scheduler_is_owned_by_one_of_many() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(directory.path()).unwrap());
    open(&*store).await;
    let mut last = Token(0);
    for round in 0..10 {
        let tasks = (0..TASKS).map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let owner = format!("worker-{round}-{worker}");
                store.own(&arena(), &owner, TTL).await.unwrap()
            })
        });
        let answers = join_all(tasks).await.into_iter();
        let tokens: Vec<Token> = answers.filter_map(Result::unwrap).collect();
        assert_eq!(tokens.len(), 1, "in round {round}");
        assert!(tokens[0] > last, "in round {round}");
        last = tokens[0];
        store.disown(&arena(), last).await.unwrap();
    }
}
