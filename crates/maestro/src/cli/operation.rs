//! `maestro operation …`

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::age;
use super::client::Client;
use super::context::Context;
use super::decision;
use super::explain;
use super::failure::Failure;
use super::json::Json;
use super::output::{Format, fields, note, plain, table};
use super::resource::Resource;
use super::watch::{Progress, Watch, history_line, verdict};
use crate::config::duration;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List operations, newest first
    #[command(after_help = "\
Examples:
  maestro operation list arena
  maestro operation list arena --stage final --page 2 --page-size 50
  maestro operation list arena --no-action
  maestro operation list --stuck")]
    List(ListOptions),

    /// Show an operation with its history
    #[command(after_help = "\
Examples:
  maestro operation get arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398
  maestro operation get arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398 -o json | jq .operation.data")]
    Get(OperationName),

    /// Say what an operation waits for, who works on it, and what will happen next
    #[command(after_help = "\
Examples:
  maestro operation explain arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398
  maestro operation explain arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398 -o json | jq .next")]
    Explain(OperationName),

    /// Cancel a pending or running operation
    #[command(after_help = "\
Examples:
  maestro operation cancel arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398")]
    Cancel(OperationName),

    /// Print an operation's history as it happens; the exit code is its outcome
    #[command(after_help = "\
Examples:
  maestro operation watch arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398
  maestro operation watch arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398 --timeout 5m")]
    Watch {
        #[command(flatten)]
        name: OperationName,
        /// Stop watching after this long; without it, watch to the end
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        timeout: Option<Duration>,
    },
}

#[derive(Debug, Args)]
pub(super) struct OperationName {
    /// Name of the scheduler
    scheduler: String,
    /// Id of the operation
    #[arg(value_name = "ID")]
    operation: String,
}

impl OperationName {
    fn resource(&self) -> Resource {
        Resource::new(&["schedulers", &self.scheduler, "operations", &self.operation])
    }
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Name of the scheduler; with --stuck it may be left out, for all of them
    #[arg(required_unless_present = "stuck")]
    scheduler: Option<String>,
    /// Only those that have not moved for longer than they should, and why
    #[arg(long, conflicts_with_all = ["stage", "no_action", "page", "page_size"])]
    stuck: bool,
    /// Only operations of this stage; without it, all of them
    #[arg(long, value_enum)]
    stage: Option<Stage>,
    /// Also health controller cycles that changed nothing
    #[arg(long)]
    no_action: bool,
    /// Which page of the final ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    page: Option<u32>,
    /// How many final ones per page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    page_size: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    Pending,
    Active,
    Final,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Final => "final",
        }
    }
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => match &options.scheduler {
            Some(scheduler) if !options.stuck => list(context, scheduler, options),
            scheduler => explain::list_stuck(context, scheduler.as_deref()),
        },
        Command::Explain(name) => explain::explain(context, &name.scheduler, &name.operation),
        Command::Get(name) => {
            let answer = context.client()?.get(&name.resource(), "operation")?;
            context.show(&answer, |answer| operation_fields(answer.get("operation")))
        }
        Command::Cancel(name) => {
            let OperationName { scheduler, operation } = name;
            let resource = Resource::new(&["schedulers", scheduler, "operations", operation, "cancel"]);
            let answer = context.client()?.post(&resource, &Json::object([]))?;
            context.show(&answer, |_| format!("operation {operation} is being canceled"))
        }
        Command::Watch { name, timeout } => watch(context, name, *timeout),
    }
}

fn list(context: &Context, scheduler: &str, options: &ListOptions) -> Result<(), Failure> {
    let client = context.client()?;
    let is_paged = options.page.is_some() || options.page_size.is_some();
    let answer = match options.stage {
        Some(Stage::Pending | Stage::Active) if is_paged => {
            return Err(Failure::invalid("--page and --page-size go with --stage final, or without --stage"));
        }
        Some(stage) => stage_answer(&client, scheduler, options, stage)?,
        None => all_stages(&client, scheduler, options)?,
    };
    context.show(&answer, operations_table)?;
    if context.format() == Format::Table {
        note_further_pages(&answer);
    }
    Ok(())
}

