//! `maestro simulate`: what Maestro would do, on paper. No server is asked.

use std::path::PathBuf;

use clap::Args;
use maestro_whatif::{Draft, Report, simulate};

use super::context::Context;
use super::failure::Failure;
use super::output::{self, Format, warn};
use super::world::{self, Run};

/// What a plan on paper begins with; in a world the seed chooses all of it.
const ON_PAPER: [&str; 13] = [
    "file",
    "ready",
    "occupied",
    "demand",
    "cycle",
    "cycles",
    "duration",
    "room_start",
    "match_length",
    "failures",
    "new_version_at",
    "add_limit",
    "remove_limit",
];

/// Texts as they are written: what is wrong with them is said in the same words as for a file.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A simulation, or a scheduler's recipe, YAML or JSON; `-` is stdin
    #[arg(short, long, value_name = "FILE", required_unless_present = "world")]
    file: Option<PathBuf>,
    /// Not a plan on paper: a life of the whole engine under faults, told from --seed
    #[arg(long, conflicts_with_all = ON_PAPER)]
    world: bool,
    /// What the life is about: fleet, autoscaling, rollouts, workers, deletion, mixed, frozen_adder or regions
    #[arg(long, value_name = "KIND", requires = "world")]
    kind: Option<String>,
    /// Ready rooms to begin with
    #[arg(long, value_name = "ROOMS")]
    ready: Option<String>,
    /// Occupied rooms to begin with; without a demand they stay as many
    #[arg(long, value_name = "ROOMS")]
    occupied: Option<String>,
    /// Matches over time: a number, a .csv file, or a curve such as spike:base=10,peak=200
    #[arg(long, value_name = "DEMAND")]
    demand: Option<String>,
    /// From one health cycle to the next
    #[arg(long, value_name = "DURATION")]
    cycle: Option<String>,
    /// How many cycles; without this or --duration, until nothing is left to do
    #[arg(long, value_name = "NUMBER", conflicts_with = "duration")]
    cycles: Option<String>,
    /// How long
    #[arg(long, value_name = "DURATION")]
    duration: Option<String>,
    /// How long a room takes to become ready
    #[arg(long, value_name = "DURATION")]
    room_start: Option<String>,
    /// How long a match takes; without it, matches go on until fewer are wanted
    #[arg(long, value_name = "DURATION")]
    match_length: Option<String>,
    /// Share of the rooms that never become ready, 0 to 1; of the new version's, if one arrives
    #[arg(long, value_name = "SHARE")]
    failures: Option<String>,
    /// When a new major version arrives
    #[arg(long, value_name = "DURATION")]
    new_version_at: Option<String>,
    /// Which rooms fail; with --world, everything that happens
    #[arg(long, value_name = "NUMBER")]
    seed: Option<String>,
    /// Rooms that one cycle may add (operations.rooms.add.limit)
    #[arg(long, value_name = "ROOMS")]
    add_limit: Option<String>,
    /// Rooms that one scale-down may remove (operations.rooms.remove.limit)
    #[arg(long, value_name = "ROOMS")]
    remove_limit: Option<String>,
}

pub(super) fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    let invalid = |error: &dyn std::fmt::Display| Failure::invalid(error.to_string());
    let Some(file) = &options.file else {
        let run = Run { seed: options.seed.as_deref(), kind: options.kind.as_deref() };
        return world::run(context.format(), &run);
    };
    let mut draft = Draft::read(file).map_err(|error| invalid(&error))?;
    options.write_over(&mut draft)?;
    let parsed = draft.parse().map_err(|error| invalid(&error))?;
    for field in &parsed.unknown_fields {
        warn(&format!("{field}: no field of a recipe has this name"));
    }
    let report = simulate(&parsed.scenario).map_err(|error| invalid(&error))?;
    print(context.format(), &report)
}

impl Options {
    fn write_over(&self, draft: &mut Draft) -> Result<(), Failure> {
        let fields = [
            ("rooms.ready", &self.ready),
            ("rooms.occupied", &self.occupied),
            ("cycle", &self.cycle),
            ("cycles", &self.cycles),
            ("duration", &self.duration),
            ("roomStart", &self.room_start),
            ("matchLength", &self.match_length),
            ("failures", &self.failures),
            ("newVersion.at", &self.new_version_at),
            ("seed", &self.seed),
            ("limits.addRooms", &self.add_limit),
            ("limits.removeRooms", &self.remove_limit),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                draft.set(field, value.as_str());
            }
        }
        let Some(demand) = &self.demand else {
            return Ok(());
        };
        draft.set_demand(demand).map_err(|error| Failure::invalid(format!("--demand {demand}: {error}")))
    }
}

fn print(format: Format, report: &Report) -> Result<(), Failure> {
    match format {
        Format::Table => output::write(|stdout| report.write_table(stdout)),
        Format::Json => output::write(|stdout| report.write_json(stdout)),
        Format::Yaml => output::yaml(report),
        // Only the table: whatever reads it expects numbers. The summary is beside it.
        Format::Csv => {
            output::write(|stdout| report.write_csv(stdout))?;
            let mut summary = Vec::new();
            if report.summary.write(&mut summary).is_ok() {
                output::note(&String::from_utf8_lossy(&summary));
            }
            Ok(())
        }
    }
}
