//! What people have said about regions, and what was seen of them.

use maestro_core::room::Region;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::documents::unknown_value;
use maestro_engine::ports::store::{Contact, Refusal, RegionObservation, RegionRecord};

use crate::columns::{Columns, read_first, read_rows, to_number};
use crate::failure::{Failure, Result};
use crate::session::{Answer, Session, Statement};
use crate::value::{Value, values};
use crate::writes::{Pace, Write};

const SELECT: &str = "SELECT name, cordoned, draining, said_by, reason, said_at, lost_at FROM regions";

/// Compares columns, not records: a time that was given has more digits than the one that is kept.
pub(crate) async fn set(session: &Session, from: Option<&RegionRecord>, to: &RegionRecord) -> Result {
    let rows = session.rows(format!("{SELECT} WHERE name = $1"), values![&to.name]).await?;
    let is = read_first(&rows, region)?;
    let expected = from.filter(|from| from.name == to.name).map(as_kept);
    if is.as_ref().map(as_kept) != expected {
        return Err(Refusal::RegionChanged(to.name.clone()).into());
    }
    let sql = "INSERT INTO regions (name, cordoned, draining, said_by, reason, said_at, lost_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (name) DO UPDATE SET cordoned = excluded.cordoned, draining = excluded.draining,
             said_by = excluded.said_by, reason = excluded.reason, said_at = excluded.said_at,
             lost_at = excluded.lost_at";
    session.ask(sql, row(to)).await.map(drop)
}

fn row(record: &RegionRecord) -> [Value<'_>; 7] {
    let RegionRecord { name, cordoned, draining, by, reason, at, lost_at } = record;
    values![name, *cordoned, *draining, by, reason, *at, *lost_at]
}

fn as_kept(record: &RegionRecord) -> (&str, bool, bool, &str, &str, i64, Option<i64>) {
    let RegionRecord { name, cordoned, draining, by, reason, at, lost_at } = record;
    let lost_at = lost_at.map(|at| at.as_microsecond());
    (name.as_str(), *cordoned, *draining, by, reason, at.as_microsecond(), lost_at)
}

pub(crate) async fn all(session: &Session) -> Result<Vec<RegionRecord>> {
    let rows = session.rows(format!("{SELECT} ORDER BY name"), values![]).await?;
    read_rows(&rows, region)
}

fn region(columns: &Columns<'_>) -> Result<RegionRecord> {
    Ok(RegionRecord {
        name: columns.parsed("name", |name| Some(Region(name.into())))?,
        cordoned: columns.get("cordoned")?,
        draining: columns.get("draining")?,
        by: columns.get("said_by")?,
        reason: columns.get("reason")?,
        at: columns.time("said_at")?,
        lost_at: columns.optional_time("lost_at")?,
    })
}

/// Replaces what this observer saw before, and forgets what is too old of that region.
pub(crate) struct Observe {
    pub(crate) observation: RegionObservation,
    pub(crate) forget_before: Timestamp,
}

impl Write for Observe {
    type Answer = ();

    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        let RegionObservation { region, observer, at, contact, capacity } = &self.observation;
        let (word, since, why) = match contact {
            Contact::Reachable { since } => (REACHABLE, *since, None),
            Contact::Unsettled { why } => (UNSETTLED, None, Some(why.as_str())),
            Contact::Unreachable { why } => (UNREACHABLE, None, Some(why.as_str())),
        };
        // In the order of their keys, like all who forget.
        let forget = "DELETE FROM region_observations WHERE (region, observer) IN (
             SELECT region, observer FROM region_observations WHERE region = $1 AND at < $2
             ORDER BY region, observer FOR UPDATE)";
        let observe = "INSERT INTO region_observations (region, observer, at, contact, since, why, capacity)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (region, observer) DO UPDATE SET at = excluded.at, contact = excluded.contact,
                 since = excluded.since, why = excluded.why, capacity = excluded.capacity";
        vec![
            Statement::new(forget, values![region, self.forget_before]),
            Statement::new(observe, values![region, observer, *at, word, since, why, *capacity]),
        ]
    }

    async fn carry_out(&self, _: &Session, _: &[Answer], _: Pace) -> Result {
        Ok(())
    }
}

const REACHABLE: &str = "reachable";
const UNSETTLED: &str = "unsettled";
const UNREACHABLE: &str = "unreachable";

/// By region and observer.
pub(crate) async fn observations(session: &Session) -> Result<Vec<RegionObservation>> {
    let sql = "SELECT region, observer, at, contact, since, why, capacity FROM region_observations
         ORDER BY region, observer";
    let rows = session.rows(sql, values![]).await?;
    read_rows(&rows, |columns| {
        let why = || Ok::<_, Failure>(columns.get::<Option<String>>("why")?.unwrap_or_default());
        let capacity: Option<i64> = columns.get("capacity")?;
        Ok(RegionObservation {
            region: columns.parsed("region", |name| Some(Region(name.into())))?,
            observer: columns.get("observer")?,
            at: columns.time("at")?,
            contact: match columns.get("contact")? {
                REACHABLE => Contact::Reachable { since: columns.optional_time("since")? },
                UNSETTLED => Contact::Unsettled { why: why()? },
                UNREACHABLE => Contact::Unreachable { why: why()? },
                other => return Err(unknown_value("contact", other).into()),
            },
            capacity: capacity.map(|rooms| to_number(rooms, "capacity")).transpose()?,
        })
    })
}

/// Binds a region to a host, unless it stays with another one, and answers which.
pub(crate) struct Bind {
    pub(crate) region: Region,
    pub(crate) host: String,
    pub(crate) now: Timestamp,
    pub(crate) ttl: Millis,
}

impl Write for Bind {
    type Answer = String;

    /// Hosts that want the same region are served one after the other.
    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        vec![lock_store()]
    }

    async fn carry_out(&self, session: &Session, _: &[Answer], _: Pace) -> Result<String> {
        let sql = "WITH stays AS (
                SELECT host FROM region_hosts AS bound WHERE region = $1 AND host <> $2 AND (
                    greatest($3 - bound.at, 0) < $4
                    OR EXISTS (SELECT 1 FROM region_observations AS seen
                        WHERE seen.region = $1 AND greatest($3 - seen.at, 0) < $4)
                    OR EXISTS (SELECT 1 FROM rooms WHERE region = $1 AND ended_at IS NULL))),
            taken AS (
                INSERT INTO region_hosts (region, host, at) SELECT $1, $2, $3
                WHERE NOT EXISTS (SELECT 1 FROM stays)
                ON CONFLICT (region) DO UPDATE SET host = excluded.host, at = excluded.at)
            SELECT coalesce((SELECT host FROM stays), $2)";
        let Self { region, host, now, ttl } = self;
        session.value(sql, values![region, host, *now, *ttl]).await
    }
}

/// What belongs to no scheduler is changed by one after the other.
pub(crate) fn lock_store() -> Statement<'static> {
    Statement::new("SELECT only_row FROM store FOR NO KEY UPDATE", values![])
}
