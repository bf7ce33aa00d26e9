//! From a recipe back to the wire, with every default written out.

use maestro_core::policy::{PlacementPolicy, PlacementRegion};
use maestro_core::room::Region;
use maestro_core::scheduler::{
    Autoscaling, Container, ContainerPort, Delivery, EnvironmentValue, EnvironmentVariable, Forwarder,
    MatchAllocation, PanicScale, PortRange, Recipe, Resources, Rollout, RoomOccupancy, Spec,
};
use maestro_core::time::Millis;

use crate::protobuf::Duration;
use crate::v1::{self, CreateSchedulerRequest};

/// Read again, it is the same recipe.
impl From<&Recipe> for CreateSchedulerRequest {
    fn from(recipe: &Recipe) -> Self {
        Self {
            name: recipe.name.to_string(),
            game: recipe.game.clone(),
            spec: Some(spec(&recipe.spec)),
            port_range: recipe.port_range.map(port_range),
            max_surge: recipe.max_surge.to_string(),
            rooms_replicas: signed(recipe.rooms_replicas),
            autoscaling: recipe.autoscaling.as_ref().map(autoscaling),
            forwarders: recipe.forwarders.iter().map(forwarder).collect(),
            annotations: recipe.annotations.clone(),
            labels: recipe.labels.clone(),
            match_allocation: Some(match_allocation(recipe.match_allocation)),
            rollout: recipe.rollout_rules.map(rollout),
            // In short, whichever way they were written.
            policies: Vec::new(),
            placement: recipe.policies.placement.as_ref().map(placement),
            deletion: recipe
                .policies
                .deletion
                .map(|policy| v1::Deletion { criteria: Some(policy.criteria.as_str().to_owned()) }),
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
    v1::Spec {
        version: String::new(),
        termination_grace_period: Some(spec.termination_grace_period.into()),
        containers: spec.containers.iter().map(container).collect(),
        toleration: spec.toleration.clone(),
        affinity: spec.affinity.clone(),
        restart_policy: Some(spec.restart_policy.as_str().to_owned()),
        region: spec.region.as_ref().map(Region::to_string),
    }
}

fn container(container: &Container) -> v1::Container {
    v1::Container {
        name: container.name.clone(),
        image: container.image.clone(),
        image_pull_policy: container.image_pull_policy.as_str().to_owned(),
        command: container.command.clone(),
        environment: container.environment.iter().map(environment_variable).collect(),
        requests: resources(&container.requests),
        limits: resources(&container.limits),
        ports: container.ports.iter().map(container_port).collect(),
    }
}

fn environment_variable(variable: &EnvironmentVariable) -> v1::ContainerEnvironment {
    let mut from = v1::ContainerEnvironmentValueFrom::default();
    let text = match &variable.value {
        EnvironmentValue::Text(text) => Some(text),
        EnvironmentValue::Field { path } => {
            from.field_ref = Some(v1::ContainerEnvironmentValueFromFieldRef { field_path: path.clone() });
            None
        }
        EnvironmentValue::Secret { name, key } => {
            let (name, key) = (name.clone(), key.clone());
            from.secret_key_ref = Some(v1::ContainerEnvironmentValueFromSecretKeyRef { name, key });
            None
        }
    };
    v1::ContainerEnvironment {
        name: variable.name.clone(),
        // An empty value is left out, as v10 does, and read again as empty.
        value: text.filter(|text| !text.is_empty()).cloned(),
        value_from: text.is_none().then_some(from),
    }
}

fn resources(resources: &Resources) -> Option<v1::ContainerResources> {
    let wire = v1::ContainerResources { memory: resources.memory.clone(), cpu: resources.cpu.clone() };
    Some(wire).filter(|_| *resources != Resources::default())
}

fn container_port(port: &ContainerPort) -> v1::ContainerPort {
    v1::ContainerPort {
        name: port.name.clone(),
        protocol: port.protocol.as_str().to_owned(),
        port: i32::from(port.port),
        host_port: i32::from(port.host_port),
        host_port_range: port.host_port_range.map(port_range),
    }
}

pub(super) fn port_range(range: PortRange) -> v1::PortRange {
    v1::PortRange { start: i32::from(range.start), end: i32::from(range.end) }
}

pub(super) fn match_allocation(allocation: MatchAllocation) -> v1::MatchAllocation {
    v1::MatchAllocation { max_matches: signed(allocation.max_matches) }
}

fn autoscaling(autoscaling: &Autoscaling) -> v1::Autoscaling {
    v1::Autoscaling {
        enabled: autoscaling.enabled,
        min: signed(autoscaling.min),
        max: autoscaling.max.map_or(-1, signed),
        policy: Some(v1::AutoscalingPolicy {
            r#type: autoscaling.policy.type_name().to_owned(),
            parameters: Some(v1::PolicyParameters {
                room_occupancy: autoscaling.room_occupancy().map(room_occupancy),
                fixed_buffer: autoscaling
                    .fixed_buffer()
                    .map(|buffer| v1::FixedBuffer { amount: Some(signed(buffer.amount)) }),
            }),
        }),
        cooldown: signed(autoscaling.cooldown_seconds),
        panic: autoscaling.panic.map(panic_scale),
    }
}

fn panic_scale(panic: PanicScale) -> v1::PanicScale {
    v1::PanicScale {
        enabled: Some(panic.enabled),
        limit: Some(signed(panic.limit)),
        delta: Some(signed(panic.delta)),
        timeout: Some(time(panic.timeout)),
    }
}

fn room_occupancy(occupancy: RoomOccupancy) -> v1::RoomOccupancy {
    let threshold = occupancy.down_threshold.map(|fraction| fraction.to_string());
    v1::RoomOccupancy::of_decimals(occupancy.ready_target.to_string(), threshold)
}

fn forwarder(forwarder: &Forwarder) -> v1::Forwarder {
    v1::Forwarder {
        name: forwarder.name.clone(),
        enable: forwarder.enabled,
        r#type: Forwarder::TYPE.to_owned(),
        address: forwarder.address.clone(),
        options: Some(v1::ForwarderOptions {
            timeout: i64::try_from(forwarder.timeout_ms).unwrap_or(i64::MAX),
            metadata: Some(forwarder.metadata.clone().into()),
            // v10's clients know no other.
            delivery: (forwarder.delivery != Delivery::Direct)
                .then(|| forwarder.delivery.as_str().to_owned()),
        }),
    }
}

fn rollout(rollout: Rollout) -> v1::Rollout {
    v1::Rollout {
        max_unavailable: Some(signed(rollout.max_unavailable)),
        occupied: Some(rollout.occupied.as_str().to_owned()),
        on_failure: Some(rollout.on_failure.as_str().to_owned()),
        max_failures: Some(signed(rollout.max_failures)),
        timeout: rollout.timeout.map(time),
        match_end_deadline: rollout.match_end_deadline.map(time),
        rejoin_grace: Some(time(rollout.rejoin_grace)),
        occupied_interval: Some(time(rollout.occupied_interval)),
    }
}

fn placement(policy: &PlacementPolicy) -> v1::Placement {
    let region = |region: &PlacementRegion| v1::PlacementRegion {
        name: region.name.to_string(),
        weight: Some(signed(region.weight)),
        cap: Some(region.cap.map_or(-1, signed)),
    };
    v1::Placement { regions: policy.regions.iter().map(region).collect() }
}
