//! The parts of a recipe for the wire, as v10 prints them.
//!
//! Each draft is taken apart by name: a field added there and forgotten here does not compile.

use maestro_core::scheduler::draft::{
    AutoscalingDraft, ContainerDraft, ContainerPortDraft, DeletionDraft, DurationDraft,
    EnvironmentVariableDraft, FieldRefDraft, FixedBufferDraft, ForwarderDraft, ForwarderOptionsDraft,
    MatchAllocationDraft, PanicScaleDraft, PlacementDraft, PlacementRegionDraft, PolicyDraft,
    PolicyParametersDraft, PortRangeDraft, ResourcesDraft, RolloutDraft, RoomOccupancyDraft,
    ScalingPolicyDraft, SecretKeyRefDraft, SpecDraft, ValueFromDraft,
};

use super::to_draft::all;
use crate::protobuf::Duration;
use crate::v1::{
    Autoscaling, AutoscalingPolicy, Container, ContainerEnvironment, ContainerEnvironmentFieldRef,
    ContainerEnvironmentSecretKeyRef, ContainerEnvironmentValueFrom, ContainerPort, ContainerResources,
    Deletion, FixedBuffer, Forwarder, ForwarderOptions, MatchAllocation, PanicScale, Placement,
    PlacementRegion, Policy, PolicyParameters, PortRange, Rollout, RoomOccupancy, Spec,
};

impl From<SpecDraft> for Spec {
    fn from(draft: SpecDraft) -> Self {
        let SpecDraft { termination_grace_period, containers, toleration, affinity, restart_policy, region } =
            draft;
        Self {
            version: String::new(),
            termination_grace_period: termination_grace_period.map(Into::into),
            containers: all(containers),
            toleration,
            affinity,
            restart_policy,
            region,
        }
    }
}

impl From<DurationDraft> for Duration {
    fn from(DurationDraft { seconds, nanos }: DurationDraft) -> Self {
        Self { seconds, nanos }
    }
}

impl From<ContainerDraft> for Container {
    fn from(draft: ContainerDraft) -> Self {
        let ContainerDraft { name, image, image_pull_policy, command, environment, requests, limits, ports } =
            draft;
        Self {
            name,
            image,
            image_pull_policy,
            command,
            environment: all(environment),
            requests: requests.map(Into::into),
            limits: limits.map(Into::into),
            ports: all(ports),
        }
    }
}

impl From<EnvironmentVariableDraft> for ContainerEnvironment {
    fn from(draft: EnvironmentVariableDraft) -> Self {
        let EnvironmentVariableDraft { name, value, value_from } = draft;
        Self {
            name,
            // An empty value is left out, and read again as empty.
            value: value.filter(|value| !value.is_empty()),
            value_from: value_from.map(Into::into),
        }
    }
}

impl From<ValueFromDraft> for ContainerEnvironmentValueFrom {
    fn from(draft: ValueFromDraft) -> Self {
        let ValueFromDraft { field_ref, secret_key_ref } = draft;
        Self {
            field_ref: field_ref
                .map(|FieldRefDraft { field_path }| ContainerEnvironmentFieldRef { field_path }),
            secret_key_ref: secret_key_ref
                .map(|SecretKeyRefDraft { name, key }| ContainerEnvironmentSecretKeyRef { name, key }),
        }
    }
}

impl From<ResourcesDraft> for ContainerResources {
    fn from(ResourcesDraft { memory, cpu }: ResourcesDraft) -> Self {
        Self { memory, cpu }
    }
}

impl From<ContainerPortDraft> for ContainerPort {
    fn from(draft: ContainerPortDraft) -> Self {
        let ContainerPortDraft { name, protocol, port, host_port, host_port_range } = draft;
        Self { name, protocol, port, host_port, host_port_range: host_port_range.map(Into::into) }
    }
}

impl From<PortRangeDraft> for PortRange {
    fn from(PortRangeDraft { start, end }: PortRangeDraft) -> Self {
        Self { start, end }
    }
}

