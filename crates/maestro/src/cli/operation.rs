//! `maestro operation …`

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use maestro_core::operation::{DefinitionKind, OperationStatus, Stage};

use super::list::PageOptions;
use super::watch::{follow, history_line, verdict};
use super::{
    Age, At, Client, Column, Context, Failure, Format, Json, Progress, Resource, Text, WatchOptions,
    decision, explain, fields, ids, list, plain,
};
use crate::config::duration;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List operations, newest first
    #[command(visible_alias = "ls", after_help = examples![
        "maestro operation list arena",
        "maestro operation list arena --watch",
        "maestro operation list arena --status error --since 2h",
        "maestro operation list arena --type add_rooms --page 2 --page-size 50",
        "maestro operation list --stuck",
    ])]
    List(ListOptions),

    /// Show an operation with its history
    #[command(visible_alias = "describe", after_help = examples![
        "maestro operation get arena 831cf1f9-298d",
        "maestro operation get arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398 -o json | jq .operation.data",
    ])]
    Get(OperationName),

    /// Explain what an operation is waiting for, who works on it, and what happens next
    #[command(after_help = examples![
        "maestro operation explain arena 831cf1f9-298d",
        "maestro operation explain arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398 -o json | jq .next",
    ])]
    Explain(OperationName),

    /// Cancel a pending or running operation
    #[command(after_help = examples!["maestro operation cancel arena 831cf1f9-298d"])]
    Cancel(OperationName),

    /// Print an operation's history as it happens; the exit code tells whether it succeeded
    #[command(after_help = examples![
        "maestro operation watch arena 831cf1f9-298d",
        "maestro operation watch arena 831cf1f9-298d-4f3c-a0e2-ea08ac6d3398 --timeout 5m",
    ])]
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
    /// Id of the operation, or the beginning of it
    #[arg(value_name = "ID")]
    operation: String,
}

impl OperationName {
    fn id(&self, client: &Client) -> Result<String, Failure> {
        ids::operation(client, &self.scheduler, &self.operation)
    }
}

#[derive(Debug, Args)]
#[command(
    mut_arg("page", |page| page.help("Page of the operations that have ended")),
    mut_arg("page_size", |size| size.help("Number of ended operations per page")),
)]
pub(super) struct ListOptions {
    /// Name of the scheduler; with --stuck it may be left out, for all of them
    #[arg(required_unless_present = "stuck")]
    scheduler: Option<String>,
    /// Only operations that are stuck: they have made no progress for longer than they should, and why
    #[arg(long, conflicts_with_all = ["stage", "kind", "status", "since", "all", "page", "page_size"])]
    stuck: bool,
    /// Only operations of this stage
    #[arg(long, value_parser = PossibleValuesParser::new(Stage::ALL.map(Stage::as_str)))]
    stage: Option<String>,
    /// Only operations of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(DefinitionKind::KNOWN.iter().map(|kind| kind.as_str())))]
    kind: Option<String>,
    /// Only operations with this status
    #[arg(long, value_parser = PossibleValuesParser::new(OperationStatus::ALL.map(OperationStatus::as_str)))]
    status: Option<String>,
    /// Only operations created since this time: how long ago (2h), or when (2026-11-15T09:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Include health controller cycles that changed nothing or have not ended
    #[arg(long, alias = "no-action")]
    all: bool,
    #[command(flatten)]
    pages: PageOptions,
    #[command(flatten)]
    watch: WatchOptions,
}

fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let ago = duration::parse(text)
        .map_err(|_| "write how long ago, as in 2h, or a time, as in 2026-11-15T09:00:00Z".to_owned())?;
    let ago = SignedDuration::try_from(ago).map_err(|error| error.to_string())?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

/// The operations of all stages, and the last answer. Asked in the order in which an operation walks through them, so that
/// none is missed on its way; one seen twice is shown as it was seen last.
pub(super) fn in_all_stages(
    ask: impl Fn(Stage) -> Result<Json, Failure>,
) -> Result<(Vec<Json>, Json), Failure> {
    let mut operations: Vec<Json> = Vec::new();
    let mut last = Json::Null;
    for stage in Stage::ALL {
        last = ask(stage)?;
        for operation in last.get("operations").items() {
            operations.retain(|seen| seen.get("id") != operation.get("id"));
            operations.push(operation.clone());
        }
    }
    Ok((operations, last))
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(context, options),
        Command::Explain(name) => {
            let id = name.id(&context.client()?)?;
            explain::explain(context, &name.scheduler, &id)
        }
        Command::Get(name) => {
            let client = context.client()?;
            let id = name.id(&client)?;
            let resource = Resource::new(&["schedulers", &name.scheduler, "operations", &id]);
            let answer = client.get(&resource, "operation")?;
            context.show(&answer, |answer| description(answer.get("operation")))
        }
        Command::Cancel(name) => {
            let client = context.client()?;
            let id = name.id(&client)?;
            let resource = Resource::new(&["schedulers", &name.scheduler, "operations", &id, "cancel"]);
            let answer = client.post(&resource, &Json::object([]))?;
            context.show(&answer, |_| format!("operation {id} is being canceled"))
        }
        Command::Watch { name, timeout } => watch(context, name, *timeout),
    }
}

