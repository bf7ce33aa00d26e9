//! `maestro region …`

use clap::{Args, Subcommand};

use super::context::Context;
use super::failure::Failure;
use super::json::Json;
use super::output::table;
use super::resource::Resource;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the regions: which can be reached, which get new rooms, and how many rooms they have
    #[command(after_help = "\
Examples:
  maestro region list
  maestro region list -o json | jq '.regions[] | select(.reachable | not)'")]
    List,

    /// Give a region no new rooms; those that are there stay
    #[command(after_help = "\
Examples:
  maestro region cordon eu-west --reason \"its network is slow\"")]
    Cordon(Order),

    /// Give a region rooms again: ends cordon and drain
    #[command(after_help = "\
Examples:
  maestro region uncordon eu-west --reason \"the new machines are there\"")]
    Uncordon(Order),

    /// Empty a region: no new rooms, and those that are there go without taking a fleet under its ready target
    #[command(after_help = "\
Examples:
  maestro region drain eu-west --reason \"new machines\"")]
    Drain(Order),

    /// Confirm that rooms of a region that stopped pinging together are lost: they are removed
    #[command(after_help = "\
Examples:
  maestro region confirm-lost eu-west --reason \"its machines are gone\"")]
    ConfirmLost(Order),
}

#[derive(Debug, Args)]
pub(super) struct Order {
    /// Name of the region
    #[arg(value_name = "NAME")]
    region: String,
    /// Why, for the record
    #[arg(long)]
    reason: Option<String>,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let answer = context.client()?.get(&Resource::new(&["regions"]), "regions")?;
            context.show(&answer, regions_table)
        }
        Command::Cordon(options) => order(context, options, "cordon", "cordoned"),
        Command::Uncordon(options) => order(context, options, "uncordon", "uncordoned"),
        Command::Drain(options) => order(context, options, "drain", "is being drained"),
        Command::ConfirmLost(options) => {
            order(context, options, "confirm-lost", "loses the rooms that stopped pinging together")
        }
    }
}

fn order(context: &Context, options: &Order, action: &str, done: &str) -> Result<(), Failure> {
    let Order { region, reason } = options;
    let resource = Resource::new(&["regions", region, action]).query_some("reason", reason.as_deref());
    let answer = context.client()?.post(&resource, &Json::object([]))?;
    context.show(&answer, |_| format!("region {region} {done}"))
}

fn regions_table(answer: &Json) -> String {
    let yes_or_no = |value: &Json| if value.is_true() { "yes" } else { "no" }.to_owned();
    let row = |region: &Json| {
        let rooms = region.get("rooms");
        vec![
            region.get("name").cell(),
            yes_or_no(region.get("reachable")),
            state(region).to_owned(),
            total(rooms).to_string(),
            rooms.get("ready").cell(),
            rooms.get("occupied").cell(),
            region.get("capacity").cell(),
            region.get("reason").cell(),
        ]
    };
    let header = ["NAME", "REACHABLE", "NEW ROOMS", "ROOMS", "READY", "OCCUPIED", "CAPACITY", "REASON"];
    table(&header, answer.get("regions").items().iter().map(row))
}

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
    let Json::Object(entries) = rooms else { return 0 };
    let count = |value: &Json| match value {
        Json::Number(rooms) => rooms.as_u64().unwrap_or(0),
        _ => 0,
    };
    entries.iter().map(|(_, value)| count(value)).sum()
}