fn stage_answer(
    client: &Client,
    scheduler: &str,
    options: &ListOptions,
    stage: Stage,
) -> Result<Json, Failure> {
    let mut resource = Resource::new(&["schedulers", scheduler, "operations"]).query("stage", stage.as_str());
    if stage == Stage::Final {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        resource = resource
            .query_some("page", number(options.page).as_deref())
            .query_some("perPage", number(options.page_size).as_deref());
    }
    client.get(&resource.query_some("noAction", options.no_action.then_some("true")), "operations")
}

/// Asked in the order in which an operation walks through the stages, so that none is missed on its way; one seen
/// twice is shown where it was seen last.
fn all_stages(client: &Client, scheduler: &str, options: &ListOptions) -> Result<Json, Failure> {
    let mut operations: Vec<Json> = Vec::new();
    let mut finals = Json::Null;
    for stage in [Stage::Pending, Stage::Active, Stage::Final] {
        let answer = stage_answer(client, scheduler, options, stage)?;
        for operation in answer.get("operations").items() {
            operations.retain(|seen| seen.get("id") != operation.get("id"));
            operations.push(operation.clone());
        }
        finals = answer;
    }
    // As times, not as text: fractions differ in length.
    operations.sort_by_key(|operation| {
        let created: Option<Timestamp> =
            operation.get("createdAt").as_str().and_then(|time| time.parse().ok());
        std::cmp::Reverse(created)
    });
    Ok(Json::object([
        ("page", finals.get("page").clone()),
        ("pageSize", finals.get("pageSize").clone()),
        ("total", finals.get("total").clone()),
        ("operations", Json::Array(operations)),
    ]))
}

fn note_further_pages(answer: &Json) {
    let number = |key| answer.get(key).as_u64();
    let (Some(page), Some(page_size), Some(total)) = (number("page"), number("pageSize"), number("total"))
    else {
        return;
    };
    if page.saturating_mul(page_size) < total {
        note(&format!("page {page} of {total} final operations; next: --page {}", page + 1));
    }
}

fn operations_table(answer: &Json) -> String {
    let now = Timestamp::now();
    let row = |operation: &Json| {
        let reason = match operation.get("waitingFor").as_str() {
            Some(waiting_for) => format!("waiting for {waiting_for}"),
            None => operation.get("reason").cell(),
        };
        vec![
            operation.get("id").cell(),
            operation.get("definitionName").cell(),
            operation.get("status").cell(),
            age::cell(operation.get("createdAt"), now),
            reason,
        ]
    };
    table(&["ID", "OPERATION", "STATUS", "AGE", "REASON"], answer.get("operations").items().iter().map(row))
}

fn operation_fields(operation: &Json) -> String {
    let head = fields([
        ("Id", operation.get("id").cell()),
        ("Operation", operation.get("definitionName").cell()),
        ("Scheduler", operation.get("schedulerName").cell()),
        ("Status", operation.get("status").cell()),
        ("Reason", operation.get("reason").cell()),
        ("Waiting for", operation.get("waitingFor").cell()),
        ("Created", operation.get("createdAt").cell()),
        ("Lease until", operation.get("lease").get("ttl").cell()),
        ("Data", decision::cell(operation.get("data"))),
    ]);
    let history = operation.get("executionHistory").items().iter().map(history_line);
    format!("{head}\n\nHISTORY\n{}", history.collect::<Vec<_>>().join("\n"))
}

fn watch(context: &Context, name: &OperationName, timeout: Option<Duration>) -> Result<(), Failure> {
    let client = context.client()?;
    let watch = Watch { client: &client, scheduler: &name.scheduler, operation: &name.operation, timeout };
    if context.format() == Format::Table {
        return verdict(&watch.follow(Progress::Lines)?);
    }
    let end = watch.follow(Progress::beside_result())?;
    context.show(&end, |end| plain(&end.cell()))?;
    verdict(&end)
}
