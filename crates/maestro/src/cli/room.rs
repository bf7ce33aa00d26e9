//! `maestro room …`

use clap::{Args, Subcommand};
use maestro_core::text::count_of;

use super::logs::LogsOptions;
use super::{
    Age, At, Client, Column, Context, Failure, Json, Resource, Text, WaitOptions, WatchOptions, fields, ids,
    list, logs, or_dash,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the rooms of a scheduler
    #[command(visible_alias = "ls", after_help = examples![
        "maestro room list arena",
        "maestro room list arena --watch",
        "maestro room list arena --ended",
        "maestro room list arena -o json | jq -r '.rooms[] | select(.status == \"ready\") | .id'",
    ])]
    List(ListOptions),

    /// Show a room, also one that ended within the last day
    #[command(visible_alias = "describe", after_help = examples![
        "maestro room get arena arena-4f1c9a",
        "maestro room get arena 4f1",
    ])]
    Get(RoomName),

    /// Print the log of a room
    #[command(after_help = examples![
        "maestro room logs arena arena-4f1c9a",
        "maestro room logs arena arena-4f1c9a --tail 20 --follow",
    ])]
    Logs(LogsOptions),

    /// Add rooms to a scheduler
    #[command(after_help = examples![
        "maestro room add arena 3",
        "maestro room add arena 3 --wait --timeout 2m",
    ])]
    Add(AmountOptions),

    /// Add one room, in a region of your choice or where the placement policy puts it
    #[command(after_help = examples![
        "maestro room create arena",
        "maestro room create arena --region eu-west --wait",
    ])]
    Create(CreateOptions),

    /// Remove rooms from a scheduler: a number of them, or particular ones
    #[command(visible_alias = "rm", after_help = examples![
        "maestro room remove arena 3 --wait",
        "maestro room remove arena arena-4f1c9a arena-77aa01",
    ])]
    Remove(RemoveOptions),
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Include rooms that ended within the last day, and how they ended
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    watch: WatchOptions,
}

#[derive(Debug, Args)]
pub(super) struct RoomName {
    /// Name of the scheduler
    pub(super) scheduler: String,
    /// Id of the room, or the beginning of it
    #[arg(value_name = "ID")]
    pub(super) room: String,
}

#[derive(Debug, Args)]
struct ChangeOptions {
    /// Do it even if autoscaling is on and will undo it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

#[derive(Debug, Args)]
pub(super) struct AmountOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Number of rooms
    #[arg(value_name = "N", value_parser = amount)]
    amount: u32,
    #[command(flatten)]
    change: ChangeOptions,
}

#[derive(Debug, Args)]
pub(super) struct RemoveOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Number of rooms, or the ids of the rooms (or the beginnings of their ids)
    #[arg(value_name = "N|ID", required = true)]
    rooms: Vec<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

#[derive(Debug, Args)]
pub(super) struct CreateOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Region to use, overriding the placement policy
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(context, options),
        Command::Get(RoomName { scheduler, room }) => {
            let client = context.client()?;
            let answer = ids::with_room(&client, scheduler, room, |room| {
                client.get(&Resource::new(&["schedulers", scheduler, "rooms", room]), "id")
            })?;
            context.show(&answer, |room| fields(room, ROOM))
        }
        Command::Logs(options) => logs::run(&context.client()?, options),
        Command::Add(options) => add(context, options),
        Command::Create(options) => create(context, options),
        Command::Remove(options) => remove(context, options),
    }
}

pub(super) fn list(context: &Context, options: &ListOptions) -> Result<(), Failure> {
    let ListOptions { scheduler, ended, watch } = options;
    let resource = Resource::new(&["schedulers", scheduler, "rooms"]);
    let resource = resource.query_some("ended", ended.then_some("true"));
    let ask = |client: &Client| client.get(&resource, "rooms");
    // Where some have ended, how they did says more than where they are.
    let columns = if *ended { WITH_ENDED_ROOMS } else { ROOMS };
    list::show(context, watch, ask, ("rooms", columns)).map(drop)
}

fn add(context: &Context, options: &AmountOptions) -> Result<(), Failure> {
    let AmountOptions { scheduler, amount, change: ChangeOptions { force, wait } } = options;
    let body = Json::object([("amount", Json::from(*amount)), ("force", Json::from(*force))]);
    let answer = context.client()?.post(&Resource::new(&["schedulers", scheduler, "add-rooms"]), &body)?;
    context.operation_started(scheduler, &format!("add {}", count_of(*amount, "room")), &answer, wait)
}

