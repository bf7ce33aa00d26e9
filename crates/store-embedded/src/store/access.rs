//! How the database is reached: a file through threads of its own, one in memory by whoever asks.

use std::sync::Arc;

use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::StoreError;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::EmbeddedStore;
use super::directory_lock::DirectoryLock;
use super::failure::Result;
use super::presence::{Presence, Watch};
use super::readers::Readers;
use super::writer::Writer;

pub(super) enum Access {
    File {
        readers: Readers,
        presence: Arc<Presence>,
        _watch: Watch,
        // The order matters: the writer has ended before the directory is given up.
        writer: Writer,
        _lock: DirectoryLock,
    },
    Memory(Mutex<Connection>),
}

impl EmbeddedStore {
    /// All that `question` reads is of one moment. `what` completes "the store could not …".
    pub(super) async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.access {
            Access::File { readers, .. } => readers.read(what, question).await,
            Access::Memory(connection) => {
                let connection = connection.lock();
                question(&connection).map_err(|failure| failure.into_store_error(what))
            }
        }
    }

    /// The same where it is about one scheduler.
    pub(super) async fn read_of<T: Send + 'static>(
        &self,
        what: &'static str,
        scheduler: &SchedulerName,
        question: impl FnOnce(&Connection, &SchedulerName) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let scheduler = scheduler.clone();
        self.read(what, move |connection| question(connection, &scheduler)).await
    }

    /// Done, and as durable as the database is, when it returns. `work` may be done more than once; what it did before is
    /// undone then.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        label: &'static str,
        work: impl Fn(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.access {
            Access::File { writer, .. } => writer.write(label, work).await,
            Access::Memory(connection) => {
                let connection = connection.lock();
                write_in_place(&connection, work).map_err(|failure| failure.into_store_error("write"))
            }
        }
    }

    /// The same for several writes, in their order, each with its label. They share commits where that is possible, and
    /// each one has an answer of its own.
    pub(super) async fn write_each<T: Send + 'static, W>(
        &self,
        writes: impl Iterator<Item = (&'static str, W)> + Send,
    ) -> Vec<Result<T, StoreError>>
    where
        W: Fn(&Connection) -> Result<T> + Send + 'static,
    {
        match &self.access {
            Access::File { writer, .. } => writer.write_each(writes).await,
            Access::Memory(connection) => {
                let connection = connection.lock();
                let write = |(_, work)| write_in_place(&connection, work);
                let answers = writes.map(write);
                answers.map(|answer| answer.map_err(|failure| failure.into_store_error("write"))).collect()
            }
        }
    }
}

/// The transaction is rolled back when it is dropped, so also by a panic.
fn write_in_place<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let transaction = connection.unchecked_transaction()?;
    let answer = work(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}
