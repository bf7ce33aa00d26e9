//! `maestro scheduler …`

mod apply;
mod create;
mod diff;
mod forecast;
mod proposal;
mod resize;
mod tables;

use clap::{Args, Subcommand};

use apply::ApplyOptions;
use create::CreateOptions;
pub(super) use proposal::recipe_of;
use resize::ResizeOptions;
use tables::{DECISIONS, SCHEDULERS, VERSIONS};

use super::document::RecipeOptions;
use super::{Client, Context, Failure, Format, Json, Resource, WaitOptions, WatchOptions, list, note, table};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a scheduler from its recipe
    #[command(after_help = examples![
        "maestro scheduler create -f arena.yaml",
        "maestro scheduler create -f arena.yaml --strict --wait --timeout 2m",
        "generate-recipe | maestro scheduler create -f -",
    ])]
    Create(CreateOptions),

    /// Create a scheduler, or submit a new version of it if its recipe has changed
    #[command(after_help = examples![
        "maestro scheduler apply -f arena.yaml --dry-run",
        "maestro scheduler apply -f arena.yaml --wait --timeout 5m",
    ])]
    Apply(ApplyOptions),

    /// Show what a recipe would change, and the version it would become
    #[command(after_help = examples![
        "maestro scheduler diff -f arena.yaml",
        "maestro scheduler diff -f arena.yaml -o json | jq -r .change",
    ])]
    Diff(RecipeOptions),

    /// List schedulers with their rooms, and what is wrong with them
    #[command(visible_alias = "ls", alias = "info", after_help = examples![
        "maestro scheduler list",
        "maestro scheduler list --watch",
        "maestro scheduler list --game brawl -o json | jq -r '.schedulers[].name'",
    ])]
    List(ListOptions),

    /// Show a scheduler and its recipe
    #[command(visible_alias = "describe", after_help = examples![
        "maestro scheduler get arena",
        "maestro scheduler get arena --version v1.0.0 -o yaml",
    ])]
    Get {
        /// Name of the scheduler
        scheduler: String,
        /// A version other than the active one
        #[arg(long, value_name = "VERSION")]
        version: Option<String>,
    },

    /// List the versions of a scheduler, newest first
    #[command(after_help = examples!["maestro scheduler versions arena"])]
    Versions {
        /// Name of the scheduler
        scheduler: String,
    },

    /// Make another version the active one
    #[command(after_help = examples![
        "maestro scheduler switch arena v1.0.0",
        "maestro scheduler switch arena v1.0.0 --wait && maestro rollout status arena --watch",
    ])]
    Switch {
        /// Name of the scheduler
        scheduler: String,
        /// The version, as `scheduler versions` lists it
        version: String,
        #[command(flatten)]
        wait: WaitOptions,
    },

    /// Change how many rooms a scheduler has
    #[command(after_help = examples![
        "maestro scheduler resize arena 10",
        "maestro scheduler resize arena +5 --max-size 20 --no-strict",
        "maestro scheduler resize arena -20% --min-step 2 --wait --timeout 2m",
    ])]
    Resize(ResizeOptions),

    /// Show the decisions of autoscaling and their reasons, newest first
    #[command(after_help = examples![
        "maestro scheduler autoscaling arena",
        "maestro scheduler autoscaling arena -o json | jq -r '.decisions[0].reason'",
    ])]
    Autoscaling {
        /// Name of the scheduler
        scheduler: String,
    },

    /// Delete a scheduler and all of its rooms
    #[command(visible_alias = "rm", after_help = examples![
        "maestro scheduler delete arena",
        "maestro scheduler delete arena --wait --timeout 5m",
        "maestro scheduler delete arena --force",
    ])]
    Delete {
        /// Name of the scheduler
        scheduler: String,
        /// Do not wait for rooms in regions that cannot be reached
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        wait: WaitOptions,
    },
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Only schedulers of this game
    #[arg(long)]
    game: Option<String>,
    #[command(flatten)]
    watch: WatchOptions,
}

pub(super) fn list(context: &Context, options: &ListOptions) -> Result<(), Failure> {
    let resource = Resource::new(&["schedulers"]).query_some("game", options.game.as_deref());
    let ask = |client: &Client| client.get(&resource, "schedulers");
    let answer = list::show(context, &options.watch, ask, ("schedulers", SCHEDULERS))?;
    if answer.is_some_and(|answer| answer.get("schedulers").items().is_empty())
        && context.output == Format::Table
    {
        note("no schedulers; create one: maestro scheduler create -f FILE");
    }
    Ok(())
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(options) => create::create(context, options),
        Command::Apply(options) => apply::apply(context, options),
        Command::Diff(options) => diff::diff(context, options),
        Command::List(options) => list(context, options),
        Command::Get { scheduler, version } => {
            let resource = Resource::scheduler(scheduler).query_some("version", version.as_deref());
            let answer = context.client()?.get(&resource, "scheduler")?;
            context.show(&answer, |answer| tables::description(answer.get("scheduler")))
        }
        Command::Versions { scheduler } => {
            let answer =
                context.client()?.get(&Resource::new(&["schedulers", scheduler, "versions"]), "versions")?;
            context.show(&answer, |answer| table(answer.get("versions"), VERSIONS))
        }
        Command::Switch { scheduler, version, wait } => {
            let body = Json::object([("version", Json::from(version.as_str()))]);
            let answer = context.client()?.put(&Resource::scheduler(scheduler), &body)?;
            let what = format!("switch scheduler {scheduler} to {version}");
            context.operation_started(scheduler, &what, &answer, wait)
        }
        Command::Resize(options) => resize::resize(context, options),
        Command::Autoscaling { scheduler } => {
            let resource = Resource::new(&["schedulers", scheduler, "autoscaling"]);
            let answer = context.client()?.get(&resource, "decisions")?;
            context.show(&answer, |answer| {
                let decisions = answer.get("decisions");
                if decisions.items().is_empty() {
                    note("no decisions yet");
                }
                table(decisions, DECISIONS)
            })
        }
        Command::Delete { scheduler, force, wait } => {
            let resource = Resource::scheduler(scheduler).query_some("force", force.then_some("true"));
            let answer = context.client()?.delete(&resource)?;
            context.operation_started(scheduler, &format!("delete scheduler {scheduler}"), &answer, wait)
        }
    }
}
