//! Groups are made on purpose here: the first write holds the thread until all others wait.

use std::cell::Cell;
use std::sync::mpsc as std_mpsc;

use futures_util::future::join_all;
use maestro_core::room::RoomId;
use maestro_engine::ports::store::Refusal;

use super::*;
use crate::failpoints::Failpoints;

fn writer(failpoints: &str) -> Writer {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT").unwrap();
    let failpoints: Failpoints = failpoints.parse().unwrap();
    start(connection, failpoints, Tasks::default())
}

fn start(connection: Connection, failpoints: Failpoints, tasks: Tasks) -> Writer {
    let nothing_to_watch = Arc::new(Presence::of([]));
    Writer::start(connection, Armed::new(failpoints).unwrap(), nothing_to_watch, tasks).unwrap()
}

fn insert(number: i64) -> impl Fn(&Connection) -> Result<(), Failure> + Send {
    move |connection| {
        connection.execute("INSERT INTO numbers VALUES (?1)", [number])?;
        Ok(())
    }
}

fn refused() -> Refusal {
    Refusal::RoomNotFound(RoomId::new("arena-1"))
}

async fn numbers(writer: &Writer) -> Vec<i64> {
    let read = |connection: &Connection| {
        let mut statement = connection.prepare("SELECT number FROM numbers ORDER BY number")?;
        let numbers = statement.query_map([], |row| row.get(0))?;
        Ok(numbers.collect::<Result<_, _>>()?)
    };
    writer.write("read", read).await.unwrap()
}

/// Write 1 is alone and holds the thread; those that `others` makes meanwhile are a group.
async fn in_one_group<T, F>(writer: &Writer, others: Vec<F>) -> Vec<T>
where
    F: Future<Output = T>,
{
    let count = others.len();
    let (running, is_running) = oneshot::channel();
    let (release, held) = std_mpsc::channel::<()>();
    let running = Cell::new(Some(running));
    let hold = writer.write("hold", move |_| {
        let _ = running.take().map(|running| running.send(()));
        let _ = held.recv();
        Ok(())
    });
    let group = async {
        is_running.await.unwrap();
        let all_wait = async {
            let queue = writer.queue.as_ref().unwrap();
            while queue.max_capacity() - queue.capacity() < count {
                tokio::task::yield_now().await;
            }
            drop(release);
        };
        // Unconstrained: tokio would make the task pause between taking a place in the queue and filling it.
        let others = tokio::task::unconstrained(join_all(others));
        tokio::join!(all_wait, others).1
    };
    let (held, answers) = tokio::join!(hold, group);
    held.unwrap();
    answers
}

#[tokio::test]
async fn what_waits_is_committed_together() {
    let writer = writer("");
    let answers = in_one_group(&writer, (1..=100).map(|n| writer.write("insert", insert(n))).collect()).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(writer.counts(), WriteCounts { writes: 101, commits: 2 });
    assert_eq!(numbers(&writer).await, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_group_has_a_limit() {
    let writer = writer("");
    let writes = (1..=1000).map(|n| writer.write("insert", insert(n))).collect();
    in_one_group(&writer, writes).await;
    assert_eq!(writer.counts(), WriteCounts { writes: 1001, commits: 1 + 4 });
}

#[tokio::test]
async fn a_refused_write_undoes_itself_and_no_other() {
    let writer = writer("");
    let writes = (1..=9).map(|n| {
        writer.write("insert", move |connection| {
            insert(n)(connection)?;
            // After it has written: that is what must be undone.
            match n % 3 {
                0 => Err(refused().into()),
                1 => Ok(()),
                // Fails by itself, which SQLite undoes for this statement only.
                _ => insert(n)(connection),
            }
        })
    });
    let answers = in_one_group(&writer, writes.collect()).await;
    for (n, answer) in (1..).zip(answers) {
        match n % 3 {
            0 => assert_eq!(answer.unwrap_err().refusal(), Some(&refused())),
            1 => answer.unwrap(),
            _ => assert!(matches!(answer, Err(StoreError::Unavailable { .. }))),
        }
    }
    assert_eq!(numbers(&writer).await, [1, 4, 7]);
}

#[tokio::test]
async fn a_write_that_panics_is_undone_and_the_others_go_on() {
    let writer = writer("");
    let writes = (1..=3).map(|n| {
        writer.write("insert", move |connection| {
            insert(n)(connection)?;
            assert_ne!(n, 2, "on purpose");
            Ok(())
        })
    });
    let answers = in_one_group(&writer, writes.collect()).await;
    let well: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(well, [true, false, true]);
    assert_eq!(numbers(&writer).await, [1, 3]);
}

#[tokio::test]
async fn a_failed_commit_fails_all_of_its_group_and_nothing_of_it_stays() {
    // Write 1 holds the thread, write 4 is the third of the group.
    let writer = writer("full:4");
    let writes = (1..=5).map(|n| {
        writer.write("insert", move |connection| match n {
            2 => Err(refused().into()),
            _ => insert(n)(connection),
        })
    });
    let answers = in_one_group(&writer, writes.collect()).await;
    for answer in answers {
        // The refused one too: what it was refused for may have been undone.
        let Err(StoreError::Unavailable { source, .. }) = answer else {
            panic!("{answer:?} of a group that was lost");
        };
        assert!(source.to_string().contains("disk is full"), "{source}");
    }
    assert_eq!(numbers(&writer).await, [] as [i64; 0]);
    writer.write("insert", insert(6)).await.unwrap();
    assert_eq!(numbers(&writer).await, [6], "there is space again");
}

#[tokio::test]
async fn a_writer_that_panics_undoes_its_group_and_goes_on() {
    let tasks = Tasks::default();
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT").unwrap();
    let failpoints: Failpoints = "panic:2".parse().unwrap();
    let writer = start(connection, failpoints, tasks.clone());
    writer.write("insert", insert(1)).await.unwrap();
    let lost = writer.write("insert", insert(2)).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable { .. }), "{lost:?}");
    writer.write("insert", insert(3)).await.unwrap();
    assert_eq!(numbers(&writer).await, [1, 3]);
    assert_eq!(tasks.crashes("store writer"), 1);
    let readiness = tasks.health().readiness();
    assert!(
        !readiness.is_ready && readiness.problems[0].starts_with("store writer: panicked"),
        "{readiness:?}"
    );
}

#[tokio::test]
async fn a_write_that_nobody_waits_for_is_carried_out() {
    let writer = writer("");
    let forgotten = async {
        let write = writer.write("insert", insert(1));
        // Polled once, so that it is in the queue; then dropped.
        futures_util::future::select(std::pin::pin!(write), std::future::ready(())).await;
    };
    in_one_group(&writer, vec![forgotten]).await;
    assert_eq!(numbers(&writer).await, [1]);
}

#[tokio::test]
async fn renewals_are_not_counted_among_the_writes() {
    let writer = writer("full:2,full:renew");
    let mut outcomes = Vec::new();
    for label in ["first", "renew", "renew", "second", "third"] {
        outcomes.push((label, writer.write(label, |_| Ok(())).await.is_ok()));
    }
    assert_eq!(
        outcomes,
        [("first", true), ("renew", false), ("renew", true), ("second", false), ("third", true)]
    );
}
