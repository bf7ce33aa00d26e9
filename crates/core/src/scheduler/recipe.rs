//! The recipe of a fleet, as read: a value of these types is valid, and nothing behind them checks again.
//! `maestro_proto::recipe` reads it from the wire, and writes it again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::policy::Policies;
use crate::room::Region;
use crate::time::Millis;

use super::{Delivery, ImagePullPolicy, OccupiedRooms, OnFailure, Protocol, RestartPolicy, SchedulerName};

/// What a studio writes down about one fleet, without its version number and state.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    pub name: SchedulerName,
    pub game: String,
    pub spec: Spec,
    /// `None`: every port has a range of its own.
    pub port_range: Option<PortRange>,
    pub max_surge: MaxSurge,
    pub rooms_replicas: u32,
    pub autoscaling: Option<Autoscaling>,
    pub forwarders: Vec<Forwarder>,
    pub annotations: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub match_allocation: MatchAllocation,
    /// `None`: nothing was written, the defaults apply; see [`Recipe::rollout`].
    pub rollout_rules: Option<Rollout>,
    pub policies: Policies,
}

/// What a room is.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Longer than zero.
    pub termination_grace_period: Duration,
    /// Never empty.
    pub containers: Vec<Container>,
    pub toleration: String,
    pub affinity: String,
    pub restart_policy: RestartPolicy,
    /// Where all rooms are; `None`: where the placement policy wants them.
    pub region: Option<Region>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    pub name: String,
    pub image: String,
    pub image_pull_policy: ImagePullPolicy,
    pub command: Vec<String>,
    pub environment: Vec<EnvironmentVariable>,
    pub requests: Resources,
    pub limits: Resources,
    pub ports: Vec<ContainerPort>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentVariable {
    pub name: String,
    pub value: EnvironmentValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentValue {
    Text(String),
    /// A field of the room itself, `metadata.name`.
    Field {
        path: String,
    },
    Secret {
        name: String,
        key: String,
    },
}

/// Kubernetes quantities, checked and kept as written: `100m`, `64Mi`.
/// What is not set is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    pub memory: String,
    pub cpu: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPort {
    pub name: String,
    pub protocol: Protocol,
    /// The port that the room listens to, where the runtime has a network of its own.
    pub port: u16,
    /// What was submitted as `hostPort`. Shown again, never used: Maestro chooses host ports.
    pub host_port: u16,
    pub host_port_range: Option<PortRange>,
}

/// Both ends are part of it; `start < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub start: u16,
    pub end: u16,
}

/// How many rooms a rollout may make above the desired number, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxSurge {
    Rooms(u32),
    Percent(u32),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Autoscaling {
    pub enabled: bool,
    pub min: u32,
    /// `None`: no limit, written -1.
    pub max: Option<u32>,
    pub cooldown_seconds: u32,
    pub policy: ScalingPolicy,
    /// Both parameter blocks may be submitted and come back; the policy's type says which one counts.
    pub other_parameters: OtherParameters,
    /// `None`: nothing was written, the defaults apply; see [`Autoscaling::panic_scale`].
    pub panic: Option<PanicScale>,
}

/// A burst of rooms that is added at once when nearly all matches are taken, before the next health cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanicScale {
    pub enabled: bool,
    /// The percentage of matches taken that must be exceeded, 1 to 99.
    pub limit: u32,
    /// How many rooms a panic adds, at least 1.
    pub delta: u32,
    /// How long the next panic waits for the rooms of this one to be ready.
    pub timeout: Millis,
}

impl Default for PanicScale {
    fn default() -> Self {
        Self { enabled: false, limit: 90, delta: 10, timeout: Millis::from_seconds(120) }
    }
}

impl PanicScale {
    /// The reason alone on failure: the caller knows which field it read. Not 100: what must be exceeded has to leave
    /// something above it.
    pub fn parse_limit(limit: i32) -> Result<u32, String> {
        match u32::try_from(limit) {
            Ok(limit @ 1..=99) => Ok(limit),
            Ok(_) | Err(_) => Err(format!(
                "{limit} is not between 1 and 99; it is the percentage of all places above which it panics, and no \
                 fleet is more than full"
            )),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ScalingPolicy {
    RoomOccupancy(RoomOccupancy),
    FixedBuffer(FixedBuffer),
}

/// The block that the policy's type does not name; the other one is always `None` here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtherParameters {
    pub room_occupancy: Option<RoomOccupancy>,
    pub fixed_buffer: Option<FixedBuffer>,
}

impl ScalingPolicy {
    pub const ROOM_OCCUPANCY: &str = "roomOccupancy";
    pub const FIXED_BUFFER: &str = "fixedBuffer";

    /// As recipes write it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::RoomOccupancy(_) => Self::ROOM_OCCUPANCY,
            Self::FixedBuffer(_) => Self::FIXED_BUFFER,
        }
    }
}

