//! A recipe as it comes from outside: whatever was written, checked by nothing yet.
//!
//! The fields are those of the wire, with the wire's loose types, so that a reader of any format can fill them in
//! without an opinion of its own. [`Recipe::parse`](super::Recipe::parse) is the only one that has opinions.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecipeDraft {
    pub name: String,
    pub game: String,
    pub spec: Option<SpecDraft>,
    pub port_range: Option<PortRangeDraft>,
    pub max_surge: String,
    pub rooms_replicas: i32,
    pub autoscaling: Option<AutoscalingDraft>,
    pub forwarders: Vec<ForwarderDraft>,
    pub annotations: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub match_allocation: Option<MatchAllocationDraft>,
    pub rollout: Option<RolloutDraft>,
    /// Senlin's documents. `placement` and `deletion` say the same in short.
    pub policies: Vec<PolicyDraft>,
    pub placement: Option<PlacementDraft>,
    pub deletion: Option<DeletionDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpecDraft {
    pub termination_grace_period: Option<DurationDraft>,
    pub containers: Vec<ContainerDraft>,
    pub toleration: String,
    pub affinity: String,
    pub restart_policy: Option<String>,
    pub region: Option<String>,
}

/// A length of time as protobuf has it: both parts signed, and nothing says that their signs agree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DurationDraft {
    pub seconds: i64,
    pub nanos: i32,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContainerDraft {
    pub name: String,
    pub image: String,
    pub image_pull_policy: String,
    pub command: Vec<String>,
    pub environment: Vec<EnvironmentVariableDraft>,
    pub requests: Option<ResourcesDraft>,
    pub limits: Option<ResourcesDraft>,
    pub ports: Vec<ContainerPortDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnvironmentVariableDraft {
    pub name: String,
    pub value: Option<String>,
    pub value_from: Option<ValueFromDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValueFromDraft {
    pub field_ref: Option<FieldRefDraft>,
    pub secret_key_ref: Option<SecretKeyRefDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldRefDraft {
    pub field_path: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SecretKeyRefDraft {
    pub name: String,
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourcesDraft {
    pub memory: String,
    pub cpu: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContainerPortDraft {
    pub name: String,
    pub protocol: String,
    pub port: i32,
    pub host_port: i32,
    pub host_port_range: Option<PortRangeDraft>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PortRangeDraft {
    pub start: i32,
    pub end: i32,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AutoscalingDraft {
    pub enabled: bool,
    pub min: i32,
    pub max: i32,
    pub policy: Option<ScalingPolicyDraft>,
    pub cooldown: i32,
    pub panic: Option<PanicScaleDraft>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PanicScaleDraft {
    pub enabled: Option<bool>,
    pub limit: Option<i32>,
    pub delta: Option<i32>,
    pub timeout: Option<DurationDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScalingPolicyDraft {
    /// Written `type`, which Rust keeps for itself.
    pub policy_type: String,
    pub parameters: Option<PolicyParametersDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyParametersDraft {
    pub room_occupancy: Option<RoomOccupancyDraft>,
    pub fixed_buffer: Option<FixedBufferDraft>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomOccupancyDraft {
    /// Decimals as they were written: a float would not hold all digits.
    pub ready_target: String,
    pub down_threshold: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FixedBufferDraft {
    pub amount: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForwarderDraft {
    pub name: String,
    /// Written `enable`.
    pub enable: bool,
    /// Written `type`.
    pub forwarder_type: String,
    pub address: String,
    pub options: Option<ForwarderOptionsDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForwarderOptionsDraft {
    /// Milliseconds.
    pub timeout: i64,
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MatchAllocationDraft {
    pub max_matches: i32,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RolloutDraft {
    pub max_unavailable: Option<i32>,
    pub occupied: Option<String>,
    pub on_failure: Option<String>,
    pub max_failures: Option<i32>,
    pub timeout: Option<DurationDraft>,
    pub match_end_deadline: Option<DurationDraft>,
    pub rejoin_grace: Option<DurationDraft>,
    pub occupied_interval: Option<DurationDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyDraft {
    /// Written `type`.
    pub policy_type: String,
    /// A text, or the number that YAML takes `1.0` for.
    pub version: serde_json::Value,
    pub properties: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlacementDraft {
    pub regions: Vec<PlacementRegionDraft>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlacementRegionDraft {
    pub name: String,
    pub weight: Option<i32>,
    pub cap: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionDraft {
    pub criteria: Option<String>,
}
