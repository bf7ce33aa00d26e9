//! What differs between two recipes, and whether rooms made from one can stay under the other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Autoscaling, Container, ContainerPort, PanicScale, Recipe, Rollout, RoomOccupancy, Spec};
use crate::policy::{DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};

/// How much a new recipe changes. Ordered: the greatest of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecipeChange {
    None,
    /// Rooms stay as they are.
    Minor,
    /// Something that is stamped on a room: rooms must be replaced.
    Major,
}

/// The fields in which two recipes differ, the minor ones first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    pub fields: Vec<ChangedField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedField {
    /// As the user writes it, `spec.containers[0].image`. Of a list, the items that only one of the two has are
    /// named whole.
    pub path: String,
    /// Never [`RecipeChange::None`].
    pub change: RecipeChange,
}

impl Difference {
    /// Major: all under `spec`, and what else is stamped on a room (port ranges, labels, annotations). A `hostPort`
    /// is in none of them: it is shown again and never used, so it cannot make a difference.
    pub fn between(old: &Recipe, new: &Recipe) -> Self {
        let Recipe {
            name,
            game,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            // Compared as what they come to: writing a default down changes nothing.
            rollout_rules: _,
            policies,
        } = new;
        let mut difference = Self::default();
        let minor = &mut Comparison::of(&mut difference, RecipeChange::Minor);
        minor.field("name", &old.name, name);
        minor.field("game", &old.game, game);
        minor.field("maxSurge", &old.max_surge, max_surge);
        minor.field("roomsReplicas", &old.rooms_replicas, rooms_replicas);
        minor.autoscaling(old.autoscaling.as_ref(), autoscaling.as_ref());
        minor.list("forwarders", &old.forwarders, forwarders, |comparison, path, old, new| {
            comparison.field(path, old, new);
        });
        minor.field(
            "matchAllocation.maxMatches",
            &old.match_allocation.max_matches,
            &match_allocation.max_matches,
        );
        minor.rollout(old.rollout(), new.rollout());
        minor.policies(&old.policies, policies);

        let major = &mut Comparison::of(&mut difference, RecipeChange::Major);
        major.spec(&old.spec, spec);
        major.field("portRange", &old.port_range, port_range);
        major.map("annotations", &old.annotations, annotations);
        major.map("labels", &old.labels, labels);
        difference
    }

    /// How much all of it is together.
    pub fn change(&self) -> RecipeChange {
        self.fields.iter().map(|field| field.change).max().unwrap_or(RecipeChange::None)
    }
}

impl RecipeChange {
    /// Without the list of fields: what a rollout asks of every version that has rooms.
    pub fn between(old: &Recipe, new: &Recipe) -> Self {
        Difference::between(old, new).change()
    }
}

/// Collects the fields that differ, all of which weigh the same.
struct Comparison<'a> {
    difference: &'a mut Difference,
    change: RecipeChange,
}

impl<'a> Comparison<'a> {
    fn of(difference: &'a mut Difference, change: RecipeChange) -> Self {
        Self { difference, change }
    }

    fn changed(&mut self, path: impl Into<String>) {
        self.difference.fields.push(ChangedField { path: path.into(), change: self.change });
    }

    fn field<T: PartialEq + ?Sized>(&mut self, path: impl Into<String>, old: &T, new: &T) {
        if old != new {
            self.changed(path);
        }
    }

    fn list<T>(&mut self, path: &str, old: &[T], new: &[T], compare: impl Fn(&mut Self, &str, &T, &T)) {
        for index in 0..old.len().max(new.len()) {
            let path = format!("{path}[{index}]");
            match (old.get(index), new.get(index)) {
                (Some(old), Some(new)) => compare(self, &path, old, new),
                (Some(_), None) | (None, Some(_)) | (None, None) => self.changed(path),
            }
        }
    }

