//! A table for people. On a terminal its rows fit the width: ids are cut to what still tells them apart, the text at
//! the end to what is left. Elsewhere nothing is cut, so that scripts find everything.

use comfy_table::{Table, presets};
use jiff::Timestamp;

use super::{Json, plain, terminal};

/// The last column, if it has one of these names, holds a sentence whose beginning says most.
const SENTENCES: [&str; 5] = ["REASON", "PROBLEM", "STUCK BECAUSE", "COMMAND", "HOW IT ENDED"];

/// Columns that change by themselves.
const TIMES: [&str; 4] = ["AGE", "LAST PING", "SINCE", "ENDED"];

/// A sentence that is cut shorter than this says nothing; then rows may be longer than the terminal is wide.
const SENTENCE_CHARS_MIN: usize = 8;

/// Time of creation in an operation's id; what comes after it tells apart what was made in the same millisecond.
const ID_CHARS_MIN: usize = 13;

const UUID_CHARS: usize = 36;

const GAP: usize = 2;

/// A column of a table, or a line about a single thing: its name, and what it shows.
pub(super) type Column = (&'static str, Shows);

#[derive(Debug, Clone, Copy)]
pub(super) enum Shows {
    /// The value at a path of keys, such as `rooms.ready`.
    At(&'static str),
    /// How long ago the time at a path was.
    Age(&'static str),
    Text(fn(&Json) -> String),
}

impl Shows {
    pub(super) fn cell(self, item: &Json, now: Timestamp) -> String {
        match self {
            Self::At(path) => item.at(path).cell(),
            Self::Age(path) => time_cell(item.at(path), now),
            Self::Text(text) => text(item),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Sheet {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// One row for each item.
    pub(super) fn of(items: &[Json], columns: &[Column]) -> Self {
        let now = Timestamp::now();
        let row = |item| columns.iter().map(|(_, shows)| plain(&shows.cell(item, now))).collect();
        let header = columns.iter().map(|(name, _)| *name).collect();
        Self { header, rows: items.iter().map(row).collect() }
    }

    /// As wide as the terminal, or as it has to be.
    pub(super) fn text(&self) -> String {
        self.fitting(terminal::size().map(|size| size.columns))
    }

    pub(super) fn fitting(&self, columns_max: Option<usize>) -> String {
        let Some(columns_max) = columns_max else {
            return self.render();
        };
        let mut fitted = self.clone();
        if fitted.columns() > columns_max {
            fitted.shorten_ids();
        }
        if fitted.columns() > columns_max {
            fitted.cut_sentences(columns_max);
        }
        fitted.render()
    }

    /// Equal as long as nothing has happened.
    pub(super) fn content(&self) -> Vec<Vec<&str>> {
        let named = self.rows.iter().map(|row| self.header.iter().zip(row));
        named
            .map(|row| row.filter(|(name, _)| !TIMES.contains(name)).map(|(_, cell)| cell.as_str()).collect())
            .collect()
    }

    fn columns(&self) -> usize {
        let widths: usize = (0..self.header.len()).map(|column| self.width(column)).sum();
        widths + GAP * self.header.len().saturating_sub(1)
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(self.header.get(column).map(|name| name.len())).max().unwrap_or(0)
    }

    fn shorten_ids(&mut self) {
        let Some(column) = self.header.iter().position(|name| *name == "ID") else { return };
        let ids = || self.rows.iter().filter_map(|row| row.get(column));
        if !ids().all(|id| id.len() == UUID_CHARS && id.is_ascii()) {
            return;
        }
        let are_told_apart = |chars: usize| {
            let mut prefixes: Vec<&str> = ids().map(|id| &id[..chars]).collect();
            prefixes.sort_unstable();
            prefixes.windows(2).all(|pair| pair[0] != pair[1])
        };
        let chars = (ID_CHARS_MIN..UUID_CHARS).find(|chars| are_told_apart(*chars)).unwrap_or(UUID_CHARS);
        for row in &mut self.rows {
            row[column].truncate(chars);
        }
    }

    fn cut_sentences(&mut self, columns_max: usize) {
        let last = self.header.len().saturating_sub(1);
        if !self.header.last().is_some_and(|name| SENTENCES.contains(name)) {
            return;
        }
        let before = self.columns() - self.width(last);
        let chars_max = columns_max.saturating_sub(before).max(SENTENCE_CHARS_MIN);
        for sentence in self.rows.iter_mut().filter_map(|row| row.get_mut(last)) {
            if sentence.chars().count() > chars_max {
                *sentence = sentence.chars().take(chars_max - 1).chain(['…']).collect();
            }
        }
    }

    fn render(&self) -> String {
        let header = self.header.iter().map(|name| (*name).to_owned()).collect();
        aligned([header].into_iter().chain(self.rows.clone()))
    }
}

/// Columns without lines around them, so that they can be cut and grepped; never wrapped.
pub(super) fn aligned(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// `3m12s` for a time of the server's; `-` if there is none.
fn time_cell(time: &Json, now: Timestamp) -> String {
    match time.as_str().map(str::parse::<Timestamp>) {
        Some(Ok(time)) if time > Timestamp::UNIX_EPOCH => age(now.as_second() - time.as_second()),
        // Go's zero time, and nothing at all.
        Some(Ok(_)) | None => "-".to_owned(),
        Some(Err(_)) => time.cell(),
    }
}

/// The two largest units; clocks that differ a little make no negative age.
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m{rest}s"),
        (0, _, _) => format!("{hours}h{minutes}m"),
        (_, _, _) => format!("{days}d{hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn sheet(columns: &[&'static str], rows: &[&[&str]]) -> Sheet {
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect());
        Sheet { header: columns.to_vec(), rows: rows.collect() }
    }

    fn operations() -> Sheet {
        let kind = "create_new_scheduler_version";
        let reason = "asked for by ada@host; the latest room to end was arena-1: exit code 1";
        sheet(
            &["ID", "OPERATION", "STATUS", "AGE", "REASON"],
            &[
                &["01a1e37a-3bc9-7123-b0c1-18cc2bff41a0", kind, "in_progress", "3m12s", "short"],
                &["01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043", kind, "in_progress", "3m12s", reason],
            ],
        )
    }

    #[test]
    fn rows_fit_the_terminal() {
        expect![[r"
            ID                OPERATION                     STATUS       AGE    REASON
            01a1e37a-3bc9-71  create_new_scheduler_version  in_progress  3m12s  short
            01a1e37a-3bc9-7d  create_new_scheduler_version  in_progress  3m12s  asked for by ada@host…"]]
        .assert_eq(&operations().fitting(Some(90)).replace(" \n", "\n"));
        for columns in 76..300 {
            let text = operations().fitting(Some(columns));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
        }
    }

    #[test]
    fn elsewhere_nothing_is_cut() {
        let text = operations().fitting(None);
        for part in ["01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043", "arena-1: exit code 1"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_passing_of_time_is_no_change() {
        let sheet = |age: &str, status: &str| sheet(&["ID", "STATUS", "AGE"], &[&["arena-1", status, age]]);
        assert_eq!(sheet("1s", "ready").content(), sheet("2s", "ready").content());
        assert_ne!(sheet("1s", "ready").content(), sheet("1s", "occupied").content());
    }

    #[test]
    fn ages() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-11-15T12:00:00Z", "0s"),
            ("2026-11-15T11:59:18.5Z", "42s"),
            ("2026-11-15T11:56:48Z", "3m12s"),
            ("2026-11-15T06:57:00.123456789Z", "5h3m"),
            ("2026-11-13T07:30:00Z", "2d4h"),
            ("2026-11-15T12:00:07Z", "0s"),
            ("0001-01-01T00:00:00Z", "-"),
            ("", "-"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(time_cell(&Json::from(time), now), expected, "{time}");
        }
        assert_eq!(time_cell(&Json::Null, now), "-");
    }
}