fn remove(context: &Context, options: &RemoveOptions) -> Result<(), Failure> {
    let RemoveOptions { scheduler, rooms, change: ChangeOptions { force, wait } } = options;
    let client = context.client()?;
    let force = ("force", Json::from(*force));
    let (body, what) = match rooms.as_slice() {
        [number] if number.chars().all(|c| c.is_ascii_digit()) => {
            let amount = amount(number).map_err(Failure::invalid)?;
            (Json::object([("amount", Json::from(amount)), force]), count_of(amount, "room"))
        }
        given => {
            let ids = ids::live_rooms(&client, scheduler, given)?;
            let what = format!("{} {}", if ids.len() == 1 { "room" } else { "rooms" }, ids.join(", "));
            let ids = ids.iter().map(|id| Json::from(id.as_str())).collect();
            (Json::object([("rooms", Json::Array(ids)), force]), what)
        }
    };
    let answer = client.post(&Resource::new(&["schedulers", scheduler, "remove-rooms"]), &body)?;
    context.operation_started(scheduler, &format!("remove {what}"), &answer, wait)
}

fn amount(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("amount must be at least 1".to_owned()),
        Ok(amount) => Ok(amount),
        Err(_) => Err(format!("{text} is not a number of rooms")),
    }
}

fn create(context: &Context, options: &CreateOptions) -> Result<(), Failure> {
    let CreateOptions { scheduler, region, change: ChangeOptions { force, wait } } = options;
    let named = region.as_deref().map_or(Json::Null, Json::from);
    let body = Json::object([("region", named), ("force", Json::from(*force))]);
    let answer = context.client()?.post(&Resource::new(&["schedulers", scheduler, "rooms"]), &body)?;
    let place = region.as_ref().map(|region| format!(" in {region}")).unwrap_or_default();
    context.operation_started(scheduler, &format!("create a room{place}"), &answer, wait)
}

const ROOMS: &[Column] = &[
    ("ID", At("id")),
    ("STATUS", Text(status)),
    ("VERSION", At("version")),
    ("REGION", At("region")),
    ("HOST", At("host")),
    ("PORTS", Text(ports)),
    ("PIDS", At("pids")),
    ("AGE", Age("createdAt")),
    ("LAST PING", Age("lastPingAt")),
];

const WITH_ENDED_ROOMS: &[Column] = &[
    ("ID", At("id")),
    ("STATUS", Text(status)),
    ("VERSION", At("version")),
    ("REGION", At("region")),
    ("AGE", Age("createdAt")),
    ("ENDED", Age("ended.at")),
    ("HOW IT ENDED", At("ended.how")),
];

const ROOM: &[Column] = &[
    ("Id", At("id")),
    ("Status", Text(status)),
    ("Version", At("version")),
    ("Region", At("region")),
    ("Host", At("host")),
    ("Ports", Text(ports)),
    ("Pids", At("pids")),
    ("Created", At("createdAt")),
    ("Last ping", At("lastPingAt")),
    ("Silent", Text(silence)),
    ("Metadata", At("metadata")),
    ("Ended", At("ended.at")),
    ("How", At("ended.how")),
];

/// A validation room is not part of the fleet, whatever its status.
fn status(room: &Json) -> String {
    let status = room.get("status").cell();
    match room.get("validation").is_true() {
        true => format!("{status} (validation)"),
        false if is_silent(room) => format!("{status} (silent)"),
        false => status,
    }
}

fn is_silent(room: &Json) -> bool {
    room.get("silent").get("until").as_str().is_some()
}

/// What silence means for a room that stopped pinging together with others; nothing for any other.
fn silence(room: &Json) -> String {
    let silent = room.get("silent");
    if !is_silent(room) {
        return silent.cell();
    }
    format!(
        "since {}, together with other rooms of {region}: not counted as ready, removed at {} unless it pings, or with `maestro region confirm-lost {region}`",
        silent.get("since").cell(),
        silent.get("until").cell(),
        region = room.get("region").cell(),
    )
}

pub(super) fn ports(room: &Json) -> String {
    or_dash(room.get("ports").items().iter().map(port), ",")
}

/// `game:20000/udp`
pub(super) fn port(port: &Json) -> String {
    let [name, port, protocol] = ["name", "port", "protocol"].map(|key| port.get(key).cell());
    format!("{name}:{port}/{protocol}")
}
