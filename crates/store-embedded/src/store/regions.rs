//! What people have said about regions.

use maestro_core::room::Region;
use maestro_engine::ports::store::{Refusal, RegionRecord};
use rusqlite::Connection;

use super::columns::{from_time, read_rows};
use super::failure::Failure;

pub(super) fn set(
    connection: &Connection,
    from: Option<&RegionRecord>,
    to: &RegionRecord,
) -> Result<(), Failure> {
    if !is(connection, &to.name, from)? {
        return Err(Refusal::RegionChanged(to.name.clone()).into());
    }
    let RegionRecord { name, cordoned, draining, by, reason, at, lost_at } = to;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO regions (name, cordoned, draining, said_by, reason, said_at, lost_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((name.as_str(), cordoned, draining, by, reason, from_time(*at), lost_at.map(from_time)))?;
    Ok(())
}

/// Compares columns, not records: a time that was given has more digits than the one that is kept.
fn is(connection: &Connection, region: &Region, expected: Option<&RegionRecord>) -> Result<bool, Failure> {
    let Some(RegionRecord { name, cordoned, draining, by, reason, at, lost_at }) = expected else {
        return Ok(connection
            .prepare_cached("SELECT NOT EXISTS (SELECT 1 FROM regions WHERE name = ?1)")?
            .query_row([region.as_str()], |row| row.get(0))?);
    };
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (
                 SELECT 1 FROM regions
                 WHERE name = ?1 AND cordoned = ?2 AND draining = ?3 AND said_by = ?4 AND reason = ?5
                   AND said_at = ?6 AND lost_at IS ?7
             )",
        )?
        .query_row(
            (name.as_str(), cordoned, draining, by, reason, from_time(*at), lost_at.map(from_time)),
            |row| row.get(0),
        )?)
}

pub(super) fn all(connection: &Connection) -> Result<Vec<RegionRecord>, Failure> {
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
