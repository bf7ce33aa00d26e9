//! `maestro events`: what happens, as it happens.

mod connection;

use std::time::{Duration, Instant};

use clap::Args;
use maestro_core::stream::EventType;

use super::{At, Column, Context, Exit, Failure, Format, Json, Resource, Text, note, output, plain};
use super::{print, table};
use connection::{Connection, Heard};

/// A server that restarts is back well within this.
const UNREACHABLE_MAX: Duration = Duration::from_secs(15);
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(super) struct EventsOptions {
    /// Only events of this scheduler, and those that concern all
    scheduler: Option<String>,
    /// Print what happens from now on, until interrupted; without it, what has happened in the last hour
    #[arg(short, long)]
    follow: bool,
    /// Only events of these types: room, allocation, operation, decision, rollout, region
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = event_type)]
    types: Vec<EventType>,
    /// Only events after this one, the id of an event that was printed before
    #[arg(long, value_name = "ID")]
    after: Option<String>,
}

fn event_type(text: &str) -> Result<EventType, String> {
    let all = || EventType::ALL.map(EventType::as_str).join(", ");
    EventType::parse(text).ok_or_else(|| format!("not a type of event; write some of {}", all()))
}

pub(super) fn run(context: &Context, options: &EventsOptions) -> Result<(), Failure> {
    match options.follow {
        true => follow(context, options),
        false => show(context, options),
    }
}

impl EventsOptions {
    fn resource(&self) -> Resource {
        let types = self.types.iter().map(|chosen| chosen.as_str()).collect::<Vec<_>>().join(",");
        Resource::new(&["events"])
            .query_some("scheduler", self.scheduler.as_ref())
            .query_some("types", Some(types).filter(|types| !types.is_empty()))
    }
}

fn show(context: &Context, options: &EventsOptions) -> Result<(), Failure> {
    let after = options.after.as_deref().unwrap_or("oldest");
    let resource = options.resource().query("lastEventId", after).query("follow", false);
    let text = context.client()?.get_text(&resource)?;
    let mut events = Vec::new();
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        events.push(event(data)?);
    }
    for reset in events.iter().filter(|event| is_reset(event)) {
        note_reset(reset);
    }
    events.retain(|event| !is_reset(event));
    let answer = Json::object([("events", Json::Array(events))]);
    context.show(&answer, |answer| table(answer.get("events"), EVENTS))
}

/// Connects again when the connection is lost, and misses nothing that the server still has.
fn follow(context: &Context, options: &EventsOptions) -> Result<(), Failure> {
    let client = context.client()?;
    let resource = options.resource();
    let mut last_id = options.after.clone();
    let mut reached_at = Instant::now();
    let mut is_first = true;
    loop {
        let failure = match Connection::open(&client, &resource, last_id.as_deref()) {
            Ok(connection) => {
                if !std::mem::take(&mut is_first) {
                    note("connected again");
                }
                let failure = print_from(context.output, &connection, &mut last_id)?;
                reached_at = Instant::now();
                failure
            }
            Err(failure) if is_passing(&failure) && !is_first && reached_at.elapsed() < UNREACHABLE_MAX => {
                std::thread::sleep(RETRY_INTERVAL);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        note(&format!("{failure}; connecting again"));
    }
}

/// A server that restarts looks like this from outside.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unreachable | Exit::TimedOut)
}

/// Until the connection is lost; says why.
fn print_from(
    format: Format,
    connection: &Connection,
    last_id: &mut Option<String>,
) -> Result<String, Failure> {
    loop {
        match connection.hear() {
            Heard::Id(id) => *last_id = Some(id),
            Heard::Data(data) => print_event(format, &event(&data)?)?,
            Heard::End(why) => return Ok(why),
        }
    }
}

fn print_event(format: Format, event: &Json) -> Result<(), Failure> {
    match format {
        Format::Table if is_reset(event) => {
            note_reset(event);
            Ok(())
        }
        Format::Table => print(&line(event)),
        // One document a line, so that a program can read them one by one.
        Format::Json => output::json_line(event),
        Format::Yaml => {
            print("---")?;
            output::yaml(event)
        }
        Format::Csv => Err(Failure::invalid(output::CSV_REFUSED)),
    }
}

fn event(data: &str) -> Result<Json, Failure> {
    Json::read(data.as_bytes())
        .map_err(|error| Failure::failed(format!("the server sent an event that is not JSON ({error})")))
}

fn is_reset(event: &Json) -> bool {
    event.get("type").as_str() == Some("reset")
}

fn note_reset(event: &Json) {
    note(&format!("{}: {}", event.get("at").cell(), event.get("data").get("reason").cell()));
}

const EVENTS: &[Column] = &[
    ("AT", At("at")),
    ("TYPE", At("type")),
    ("SCHEDULER", Text(scheduler)),
    ("SUBJECT", At("subject")),
    ("WHAT", Text(what)),
];

/// A row of a table whose other rows are not known yet.
fn line(event: &Json) -> String {
    let [at, kind, subject] = ["at", "type", "subject"].map(|key| event.get(key).cell());
    let text = format!("{at:<30}  {kind:<10}  {:<12}  {subject:<36}  {}", scheduler(event), what(event));
    plain(&text)
}

fn scheduler(event: &Json) -> String {
    match event.get("scheduler").as_str() {
        Some("") | None => "-".to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// What an event says, in the order in which the server says it.
fn what(event: &Json) -> String {
    let data = event.get("data");
    let change = |key: &str, before: &str| Some(format!("{before} → {}", data.get(key).as_str()?));
    if let Some(change) = data.get("before").as_str().and_then(|before| change("status", before)) {
        return change;
    }
    let said = data.entries().iter().map(|(key, value)| said(key, value));
    said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

fn said(key: &str, value: &Json) -> String {
    match (key, value) {
        ("status" | "state" | "decision", value) => value.cell(),
        (_, Json::Object(_)) => {
            let inner = value.entries().iter().map(|(key, value)| said(key, value));
            inner.collect::<Vec<_>>().join(", ")
        }
        (key, value) => format!("{key} {}", value.cell()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data: &str, expected: &str) {
        let event = Json::read(format!(r#"{{"data":{data}}}"#).as_bytes()).unwrap();
        assert_eq!(what(&event), expected);
    }

    #[test]
    fn what_events_say() {
        check(r#"{"before":"ready","status":"occupied"}"#, "ready → occupied");
        check(
            r#"{"ended":{"cause":"failed","how":"killed"},"status":"terminated"}"#,
            "cause failed, how killed, terminated",
        );
        check(r#"{"state":"held","roomId":"arena-1"}"#, "held, roomId arena-1");
        check(r#"{"reachable":false,"reason":"no answer"}"#, "reachable false, reason no answer");
    }
}
