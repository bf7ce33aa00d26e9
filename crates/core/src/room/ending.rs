//! How a room ended, in words for people and as a cause for decisions.

use std::fmt;

use crate::words::words;

/// What the runtime can say about the end of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// A container ended by itself.
    Exited { container: String, code: i32 },
    /// A container was ended by a signal that Maestro did not send.
    Killed { container: String, signal: i32 },
    /// Maestro asked it to stop, and it did within its grace period.
    Stopped,
    /// Maestro asked it to stop, and had to kill it after its grace period.
    KilledAfterGrace,
    /// It ended while nobody watched, so the kernel told nobody how.
    Unwatched,
    /// The runtime does not have it (any more).
    Lost,
    /// It could not be started.
    NeverStarted { why: String },
    /// Nobody knows whether it runs, and nobody waits for it any more. If it is found again, it is stopped.
    GivenUp { why: String },
}

words! {
    /// Why a room ended, as far as decisions need to know.
    pub enum EndCause {
        /// Maestro stopped it, or gave it up: it says nothing about the room.
        Asked = "asked",
        /// It ended by itself, with code 0.
        Completed = "completed",
        /// It failed: an error code, a signal, a start that did not work.
        Failed = "failed",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

impl Ending {
    pub fn cause(&self) -> EndCause {
        match self {
            Self::Exited { code: 0, .. } => EndCause::Completed,
            Self::Exited { .. } | Self::Killed { .. } | Self::NeverStarted { .. } => EndCause::Failed,
            Self::Stopped | Self::KilledAfterGrace | Self::GivenUp { .. } => EndCause::Asked,
            Self::Unwatched | Self::Lost => EndCause::Unknown,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { container, code } => write!(f, "container {container} exited with code {code}"),
            Self::Killed { container, signal } => {
                write!(f, "container {container} was killed by signal {signal}")?;
                signal_name(*signal).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            Self::Stopped => f.write_str("stopped by Maestro, ended within its grace period"),
            Self::KilledAfterGrace => f.write_str("stopped by Maestro, killed after its grace period"),
            Self::Unwatched => f.write_str("ended while nobody watched; how is not known"),
            Self::Lost => f.write_str("lost: the runtime does not have it any more"),
            Self::NeverStarted { why } => write!(f, "never started: {why}"),
            Self::GivenUp { why } => write!(f, "given up: {why}"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}
