//! The command line. A command reads its options, asks the server, prints; what goes wrong is a [`Failure`] with
//! one of the exit codes that scripts rely on.

/// The end of a command's help.
macro_rules! examples {
    ($($example:literal),+ $(,)?) => { concat!("Examples:", $("\n  ", $example),+) };
}

mod allocation;
mod client;
mod config;
mod context;
mod decision;
mod document;
#[cfg(test)]
mod documentation_tests;
mod event;
mod events;
mod explain;
mod export;
mod failure;
mod ids;
mod import;
mod json;
mod list;
mod lock;
mod logs;
mod operation;
mod or_list;
mod output;
mod plan;
mod poll;
mod progress;
mod ready_rooms;
mod refusal;
mod region;
mod resource;
mod rollout;
mod room;
mod scheduler;
mod sheet;
mod simulate;
mod support;
mod terminal;
mod usage;
mod version;
mod watch;
mod world;

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use maestro_store_embedded::{BackupError, OpenError};

// What most commands are made of: they take it from here.
use client::{Client, require};
pub use config::ConfigOptions;
use context::{Context, WaitOptions};
use failure::{Exit, Failure};
use json::{Json, or_dash};
use list::WatchOptions;
use or_list::OrList;
use output::{Format, fields, note, plain, print, table, warn};
use poll::Poll;
use progress::Progress;
use resource::Resource;
use sheet::Shows::{Age, At, Text};
use sheet::{Column, Sheet};

use crate::backup::{BackupOptions, RestoreOptions};
use crate::config::ConfigError;
use crate::migrate::MigrateOptions;
use crate::start::StartOptions;
use crate::{backup, migrate, start};

const HELP_END: &str = "\
Examples:
  maestro start                                   start a server on this machine
  maestro scheduler create -f arena.yaml --wait   create a fleet and wait for its rooms
  maestro scheduler list                          all fleets, and what is wrong with them
  maestro room list arena                         the rooms of a fleet
  maestro operation list arena                    what was done, and why
  maestro simulate -f arena.yaml --demand 80      what would be done

Exit codes:
  0 ok, 1 operation failed, 2 usage or invalid input, 3 not found, 4 conflict,
  5 server unreachable, 6 timed out";

