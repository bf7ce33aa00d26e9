//! What is simulated: a fleet to begin with, its recipe, the players, and what goes wrong.

mod csv;
mod demand;
mod document;
mod parse;

use maestro_core::plan::Limits;
use maestro_core::scheduler::{Recipe, Version};
use maestro_core::time::Millis;
use maestro_core::violation::Violations;
use maestro_proto::document::SyntaxError;

pub use demand::Demand;
pub use document::Draft;
pub use parse::Parsed;

/// More than any fleet has, and few enough to be counted on one machine.
pub const ROOMS_MAX: u32 = 1_000_000;
/// A cycle every ten seconds for four months.
pub const CYCLES_MAX: u32 = 1_000_000;
pub(crate) const MATCHES_MAX: u32 = 1_000_000;

/// A value of this type is valid; nothing behind it checks again.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub recipe: Recipe,
    pub start: Start,
    pub demand: Demand,
    /// From one health cycle to the next, longer than zero.
    pub cycle: Millis,
    pub length: Length,
    /// How long a room takes to become ready.
    pub room_start: Millis,
    pub failures: Share,
    /// When a major version arrives: every room that is there then is to be replaced.
    pub new_version_at: Option<Millis>,
    /// `None`: matches go on until fewer are wanted.
    pub match_length: Option<Millis>,
    pub seed: u64,
    pub limits: Limits,
}

/// The fleet before the first cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub ready: u32,
    /// Each with as many matches as a room holds.
    pub occupied: u32,
    pub version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Cycles(u32),
    /// Until nothing is left to do and nothing will change.
    UntilRest,
}

/// A part of all, in millionths: 0 to a whole million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub millionths: u32,
}

impl Share {
    /// All there is, in millionths.
    pub const WHOLE: u32 = 1_000_000;
}

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("{name}: cannot be read: {source}")]
    Unreadable { name: String, source: std::io::Error },
    #[error("{name}: not valid YAML or JSON: {reason}")]
    Syntax { name: String, reason: SyntaxError },
    #[error("{name}: {reason}")]
    Content { name: String, reason: String },
    #[error(transparent)]
    Invalid(#[from] Violations),
}
