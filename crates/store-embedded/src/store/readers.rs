//! A small pool of read-only connections. SQLite blocks, so questions are asked on blocking threads; in WAL mode
//! they neither wait for the writer nor hold it up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use maestro_engine::ports::store::StoreError;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::failure::{Failure, Result};
use super::file;
use super::presence::Presence;

/// Questions take microseconds to a few milliseconds; more connections would only hold more memory.
const READERS: usize = 4;

pub(super) struct Readers {
    pool: Arc<Mutex<Vec<Connection>>>,
    /// As many as there are connections.
    free: Arc<Semaphore>,
    presence: Arc<Presence>,
}

impl Readers {
    pub(super) fn open(database: &Path, presence: Arc<Presence>) -> Result<Self, rusqlite::Error> {
        let connections: Vec<_> =
            (0..READERS).map(|_| file::connect_to_read(database)).collect::<Result<_, _>>()?;
        Ok(Self {
            free: Arc::new(Semaphore::new(connections.len())),
            pool: Arc::new(Mutex::new(connections)),
            presence,
        })
    }

    /// All that `question` reads is of one moment. `what` completes "the store could not …".
    pub(super) async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.presence.remembered().map_err(|gone| Failure::from(gone).into_store_error(what))?;
        let closed = |_| Failure::Closed.into_store_error(what);
        let permit = self.free.clone().acquire_owned().await.map_err(closed)?;
        let pool = self.pool.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let Some(connection) = pool.lock().pop() else { return Err(Failure::Closed) };
            // Rolled back when dropped, which ends a transaction that only read.
            let ask = || question(&*connection.unchecked_transaction()?);
            let answer = catch_unwind(AssertUnwindSafe(ask)).unwrap_or(Err(Failure::Panicked));
            // The connection first: who gets the permit must find it.
            pool.lock().push(connection);
            drop(permit);
            answer
        });
        match asked.await {
            Ok(answer) => answer.map_err(|failure| failure.into_store_error(what)),
            Err(panicked) => Err(StoreError::unavailable(what, panicked)),
        }
    }
}
