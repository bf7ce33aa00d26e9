//! `maestro scheduler …`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::client::require;
use super::context::{Context, WaitOptions};
use super::document::read_recipe;
use super::failure::{Exit, Failure};
use super::json::Json;
use super::output::{fields, note, table};
use super::resource::Resource;
use super::{age, watch};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a scheduler from its recipe
    #[command(after_help = "\
Examples:
  maestro scheduler create -f arena.yaml
  maestro scheduler create -f arena.yaml --strict --wait --timeout 2m
  generate-recipe | maestro scheduler create -f -")]
    Create(CreateOptions),

    /// List schedulers
    #[command(after_help = "\
Examples:
  maestro scheduler list
  maestro scheduler list -o json | jq -r '.schedulers[].name'")]
    List,

    /// Show a scheduler's recipe
    #[command(after_help = "\
Examples:
  maestro scheduler get arena
  maestro scheduler get arena --version v1.0.0 -o yaml")]
    Get {
        /// Name of the scheduler
        scheduler: String,
        /// A version other than the active one
        #[arg(long, value_name = "VERSION")]
        version: Option<String>,
    },

    /// Count the rooms of schedulers by status
    #[command(after_help = "\
Examples:
  maestro scheduler info
  maestro scheduler info --game brawl")]
    Info {
        /// Only schedulers of this game
        #[arg(long)]
        game: Option<String>,
    },

    /// List the versions of a scheduler, newest first
    #[command(after_help = "\
Examples:
  maestro scheduler versions arena")]
    Versions {
        /// Name of the scheduler
        scheduler: String,
    },

    /// Delete a scheduler and all of its rooms
    #[command(after_help = "\
Examples:
  maestro scheduler delete arena
  maestro scheduler delete arena --wait --timeout 5m")]
    Delete {
        /// Name of the scheduler
        scheduler: String,
        #[command(flatten)]
        wait: WaitOptions,
    },
}

#[derive(Debug, Args)]
pub(super) struct CreateOptions {
    /// The recipe, YAML or JSON; `-` reads stdin
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Refuse a recipe with unknown fields, before anything is changed
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(options) => create(context, options),
        Command::List => {
            let answer = context
                .client()?
                .get(&Resource::new(&["schedulers"]), "schedulers")?;
            context.show(&answer, list_table)
        }
        Command::Get { scheduler, version } => {
            let resource =
                Resource::new(&["schedulers", scheduler]).query_some("version", version.as_deref());
            let answer = context.client()?.get(&resource, "scheduler")?;
            context.show(&answer, |answer| recipe_fields(answer.get("scheduler")))
        }
        Command::Info { game } => {
            let resource = Resource::new(&["schedulers", "info"]).query_some("game", game.as_deref());
            let answer = context.client()?.get(&resource, "schedulers")?;
            context.show(&answer, info_table)
        }
        Command::Versions { scheduler } => {
            let answer = context
                .client()?
                .get(&Resource::new(&["schedulers", scheduler, "versions"]), "versions")?;
            context.show(&answer, versions_table)
        }
        Command::Delete { scheduler, wait } => {
            let answer = context
                .client()?
                .delete(&Resource::new(&["schedulers", scheduler]))?;
            context.operation_started(scheduler, &format!("delete scheduler {scheduler}"), &answer, wait)
        }
    }
}

fn create(context: &Context, options: &CreateOptions) -> Result<(), Failure> {
    let recipe = read_recipe(&options.file)?;
    let client = context.client()?;
    let resource = Resource::new(&["schedulers"]).query_some("strict", options.strict.then_some("true"));
    let mut answer = require(client.post(&resource, &recipe)?, "scheduler")?;
    if options.wait.wait {
        let name = answer.get("scheduler").get("name").cell();
        let operation = match answer.get("operationId").as_str() {
            Some(id) => id.to_owned(),
            None => find_creation(context, &name)?,
        };
        let end = context.follow(&name, &operation, &options.wait)?;
        watch::verdict(&end)?;
        answer = client.get(&Resource::new(&["schedulers", &name]), "scheduler")?;
    }
    context.show(&answer, |answer| {
        let scheduler = answer.get("scheduler");
        format!(
            "scheduler {} {} created ({})",
            scheduler.get("name").cell(),
            scheduler.get("spec").get("version").cell(),
            scheduler.get("state").cell()
        )
    })
}

/// v10's answer to a creation does not name its operation. Stages are asked in the order in which an operation
/// walks through them, so that it is not missed on its way; the newest is this one if a deleted scheduler had the
/// name before.
fn find_creation(context: &Context, scheduler: &str) -> Result<String, Failure> {
    let client = context.client()?;
    let mut newest: Option<(String, String)> = None;
    for stage in ["pending", "active", "final"] {
        let operations = Resource::new(&["schedulers", scheduler, "operations"]).query("stage", stage);
        let answer = client.get(&operations, "operations")?;
        for operation in answer.get("operations").items() {
            let created = (operation.get("createdAt").cell(), operation.get("id").cell());
            let is_creation = operation.get("definitionName").as_str() == Some("create_scheduler");
            if is_creation && newest.as_ref().is_none_or(|newest| *newest < created) {
                newest = Some(created);
            }
        }
    }
    newest.map(|(_, id)| id).ok_or_else(|| {
        Failure::new(
            Exit::Failed,
            format!("scheduler {scheduler} was created, but its operation is not listed"),
        )
    })
}

