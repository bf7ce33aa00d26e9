//! From a recipe back to the wire, with every default written out.
//!
//! Each type is taken apart by name: a field added to the recipe and forgotten here does not compile.

use maestro_core::policy::{DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use maestro_core::room::Region;
use maestro_core::scheduler::{
    Autoscaling, Container, ContainerPort, EnvironmentValue, EnvironmentVariable, FixedBuffer, Forwarder,
    MatchAllocation, PanicScale, PortRange, Recipe, Resources, Rollout, RoomOccupancy, Spec,
};
use maestro_core::time::Millis;

use crate::protobuf::Duration;
use crate::v1::{self, CreateSchedulerRequest};

/// Read again, it is the same recipe.
impl From<&Recipe> for CreateSchedulerRequest {
    fn from(recipe: &Recipe) -> Self {
        let Recipe {
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
            match_allocation: matches,
            rollout_rules,
            policies: Policies { placement: regions, deletion },
        } = recipe;
        Self {
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
            match_allocation: Some(match_allocation(*matches)),
            rollout: rollout_rules.map(rollout),
            // In short, whichever way they were written.
            policies: Vec::new(),
            placement: regions.as_ref().map(placement),
            deletion: deletion.map(|DeletionPolicy { criteria }| v1::Deletion {
                criteria: Some(criteria.as_str().to_owned()),
            }),
        }
    }
}

/// The wire's numbers are signed. None of ours is too large for them: recipes, which they come from, are read from there.
pub fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn time(time: Millis) -> Duration {
    time.as_duration().into()
}

fn spec(spec: &Spec) -> v1::Spec {
    let Spec { termination_grace_period, containers, toleration, affinity, restart_policy, region } = spec;
    v1::Spec {
        version: String::new(),
        termination_grace_period: Some((*termination_grace_period).into()),
        containers: containers.iter().map(container).collect(),
        toleration: toleration.clone(),
        affinity: affinity.clone(),
        restart_policy: Some(restart_policy.as_str().to_owned()),
        region: region.as_ref().map(Region::to_string),
    }
}

fn container(container: &Container) -> v1::Container {
    let Container { name, image, image_pull_policy, command, environment, requests, limits, ports } =
        container;
    v1::Container {
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

fn environment_variable(variable: &EnvironmentVariable) -> v1::ContainerEnvironment {
    let EnvironmentVariable { name, value } = variable;
    let mut from = v1::ContainerEnvironmentValueFrom::default();
    let text = match value {
        EnvironmentValue::Text(text) => Some(text),
        EnvironmentValue::Field { path } => {
            from.field_ref = Some(v1::ContainerEnvironmentFieldRef { field_path: path.clone() });
            None
        }
        EnvironmentValue::Secret { name, key } => {
            let (name, key) = (name.clone(), key.clone());
            from.secret_key_ref = Some(v1::ContainerEnvironmentSecretKeyRef { name, key });
            None
        }
    };
    v1::ContainerEnvironment {
        name: name.clone(),
        // An empty value is left out, as v10 does, and read again as empty.
        value: text.filter(|text| !text.is_empty()).cloned(),
        value_from: text.is_none().then_some(from),
    }
}

fn resources(resources: &Resources) -> Option<v1::ContainerResources> {
    let Resources { memory, cpu } = resources;
    let wire = v1::ContainerResources { memory: memory.clone(), cpu: cpu.clone() };
    Some(wire).filter(|_| *resources != Resources::default())
}

fn container_port(port: &ContainerPort) -> v1::ContainerPort {
    let ContainerPort { name, protocol, port, host_port, host_port_range } = port;
    v1::ContainerPort {
        name: name.clone(),
        protocol: protocol.as_str().to_owned(),
        port: i32::from(*port),
        host_port: i32::from(*host_port),
        host_port_range: host_port_range.map(port_range),
    }
}

pub(super) fn port_range(range: PortRange) -> v1::PortRange {
    let PortRange { start, end } = range;
    v1::PortRange { start: i32::from(start), end: i32::from(end) }
}

pub(super) fn match_allocation(allocation: MatchAllocation) -> v1::MatchAllocation {
    let MatchAllocation { max_matches } = allocation;
    v1::MatchAllocation { max_matches: signed(max_matches) }
}

fn autoscaling(autoscaling: &Autoscaling) -> v1::Autoscaling {
    let Autoscaling { enabled, min, max, cooldown_seconds, policy, other_parameters: _, panic } = autoscaling;
    v1::Autoscaling {
        enabled: *enabled,
        min: signed(*min),
        max: max.map_or(-1, signed),
        policy: Some(v1::AutoscalingPolicy {
            r#type: policy.type_name().to_owned(),
            parameters: Some(v1::PolicyParameters {
                room_occupancy: autoscaling.room_occupancy().map(room_occupancy),
                fixed_buffer: autoscaling
                    .fixed_buffer()
                    .map(|FixedBuffer { amount }| v1::FixedBuffer { amount: Some(signed(amount)) }),
            }),
        }),
        cooldown: signed(*cooldown_seconds),
        panic: panic.map(panic_scale),
    }
}

fn panic_scale(panic: PanicScale) -> v1::PanicScale {
    let PanicScale { enabled, limit, delta, timeout } = panic;
    v1::PanicScale {
        enabled: Some(enabled),
        limit: Some(signed(limit)),
        delta: Some(signed(delta)),
        timeout: Some(time(timeout)),
    }
}

fn room_occupancy(occupancy: RoomOccupancy) -> v1::RoomOccupancy {
    let RoomOccupancy { ready_target, down_threshold } = occupancy;
    v1::RoomOccupancy::of_decimals(
        ready_target.to_string(),
        down_threshold.map(|fraction| fraction.to_string()),
    )
}

fn forwarder(forwarder: &Forwarder) -> v1::Forwarder {
    let Forwarder { name, enabled, address, timeout_ms, metadata } = forwarder;
    v1::Forwarder {
        name: name.clone(),
        enable: *enabled,
        r#type: Forwarder::TYPE.to_owned(),
        address: address.clone(),
        options: Some(v1::ForwarderOptions {
            timeout: i64::try_from(*timeout_ms).unwrap_or(i64::MAX),
            metadata: Some(metadata.clone().into()),
        }),
    }
}

fn rollout(rollout: Rollout) -> v1::Rollout {
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
    v1::Rollout {
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

fn placement(policy: &PlacementPolicy) -> v1::Placement {
    let PlacementPolicy { regions } = policy;
    let region = |PlacementRegion { name, weight, cap }: &PlacementRegion| v1::PlacementRegion {
        name: name.to_string(),
        weight: Some(signed(*weight)),
        cap: Some(cap.map_or(-1, signed)),
    };
    v1::Placement { regions: regions.iter().map(region).collect() }
}
