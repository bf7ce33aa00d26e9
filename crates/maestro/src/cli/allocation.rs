//! `maestro allocation …`

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use maestro_core::allocation::{AllocationState, COUNT_MAX};

use super::list::PageOptions;
use super::room::ports;
use super::{
    Age, At, Client, Column, Context, Failure, Json, Resource, Text, WatchOptions, fields, list, require,
    table,
};
use crate::config::duration;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Allocate rooms for matches: as many as asked for, or none
    #[command(after_help = examples![
        "maestro allocation create arena",
        "maestro allocation create arena --region eu-west --region us-east --wait 10s",
        "maestro allocation create arena --count 3 --ttl 1m --metadata map=lava --request-id cup-final",
        "maestro allocation create arena -o json | jq -r '.allocations[].host'",
    ])]
    Create(CreateOptions),

    /// List the allocations of a scheduler, newest first
    #[command(visible_alias = "ls", after_help = examples![
        "maestro allocation list arena",
        "maestro allocation list arena --state held --watch",
        "maestro allocation list arena --room arena-4f1c9a --page-size 50",
    ])]
    List(ListOptions),

    /// Show an allocation, also one that has ended within the last hour (with a request id: day)
    #[command(visible_alias = "describe", after_help = examples![
        "maestro allocation get arena 0199f2d4-8f0e-7c62-9d4b-0f4a7a5d1c11",
    ])]
    Get(AllocationName),

    /// Return a room whose match has not begun, so that others can have it
    #[command(after_help = examples![
        "maestro allocation return arena 0199f2d4-8f0e-7c62-9d4b-0f4a7a5d1c11",
    ])]
    Return(AllocationName),
}

#[derive(Debug, Args)]
pub(super) struct AllocationName {
    /// Name of the scheduler
    scheduler: String,
    /// Id of the allocation
    #[arg(value_name = "ID")]
    allocation: String,
}

#[derive(Debug, Args)]
pub(super) struct CreateOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Number of rooms, or of match slots if rooms hold several matches
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,
    /// Region of the rooms; repeat it to name several in order of preference
    #[arg(long = "region", value_name = "NAME")]
    regions: Vec<String>,
    /// Version of the rooms
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Text for the rooms to read, such as the map; repeat it for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
    /// Wait this long for rooms that become free, at most 30s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    wait: Option<Duration>,
    /// Hold the rooms this long for their matches to begin, 1s to 1h; the default is the server's
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    ttl: Option<Duration>,
    /// Id of this request: sent again, it gets the same rooms and no others
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Only allocations in this state
    #[arg(long, value_parser = PossibleValuesParser::new(AllocationState::ALL.map(AllocationState::as_str)))]
    state: Option<String>,
    /// Only allocations of this room
    #[arg(long, value_name = "ID")]
    room: Option<String>,
    #[command(flatten)]
    pages: PageOptions,
    #[command(flatten)]
    watch: WatchOptions,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a key and a value, as in map=lava".to_owned()),
    }
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(options) => create(context, options),
        Command::List(options) => list(context, options),
        Command::Get(name) => {
            let answer = context.client()?.get(&name.resource(), "allocation")?;
            context.show(&answer, |answer| fields(answer.get("allocation"), ALLOCATION))
        }
        Command::Return(name) => {
            context.client()?.delete_silently(&name.resource())?;
            let id = &name.allocation;
            context.show(&Json::object([]), |_| format!("allocation {id} returned"))
        }
    }
}

impl AllocationName {
    fn resource(&self) -> Resource {
        Resource::new(&["schedulers", &self.scheduler, "allocations", &self.allocation])
    }
}

fn create(context: &Context, options: &CreateOptions) -> Result<(), Failure> {
    let client = context.client()?;
    // The server answers when it has waited; the time for everything else comes on top.
    let client = client.within(client.timeout().saturating_add(options.wait.unwrap_or_default()));
    let resource = Resource::new(&["schedulers", &options.scheduler, "allocations"]);
    let answer = require(client.post(&resource, &options.body()?)?, "allocations")?;
    context.show(&answer, |answer| table(answer.get("allocations"), CREATED))
}

