//! A client of the management API that shows answers as they are, and of the rooms that it lists.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::Request;

use crate::recipe::GAME;

/// Longer than the server takes for anything, short enough for a test.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// The most that the server gives at once.
const OPERATIONS_PER_PAGE: usize = 100;

#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    url: String,
}

/// Whatever the status is. An `Err` instead of an answer means that there was none.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub text: String,
}

/// As the server writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Timestamp);

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Room {
    pub id: String,
    pub status: String,
    pub version: String,
    pub region: String,
    pub ports: Vec<Port>,
    pub pids: Vec<u32>,
    /// It tries a version, and is none of the fleet.
    pub validation: bool,
    pub created_at: Time,
    pub last_ping_at: Option<Time>,
    pub ended: Option<Ended>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Port {
    pub port: u16,
}

/// One of a scheduler's, as the full view shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub version: String,
    pub is_active: bool,
    pub status: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Ended {
    pub how: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    pub id: String,
    pub status: String,
    pub definition_name: String,
    pub created_at: Time,
    pub reason: String,
    /// What policies decided.
    pub data: Value,
    lease: Option<Lease>,
    /// Not in lists.
    #[serde(default)]
    pub execution_history: Vec<Event>,
}

#[derive(Debug, Clone, Deserialize)]
struct Lease {
    ttl: Time,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub created_at: Time,
    pub event: String,
}

/// A fleet in numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetInfo {
    pub name: String,
    pub state: String,
    /// The fleet size, which begins as the recipe's.
    pub rooms_replicas: u32,
    pub autoscaling: Option<AutoscalingInfo>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct AutoscalingInfo {
    pub enabled: bool,
    pub min: u32,
}

impl TryFrom<String> for Time {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl Answer {
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("not JSON: {}", self.text))
    }

    /// What an error says.
    pub fn message(&self) -> String {
        let message = |body: Value| body["message"].as_str().map(str::to_owned);
        self.json().ok().and_then(message).unwrap_or_default()
    }

    /// The answer, if it is the one that was expected.
    pub fn expect(self, status: u16) -> anyhow::Result<Self> {
        ensure!(self.status == status, "expected {status}, got {}: {}", self.status, self.text);
        Ok(self)
    }

    pub fn operation_id(&self) -> anyhow::Result<String> {
        let id = self.json()?["operationId"].as_str().map(str::to_owned);
        id.with_context(|| format!("no operation in {}", self.text))
    }

    fn read<T: serde::de::DeserializeOwned>(self, key: &str) -> anyhow::Result<T> {
        let mut body = self.expect(200)?.json()?;
        let value = body[key].take();
        serde_json::from_value(value).with_context(|| format!("{key} in {body}"))
    }
}

impl Room {
    /// Begins a match as a player does; whether there was a place for it.
    pub fn join(&self, length: Duration) -> anyhow::Result<bool> {
        self.ask(&format!("JOIN {}", length.as_secs()))
    }

    /// As a player does whom a matchmaker has sent.
    pub fn join_allocation(&self, length: Duration, allocation: &str) -> anyhow::Result<bool> {
        self.ask(&format!("JOIN {} {allocation}", length.as_secs()))
    }

    fn ask(&self, line: &str) -> anyhow::Result<bool> {
        let port = self.ports.first().with_context(|| format!("{} has no port", self.id))?.port;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        writeln!(stream, "{line}")?;
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply)?;
        Ok(reply.starts_with("OK "))
    }
}

impl Operation {
    pub fn is_final(&self) -> bool {
        !matches!(self.status.as_str(), "pending" | "in_progress")
    }

    pub fn lease_ttl(&self) -> Option<Timestamp> {
        self.lease.as_ref().map(|lease| lease.ttl.0)
    }

    /// When it ended, if it has.
    pub fn last_event_at(&self) -> Option<Timestamp> {
        self.execution_history.last().map(|event| event.created_at.0)
    }

    /// For people who look for what went wrong.
    pub fn to_text(&self) -> String {
        let Self { id, status, definition_name, created_at: Time(created_at), reason, .. } = self;
        let head = format!("{created_at} {definition_name} {id} is {status}: {reason}\n");
        let events = self.execution_history.iter();
        let events = events.map(|event| format!("    {} {}\n", event.created_at.0, event.event));
        events.fold(head, |text, event| text + &event)
    }

    /// Everything that people can read about it, to look for words in.
    pub fn story(&self) -> String {
        let events = self.execution_history.iter().map(|event| event.event.as_str());
        let lines: Vec<&str> = [self.reason.as_str()].into_iter().chain(events).collect();
        lines.join("\n")
    }
}

impl Client {
    pub(crate) fn new(url: String) -> Self {
        // A connection to a server that was killed since would only give an error of its own.
        let config = config(REQUEST_TIMEOUT).max_idle_connections(0).build();
        Self { agent: config.into(), url }
    }