impl From<AutoscalingDraft> for Autoscaling {
    fn from(draft: AutoscalingDraft) -> Self {
        let AutoscalingDraft { enabled, min, max, policy, cooldown, panic } = draft;
        Self { enabled, min, max, policy: policy.map(Into::into), cooldown, panic: panic.map(Into::into) }
    }
}

impl From<PanicScaleDraft> for PanicScale {
    fn from(draft: PanicScaleDraft) -> Self {
        let PanicScaleDraft { enabled, limit, delta, timeout } = draft;
        Self { enabled, limit, delta, timeout: timeout.map(Into::into) }
    }
}

impl From<ScalingPolicyDraft> for AutoscalingPolicy {
    fn from(draft: ScalingPolicyDraft) -> Self {
        let ScalingPolicyDraft { policy_type, parameters } = draft;
        Self { r#type: policy_type, parameters: parameters.map(Into::into) }
    }
}

impl From<PolicyParametersDraft> for PolicyParameters {
    fn from(draft: PolicyParametersDraft) -> Self {
        let PolicyParametersDraft { room_occupancy, fixed_buffer } = draft;
        Self { room_occupancy: room_occupancy.map(Into::into), fixed_buffer: fixed_buffer.map(Into::into) }
    }
}

impl From<RoomOccupancyDraft> for RoomOccupancy {
    fn from(draft: RoomOccupancyDraft) -> Self {
        let RoomOccupancyDraft { ready_target, down_threshold } = draft;
        Self::of_decimals(ready_target, down_threshold)
    }
}

impl From<FixedBufferDraft> for FixedBuffer {
    fn from(FixedBufferDraft { amount }: FixedBufferDraft) -> Self {
        Self { amount }
    }
}

impl From<ForwarderDraft> for Forwarder {
    fn from(draft: ForwarderDraft) -> Self {
        let ForwarderDraft { name, enable, forwarder_type, address, options } = draft;
        Self { name, enable, r#type: forwarder_type, address, options: options.map(Into::into) }
    }
}

impl From<ForwarderOptionsDraft> for ForwarderOptions {
    fn from(ForwarderOptionsDraft { timeout, metadata }: ForwarderOptionsDraft) -> Self {
        Self { timeout, metadata: Some(metadata.into()) }
    }
}

impl From<MatchAllocationDraft> for MatchAllocation {
    fn from(MatchAllocationDraft { max_matches }: MatchAllocationDraft) -> Self {
        Self { max_matches }
    }
}

impl From<RolloutDraft> for Rollout {
    fn from(draft: RolloutDraft) -> Self {
        let RolloutDraft {
            max_unavailable,
            occupied,
            on_failure,
            max_failures,
            timeout,
            match_end_deadline,
            rejoin_grace,
            occupied_interval,
        } = draft;
        Self {
            max_unavailable,
            occupied,
            on_failure,
            max_failures,
            timeout: timeout.map(Into::into),
            match_end_deadline: match_end_deadline.map(Into::into),
            rejoin_grace: rejoin_grace.map(Into::into),
            occupied_interval: occupied_interval.map(Into::into),
        }
    }
}

impl From<PolicyDraft> for Policy {
    fn from(PolicyDraft { policy_type, version, properties }: PolicyDraft) -> Self {
        Self { r#type: policy_type, version: Some(version.into()), properties: Some(properties.into()) }
    }
}

impl From<PlacementDraft> for Placement {
    fn from(PlacementDraft { regions }: PlacementDraft) -> Self {
        Self { regions: all(regions) }
    }
}

impl From<PlacementRegionDraft> for PlacementRegion {
    fn from(PlacementRegionDraft { name, weight, cap }: PlacementRegionDraft) -> Self {
        Self { name, weight, cap }
    }
}

impl From<DeletionDraft> for Deletion {
    fn from(DeletionDraft { criteria }: DeletionDraft) -> Self {
        Self { criteria }
    }
}
