//! The log keeper: a process that stands between the rooms of a region and their log files, so that no room can write
//! more than it may.
//!
//! A room writes to a named pipe in its directory. The keeper reads all these pipes and is the only one that writes log
//! files, each of them in two halves: when `<container>.log` is full it becomes `<container>.log.1`. It also holds all
//! logs of a scheduler within a limit.
//!
//! Rooms must survive Maestro, so the keeper is a process of its own and survives Maestro too; it ends when it has
//! neither a Maestro nor a room. It keeps no state: pipes have names, so whoever comes next opens them again. That is
//! how a keeper that was killed is replaced, and each Maestro begins with a keeper of its own, which ends the one before.
//! A room holds its pipe open for reading too, and is therefore never killed for want of a reader; without a keeper it
//! can write as much as fits into the pipe, and then waits for the next one.
//!
//! | file | what it knows |
//! |---|---|
//! | `client` | Maestro's side: starting the keeper, handing it pipes, asking it to write down what is in them |
//! | `process` | the keeper's side: reading pipes |
//! | `pipe` | the pipe of a container |
//! | `files` | writing logs without following links, and what there is |
//! | `budget` | what is dropped when a scheduler has too much |

mod budget;
mod client;
mod files;
mod pipe;
mod process;

pub(crate) use client::LogKeeper;
pub(crate) use pipe::Output;
pub use process::keep_logs;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The name of a container's pipe is that of its log with this extension.
pub(crate) const PIPE: &str = "pipe";

/// No packet is longer: names are file names.
const PACKET_BYTES_MAX: usize = 8192;

/// What the keeper is told. Each is one packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "order")]
enum Order {
    /// The first one.
    Begin(Settings),
    /// With the reading end of a pipe.
    Keep(Source),
    /// Write down everything that the room has written so far, and say so.
    Drain { id: u64, scheduler: String, room: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    /// In it are `<scheduler>/<room>/<container>.log`.
    pub(crate) rooms: PathBuf,
    /// Held by the keeper that works here.
    pub(crate) lock: PathBuf,
    /// The most that both halves of a container's log may take together.
    pub(crate) container_bytes: u64,
    /// The most that all logs of a scheduler may take together.
    pub(crate) scheduler_bytes: u64,
}

/// Whose output it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Source {
    pub(crate) scheduler: String,
    pub(crate) room: String,
    pub(crate) container: String,
}

/// What the keeper says. Each is one packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "report")]
enum Report {
    Drained { id: u64 },
    Warning { text: String },
}
