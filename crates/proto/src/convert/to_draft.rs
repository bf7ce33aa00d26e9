//! The parts of a recipe from the wire, as they are. No defaults here: those belong to who reads the draft.

use maestro_core::scheduler::draft::{
    AutoscalingDraft, ContainerDraft, ContainerPortDraft, DeletionDraft, DurationDraft,
    EnvironmentVariableDraft, FieldRefDraft, FixedBufferDraft, ForwarderDraft, ForwarderOptionsDraft,
    MatchAllocationDraft, PanicScaleDraft, PlacementDraft, PlacementRegionDraft, PolicyDraft,
    PolicyParametersDraft, PortRangeDraft, ResourcesDraft, RolloutDraft, RoomOccupancyDraft,
    ScalingPolicyDraft, SecretKeyRefDraft, SpecDraft, ValueFromDraft,
};

use crate::protobuf::Duration;
use crate::v1::{
    Autoscaling, AutoscalingPolicy, Container, ContainerEnvironment, ContainerEnvironmentFieldRef,
    ContainerEnvironmentSecretKeyRef, ContainerEnvironmentValueFrom, ContainerPort, ContainerResources,
    Deletion, FixedBuffer, Forwarder, ForwarderOptions, MatchAllocation, PanicScale, Placement,
    PlacementRegion, Policy, PolicyParameters, PortRange, Rollout, RoomOccupancy, Spec,
};

pub(super) fn all<M, D: From<M>>(messages: Vec<M>) -> Vec<D> {
    messages.into_iter().map(D::from).collect()
}

impl From<Spec> for SpecDraft {
    fn from(spec: Spec) -> Self {
        Self {
            termination_grace_period: spec.termination_grace_period.map(Into::into),
            containers: all(spec.containers),
            toleration: spec.toleration,
            affinity: spec.affinity,
            restart_policy: spec.restart_policy,
            region: spec.region,
        }
    }
}

impl From<Duration> for DurationDraft {
    fn from(Duration { seconds, nanos }: Duration) -> Self {
        Self { seconds, nanos }
    }
}

impl From<Container> for ContainerDraft {
    fn from(container: Container) -> Self {
        Self {
            name: container.name,
            image: container.image,
            image_pull_policy: container.image_pull_policy,
            command: container.command,
            environment: all(container.environment),
            requests: container.requests.map(Into::into),
            limits: container.limits.map(Into::into),
            ports: all(container.ports),
        }
    }
}

impl From<ContainerEnvironment> for EnvironmentVariableDraft {
    fn from(variable: ContainerEnvironment) -> Self {
        Self { name: variable.name, value: variable.value, value_from: variable.value_from.map(Into::into) }
    }
}

impl From<ContainerEnvironmentValueFrom> for ValueFromDraft {
    fn from(source: ContainerEnvironmentValueFrom) -> Self {
        let field_ref = |ContainerEnvironmentFieldRef { field_path }| FieldRefDraft { field_path };
        let secret_key_ref = |ContainerEnvironmentSecretKeyRef { name, key }| SecretKeyRefDraft { name, key };
        Self {
            field_ref: source.field_ref.map(field_ref),
            secret_key_ref: source.secret_key_ref.map(secret_key_ref),
        }
    }
}

impl From<ContainerResources> for ResourcesDraft {
    fn from(ContainerResources { memory, cpu }: ContainerResources) -> Self {
        Self { memory, cpu }
    }
}

impl From<ContainerPort> for ContainerPortDraft {
    fn from(port: ContainerPort) -> Self {
        Self {
            name: port.name,
            protocol: port.protocol,
            port: port.port,
            host_port: port.host_port,
            host_port_range: port.host_port_range.map(Into::into),
        }
    }
}

impl From<PortRange> for PortRangeDraft {
    fn from(PortRange { start, end }: PortRange) -> Self {
        Self { start, end }
    }
}

impl From<Autoscaling> for AutoscalingDraft {
    fn from(autoscaling: Autoscaling) -> Self {
        Self {
            enabled: autoscaling.enabled,
            min: autoscaling.min,
            max: autoscaling.max,
            policy: autoscaling.policy.map(Into::into),
            cooldown: autoscaling.cooldown,
            panic: autoscaling.panic.map(Into::into),
        }
    }
}

impl From<PanicScale> for PanicScaleDraft {
    fn from(panic: PanicScale) -> Self {
        Self {
            enabled: panic.enabled,
            limit: panic.limit,
            delta: panic.delta,
            timeout: panic.timeout.map(Into::into),
        }
    }
}

impl From<AutoscalingPolicy> for ScalingPolicyDraft {
    fn from(policy: AutoscalingPolicy) -> Self {
        Self { policy_type: policy.r#type, parameters: policy.parameters.map(Into::into) }
    }
}

impl From<PolicyParameters> for PolicyParametersDraft {
    fn from(parameters: PolicyParameters) -> Self {
        Self {
            room_occupancy: parameters.room_occupancy.map(Into::into),
            fixed_buffer: parameters.fixed_buffer.map(Into::into),
        }
    }
}

impl From<RoomOccupancy> for RoomOccupancyDraft {
    fn from(occupancy: RoomOccupancy) -> Self {
        Self { ready_target: occupancy.ready_target_text(), down_threshold: occupancy.down_threshold_text() }
    }
}

impl From<FixedBuffer> for FixedBufferDraft {
    fn from(FixedBuffer { amount }: FixedBuffer) -> Self {
        Self { amount }
    }
}

impl From<Forwarder> for ForwarderDraft {
    fn from(forwarder: Forwarder) -> Self {
        Self {
            name: forwarder.name,
            enable: forwarder.enable,
            forwarder_type: forwarder.r#type,
            address: forwarder.address,
            options: forwarder.options.map(Into::into),
        }
    }
}

impl From<ForwarderOptions> for ForwarderOptionsDraft {
    fn from(options: ForwarderOptions) -> Self {
        Self { timeout: options.timeout, metadata: options.metadata.unwrap_or_default().into() }
    }
}

impl From<MatchAllocation> for MatchAllocationDraft {
    fn from(MatchAllocation { max_matches }: MatchAllocation) -> Self {
        Self { max_matches }
    }
}

impl From<Rollout> for RolloutDraft {
    fn from(rollout: Rollout) -> Self {
        Self {
            max_unavailable: rollout.max_unavailable,
            occupied: rollout.occupied,
            on_failure: rollout.on_failure,
            max_failures: rollout.max_failures,
            timeout: rollout.timeout.map(Into::into),
            match_end_deadline: rollout.match_end_deadline.map(Into::into),
            rejoin_grace: rollout.rejoin_grace.map(Into::into),
            occupied_interval: rollout.occupied_interval.map(Into::into),
        }
    }
}

impl From<Policy> for PolicyDraft {
    fn from(policy: Policy) -> Self {
        Self {
            policy_type: policy.r#type,
            version: policy.version.map(Into::into).unwrap_or_default(),
            properties: policy.properties.unwrap_or_default().into(),
        }
    }
}

impl From<Placement> for PlacementDraft {
    fn from(Placement { regions }: Placement) -> Self {
        Self { regions: all(regions) }
    }
}

impl From<PlacementRegion> for PlacementRegionDraft {
    fn from(PlacementRegion { name, weight, cap }: PlacementRegion) -> Self {
        Self { name, weight, cap }
    }
}

impl From<Deletion> for DeletionDraft {
    fn from(Deletion { criteria }: Deletion) -> Self {
        Self { criteria }
    }
}
