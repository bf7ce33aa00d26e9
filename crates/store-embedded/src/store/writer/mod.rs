//! The one thread that writes.
//!
//! A commit costs a sync of the disk, whatever is in it. So what waits when the thread comes round is written as one
//! SQLite transaction. Nearly always all of it is accepted. If one write is refused, the group is undone and done again with
//! each write in a savepoint of its own: a refused one undoes itself and no other. (A savepoint copies every page that is
//! changed after it, which is a third of what a small write costs.) Answers are given after the commit, refusals too: what
//! a write was refused for may have been done by another write of the same group, and is not true before it is durable.

#[cfg(test)]
mod tests;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use maestro_engine::ports::store::StoreError;
use maestro_engine::{Importance, Tasks};
use parking_lot::Mutex;
use rusqlite::{Connection, ffi};
use tokio::sync::{mpsc, oneshot};

use super::failure::{Failure, GroupLost, Result};
use super::presence::Presence;
use crate::failpoints::Armed;

/// Writes in a batch, and in a group that is not full yet: bounds how long the first of a group waits for the last.
const GROUP_MAX: usize = 256;

/// Batches that wait; who comes then waits for a place.
const QUEUE_MAX: usize = 1024;

pub(super) struct Writer {
    /// `None` only while it is being dropped.
    queue: Option<mpsc::Sender<Batch>>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Mutex<WriteCounts>>,
}

/// How many writes were taken up, refused ones too, and in how many commits: the difference is what grouping saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCounts {
    pub writes: u64,
    pub commits: u64,
}

impl Writer {
    /// `tasks` starts the thread's work anew if it panics; the group at hand is undone then.
    pub(super) fn start(
        connection: Connection,
        mut failpoints: Armed,
        presence: Arc<Presence>,
        tasks: Tasks,
    ) -> io::Result<Self> {
        let (queue, mut waiting) = mpsc::channel(QUEUE_MAX);
        let counts = Arc::<Mutex<WriteCounts>>::default();
        let write = {
            let counts = counts.clone();
            move || {
                tasks.supervise_thread("store writer", Importance::Process, || {
                    undo(&connection);
                    failpoints.end_group();
                    write_groups(&connection, &mut failpoints, &presence, &mut waiting, &counts);
                });
            }
        };
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(write)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), counts })
    }

    /// Durable when it returns. Once it is in the queue it is carried out, also if nobody waits for the answer. `work` may be
    /// done more than once; what it did before is undone then.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        label: &'static str,
        work: impl Fn(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = Write::prepare(label, work);
        self.enqueue(vec![job]).await;
        answered(answer).await
    }

    /// The same for several writes, in their order. They are in the queue together: one at a time, the first one would
    /// often be committed alone, and the others had to wait for that commit.
    pub(super) async fn write_each<T: Send + 'static, W>(
        &self,
        writes: impl Iterator<Item = (&'static str, W)> + Send,
    ) -> Vec<Result<T, StoreError>>
    where
        W: Fn(&Connection) -> Result<T> + Send + 'static,
    {
        let (mut jobs, waiting): (Batch, Vec<_>) =
            writes.map(|(label, work)| Write::prepare(label, work)).unzip();
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(GROUP_MAX));
            self.enqueue(std::mem::replace(&mut jobs, rest)).await;
        }
        // They are given in their order. Whoever waits for the first one would be woken for it, and again and again.
        let mut answers = Vec::with_capacity(waiting.len());
        for answer in waiting.into_iter().rev() {
            answers.push(answered(answer).await);
        }
        answers.reverse();
        answers
    }

    /// What cannot be enqueued is dropped: whoever waits for its answer learns that the store is closed.
    async fn enqueue(&self, batch: Batch) {
        if let Some(queue) = &self.queue {
            let _ = queue.send(batch).await;
        }
    }

    pub(super) fn counts(&self) -> WriteCounts {
        *self.counts.lock()
    }
}

impl Drop for Writer {
    /// Waits until all that was asked for is written: who opens the file next must find it at rest.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("store writer panicked");
        }
    }
}

/// Writes that are committed together.
type Batch = Vec<Box<dyn Job>>;

/// A write in the queue, whatever it answers.
trait Job: Send {
    fn label(&self) -> &'static str;

    /// False: it is to be undone. What an earlier run came to is forgotten.
    fn run(&mut self, connection: &Connection) -> bool;

    fn answer(self: Box<Self>, committed: Result<(), GroupLost>);
}

