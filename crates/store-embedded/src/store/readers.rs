//! A small pool of read-only connections. SQLite blocks, so questions are asked on blocking threads; in WAL mode
//! they neither wait for the writer nor hold it up.

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
            let lent = Lent::from(pool);
            // Rolled back when dropped, which ends a transaction that only read.
            let answer = match lent.connection() {
                Some(connection) => connection
                    .unchecked_transaction()
                    .map_err(Failure::from)
                    .and_then(|moment| question(&moment)),
                None => Err(Failure::Closed),
            };
            // The connection first: who gets the permit must find it.
            drop(lent);
            drop(permit);
            answer
        });
        match asked.await {
            Ok(answer) => answer.map_err(|failure| failure.into_store_error(what)),
            Err(panicked) => Err(StoreError::unavailable(what, panicked)),
        }
    }
}

/// A connection that finds its way back, also when the question panics.
struct Lent {
    pool: Arc<Mutex<Vec<Connection>>>,
    connection: Option<Connection>,
}

impl Lent {
    fn from(pool: Arc<Mutex<Vec<Connection>>>) -> Self {
        let connection = pool.lock().pop();
        Self { pool, connection }
    }

    fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.lock().push(connection);
        }
    }
}