fn list_table(answer: &Json) -> String {
    let schedulers = answer.get("schedulers").items();
    if schedulers.is_empty() {
        note("no schedulers; create one: maestro scheduler create -f FILE");
    }
    let now = Timestamp::now();
    let header = ["NAME", "GAME", "STATE", "VERSION", "REPLICAS", "MAX SURGE", "AGE"];
    let row = |scheduler: &Json| {
        let mut row: Vec<String> = ["name", "game", "state", "version", "roomsReplicas", "maxSurge"]
            .map(|key| scheduler.get(key).cell())
            .into();
        row.push(age::cell(scheduler.get("createdAt"), now));
        row
    };
    table(&header, schedulers.iter().map(row))
}

fn info_table(answer: &Json) -> String {
    let header = [
        "NAME",
        "GAME",
        "STATE",
        "REPLICAS",
        "READY",
        "OCCUPIED",
        "PENDING",
        "TERMINATING",
        "AUTOSCALING",
    ];
    let keys = [
        "name",
        "game",
        "state",
        "roomsReplicas",
        "roomsReady",
        "roomsOccupied",
        "roomsPending",
        "roomsTerminating",
    ];
    let row = |scheduler: &Json| {
        let mut row: Vec<String> = keys.map(|key| scheduler.get(key).cell()).into();
        row.push(autoscaling(scheduler.get("autoscaling")));
        row
    };
    table(&header, answer.get("schedulers").items().iter().map(row))
}

/// `1 to 20`, `5 and up`, or `off`.
fn autoscaling(autoscaling: &Json) -> String {
    if !autoscaling.get("enabled").is_true() {
        return "off".to_owned();
    }
    let (min, max) = (autoscaling.get("min").cell(), autoscaling.get("max").cell());
    if max == "-1" {
        format!("{min} and up")
    } else {
        format!("{min} to {max}")
    }
}

fn versions_table(answer: &Json) -> String {
    let now = Timestamp::now();
    let row = |version: &Json| {
        let active = if version.get("isActive").is_true() {
            "active"
        } else {
            ""
        };
        vec![
            version.get("version").cell(),
            active.to_owned(),
            version.get("status").cell(),
            age::cell(version.get("createdAt"), now),
        ]
    };
    table(
        &["VERSION", "ACTIVE", "STATUS", "AGE"],
        answer.get("versions").items().iter().map(row),
    )
}

fn recipe_fields(scheduler: &Json) -> String {
    let spec = scheduler.get("spec");
    let range = |range: &Json| match range {
        Json::Object(_) => format!("{} to {}", range.get("start").cell(), range.get("end").cell()),
        _ => "-".to_owned(),
    };
    let head = fields([
        ("Name", scheduler.get("name").cell()),
        ("Game", scheduler.get("game").cell()),
        ("State", scheduler.get("state").cell()),
        ("Version", spec.get("version").cell()),
        ("Created", scheduler.get("createdAt").cell()),
        ("Replicas", scheduler.get("roomsReplicas").cell()),
        ("Autoscaling", autoscaling(scheduler.get("autoscaling"))),
        ("Max surge", scheduler.get("maxSurge").cell()),
        ("Port range", range(scheduler.get("portRange"))),
        ("Grace period", spec.get("terminationGracePeriod").cell()),
        ("Labels", pairs(scheduler.get("labels"))),
        ("Annotations", pairs(scheduler.get("annotations"))),
    ]);
    let container = |container: &Json| {
        let port = |port: &Json| {
            format!(
                "{}:{}/{}",
                port.get("name").cell(),
                port.get("port").cell(),
                port.get("protocol").cell()
            )
        };
        let command: Vec<String> = container.get("command").items().iter().map(Json::cell).collect();
        let ports: Vec<String> = container.get("ports").items().iter().map(port).collect();
        vec![
            container.get("name").cell(),
            container.get("image").cell(),
            ports.join(","),
            command.join(" "),
        ]
    };
    let containers = spec.get("containers").items().iter().map(container);
    format!(
        "{head}\n\n{}",
        table(&["CONTAINER", "IMAGE", "PORTS", "COMMAND"], containers)
    )
}

/// `team=a,tier=gold`
fn pairs(map: &Json) -> String {
    match map {
        Json::Object(entries) if !entries.is_empty() => {
            let pairs: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key}={}", value.cell()))
                .collect();
            pairs.join(",")
        }
        _ => "-".to_owned(),
    }
}
