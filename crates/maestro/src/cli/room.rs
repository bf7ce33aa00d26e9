//! `maestro room …`

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::age;
use super::context::{Context, WaitOptions};
use super::failure::Failure;
use super::json::Json;
use super::logs::{self, LogsOptions};
use super::output::{fields, table};
use super::resource::Resource;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the rooms of a scheduler
    #[command(after_help = "\
Examples:
  maestro room list arena
  maestro room list arena -o json | jq -r '.rooms[] | select(.status == \"ready\") | .id'")]
    List {
        /// Name of the scheduler
        scheduler: String,
    },

    /// Show a room, also one that ended within the last day
    #[command(after_help = "\
Examples:
  maestro room get arena arena-4f1c9a")]
    Get(RoomName),

    /// Print what a room wrote
    #[command(after_help = "\
Examples:
  maestro room logs arena arena-4f1c9a
  maestro room logs arena arena-4f1c9a --tail 20 --follow")]
    Logs(LogsOptions),

    /// Add rooms to a scheduler
    #[command(after_help = "\
Examples:
  maestro room add arena 3
  maestro room add arena 3 --wait --timeout 2m")]
    Add(AmountOptions),

    /// Add one room, in a region of your choice or where the policies want it
    #[command(after_help = "\
Examples:
  maestro room create arena
  maestro room create arena --region eu-west --wait")]
    Create(CreateOptions),

    /// Remove rooms from a scheduler
    #[command(after_help = "\
Examples:
  maestro room remove arena 3
  maestro room remove arena 3 --wait")]
    Remove(AmountOptions),
}

#[derive(Debug, Args)]
pub(super) struct RoomName {
    /// Name of the scheduler
    pub(super) scheduler: String,
    /// Id of the room
    #[arg(value_name = "ID")]
    pub(super) room: String,
}

#[derive(Debug, Args)]
pub(super) struct AmountOptions {
    /// Name of the scheduler
    scheduler: String,
    /// How many rooms
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    amount: u32,
    /// Even if autoscaling is on and will undo it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

#[derive(Debug, Args)]
pub(super) struct CreateOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Where, whatever the placement policy says; without it, where that wants it
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Even if autoscaling is on and will undo it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List { scheduler } => {
            let answer =
                context.client()?.get(&Resource::new(&["schedulers", scheduler, "rooms"]), "rooms")?;
            context.show(&answer, rooms_table)
        }
        Command::Get(RoomName { scheduler, room }) => {
            let answer =
                context.client()?.get(&Resource::new(&["schedulers", scheduler, "rooms", room]), "id")?;
            context.show(&answer, room_fields)
        }
        Command::Logs(options) => logs::run(&context.client()?, options),
        Command::Add(options) => change_amount(context, "add-rooms", "add", options),
        Command::Create(options) => create(context, options),
        Command::Remove(options) => change_amount(context, "remove-rooms", "remove", options),
    }
}

fn change_amount(
    context: &Context,
    action: &str,
    verb: &str,
    options: &AmountOptions,
) -> Result<(), Failure> {
    let AmountOptions { scheduler, amount, force, wait } = options;
    let body = Json::object([("amount", Json::from(*amount)), ("force", Json::from(*force))]);
    let answer = context.client()?.post(&Resource::new(&["schedulers", scheduler, action]), &body)?;
    let rooms = if *amount == 1 { "room" } else { "rooms" };
    context.operation_started(scheduler, &format!("{verb} {amount} {rooms}"), &answer, wait)
}

fn create(context: &Context, options: &CreateOptions) -> Result<(), Failure> {
    let CreateOptions { scheduler, region, force, wait } = options;
    let named = region.as_deref().map_or(Json::Null, Json::from);
    let body = Json::object([("region", named), ("force", Json::from(*force))]);
    let answer = context.client()?.post(&Resource::new(&["schedulers", scheduler, "rooms"]), &body)?;
    let place = region.as_ref().map(|region| format!(" in {region}")).unwrap_or_default();
    context.operation_started(scheduler, &format!("create a room{place}"), &answer, wait)
}

fn rooms_table(answer: &Json) -> String {
    let now = Timestamp::now();
    let row = |room: &Json| {
        vec![
            room.get("id").cell(),
            status(room),
            room.get("version").cell(),
            room.get("region").cell(),
            room.get("host").cell(),
            ports(room),
            room.get("pids").cell(),
            age::cell(room.get("createdAt"), now),
            age::cell(room.get("lastPingAt"), now),
        ]
    };
    let header = ["ID", "STATUS", "VERSION", "REGION", "HOST", "PORTS", "PIDS", "AGE", "LAST PING"];
    table(&header, answer.get("rooms").items().iter().map(row))
}

fn room_fields(room: &Json) -> String {
    let ended = room.get("ended");
    fields([
        ("Id", room.get("id").cell()),
        ("Status", status(room)),
        ("Version", room.get("version").cell()),
        ("Region", room.get("region").cell()),
        ("Host", room.get("host").cell()),
        ("Ports", ports(room)),
        ("Pids", room.get("pids").cell()),
        ("Created", room.get("createdAt").cell()),
        ("Last ping", room.get("lastPingAt").cell()),
        ("Metadata", room.get("metadata").cell()),
        ("Ended", ended.get("at").cell()),
        ("How", ended.get("how").cell()),
    ])
}

/// A validation room is not part of the fleet, whatever its status.
fn status(room: &Json) -> String {
    let status = room.get("status").cell();
    if room.get("validation").is_true() { format!("{status} (validation)") } else { status }
}

/// `game:20000/udp,…`
fn ports(room: &Json) -> String {
    let port = |port: &Json| {
        format!("{}:{}/{}", port.get("name").cell(), port.get("port").cell(), port.get("protocol").cell())
    };
    let ports: Vec<String> = room.get("ports").items().iter().map(port).collect();
    if ports.is_empty() { "-".to_owned() } else { ports.join(",") }
}
