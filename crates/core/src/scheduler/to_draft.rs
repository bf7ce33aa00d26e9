//! From a recipe back to the draft that says the same, with every default written out.
//!
//! Each type is taken apart by name: a field added to the recipe and forgotten here does not compile.

use std::time::Duration;

use super::draft::{
    AutoscalingDraft, ContainerDraft, ContainerPortDraft, DeletionDraft, DurationDraft,
    EnvironmentVariableDraft, FieldRefDraft, FixedBufferDraft, ForwarderDraft, ForwarderOptionsDraft,
    MatchAllocationDraft, PanicScaleDraft, PlacementDraft, PlacementRegionDraft, PolicyParametersDraft,
    PortRangeDraft, RecipeDraft, ResourcesDraft, RolloutDraft, RoomOccupancyDraft, ScalingPolicyDraft,
    SecretKeyRefDraft, SpecDraft, ValueFromDraft,
};
use super::{
    Autoscaling, Container, ContainerPort, EnvironmentValue, EnvironmentVariable, FixedBuffer, Forwarder,
    MatchAllocation, PanicScale, PortRange, Recipe, Resources, Rollout, RoomOccupancy, Spec,
};
use crate::policy::{DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use crate::room::Region;
use crate::time::Millis;

impl Recipe {
    /// [`Recipe::parse`] of it gives this recipe again.
    pub fn to_draft(&self) -> RecipeDraft {
        let Self {
            name,
            game,
            spec: room,
            port_range: range,
            max_surge,
            rooms_replicas,
            autoscaling: scaling,
            forwarders,
            annotations,
            labels,
            match_allocation: MatchAllocation { max_matches },
            rollout_rules,
            policies: Policies { placement: regions, deletion: choice },
        } = self;
        RecipeDraft {
            name: name.to_string(),
            game: game.clone(),
            spec: Some(spec(room)),
            port_range: range.map(port_range),
            max_surge: max_surge.to_string(),
            rooms_replicas: signed(*rooms_replicas),
            autoscaling: scaling.as_ref().map(autoscaling),
            forwarders: forwarders.iter().map(forwarder).collect(),
            annotations: annotations.clone(),
            labels: labels.clone(),
            match_allocation: Some(MatchAllocationDraft { max_matches: signed(*max_matches) }),
            rollout: rollout_rules.map(rollout),
            // In short, whichever way they were written.
            policies: Vec::new(),
            placement: regions.as_ref().map(placement),
            deletion: choice.map(deletion),
        }
    }
}

/// The wire counts in signed numbers, and no parsed recipe holds more than those reach.
fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn spec(spec: &Spec) -> SpecDraft {
    let Spec { termination_grace_period, containers, toleration, affinity, restart_policy, region } = spec;
    SpecDraft {
        termination_grace_period: Some(duration(*termination_grace_period)),
        containers: containers.iter().map(container).collect(),
        toleration: toleration.clone(),
        affinity: affinity.clone(),
        restart_policy: Some(restart_policy.as_str().to_owned()),
        region: region.as_ref().map(Region::to_string),
    }
}

fn duration(duration: Duration) -> DurationDraft {
    DurationDraft {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: duration.subsec_nanos().cast_signed(),
    }
}

fn container(container: &Container) -> ContainerDraft {
    let Container { name, image, image_pull_policy, command, environment, requests, limits, ports } =
        container;
    ContainerDraft {
        name: name.clone(),
        image: image.clone(),
        image_pull_policy: image_pull_policy.as_str().to_owned(),
        command: command.clone(),
        environment: environment.iter().map(environment_variable).collect(),
        requests: resources(requests),
        limits: resources(limits),
        ports: ports.iter().map(container_port).collect(),
    }
}

fn environment_variable(variable: &EnvironmentVariable) -> EnvironmentVariableDraft {
    let EnvironmentVariable { name, value } = variable;
    let (value, value_from) = match value {
        EnvironmentValue::Text(text) => (Some(text.clone()), None),
        EnvironmentValue::Field { path } => (
            None,
            Some(ValueFromDraft {
                field_ref: Some(FieldRefDraft { field_path: path.clone() }),
                secret_key_ref: None,
            }),
        ),
        EnvironmentValue::Secret { name, key } => (
            None,
            Some(ValueFromDraft {
                field_ref: None,
                secret_key_ref: Some(SecretKeyRefDraft { name: name.clone(), key: key.clone() }),
            }),
        ),
    };
    EnvironmentVariableDraft { name: name.clone(), value, value_from }
}

fn resources(resources: &Resources) -> Option<ResourcesDraft> {
    let Resources { memory, cpu } = resources;
    let draft = ResourcesDraft { memory: memory.clone(), cpu: cpu.clone() };
    Some(draft).filter(|_| *resources != Resources::default())
}

fn container_port(port: &ContainerPort) -> ContainerPortDraft {
    let ContainerPort { name, protocol, port, host_port, host_port_range } = port;
    ContainerPortDraft {
        name: name.clone(),
        protocol: protocol.as_str().to_owned(),
        port: i32::from(*port),
        host_port: i32::from(*host_port),
        host_port_range: host_port_range.map(port_range),
    }
}

fn port_range(range: PortRange) -> PortRangeDraft {
    let PortRange { start, end } = range;
    PortRangeDraft { start: i32::from(start), end: i32::from(end) }
}

fn autoscaling(autoscaling: &Autoscaling) -> AutoscalingDraft {
    let Autoscaling { enabled, min, max, cooldown_seconds, policy, other_parameters: _, panic } = autoscaling;
    AutoscalingDraft {
        enabled: *enabled,
        min: signed(*min),
        max: max.map_or(-1, signed),
        policy: Some(ScalingPolicyDraft {
            policy_type: policy.type_name().to_owned(),
            parameters: Some(PolicyParametersDraft {
                room_occupancy: autoscaling.room_occupancy().map(room_occupancy),
                fixed_buffer: autoscaling.fixed_buffer().map(fixed_buffer),
            }),
        }),
        cooldown: signed(*cooldown_seconds),
        panic: panic.map(panic_scale),
    }
}

fn panic_scale(panic: PanicScale) -> PanicScaleDraft {
    let PanicScale { enabled, limit, delta, timeout } = panic;
    PanicScaleDraft {
        enabled: Some(enabled),
        limit: Some(signed(limit)),
        delta: Some(signed(delta)),
        timeout: Some(duration(timeout.as_duration())),
    }
}

fn room_occupancy(occupancy: RoomOccupancy) -> RoomOccupancyDraft {
    let RoomOccupancy { ready_target, down_threshold } = occupancy;
    RoomOccupancyDraft {
        ready_target: ready_target.to_string(),
        down_threshold: down_threshold.map(|fraction| fraction.to_string()),
    }
}

fn fixed_buffer(buffer: FixedBuffer) -> FixedBufferDraft {
    let FixedBuffer { amount } = buffer;
    FixedBufferDraft { amount: Some(signed(amount)) }
}

fn forwarder(forwarder: &Forwarder) -> ForwarderDraft {
    let Forwarder { name, enabled, address, timeout_ms, metadata } = forwarder;
    ForwarderDraft {
        name: name.clone(),
        enable: *enabled,
        forwarder_type: Forwarder::TYPE.to_owned(),
        address: address.clone(),
        options: Some(ForwarderOptionsDraft {
            timeout: i64::try_from(*timeout_ms).unwrap_or(i64::MAX),
            metadata: metadata.clone(),
        }),
    }
}

fn rollout(rollout: Rollout) -> RolloutDraft {
    let Rollout {
        max_unavailable,
        occupied,
        on_failure,
        max_failures,
        timeout,
        match_end_deadline,
        rejoin_grace,
        occupied_interval,
    } = rollout;
    let time = |time: Millis| duration(time.as_duration());
    RolloutDraft {
        max_unavailable: Some(signed(max_unavailable)),
        occupied: Some(occupied.as_str().to_owned()),
        on_failure: Some(on_failure.as_str().to_owned()),
        max_failures: Some(signed(max_failures)),
        timeout: timeout.map(time),
        match_end_deadline: match_end_deadline.map(time),
        rejoin_grace: Some(time(rejoin_grace)),
        occupied_interval: Some(time(occupied_interval)),
    }
}

fn placement(policy: &PlacementPolicy) -> PlacementDraft {
    let region = |region: &PlacementRegion| {
        let PlacementRegion { name, weight, cap } = region;
        PlacementRegionDraft {
            name: name.to_string(),
            weight: Some(signed(*weight)),
            cap: Some(cap.map_or(-1, signed)),
        }
    };
    let PlacementPolicy { regions } = policy;
    PlacementDraft { regions: regions.iter().map(region).collect() }
}

fn deletion(policy: DeletionPolicy) -> DeletionDraft {
    let DeletionPolicy { criteria } = policy;
    DeletionDraft { criteria: Some(criteria.as_str().to_owned()) }
}