struct Write<T, W> {
    label: &'static str,
    work: W,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, W> Write<T, W>
where
    T: Send + 'static,
    W: Fn(&Connection) -> Result<T> + Send + 'static,
{
    /// The job, and where its answer will be.
    fn prepare(label: &'static str, work: W) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { label, work, result: None, reply }), answer)
    }
}

async fn answered<T>(answer: oneshot::Receiver<Result<T>>) -> Result<T, StoreError> {
    let answer = answer.await.unwrap_or(Err(Failure::Closed));
    answer.map_err(|failure| failure.into_store_error("write"))
}

impl<T, W> Job for Write<T, W>
where
    T: Send,
    W: Fn(&Connection) -> Result<T> + Send,
{
    fn label(&self) -> &'static str {
        self.label
    }

    fn run(&mut self, connection: &Connection) -> bool {
        // A bug in one write must not take the store away from all others: it is undone like any that fails.
        let caught = catch_unwind(AssertUnwindSafe(|| (self.work)(connection)));
        let result = caught.unwrap_or(Err(Failure::Panicked));
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn answer(self: Box<Self>, committed: Result<(), GroupLost>) {
        let answer = match (committed, self.result) {
            (Ok(()), Some(result)) => result,
            // It failed on its own account: that says more than what happened to the others then.
            (Err(_), Some(Err(own))) if !matches!(own, Failure::Refused(_)) => Err(own),
            (Err(lost), _) => Err(lost.into()),
            (Ok(()), None) => Err(Failure::Closed),
        };
        // Nobody waits any more: the write stands all the same.
        let _ = self.reply.send(answer);
    }
}

fn write_groups(
    connection: &Connection,
    failpoints: &mut Armed,
    presence: &Presence,
    waiting: &mut mpsc::Receiver<Batch>,
    counts: &Mutex<WriteCounts>,
) {
    while let Some(mut group) = waiting.blocking_recv() {
        while group.len() < GROUP_MAX
            && let Ok(next) = waiting.try_recv()
        {
            group.extend(next);
        }
        // Looked at before and after: what was committed to a file without a name is lost, and must not be answered.
        let committed = presence
            .look()
            .and_then(|()| write_group(connection, failpoints, &mut group))
            .and_then(|()| presence.look());
        let mut counted = counts.lock();
        counted.commits += 1;
        counted.writes += group.len() as u64;
        drop(counted);
        let committed = committed.map_err(|error| {
            undo(connection);
            GroupLost(Arc::new(error))
        });
        failpoints.answer(move || {
            for job in group {
                job.answer(committed.clone());
            }
        });
        failpoints.end_group();
    }
}

fn write_group(
    connection: &Connection,
    failpoints: &mut Armed,
    group: &mut [Box<dyn Job>],
) -> Result<(), rusqlite::Error> {
    group.iter().for_each(|job| failpoints.take_up(job.label()));
    execute(connection, "BEGIN IMMEDIATE")?;
    if !run_all(connection, group)? {
        execute(connection, "ROLLBACK")?;
        execute(connection, "BEGIN IMMEDIATE")?;
        run_each(connection, group)?;
    }
    failpoints.before_commit()?;
    execute(connection, "COMMIT")?;
    failpoints.after_commit();
    Ok(())
}

/// False: one of them is to be undone, so that all are.
fn run_all(connection: &Connection, group: &mut [Box<dyn Job>]) -> Result<bool, rusqlite::Error> {
    for job in group {
        let keep = job.run(connection);
        check_not_given_up(connection)?;
        if !keep {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_each(connection: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), rusqlite::Error> {
    for job in group {
        execute(connection, "SAVEPOINT one_write")?;
        let keep = job.run(connection);
        check_not_given_up(connection)?;
        if !keep {
            execute(connection, "ROLLBACK TO one_write")?;
        }
        execute(connection, "RELEASE one_write")?;
    }
    Ok(())
}

/// A full disk or a failing one may make SQLite give up the whole transaction, not only the statement.
fn check_not_given_up(connection: &Connection) -> Result<(), rusqlite::Error> {
    if connection.is_autocommit() {
        let why = Some("the disk failed in the middle of a write".to_owned());
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ABORT_ROLLBACK), why));
    }
    Ok(())
}

/// After a failed commit, or a panic. If not even this works there is no transaction left to undo.
fn undo(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = execute(connection, "ROLLBACK")
    {
        tracing::error!(%error, "store could not roll back");
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