    fn map(&mut self, path: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            let entry = if plain { format!("{path}.{key}") } else { format!("{path}[{key:?}]") };
            self.field(entry, &old.get(key), &new.get(key));
        }
    }

    fn spec(&mut self, old: &Spec, new: &Spec) {
        let Spec { termination_grace_period, containers, toleration, affinity, restart_policy, region } = new;
        self.field("spec.terminationGracePeriod", &old.termination_grace_period, termination_grace_period);
        self.list("spec.containers", &old.containers, containers, Self::container);
        self.field("spec.toleration", &old.toleration, toleration);
        self.field("spec.affinity", &old.affinity, affinity);
        self.field("spec.restartPolicy", &old.restart_policy, restart_policy);
        self.field("spec.region", &old.region, region);
    }

    fn container(&mut self, path: &str, old: &Container, new: &Container) {
        let Container { name, image, image_pull_policy, command, environment, requests, limits, ports } = new;
        self.field(format!("{path}.name"), &old.name, name);
        self.field(format!("{path}.image"), &old.image, image);
        self.field(format!("{path}.imagePullPolicy"), &old.image_pull_policy, image_pull_policy);
        self.field(format!("{path}.command"), &old.command, command);
        let variables = format!("{path}.environment");
        self.list(&variables, &old.environment, environment, |comparison, path, old, new| {
            comparison.field(path, old, new);
        });
        self.field(format!("{path}.requests.memory"), &old.requests.memory, &requests.memory);
        self.field(format!("{path}.requests.cpu"), &old.requests.cpu, &requests.cpu);
        self.field(format!("{path}.limits.memory"), &old.limits.memory, &limits.memory);
        self.field(format!("{path}.limits.cpu"), &old.limits.cpu, &limits.cpu);
        self.list(&format!("{path}.ports"), &old.ports, ports, Self::port);
    }

    fn port(&mut self, path: &str, old: &ContainerPort, new: &ContainerPort) {
        let ContainerPort { name, protocol, port, host_port: _, host_port_range } = new;
        self.field(format!("{path}.name"), &old.name, name);
        self.field(format!("{path}.protocol"), &old.protocol, protocol);
        self.field(format!("{path}.port"), &old.port, port);
        self.field(format!("{path}.hostPortRange"), &old.host_port_range, host_port_range);
    }

    fn autoscaling(&mut self, old: Option<&Autoscaling>, new: Option<&Autoscaling>) {
        let (Some(old), Some(new)) = (old, new) else {
            self.field("autoscaling", &old, &new);
            return;
        };
        let Autoscaling { enabled, min, max, cooldown_seconds, policy: _, other_parameters: _, panic: _ } =
            new;
        self.field("autoscaling.enabled", &old.enabled, enabled);
        self.field("autoscaling.min", &old.min, min);
        self.field("autoscaling.max", &old.max, max);
        self.field("autoscaling.cooldown", &old.cooldown_seconds, cooldown_seconds);
        self.field("autoscaling.policy.type", old.policy.type_name(), new.policy.type_name());
        self.room_occupancy(old.room_occupancy(), new.room_occupancy());
        self.field("autoscaling.policy.parameters.fixedBuffer", &old.fixed_buffer(), &new.fixed_buffer());
        // Compared as what they come to, like the rollout's rules.
        self.panic_scale(old.panic.unwrap_or_default(), new.panic.unwrap_or_default());
    }

    fn panic_scale(&mut self, old: PanicScale, new: PanicScale) {
        let PanicScale { enabled, limit, delta, timeout } = new;
        self.field("autoscaling.panic.enabled", &old.enabled, &enabled);
        self.field("autoscaling.panic.limit", &old.limit, &limit);
        self.field("autoscaling.panic.delta", &old.delta, &delta);
        self.field("autoscaling.panic.timeout", &old.timeout, &timeout);
    }

    fn rollout(&mut self, old: Rollout, new: Rollout) {
        let Rollout {
            max_unavailable,
            occupied,
            on_failure,
            max_failures,
            timeout,
            match_end_deadline,
            rejoin_grace,
            occupied_interval,
        } = new;
        self.field("rollout.maxUnavailable", &old.max_unavailable, &max_unavailable);
        self.field("rollout.occupied", &old.occupied, &occupied);
        self.field("rollout.onFailure", &old.on_failure, &on_failure);
        self.field("rollout.maxFailures", &old.max_failures, &max_failures);
        self.field("rollout.timeout", &old.timeout, &timeout);
        self.field("rollout.matchEndDeadline", &old.match_end_deadline, &match_end_deadline);
        self.field("rollout.rejoinGrace", &old.rejoin_grace, &rejoin_grace);
        self.field("rollout.occupiedInterval", &old.occupied_interval, &occupied_interval);
    }

    fn policies(&mut self, old: &Policies, new: &Policies) {
        let Policies { placement, deletion } = new;
        match (&old.placement, placement) {
            (Some(PlacementPolicy { regions: old }), Some(PlacementPolicy { regions: new })) => {
                self.list("placement.regions", old, new, Self::region);
            }
            (old, new) => self.field("placement", old, new),
        }
        match (old.deletion, *deletion) {
            (Some(DeletionPolicy { criteria: old }), Some(DeletionPolicy { criteria: new })) => {
                self.field("deletion.criteria", &old, &new);
            }
            (old, new) => self.field("deletion", &old, &new),
        }
    }

    fn region(&mut self, path: &str, old: &PlacementRegion, new: &PlacementRegion) {
        let PlacementRegion { name, weight, cap } = new;
        self.field(format!("{path}.name"), &old.name, name);
        self.field(format!("{path}.weight"), &old.weight, weight);
        self.field(format!("{path}.cap"), &old.cap, cap);
    }

    fn room_occupancy(&mut self, old: Option<RoomOccupancy>, new: Option<RoomOccupancy>) {
        let path = "autoscaling.policy.parameters.roomOccupancy";
        let (Some(old), Some(new)) = (old, new) else {
            self.field(path, &old, &new);
            return;
        };
        let RoomOccupancy { ready_target, down_threshold } = new;
        self.field(format!("{path}.readyTarget"), &old.ready_target, &ready_target);
        self.field(format!("{path}.downThreshold"), &old.down_threshold, &down_threshold);
    }
}

#[cfg(test)]
mod tests;