    /// Of the same server, for somebody who asks all the time, and waits so long for an answer.
    pub fn keeping_connections(&self, timeout: Duration) -> Self {
        Self { agent: config(timeout).build().into(), url: self.url.clone() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send("GET", path, "e2e", "")
    }

    pub fn delete(&self, path: &str) -> anyhow::Result<Answer> {
        self.send("DELETE", path, "e2e", "")
    }

    pub fn put(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send("PUT", path, "e2e", &body.to_string())
    }

    pub fn post(&self, path: &str, user: &str, body: &str) -> anyhow::Result<Answer> {
        self.send("POST", path, user, body)
    }

    /// `user` is who asks, as it stands in the operation's reason.
    pub fn send(&self, method: &str, path: &str, user: &str, body: &str) -> anyhow::Result<Answer> {
        self.send_with(method, path, ("X-Maestro-User", user), body)
    }

    /// As a room that wants to know for whom it was allocated.
    pub fn ping(&self, scheduler: &str, room: &str, body: &Value) -> anyhow::Result<Answer> {
        let path = format!("/scheduler/{scheduler}/rooms/{room}/ping");
        self.send_with("PUT", &path, ("Maestro-View", "full"), &body.to_string())
    }

    fn send_with(
        &self,
        method: &str,
        path: &str,
        header: (&str, &str),
        body: &str,
    ) -> anyhow::Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Content-Type", "application/json")
            .header(header.0, header.1);
        let response = match body {
            "" => self.agent.run(request.body(())?),
            body => self.agent.run(request.body(body)?),
        };
        let mut response = response.with_context(|| format!("{method} {path}"))?;
        Ok(Answer { status: response.status().as_u16(), text: response.body_mut().read_to_string()? })
    }

    pub fn create(&self, recipe: &Value) -> anyhow::Result<Answer> {
        self.post("/schedulers", "e2e", &recipe.to_string())
    }

    /// Submits the recipe as a new version of its scheduler.
    pub fn new_version(&self, scheduler: &str, recipe: &Value) -> anyhow::Result<Answer> {
        self.post(&format!("/schedulers/{scheduler}"), "e2e", &recipe.to_string())
    }

    /// Sorted by number.
    pub fn versions(&self, scheduler: &str) -> anyhow::Result<Vec<Version>> {
        let path = format!("/schedulers/{scheduler}/versions?view=full");
        let mut versions: Vec<Version> = self.get(&path)?.read("versions")?;
        versions.sort_by(|one, other| one.version.cmp(&other.version));
        Ok(versions)
    }

    pub fn add(&self, scheduler: &str, amount: u32, user: &str) -> anyhow::Result<Answer> {
        self.resize(scheduler, "add-rooms", amount, user)
    }

    pub fn remove(&self, scheduler: &str, amount: u32, user: &str) -> anyhow::Result<Answer> {
        self.resize(scheduler, "remove-rooms", amount, user)
    }

    fn resize(&self, scheduler: &str, what: &str, amount: u32, user: &str) -> anyhow::Result<Answer> {
        let path = format!("/schedulers/{scheduler}/{what}");
        self.post(&path, user, &json!({"amount": amount}).to_string())
    }

    pub fn cancel(&self, scheduler: &str, operation: &str) -> anyhow::Result<Answer> {
        let path = format!("/schedulers/{scheduler}/operations/{operation}/cancel");
        self.post(&path, "e2e", "{}")
    }

    pub fn rooms(&self, scheduler: &str) -> anyhow::Result<Vec<Room>> {
        self.get(&format!("/schedulers/{scheduler}/rooms"))?.read("rooms")
    }

    /// `None`: there is no such room, or it is not remembered any more.
    pub fn room(&self, scheduler: &str, id: &str) -> anyhow::Result<Option<Room>> {
        let answer = self.get(&format!("/schedulers/{scheduler}/rooms/{id}"))?;
        if answer.status == 404 {
            return Ok(None);
        }
        let room = serde_json::from_str(&answer.expect(200)?.text);
        Ok(Some(room.context("reading a room")?))
    }

    /// Of all schedulers whose rooms are the example room.
    pub fn fleet_infos(&self) -> anyhow::Result<Vec<FleetInfo>> {
        self.get(&format!("/schedulers/info?game={GAME}"))?.read("schedulers")
    }

    pub fn operation(&self, scheduler: &str, id: &str) -> anyhow::Result<Operation> {
        self.get(&format!("/schedulers/{scheduler}/operations/{id}?view=full"))?.read("operation")
    }

    /// All that can be seen: pending, active, final; cycles that changed nothing are not among them.
    ///
    /// Asked in this order an operation that moves on meanwhile may come twice, but is never missed.
    pub fn operations(&self, scheduler: &str) -> anyhow::Result<Vec<Operation>> {
        let mut operations = self.unfinished(scheduler)?;
        let path = format!("/schedulers/{scheduler}/operations?view=full");
        for page in 1.. {
            let page = format!("{path}&stage=final&perPage={OPERATIONS_PER_PAGE}&page={page}");
            let more: Vec<Operation> = self.get(&page)?.read("operations")?;
            let is_last = more.len() < OPERATIONS_PER_PAGE;
            operations.extend(more);
            if is_last {
                break;
            }
        }
        Ok(operations)
    }

    /// Pending or active. Asked in this order, one that moves on meanwhile may come twice, but is never missed.
    pub fn unfinished(&self, scheduler: &str) -> anyhow::Result<Vec<Operation>> {
        let mut operations: Vec<Operation> = Vec::new();
        for stage in ["pending", "active"] {
            let path = format!("/schedulers/{scheduler}/operations?view=full&stage={stage}");
            operations.extend(self.get(&path)?.read::<Vec<Operation>>("operations")?);
        }
        Ok(operations)
    }

    /// What this user asked for.
    pub fn operation_of(&self, scheduler: &str, user: &str) -> anyhow::Result<Option<Operation>> {
        let reason = format!("asked for by {user};");
        let mut operations = self.operations(scheduler)?;
        operations.retain(|operation| operation.reason.contains(&reason));
        Ok(operations.pop())
    }
}

fn config(timeout: Duration) -> ureq::config::ConfigBuilder<ureq::typestate::AgentScope> {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(timeout))
}
