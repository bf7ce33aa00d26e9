//! What a room says and what it hears back.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

/// What the game says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ready,
    Occupied,
    Terminating,
    Terminated,
}

impl Status {
    /// Of a room that serves so many matches.
    pub(crate) fn of_matches(matches: u32) -> Self {
        if matches == 0 { Self::Ready } else { Self::Occupied }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Occupied => "occupied",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
        }
    }
}

/// The latest ping that has come to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastPing {
    pub status: Status,
    /// When it was sent.
    pub at: SystemTime,
    pub answer: Answer,
    /// Pings in a row that were not accepted, this one included.
    pub failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Accepted,
    /// `success: false`: Maestro does not know this room, or the change of status is not allowed.
    Refused,
    /// No usable answer: unreachable, too slow, or an error of the server.
    Failed {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ping {
    pub(crate) status: Status,
    pub(crate) running_matches: u32,
    pub(crate) metadata: Map<String, Value>,
    /// Ids of allocations.
    pub(crate) begun: Vec<String>,
}

impl Ping {
    /// As the rooms API reads it. Its `timestamp` is in Unix seconds.
    pub(crate) fn to_json(&self, at: SystemTime) -> Value {
        let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let mut json = serde_json::json!({
            "status": self.status.as_str(),
            "timestamp": since_epoch.as_secs(),
            "runningMatches": self.running_matches,
            "metadata": self.metadata,
        });
        // Only said to those who have allocations: others may not know the field.
        if !self.begun.is_empty() {
            json["begun"] = Value::from(self.begun.as_slice());
        }
        json
    }
}
