//! `maestro event …`

use clap::{Args, Subcommand};

use super::list::PageOptions;
use super::{Age, At, Client, Column, Context, Failure, Json, Resource, Text, WatchOptions, list};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the queued events of a scheduler, oldest first: those that wait, and dead letters
    #[command(visible_alias = "ls", after_help = examples![
        "maestro event list arena",
        "maestro event list arena --dead",
        "maestro event list arena --dead --forwarder matchmaker --page-size 100 -o json",
    ])]
    List(ListOptions),

    /// Put dead letters back into their queues; they are delivered out of order
    #[command(after_help = examples![
        "maestro event replay arena 01a1e37a-3bc9-7123-b0c1-18cc2bff41a0",
        "maestro event replay arena --forwarder matchmaker",
        "maestro event replay arena --all",
    ])]
    Replay(ReplayOptions),
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Only dead letters: events that could not be delivered
    #[arg(long)]
    dead: bool,
    /// Only events for this forwarder
    #[arg(long, value_name = "NAME")]
    forwarder: Option<String>,
    /// Only events of this room
    #[arg(long, value_name = "ID")]
    room: Option<String>,
    #[command(flatten)]
    pages: PageOptions,
    #[command(flatten)]
    watch: WatchOptions,
}

#[derive(Debug, Args)]
pub(super) struct ReplayOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Ids of dead letters
    #[arg(value_name = "ID", required_unless_present_any = ["forwarder", "all"])]
    ids: Vec<String>,
    /// All dead letters of this forwarder
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    forwarder: Option<String>,
    /// All dead letters of the scheduler
    #[arg(long, conflicts_with_all = ["ids", "forwarder"])]
    all: bool,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(context, options),
        Command::Replay(options) => replay(context, options),
    }
}

fn list(context: &Context, options: &ListOptions) -> Result<(), Failure> {
    let ask = |client: &Client| {
        let resource = Resource::new(&["schedulers", &options.scheduler, "events"])
            .query_some("dead", options.dead.then_some("true"))
            .query_some("forwarder", options.forwarder.as_ref())
            .query_some("roomId", options.room.as_ref())
            .query_some("page", options.pages.page)
            .query_some("perPage", options.pages.page_size);
        client.get(&resource, "events")
    };
    list::show_page(context, &options.watch, ask, ("events", EVENTS), "events")
}

fn replay(context: &Context, options: &ReplayOptions) -> Result<(), Failure> {
    let ReplayOptions { scheduler, ids, forwarder, all } = options;
    let text = |text: &String| Json::String(text.clone());
    let order = match (forwarder, all) {
        (Some(forwarder), _) => ("forwarder", text(forwarder)),
        (None, true) => ("all", Json::Bool(true)),
        (None, false) => ("ids", Json::Array(ids.iter().map(text).collect())),
    };
    let resource = Resource::new(&["schedulers", scheduler, "events", "replay"]);
    let answer = context.client()?.post(&resource, &Json::object([order]))?;
    context.show(&answer, |answer| match answer.get("replayed").as_u64() {
        Some(1) => "1 dead letter replayed".to_owned(),
        replayed => format!("{} dead letters replayed", replayed.unwrap_or_default()),
    })
}

const EVENTS: &[Column] = &[
    ("ID", At("id")),
    ("FORWARDER", At("forwarder")),
    ("ROOM", At("roomId")),
    ("EVENT", Text(what)),
    ("AGE", Age("queuedAt")),
    ("ATTEMPTS", At("attempts")),
    ("STATE", Text(|event| if event.get("dead").is_true() { "dead" } else { "waiting" }.to_owned())),
    ("ERROR", At("error")),
];

fn what(event: &Json) -> String {
    match event.get("playerId").as_str() {
        Some(player) if !player.is_empty() => format!("{} ({player})", event.get("event").cell()),
        _ => event.get("event").cell(),
    }
}