pub(super) fn list(context: &Context, options: &ListOptions) -> Result<(), Failure> {
    let scheduler = match &options.scheduler {
        Some(scheduler) if !options.stuck => scheduler,
        scheduler => return explain::list_stuck(context, scheduler.as_deref(), &options.watch),
    };
    let is_paged = options.pages.page.is_some() || options.pages.page_size.is_some();
    if is_paged && options.stage.as_deref().is_some_and(|stage| stage != Stage::Final.as_str()) {
        return Err(Failure::invalid("--page and --page-size go with --stage final, or without --stage"));
    }
    let ask = |client: &Client| {
        let answer = match options.only_stage() {
            Some(stage) => options.ask(client, scheduler, stage)?,
            None => options.ask_for_all(client, scheduler)?,
        };
        // Operations outlive their scheduler: only where there are none, it may never have existed.
        if answer.get("operations").items().is_empty() {
            client.get(&Resource::scheduler(scheduler), "scheduler")?;
        }
        Ok(answer)
    };
    list::show_page(context, &options.watch, ask, ("operations", OPERATIONS), "final operations")
}

impl ListOptions {
    /// A status belongs to one stage: the others need not be asked for.
    fn only_stage(&self) -> Option<Stage> {
        let of_status =
            || self.status.as_deref().and_then(OperationStatus::parse).map(OperationStatus::stage);
        self.stage.as_deref().and_then(Stage::parse).or_else(of_status)
    }

    /// Cycles come and go all the time. One that finds something to do says so by the operations that it enqueues.
    fn hides(&self, operation: &Json) -> bool {
        let is_asked_for = self.all || self.kind.is_some() || self.status.is_some();
        let is_cycle =
            operation.get("definitionName").as_str() == Some(DefinitionKind::HealthController.as_str());
        let has_ended = !matches!(operation.get("status").as_str(), Some("pending" | "in_progress"));
        is_cycle && !has_ended && !is_asked_for
    }

    fn ask(&self, client: &Client, scheduler: &str, stage: Stage) -> Result<Json, Failure> {
        let is_final = stage == Stage::Final;
        let resource = Resource::new(&["schedulers", scheduler, "operations"])
            .query("stage", stage)
            .query_some("page", self.pages.page.filter(|_| is_final))
            .query_some("perPage", self.pages.page_size.filter(|_| is_final))
            .query_some("definitionName", self.kind.as_ref())
            .query_some("status", self.status.as_ref())
            .query_some("since", self.since)
            .query_some("noAction", self.all.then_some("true"));
        client.get(&resource, "operations")
    }

    fn ask_for_all(&self, client: &Client, scheduler: &str) -> Result<Json, Failure> {
        let (mut operations, finals) = in_all_stages(|stage| self.ask(client, scheduler, stage))?;
        operations.retain(|operation| !self.hides(operation));
        // As times, not as text: fractions differ in length.
        operations.sort_by_key(|operation| {
            let created = operation.get("createdAt").as_str().map(str::parse::<Timestamp>);
            std::cmp::Reverse(created.and_then(Result::ok))
        });
        let pages = ["page", "pageSize", "total"].map(|key| (key.to_owned(), finals.get(key).clone()));
        let operations = ("operations".to_owned(), Json::Array(operations));
        Ok(Json::Object(pages.into_iter().chain([operations]).collect()))
    }
}

const OPERATIONS: &[Column] = &[
    ("ID", At("id")),
    ("OPERATION", At("definitionName")),
    ("STATUS", At("status")),
    ("AGE", Age("createdAt")),
    ("REASON", Text(reason_or_wait)),
];

fn reason_or_wait(operation: &Json) -> String {
    match operation.get("waitingFor").as_str() {
        Some(waiting_for) => format!("waiting for {waiting_for}"),
        None => operation.get("reason").cell(),
    }
}

const OPERATION: &[Column] = &[
    ("Id", At("id")),
    ("Operation", At("definitionName")),
    ("Scheduler", At("schedulerName")),
    ("Status", At("status")),
    ("Reason", At("reason")),
    ("Waiting for", At("waitingFor")),
    ("Created", At("createdAt")),
    ("Lease until", At("lease.ttl")),
    ("Data", Text(|operation| decision::cell(operation.get("data")))),
];

fn description(operation: &Json) -> String {
    let history = operation.get("executionHistory").items().iter().map(history_line);
    let history = history.collect::<Vec<_>>().join("\n");
    format!("{}\n\nHISTORY\n{history}", fields(operation, OPERATION))
}

fn watch(context: &Context, name: &OperationName, timeout: Option<Duration>) -> Result<(), Failure> {
    let client = context.client()?;
    let id = name.id(&client)?;
    let is_table = context.output == Format::Table;
    let progress = if is_table { Progress::lines() } else { Progress::beside_result() };
    let end = follow(&client, &name.scheduler, &id, timeout, progress)?;
    if !is_table {
        context.show(&end, |end| plain(&end.cell()))?;
    }
    verdict(&end)
}