impl Autoscaling {
    /// How `max` is written when there is none.
    const NO_MAX: i32 = -1;

    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse_min(min: i32) -> Result<u32, String> {
        match u32::try_from(min) {
            Ok(min) if min >= 1 => Ok(min),
            Ok(_) | Err(_) => Err(format!(
                "{min} is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"
            )),
        }
    }

    /// `None`: no limit.
    pub fn parse_max(max: i32, min: i32) -> Result<Option<u32>, String> {
        match u32::try_from(max) {
            Ok(limit) if max > min => Ok(Some(limit)),
            Err(_) if max == Self::NO_MAX => Ok(None),
            Ok(_) | Err(_) => {
                Err(format!("{max} is not above min, which is {min}; {} means no limit", Self::NO_MAX))
            }
        }
    }

    /// `None`: this fleet does not panic.
    pub fn panic_scale(&self) -> Option<PanicScale> {
        self.panic.filter(|panic| self.enabled && panic.enabled)
    }

    /// The block as submitted, whether it counts or not.
    pub fn room_occupancy(&self) -> Option<RoomOccupancy> {
        match &self.policy {
            ScalingPolicy::RoomOccupancy(parameters) => Some(*parameters),
            ScalingPolicy::FixedBuffer(_) => self.other_parameters.room_occupancy,
        }
    }

    /// The block as submitted, whether it counts or not.
    pub fn fixed_buffer(&self) -> Option<FixedBuffer> {
        match &self.policy {
            ScalingPolicy::RoomOccupancy(_) => self.other_parameters.fixed_buffer,
            ScalingPolicy::FixedBuffer(parameters) => Some(*parameters),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomOccupancy {
    pub ready_target: ReadyTarget,
    /// `None`: a scale-down is not held back by it.
    pub down_threshold: Option<Fraction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedBuffer {
    pub amount: u32,
}

/// An exact decimal between 0 and 1, both excluded, of up to 18 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fraction {
    pub(super) units: u64,
}

/// The share of rooms that stands ready, 0.1 to 0.9, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyTarget(pub(super) Fraction);

impl Forwarder {
    /// The only type there is, as recipes write it.
    pub const TYPE: &str = "gRPC";
}

#[derive(Debug, Clone, PartialEq)]
pub struct Forwarder {
    pub name: String,
    pub enabled: bool,
    /// Only `gRPC` exists, so there is no field for the type.
    pub address: String,
    pub timeout_ms: u64,
    pub delivery: Delivery,
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

/// How a new major version replaces the rooms of older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollout {
    /// How many ready rooms may be missing meanwhile.
    pub max_unavailable: u32,
    pub occupied: OccupiedRooms,
    pub on_failure: OnFailure,
    /// New rooms in a row that did not become ready, at least 1.
    pub max_failures: u32,
    /// `None`: as long as it takes.
    pub timeout: Option<Millis>,
    /// How long rooms wait for their match to end; `None`: forever.
    pub match_end_deadline: Option<Millis>,
    /// How long the players of a room that went are waited for elsewhere.
    pub rejoin_grace: Millis,
    /// Between two cycles that take rooms with players; zero: every cycle may.
    pub occupied_interval: Millis,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_unavailable: 0,
            occupied: OccupiedRooms::DeleteLast,
            on_failure: OnFailure::Rollback,
            max_failures: 5,
            timeout: None,
            match_end_deadline: None,
            rejoin_grace: Millis(0),
            occupied_interval: Millis::from_seconds(30),
        }
    }
}

impl Recipe {
    /// How a rollout of this recipe goes.
    pub fn rollout(&self) -> Rollout {
        self.rollout_rules.unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchAllocation {
    /// How many matches a room holds at once, 1 to 35.
    pub max_matches: u32,
}
