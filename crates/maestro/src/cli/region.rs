//! `maestro region …`

use clap::{Args, Subcommand};

use super::{At, Client, Column, Context, Failure, Json, Resource, Text, WatchOptions, list};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the regions: which can be reached, which get new rooms, and how many rooms they have
    #[command(visible_alias = "ls", after_help = examples![
        "maestro region list",
        "maestro region list --watch",
        "maestro region list -o json | jq '.regions[] | select(.reachable | not)'",
    ])]
    List(WatchOptions),

    /// Stop placing new rooms in a region; the rooms that are there stay
    #[command(after_help = examples!["maestro region cordon eu-west --reason \"its network is slow\""])]
    Cordon(Order),

    /// Allow new rooms in a region again; ends both cordon and drain
    #[command(after_help = examples![
        "maestro region uncordon eu-west --reason \"the new machines are there\"",
    ])]
    Uncordon(Order),

    /// Move all rooms out of a region, without letting any fleet run out of ready rooms
    #[command(after_help = examples!["maestro region drain eu-west --reason \"new machines\""])]
    Drain(Order),

    /// Confirm that rooms of a region that stopped pinging together are lost: they are removed
    #[command(after_help = examples![
        "maestro region confirm-lost eu-west --reason \"its machines are gone\"",
    ])]
    ConfirmLost(Order),
}

#[derive(Debug, Args)]
pub(super) struct Order {
    /// Name of the region
    #[arg(value_name = "NAME")]
    region: String,
    /// Reason, recorded and shown by region list
    #[arg(long)]
    reason: Option<String>,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(context, options),
        Command::Cordon(options) => order(context, options, "cordon", "cordoned"),
        Command::Uncordon(options) => order(context, options, "uncordon", "uncordoned"),
        Command::Drain(options) => order(context, options, "drain", "is being drained"),
        Command::ConfirmLost(options) => order(
            context,
            options,
            "confirm-lost",
            "confirmed lost: the rooms that stopped pinging together are being removed",
        ),
    }
}

pub(super) fn list(context: &Context, options: &WatchOptions) -> Result<(), Failure> {
    let ask = |client: &Client| client.get(&Resource::new(&["regions"]), "regions");
    list::show(context, options, ask, ("regions", REGIONS)).map(drop)
}

fn order(context: &Context, options: &Order, action: &str, done: &str) -> Result<(), Failure> {
    let Order { region, reason } = options;
    let resource = Resource::new(&["regions", region, action]).query_some("reason", reason.as_deref());
    let answer = context.client()?.post(&resource, &Json::object([]))?;
    context.show(&answer, |_| format!("region {region} {done}"))
}

const REGIONS: &[Column] = &[
    ("NAME", At("name")),
    ("REACHABLE", Text(|region| if region.get("reachable").is_true() { "yes" } else { "no" }.to_owned())),
    ("NEW ROOMS", Text(|region| state(region).to_owned())),
    ("ROOMS", Text(|region| total(region.get("rooms")).to_string())),
    ("READY", At("rooms.ready")),
    ("OCCUPIED", At("rooms.occupied")),
    ("CAPACITY", At("capacity")),
    ("REASON", At("reason")),
];

/// Whether it gets new rooms, or why it loses those it has.
fn state(region: &Json) -> &'static str {
    match (region.get("cordoned").is_true(), region.get("draining").is_true()) {
        (_, true) => "draining",
        (true, false) => "cordoned",
        (false, false) if region.get("reachable").is_true() => "yes",
        (false, false) => "no",
    }
}

fn total(rooms: &Json) -> u64 {
    rooms.entries().iter().filter_map(|(_, count)| count.as_u64()).sum()
}
