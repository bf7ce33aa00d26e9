//! A database in memory.

use std::sync::{Mutex, PoisonError};

use maestro_engine::ports::store::StoreError;
use rusqlite::Connection;

use super::failure::Failure;
use super::{file, migrations};

pub(super) struct InPlace(Mutex<Connection>);
static STATS: Mutex<std::collections::BTreeMap<&'static str, (u64, u128)>> =
    Mutex::new(std::collections::BTreeMap::new());
#[allow(clippy::all)]
fn stat(what: &'static str, since: std::time::Instant) {
    let ns = since.elapsed().as_nanos();
    let mut s = STATS.lock().unwrap();
    let e = s.entry(what).or_default();
    e.0 += 1;
    e.1 += ns;
}
impl Drop for InPlace {
    fn drop(&mut self) {
        stat("DROP", std::time::Instant::now());
        let s = STATS.lock().unwrap();
        if s["DROP"].0 == 150 {
            for (k, v) in s.iter() {
                eprintln!(
                    "{k:40} {:8} calls {:10.1} us total {:6.1} us each",
                    v.0,
                    v.1 as f64 / 1e3,
                    v.1 as f64 / 1e3 / v.0 as f64
                );
            }
        }
    }
}

impl InPlace {
    pub(super) fn new() -> Result<Self, rusqlite::Error> {
        let t = std::time::Instant::now();
        let mut connection = Connection::open_in_memory()?;
        file::set_up(&connection)?;
        connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF;")?;
        migrations::apply(&mut connection)?;
        connection.execute("INSERT INTO store (only_row, id, last_token) VALUES (1, 'memory', 0)", [])?;
        stat("OPEN", t);
        Ok(Self(Mutex::new(connection)))
    }

    pub(super) fn read<T>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let t = std::time::Instant::now();
        let r = question(&connection);
        stat(what, t);
        r.map_err(|failure| failure.into_store_error(what))
    }

    pub(super) fn write<T>(
        &self,
        label: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let t = std::time::Instant::now();
        let written = execute(&connection, "BEGIN").map_err(Failure::from).and_then(|()| work(&connection));
        let end = if written.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let x = execute(&connection, end);
        stat(label, t);
        x.map_err(Failure::from).and(written).map_err(|failure| failure.into_store_error("write"))
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