/// The shells whose completion scripts are tested.
const COMPLETION_SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Keeps fleets of dedicated game rooms running
#[derive(Debug, Parser)]
#[command(name = "maestro", version, after_help = HELP_END)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    context: Context,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create, change, inspect and delete schedulers
    #[command(subcommand, alias = "sched", after_help = examples![
        "maestro scheduler apply -f arena.yaml --wait",
        "maestro scheduler list",
        "maestro scheduler resize arena +20%",
    ])]
    Scheduler(scheduler::Command),

    /// Follow, pause, resume and cancel the rollout of a new version
    #[command(subcommand, alias = "rollouts", after_help = examples![
        "maestro rollout status arena --watch",
        "maestro rollout pause arena",
    ])]
    Rollout(rollout::Command),

    /// Inspect, add, create and remove rooms
    #[command(subcommand, after_help = examples![
        "maestro room list arena",
        "maestro room add arena 3 --wait",
        "maestro room create arena --region eu-west",
    ])]
    Room(room::Command),

    /// Allocate rooms for matches, see who holds which, and return them
    #[command(subcommand, after_help = examples![
        "maestro allocation create arena --region eu-west --wait 10s",
        "maestro allocation list arena --state held",
    ])]
    Allocation(allocation::Command),

    /// Inspect, explain, cancel and follow operations
    #[command(subcommand, visible_alias = "op", after_help = examples![
        "maestro operation list arena",
        "maestro operation list --stuck",
        "maestro operation watch arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398",
    ])]
    Operation(operation::Command),

    /// Inspect and release the locks of a scheduler
    #[command(subcommand, alias = "locks", after_help = examples![
        "maestro lock list arena",
        "maestro lock release arena downscaling --reason \"the rooms are gone, I looked\"",
    ])]
    Lock(lock::Command),

    /// Inspect events that wait for forwarders, and replay those that could not be delivered (see events for what happens)
    #[command(subcommand, after_help = examples![
        "maestro event list arena --dead",
        "maestro event replay arena --forwarder matchmaker",
    ])]
    Event(event::Command),

    /// Print what happens: rooms, allocations, operations, decisions, rollouts, regions (see event for queued events)
    #[command(after_help = examples![
        "maestro events arena",
        "maestro events --follow",
        "maestro events arena --follow --types room,allocation -o json",
    ])]
    Events(events::EventsOptions),

    /// Inspect regions; cordon, drain and uncordon them
    #[command(subcommand, after_help = examples![
        "maestro region list",
        "maestro region drain eu-west --reason \"new machines\"",
    ])]
    Region(region::Command),

    /// Same as scheduler; without a subcommand, lists the schedulers
    #[command(hide = true, after_help = examples![
        "maestro schedulers",
        "maestro schedulers --watch",
    ])]
    Schedulers(OrList<scheduler::Command, scheduler::ListOptions>),

    /// Same as room; with only a scheduler, lists its rooms
    #[command(hide = true, after_help = examples![
        "maestro rooms arena",
        "maestro rooms arena --watch",
    ])]
    Rooms(OrList<room::Command, room::ListOptions>),

    /// Same as allocation; with only a scheduler, lists its allocations
    #[command(hide = true, after_help = examples![
        "maestro allocations arena",
        "maestro allocations arena --state held",
    ])]
    Allocations(OrList<allocation::Command, allocation::ListOptions>),

    /// Same as operation; with only a scheduler, lists its operations
    #[command(hide = true, alias = "ops", after_help = examples![
        "maestro operations arena",
        "maestro ops arena --status error",
    ])]
    Operations(OrList<operation::Command, operation::ListOptions>),

    /// Same as region; without a subcommand, lists the regions
    #[command(hide = true, after_help = examples![
        "maestro regions",
        "maestro regions --watch",
    ])]
    Regions(OrList<region::Command, WatchOptions>),

    /// Simulate what Maestro would do with a fleet, cycle by cycle, without a server
    #[command(after_help = examples![
        "maestro simulate -f examples/simulate/upscale.yaml",
        "maestro simulate -f arena.yaml --ready 20 --occupied 5 --new-version-at 0s",
        "maestro simulate -f arena.yaml --demand day:low=10,high=500 --room-start 40s -o csv > day.csv",
        "maestro simulate -f arena.yaml --demand players.csv --cycle 30s --add-limit 150",
        "maestro simulate --world --seed 7",
    ])]
    Simulate(Box<simulate::SimulateOptions>),

    /// Ask the planners about cases: one JSON line in, one JSON line out
    #[command(subcommand, after_help = examples!["maestro plan autoscaling < cases.jsonl > answers.jsonl"])]
    Plan(plan::Command),

    /// Inspect the configuration
    #[command(subcommand, after_help = examples![
        "maestro config show",
        "maestro config reference",
    ])]
    Config(config::Command),

    /// Start a server
    #[command(after_help = examples![
        "maestro start",
        "maestro start -c maestro.yaml --data-dir /var/lib/maestro",
        "MAESTRO_MANAGEMENTAPI_PORT=0 maestro start",
    ])]
    Start(StartOptions),

    /// Bring the schema of the shared store (PostgreSQL) up to date
    #[command(after_help = examples![
        "maestro migrate --dry-run -c maestro.yaml",
        "maestro migrate -c maestro.yaml",
    ])]
    Migrate(MigrateOptions),

    /// Back up the store of a data directory to a file, even while a server is using it
    #[command(after_help = examples!["maestro backup --data-dir ./data maestro.backup"])]
    Backup(BackupOptions),

    /// Restore a data directory from a backup
    #[command(after_help = examples!["maestro restore --data-dir ./data maestro.backup"])]
    Restore(RestoreOptions),

    /// Print schedulers with all of their versions, for import into another installation
    #[command(after_help = examples![
        "maestro export > fleet.json",
        "maestro export arena lobby -o yaml",
        "maestro export --url http://old:8080 | maestro import --url http://new:8080",
    ])]
    Export(export::ExportOptions),

    /// Create the schedulers that export printed; those that are there already stay as they are
    #[command(after_help = examples![
        "maestro import -f fleet.json --dry-run",
        "maestro import < fleet.json",
        "maestro import -f fleet.json --overwrite",
    ])]
    Import(import::ImportOptions),

    /// Collect everything that a bug report needs in one file
    #[command(after_help = examples![
        "maestro support-bundle",
        "maestro support-bundle bundle.tar.gz -c maestro.yaml --server-log maestro.log",
        "maestro support-bundle --scheduler arena --no-room-logs",
    ])]
    SupportBundle(support::BundleOptions),

    /// Print a completion script for a shell
    #[command(after_help = examples![
        "source <(maestro completion bash)",
        "maestro completion fish > ~/.config/fish/completions/maestro.fish",
    ])]
    Completion {
        /// The shell to print it for
        #[arg(value_parser = PossibleValuesParser::new(COMPLETION_SHELLS).try_map(|shell| shell.parse::<Shell>()))]
        shell: Shell,
    },

    /// Print the version, the commit and the schema of the store
    #[command(after_help = examples![
        "maestro version",
        "maestro version -o json",
    ])]
    Version,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = usage::without_wrong_tips(error);
            // Help and version come this way too, with exit code 0. A closed pipe is no reason to fail.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    run(&arguments).unwrap_or_else(|failure| {
        if !failure.is_silent() {
            output::error(&failure.message);
        }
        failure.exit_code()
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { command, context } = arguments;
    // Before anything is done whose result could not be shown.
    if context.output == Format::Csv && !matches!(command, Command::Simulate(_)) {
        return Err(Failure::invalid(output::CSV_REFUSED));
    }
    match command {
        Command::Scheduler(command) => scheduler::run(context, command)?,
        Command::Rollout(command) => rollout::run(context, command)?,
        Command::Room(command) => room::run(context, command)?,
        Command::Allocation(command) => allocation::run(context, command)?,
        Command::Operation(command) => operation::run(context, command)?,
        Command::Lock(command) => lock::run(context, command)?,
        Command::Event(command) => event::run(context, command)?,
        Command::Events(options) => events::run(context, options)?,
        Command::Region(command) => region::run(context, command)?,
        Command::Schedulers(given) => given.run(context, scheduler::run, scheduler::list)?,
        Command::Rooms(given) => given.run(context, room::run, room::list)?,
        Command::Allocations(given) => given.run(context, allocation::run, allocation::list)?,
        Command::Operations(given) => given.run(context, operation::run, operation::list)?,
        Command::Regions(given) => given.run(context, region::run, region::list)?,
        Command::Simulate(options) => simulate::run(context, options)?,
        Command::Plan(command) => plan::run(command)?,
        Command::Config(command) => config::run(context, command)?,
        Command::Start(options) => return Ok(start::run(options)?),
        Command::Migrate(options) => migrate::run(options)?,
        Command::Backup(options) => backup::backup(options)?,
        Command::Restore(options) => backup::restore(options)?,
        Command::Export(options) => export::run(context, options)?,
        Command::Import(options) => import::run(context, options)?,
        Command::SupportBundle(options) => support::run(context, options)?,
        Command::Completion { shell } => print_completion(*shell)?,
        Command::Version => version::run(context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A server that cannot start: what the person wrote, or what the machine did.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let rooms_run = matches!(error.downcast_ref(), Some(OpenError::Abandoned(_)))
            || matches!(error.downcast_ref(), Some(BackupError::Store(OpenError::Abandoned(_))));
        let exit = match (error.is::<ConfigError>(), rooms_run) {
            (true, _) => Exit::Invalid,
            (false, true) => Exit::Conflict,
            (false, false) => Exit::Failed,
        };
        Self::new(exit, format!("{error:#}"))
    }
}

fn print_completion(shell: Shell) -> Result<(), Failure> {
    // Into memory first: the generator panics where it cannot write, as into a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "maestro", &mut script);
    print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_with_examples() {
        fn walk(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(command.get_about().is_some(), "{path}: does not say what it does");
            assert!(after.contains("Examples:\n"), "{path}: has no examples");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
            }
            for subcommand in command.get_subcommands() {
                walk(subcommand, &path);
            }
        }
        walk(&Arguments::command(), "");
    }
}
