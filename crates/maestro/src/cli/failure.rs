//! How a command fails: with an exit code that scripts can rely on, and a message for people.

use std::process::ExitCode;

/// The exit codes that scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// The operation failed, or the server did.
    Failed,
    /// `diff` found differences, and has shown them.
    Different,
    Invalid,
    NotFound,
    Conflict,
    Unreachable,
    TimedOut,
    /// Whoever read our output stopped reading (`| head`): nothing went wrong.
    PipeClosed,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::PipeClosed => 0,
            Self::Failed | Self::Different => 1,
            Self::Invalid => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Unreachable => 5,
            Self::TimedOut => 6,
        }
    }

    /// The one table from HTTP status to exit code.
    pub(super) fn of_status(status: u16) -> Self {
        match status {
            404 => Self::NotFound,
            // There is no room, or there are too many requests at present.
            409 | 429 => Self::Conflict,
            // A gateway in front of the server speaks for a server it does not reach, or not in time.
            502 | 503 => Self::Unreachable,
            408 | 504 => Self::TimedOut,
            400..=499 => Self::Invalid,
            _ => Self::Failed,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Failure {
    pub(super) exit: Exit,
    /// One line, or one per violation.
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Exit::Invalid, message)
    }

    /// All has been said already.
    pub(super) fn is_silent(&self) -> bool {
        self.message.is_empty()
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit.code())
    }
}
