//! The result of a simulation: a table with one row per cycle, and a summary.

use std::fmt::{self, Display};
use std::io::{self, Write};

use maestro_core::duration;
use maestro_core::scheduler::Version;
use maestro_core::time::Millis;
use serde::{Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    #[serde(rename = "loops")]
    pub rows: Vec<Row>,
    pub summary: Summary,
}

/// One cycle: what it saw, what it wanted, what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    #[serde(rename = "loop")]
    pub number: u32,
    pub ready: u32,
    pub occupied: u32,
    /// Ready and occupied.
    pub available: u32,
    /// Of the available ones, those of the version that arrived.
    pub new: u32,
    pub desired: u32,
    pub desired_ready: u32,
    pub to_surge: u32,
    pub to_be_deleted: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub scheduler: String,
    pub loops: u32,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub simulated: Millis,
    /// The last cycle had nothing to do, and nothing was to come.
    pub at_rest: bool,
    /// How long fewer rooms were ready than must be.
    #[serde(rename = "secondsUnderReadyTarget", serialize_with = "seconds")]
    pub under_ready_target: Millis,
    /// Rooms times milliseconds, those that start included.
    #[serde(rename = "roomHours", serialize_with = "room_hours")]
    pub room_time_ms: u128,
    pub rooms_started: u64,
    pub rooms_stopped: u64,
    /// Matches whose room was replaced under them.
    pub matches_moved: u64,
    /// How long there were players without a room.
    #[serde(rename = "secondsWithMatchesWaiting", serialize_with = "seconds")]
    pub matches_waited: Millis,
    pub matches_waiting_max: u32,
    pub rollout: Option<RolloutReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RolloutReport {
    pub loops: u32,
    /// Why it failed.
    pub reason: Option<String>,
    /// Until it ended, or so far.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Millis,
    #[serde(rename = "state")]
    pub outcome: RolloutOutcome,
    #[serde(serialize_with = "as_text")]
    pub version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RolloutOutcome {
    Rolling,
    Finished,
    RollingBack,
    RolledBack,
    Halted,
}

const COLUMNS: [&str; 9] =
    ["loop", "ready", "occupied", "available", "new", "desired", "desiredReady", "toSurge", "toBeDeleted"];

impl Report {
    /// As the specification shows it: `25 (0 new)`; then the summary.
    pub fn write_table(&self, output: &mut dyn Write) -> io::Result<()> {
        let header = COLUMNS.into_iter().filter(|column| *column != "new");
        let header: Vec<String> = header.map(str::to_owned).collect();
        let mut widths: Vec<usize> = header.iter().map(String::len).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row.cells()) {
                *width = cell.len().max(*width);
            }
        }
        write_cells(output, &header, &widths)?;
        for row in &self.rows {
            write_cells(output, &row.cells(), &widths)?;
        }
        writeln!(output)?;
        self.summary.write(output)
    }

    pub fn write_csv(&self, output: &mut dyn Write) -> io::Result<()> {
        writeln!(output, "{}", COLUMNS.join(","))?;
        for row in &self.rows {
            let cells = row.numbers().map(|number| number.to_string());
            writeln!(output, "{}", cells.join(","))?;
        }
        Ok(())
    }

    /// `{"loops": [one object a row], "summary": {…}}`
    pub fn write_json(&self, output: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *output, self)?;
        writeln!(output)
    }
}

/// The last cell has no spaces behind it.
fn write_cells(output: &mut dyn Write, cells: &[String], widths: &[usize]) -> io::Result<()> {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line += &format!("{cell:<width$}  ");
    }
    writeln!(output, "{}", line.trim_end())
}

impl Row {
    /// In the order of [`COLUMNS`].
    pub fn numbers(&self) -> [u32; 9] {
        let Self { number, ready, occupied, available, new, desired, desired_ready, to_surge, to_be_deleted } =
            *self;
        [number, ready, occupied, available, new, desired, desired_ready, to_surge, to_be_deleted]
    }

    fn cells(&self) -> [String; 8] {
        let [number, ready, occupied, available, new, desired, desired_ready, to_surge, to_be_deleted] =
            self.numbers().map(|number| number.to_string());
        let available = format!("{available} ({new} new)");
        [number, ready, occupied, available, desired, desired_ready, to_surge, to_be_deleted]
    }
}

impl Summary {
    /// One `name  value` a line, for people.
    pub fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let waiting = match self.matches_waiting_max {
            0 => "none".to_owned(),
            most => format!("{}, at most {most} at once", time(self.matches_waited)),
        };
        let at_rest = if self.at_rest { ", then at rest" } else { "" };
        let lines: [(&str, &dyn Display); 7] = [
            ("simulated", &format_args!("{} loops, {}{at_rest}", self.loops, time(self.simulated))),
            ("under the ready target", &time(self.under_ready_target)),
            ("room-hours", &format_args!("{:.2}", hours(self.room_time_ms))),
            ("churn", &format_args!("{} rooms started, {} stopped", self.rooms_started, self.rooms_stopped)),
            ("matches moved", &self.matches_moved),
            ("matches without a room", &waiting),
            ("rollout", &self.rollout.as_ref().map_or("none".to_owned(), ToString::to_string)),
        ];
        for (name, value) in lines {
            writeln!(output, "{name:<24}{value}")?;
        }
        Ok(())
    }
}

impl Display for RolloutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, took) = (self.version, time(self.took));
        let spent = format!("{took} ({} loops)", self.loops);
        let reason = self.reason.as_deref().unwrap_or_default();
        match self.outcome {
            RolloutOutcome::Finished => write!(f, "{version} finished after {spent}"),
            RolloutOutcome::Rolling => write!(f, "{version} not finished after {spent}"),
            RolloutOutcome::RolledBack => write!(f, "{version} failed: {reason}; rolled back after {spent}"),
            RolloutOutcome::RollingBack => {
                write!(f, "{version} failed: {reason}; not rolled back after {spent}")
            }
            RolloutOutcome::Halted => write!(f, "{version} failed: {reason}; halted after {spent}"),
        }
    }
}

fn time(millis: Millis) -> String {
    duration::format(millis.as_duration())
}

fn room_hours<S: Serializer>(room_time_ms: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(hours(*room_time_ms))
}

/// Exact up to a hundredth, which is all that is shown.
fn hours(room_time_ms: u128) -> f64 {
    ((room_time_ms + 18_000) / 36_000) as f64 / 100.0
}

/// Whole seconds as whole numbers, as people write them.
fn seconds<S: Serializer>(millis: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    match millis.0 % 1000 {
        0 => serializer.serialize_u64(millis.0 / 1000),
        _ => serializer.serialize_f64(millis.0 as f64 / 1000.0),
    }
}

fn as_text<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}
