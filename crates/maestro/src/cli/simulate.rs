//! `maestro simulate`: what Maestro would do, without a server.

use std::path::PathBuf;

use clap::Args;
use maestro_whatif::{Draft, Report, simulate};

use super::{Context, Failure, Format, output, warn, world};

#[derive(Debug, Args)]
pub(super) struct SimulateOptions {
    #[command(flatten)]
    scenario: ScenarioOptions,
    /// Run the whole engine in a simulated world with faults instead; --seed decides what happens
    #[arg(long)]
    world: bool,
    /// Kind of run: fleet, autoscaling, rollouts, workers, deletion, mixed, frozen_adder or regions
    #[arg(long, value_name = "KIND", requires = "world")]
    kind: Option<String>,
    /// Seed of the random choices: which rooms fail, and with --world everything that happens
    #[arg(long, value_name = "NUMBER")]
    seed: Option<String>,
}

/// What a world would choose by itself. Texts as they are written: what is wrong with them is said in the same words as
/// for a file.
#[derive(Debug, Args)]
struct ScenarioOptions {
    /// A simulation, or a scheduler's recipe, YAML or JSON; `-` reads stdin
    #[arg(short, long, value_name = "FILE", required_unless_present = "world", conflicts_with = "world")]
    file: Option<PathBuf>,
    /// Number of ready rooms at the start
    #[arg(long, value_name = "ROOMS", conflicts_with = "world")]
    ready: Option<String>,
    /// Number of occupied rooms at the start; without --demand it stays the same
    #[arg(long, value_name = "ROOMS", conflicts_with = "world")]
    occupied: Option<String>,
    /// Matches over time: a number, a .csv file, or a curve such as spike:base=10,peak=200
    #[arg(long, value_name = "DEMAND", conflicts_with = "world")]
    demand: Option<String>,
    /// Time between two health cycles
    #[arg(long, value_name = "DURATION", conflicts_with = "world")]
    cycle: Option<String>,
    /// Number of cycles to simulate; without this or --duration, until nothing is left to do
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["duration", "world"])]
    cycles: Option<String>,
    /// Length of time to simulate
    #[arg(long, value_name = "DURATION", conflicts_with = "world")]
    duration: Option<String>,
    /// Time that a room takes to become ready
    #[arg(long, value_name = "DURATION", conflicts_with = "world")]
    room_start: Option<String>,
    /// Length of a match; without it, matches last until there is less demand
    #[arg(long, value_name = "DURATION", conflicts_with = "world")]
    match_length: Option<String>,
    /// Share of the rooms that never become ready, from 0 to 1; with --new-version-at, of the new version's rooms
    #[arg(long, value_name = "SHARE", conflicts_with = "world")]
    failures: Option<String>,
    /// Time at which a new major version arrives
    #[arg(long, value_name = "DURATION", conflicts_with = "world")]
    new_version_at: Option<String>,
    /// Maximum number of rooms that one cycle adds (operations.rooms.add.limit)
    #[arg(long, value_name = "ROOMS", conflicts_with = "world")]
    add_limit: Option<String>,
    /// Maximum number of rooms that one cycle removes to scale down (operations.rooms.remove.limit)
    #[arg(long, value_name = "ROOMS", conflicts_with = "world")]
    remove_limit: Option<String>,
}

pub(super) fn run(context: &Context, options: &SimulateOptions) -> Result<(), Failure> {
    let invalid = |error: &dyn std::fmt::Display| Failure::invalid(error.to_string());
    let Some(file) = &options.scenario.file else {
        return world::run(context.output, options.seed.as_deref(), options.kind.as_deref());
    };
    let mut draft = Draft::read(file).map_err(|error| invalid(&error))?;
    if let Some(seed) = &options.seed {
        draft.set("seed", seed.as_str());
    }
    options.scenario.write_over(&mut draft)?;
    let parsed = draft.parse().map_err(|error| invalid(&error))?;
    for field in &parsed.unknown_fields {
        warn(&format!("unknown field {field}"));
    }
    let report = simulate(&parsed.scenario).map_err(|error| invalid(&error))?;
    print(context.output, &report)
}

impl ScenarioOptions {
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
