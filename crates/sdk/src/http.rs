//! One ping over HTTP.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::allocation::Allocation;
use crate::environment::Room;
use crate::ping::{Answer, Ping};

/// Requests and answers are a few hundred bytes; the library's default would keep a quarter of a megabyte per room.
const BUFFER_BYTES: usize = 4 * 1024;

/// More than this is no answer of a rooms API: 250 allocations with as much metadata as they may have.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// Asks for the allocations of the room; a server that does not know it answers as ever.
const VIEW: (&str, &str) = ("maestro-view", "full");

pub(crate) struct RoomsApi {
    agent: ureq::Agent,
    ping_url: String,
}

/// The keys of an answer or an error that matter to a room.
#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    success: bool,
    #[serde(default)]
    message: String,
    /// Whatever it is: what cannot be understood of it is no reason to fail.
    #[serde(default)]
    allocations: Value,
}

/// How a ping went, and what came back with it.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// None unless the ping was accepted.
    pub(crate) allocations: Option<Vec<Allocation>>,
}

impl RoomsApi {
    pub(crate) fn new(room: &Room, ping_interval: Duration) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // The rooms API is next door: a proxy meant for the way out must not get between.
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections(1)
            // One connection for the room's lifetime: longer than the longest time between two pings.
            .max_idle_age(ping_interval.saturating_mul(2))
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .user_agent(concat!("maestro-sdk/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        let ping_url =
            format!("{}/scheduler/{}/rooms/{}/ping", room.rooms_api_url(), room.scheduler(), room.id());
        Self { agent, ping_url }
    }

    /// Blocks for at most `timeout`.
    pub(crate) fn send(&self, ping: &Ping, at: SystemTime, timeout: Duration) -> Reply {
        self.try_send(ping, at, timeout).unwrap_or_else(|error| failed(error.to_string()))
    }

    fn try_send(&self, ping: &Ping, at: SystemTime, timeout: Duration) -> Result<Reply, ureq::Error> {
        let request = self
            .agent
            .put(&self.ping_url)
            .header(VIEW.0, VIEW.1)
            .config()
            .timeout_global(Some(timeout))
            .build();
        let mut response = request.send_json(ping.to_json(at))?;
        let status = response.status();
        let body: Result<Body, _> = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
        Ok(match body {
            Ok(body) if status.is_success() && body.success => body.accepted(),
            Ok(_) if status.is_success() => Reply { answer: Answer::Refused, allocations: None },
            Ok(body) => failed(format!("the rooms API answered {}: {}", status.as_u16(), body.message)),
            Err(_) if !status.is_success() => failed(format!("the rooms API answered {}", status.as_u16())),
            Err(error) => failed(format!("the answer cannot be read: {error}")),
        })
    }
}

impl Body {
    fn accepted(self) -> Reply {
        let listed = self.allocations.as_array().map(Vec::as_slice).unwrap_or_default();
        let allocations = listed.iter().filter_map(Allocation::read).collect();
        Reply { answer: Answer::Accepted, allocations: Some(allocations) }
    }
}

fn failed(reason: String) -> Reply {
    Reply { answer: Answer::Failed { reason }, allocations: None }
}
