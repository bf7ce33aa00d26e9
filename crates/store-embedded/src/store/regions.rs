//! What people have said about regions.

use maestro_core::room::Region;
use maestro_engine::ports::store::{Refusal, RegionRecord};
use rusqlite::Connection;

use super::columns::{Values, from_time, has_row, insert, read_rows};
use super::failure::Result;

/// Compares columns, not records: a time that was given has more digits than the one that is kept.
pub(super) fn set(connection: &Connection, from: Option<&RegionRecord>, to: &RegionRecord) -> Result {
    let is_expected = match from {
        Some(from) => with_row(from, |row| has_row(connection, "regions", row))?,
        None => !has_row(connection, "regions", &[("name", &to.name.as_str())])?,
    };
    if !is_expected {
        return Err(Refusal::RegionChanged(to.name.clone()).into());
    }
    with_row(to, |row| insert(connection, "INSERT OR REPLACE INTO regions", row)).map(drop)
}

fn with_row<T>(record: &RegionRecord, with: impl FnOnce(Values<'_>) -> T) -> T {
    let RegionRecord { name, cordoned, draining, by, reason, at, lost_at } = record;
    with(&[
        ("name", &name.as_str()),
        ("cordoned", cordoned),
        ("draining", draining),
        ("said_by", by),
        ("reason", reason),
        ("said_at", &from_time(*at)),
        ("lost_at", &lost_at.map(from_time)),
    ])
}

pub(super) fn all(connection: &Connection) -> Result<Vec<RegionRecord>> {
    read_rows(connection, "SELECT * FROM regions ORDER BY name", [], |columns| {
        Ok(RegionRecord {
            name: columns.parsed("name", |name| Some(Region(name.into())))?,
            cordoned: columns.get("cordoned")?,
            draining: columns.get("draining")?,
            by: columns.get("said_by")?,
            reason: columns.get("reason")?,
            at: columns.time("said_at")?,
            lost_at: columns.optional_time("lost_at")?,
        })
    })
}
