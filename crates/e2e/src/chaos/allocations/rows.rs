//! What the store says in the end, which must be what was answered.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Row as SqlRow;

use super::SCHEDULER;
use super::ledger::{Entries, Fate, Given};
use crate::Maestro;

/// Times are answered to the millisecond.
const WRITTEN_TO: SignedDuration = SignedDuration::from_millis(2);

/// An allocation is created, in its row, when the round began in which its room was claimed. So much earlier that may be
/// than the claim itself; what the ledger sees is exact.
const ROUND_MAX: SignedDuration = SignedDuration::from_secs(2);

/// A row of an allocation, and what became of its room.
#[derive(Debug)]
pub(super) struct Row {
    id: String,
    room: String,
    number: i64,
    request_id: Option<String>,
    pub(super) state: String,
    created_at: Timestamp,
    expires_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// Why its room was asked to go.
    stop_cause: Option<String>,
}

/// In the order in which each room was given.
pub(super) fn read(maestro: &Maestro) -> anyhow::Result<Vec<Row>> {
    let sql = "SELECT lower(hex(allocations.id)) AS id, room, number, request_id, state, allocations.created_at AS created_at,
             expires_at, allocations.ended_at AS ended_at, stop_cause
         FROM allocations LEFT JOIN rooms ON rooms.id = room WHERE allocations.scheduler = ?1 ORDER BY room, number";
    let database = maestro.database()?;
    let mut statement = database.prepare(sql)?;
    let rows = statement.query_map([SCHEDULER], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    Ok(Row {
        id: with_hyphens(&row.get::<_, String>("id")?),
        room: row.get("room")?,
        number: row.get("number")?,
        request_id: row.get("request_id")?,
        state: row.get("state")?,
        created_at: time(row.get("created_at")?),
        expires_at: time(row.get("expires_at")?),
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(time),
        stop_cause: row.get("stop_cause")?,
    })
}

/// As ids are written in answers.
fn with_hyphens(hex: &str) -> String {
    let ends = [8, 12, 16, 20, 32];
    let starts = [0, 8, 12, 16, 20];
    let parts = starts.into_iter().zip(ends).filter_map(|(start, end)| hex.get(start..end));
    parts.collect::<Vec<_>>().join("-")
}

/// Nothing that was answered is missing or different, nobody had a room while somebody else had it, and nothing is held.
pub(super) fn check(entries: &Entries, rows: &[Row]) -> anyhow::Result<()> {
    let held = rows.iter().find(|row| row.ended_at.is_none() || row.state == "held");
    ensure!(held.is_none(), "still held: {held:?}");
    let by_id: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    for (id, given) in &entries.given {
        let row = by_id.get(id.as_str()).with_context(|| format!("not in the store: {given:?}"))?;
        check_answer(entries, given, row).with_context(|| format!("{given:?} is {row:?}"))?;
    }
    one_after_the_other(entries, rows)
}

fn check_answer(entries: &Entries, given: &Given, row: &Row) -> anyhow::Result<()> {
    ensure!(row.room == given.room && row.request_id == given.request_id, "it is another one");
    ensure!(row.expires_at.duration_since(given.expires_at).abs() < WRITTEN_TO, "it expires at another time");
    let state = row.state.as_str();
    if state == "lost" {
        let is_explained =
            entries.killed.contains(&row.room) || row.stop_cause.as_deref() == Some("rolling_update_replace");
        ensure!(is_explained, "a held room was taken away");
        return Ok(());
    }
    let expected: &[&str] = match given.fate {
        Fate::GiveBack if entries.given_back.contains(&given.id) => &["returned"],
        Fate::GiveBack | Fate::Forget => &["expired"],
        Fate::Play if entries.played.contains_key(&given.id) => &["begun"],
        Fate::Play => &["expired"],
    };
    ensure!(expected.contains(&state), "it should be {expected:?}");
    Ok(())
}

/// Of one room, each allocation is over, and so is its match, before the next one is made.
fn one_after_the_other(entries: &Entries, rows: &[Row]) -> anyhow::Result<()> {
    for pair in rows.windows(2) {
        let [one, next] = pair else { continue };
        // A claim that somebody else overtook was never answered.
        let is_answered = |row: &Row| entries.given.contains_key(&row.id) || row.state != "lost";
        if one.room != next.room || !is_answered(one) || !is_answered(next) {
            continue;
        }
        let two = || format!("{one:?} and {next:?}");
        ensure!(one.number < next.number, "the same claim: {}", two());
        let claimed_at = next.created_at + ROUND_MAX;
        ensure!(one.ended_at <= Some(claimed_at), "both at once: {}", two());
        if let Some(until) = entries.played.get(&one.id) {
            let is_over = until.is_some_and(|until| until <= claimed_at);
            ensure!(is_over, "its match was not over ({until:?}): {}", two());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    /// Of one room, and given to somebody who was to do that with it.
    fn allocation(id: &str, number: i64, state: &str, from: i64, until: i64, fate: Fate) -> (Row, Given) {
        let row = Row {
            id: id.into(),
            room: "room".into(),
            number,
            request_id: None,
            state: state.into(),
            created_at: at(from),
            expires_at: at(99),
            ended_at: Some(at(until)),
            stop_cause: None,
        };
        let given = Given { id: id.into(), room: "room".into(), request_id: None, expires_at: at(99), fate };
        (row, given)
    }

    fn wrong(change: impl FnOnce(&mut Vec<Row>, &mut Entries)) -> String {
        let (first, first_given) = allocation("a", 1, "begun", 1, 2, Fate::Play);
        let (second, second_given) = allocation("b", 2, "expired", 5, 6, Fate::Forget);
        let mut rows = vec![first, second];
        let mut entries = Entries::default();
        entries.given.extend([("a".into(), first_given), ("b".into(), second_given)]);
        entries.played.insert("a".into(), Some(at(4)));
        change(&mut rows, &mut entries);
        check(&entries, &rows).err().map(|error| format!("{error:#}")).unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_is_found() {
        assert_eq!(wrong(|_, _| {}), "");
        for (words, found) in [
            ("not in the store", wrong(|rows, _| drop(rows.pop()))),
            ("still held", wrong(|rows, _| rows[1].ended_at = None)),
            ("both at once", wrong(|rows, _| rows[0].ended_at = Some(at(8)))),
            ("its match was not over", wrong(|_, entries| entries.played.extend([("a".into(), None)]))),
            ("the same claim", wrong(|rows, _| rows[1].number = 1)),
            ("it is another one", wrong(|rows, _| rows[1].room = "other".into())),
            ("it expires at another time", wrong(|rows, _| rows[1].expires_at = at(98))),
            ("it should be", wrong(|rows, _| rows[1].state = "returned".into())),
            ("a held room was taken away", wrong(|rows, _| rows[1].state = "lost".into())),
        ] {
            assert!(found.contains(words), "{words}: {found:?}");
        }
        let explained = wrong(|rows, entries| {
            rows[1].state = "lost".into();
            entries.killed.insert("room".into());
        });
        assert_eq!(explained, "");
    }
}