impl CreateOptions {
    fn body(&self) -> Result<Json, Failure> {
        let text = |value: &Option<String>| value.as_deref().map_or(Json::Null, Json::from);
        let pair = |(key, value): &(String, String)| (key.clone(), Json::from(value.as_str()));
        let metadata = self.metadata.iter().map(pair).collect();
        let is_wish = !self.regions.is_empty() || self.version.is_some();
        let regions = self.regions.iter().map(|region| Json::from(region.as_str())).collect();
        let wish = Json::object([("regions", Json::Array(regions)), ("version", text(&self.version))]);
        Ok(Json::object([
            ("count", Json::from(self.count)),
            ("wishes", Json::Array(is_wish.then_some(wish).into_iter().collect())),
            ("metadata", if self.metadata.is_empty() { Json::Null } else { Json::Object(metadata) }),
            ("waitMillis", self.wait.map_or(Ok(Json::Null), |wait| millis("--wait", wait))?),
            ("ttlMillis", self.ttl.map_or(Ok(Json::Null), |ttl| millis("--ttl", ttl))?),
            ("requestId", text(&self.request_id)),
        ]))
    }
}

/// What the server's field can hold; which of it is allowed is the server's to say.
fn millis(option: &str, duration: Duration) -> Result<Json, Failure> {
    let millis = u32::try_from(duration.as_millis());
    millis.map(Json::from).map_err(|_| Failure::invalid(format!("{option}: {duration:?} is too long")))
}

pub(super) fn list(context: &Context, options: &ListOptions) -> Result<(), Failure> {
    let ListOptions { scheduler, state, room, pages, watch } = options;
    let resource = Resource::new(&["schedulers", scheduler, "allocations"])
        .query_some("state", state.as_ref())
        .query_some("room", room.as_ref())
        .query_some("page", pages.page)
        .query_some("perPage", pages.page_size);
    let ask = |client: &Client| client.get(&resource, "allocations");
    list::show_page(context, watch, ask, ("allocations", ALLOCATIONS), "allocations")
}

// Not called ID: it is never shortened, because only a whole one can be asked for.
const CREATED: &[Column] = &[
    ("ALLOCATION", At("id")),
    ("ROOM", At("roomId")),
    ("HOST", At("host")),
    ("PORTS", Text(ports)),
    ("REGION", At("region")),
    ("VERSION", At("version")),
    ("EXPIRES", At("expiresAt")),
];

const ALLOCATIONS: &[Column] = &[
    ("ALLOCATION", At("id")),
    ("ROOM", At("roomId")),
    ("STATE", At("state")),
    ("REGION", At("region")),
    ("AGE", Age("createdAt")),
    ("EXPIRES", At("expiresAt")),
    ("REQUEST ID", At("requestId")),
    ("HOW IT ENDED", At("cause")),
];

const ALLOCATION: &[Column] = &[
    ("Id", At("id")),
    ("Room", At("roomId")),
    ("State", At("state")),
    ("Host", At("host")),
    ("Ports", Text(ports)),
    ("Region", At("region")),
    ("Version", At("version")),
    ("Created", At("createdAt")),
    ("Expires", At("expiresAt")),
    ("Ended", At("endedAt")),
    ("How", At("cause")),
    ("Request id", At("requestId")),
    ("Metadata", At("metadata")),
];

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        options: CreateOptions,
    }

    fn body(arguments: &[&str]) -> Result<String, String> {
        let arguments = ["create", "arena"].iter().chain(arguments);
        let parsed = Wrapper::try_parse_from(arguments).map_err(|error| error.to_string())?;
        let body = parsed.options.body().map_err(|failure| failure.message)?;
        Ok(serde_json::to_string(&body).unwrap())
    }

    #[test]
    fn what_is_not_asked_for_is_the_servers_to_decide() {
        let sent = body(&[]).unwrap();
        assert_eq!(
            sent,
            r#"{"count":1,"wishes":[],"metadata":null,"waitMillis":null,"ttlMillis":null,"requestId":null}"#
        );
    }

    #[test]
    fn options_become_one_wish() {
        let sent = body(&[
            "--count",
            "3",
            "--region",
            "eu",
            "--region",
            "us",
            "--version",
            "v2.0.0",
            "--metadata",
            "map=lava",
            "--metadata",
            "rule=a=b",
            "--wait",
            "1500ms",
            "--ttl",
            "5m",
            "--request-id",
            "final",
        ]);
        let expected = r#"{"count":3,"wishes":[{"regions":["eu","us"],"version":"v2.0.0"}],"metadata":{"map":"lava","rule":"a=b"},"waitMillis":1500,"ttlMillis":300000,"requestId":"final"}"#;
        assert_eq!(sent.unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        for (arguments, words) in [
            (["--count", "0"], "0 is not in 1..=100"),
            (["--count", "101"], "101 is not in 1..=100"),
            (["--metadata", "lava"], "write a key and a value, as in map=lava"),
            (["--metadata", "=lava"], "write a key and a value, as in map=lava"),
            (["--wait", "2000h"], "--wait: 7200000s is too long"),
        ] {
            let error = body(&arguments).unwrap_err();
            assert!(error.contains(words), "{arguments:?}: {error}");
        }
    }
}
