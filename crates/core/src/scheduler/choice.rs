//! The words that a recipe chooses from, as they are written.

use super::{ImagePullPolicy, OccupiedRooms, OnFailure, Protocol, RestartPolicy};
use crate::policy::Criteria;

impl RestartPolicy {
    pub const ALL: [Self; 3] = [Self::Always, Self::OnFailure, Self::Never];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::OnFailure => "OnFailure",
            Self::Never => "Never",
        }
    }

    /// The reason alone on failure, here and below: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        choose(text, &Self::ALL, Self::as_str)
    }
}

impl ImagePullPolicy {
    pub const ALL: [Self; 3] = [Self::Always, Self::Never, Self::IfNotPresent];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Never => "Never",
            Self::IfNotPresent => "IfNotPresent",
        }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        choose(text, &Self::ALL, Self::as_str)
    }
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// As recipes write it. Addresses of rooms have it in capitals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        choose(text, &Self::ALL, Self::as_str)
    }
}

impl OccupiedRooms {
    pub const ALL: [Self; 2] = [Self::DeleteLast, Self::WaitForMatchEnd];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeleteLast => "deleteLast",
            Self::WaitForMatchEnd => "waitForMatchEnd",
        }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        choose(text, &Self::ALL, Self::as_str)
    }
}

impl OnFailure {
    pub const ALL: [Self; 2] = [Self::Rollback, Self::Halt];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rollback => "rollback",
            Self::Halt => "halt",
        }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        choose(text, &Self::ALL, Self::as_str)
    }
}

impl Criteria {
    /// In Senlin's order.
    pub const ALL: [Self; 4] =
        [Self::OldestFirst, Self::OldestProfileFirst, Self::YoungestFirst, Self::Random];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OldestFirst => "OLDEST_FIRST",
            Self::OldestProfileFirst => "OLDEST_PROFILE_FIRST",
            Self::YoungestFirst => "YOUNGEST_FIRST",
            Self::Random => "RANDOM",
        }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        choose(text, &Self::ALL, Self::as_str)
    }
}

fn choose<T: Copy>(text: &str, all: &[T], as_str: fn(T) -> &'static str) -> Result<T, String> {
    all.iter().copied().find(|choice| as_str(*choice) == text).ok_or_else(|| {
        let words: Vec<_> = all.iter().map(|choice| as_str(*choice)).collect();
        let words = words.join(", ");
        if text.is_empty() {
            format!("is missing; one of {words} is needed")
        } else {
            format!("{text:?} is not one of {words}")
        }
    })
}
