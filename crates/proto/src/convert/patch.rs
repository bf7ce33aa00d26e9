//! A change of some fields of a recipe, `PATCH /schedulers/{name}`: what is set replaces what is there.
//!
//! Containers are changed one by one, by their index, and cannot be taken away; other lists are replaced as a whole
//! and an empty one counts as not set. Maps are replaced as a whole too, and an empty one clears.

use maestro_core::scheduler::draft::{AutoscalingDraft, ContainerDraft, RecipeDraft, SpecDraft};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::to_draft::all;
use crate::json::{DecodeError, Decoded, decode};
use crate::v1::{OptionalAutoscaling, OptionalContainer, OptionalSpec, PatchSchedulerRequest};

/// A patch, with the one thing that its message cannot say: whether a map was given at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    request: PatchSchedulerRequest,
    has_annotations: bool,
    has_labels: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GivenMaps {
    annotations: Option<IgnoredAny>,
    labels: Option<IgnoredAny>,
}

impl Patch {
    pub fn decode(json: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let Decoded {
            message: request,
            unknown_fields,
        } = decode(json)?;
        let maps = decode::<GivenMaps>(json)?.message;
        Ok(Decoded {
            message: Self {
                request,
                has_annotations: maps.annotations.is_some(),
                has_labels: maps.labels.is_some(),
            },
            unknown_fields,
        })
    }

    /// Whether nothing is set, so that there is nothing to change.
    pub fn is_empty(&self) -> bool {
        let nothing = PatchSchedulerRequest {
            name: self.request.name.clone(),
            ..PatchSchedulerRequest::default()
        };
        self.request == nothing && !self.has_annotations && !self.has_labels
    }

    pub fn apply(self, draft: &mut RecipeDraft) {
        let PatchSchedulerRequest {
            name: _,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
        } = self.request;
        if let Some(patch) = spec {
            patch_spec(draft.spec.get_or_insert_default(), patch);
        }
        replace(&mut draft.port_range, port_range.map(|range| Some(range.into())));
        replace(&mut draft.max_surge, max_surge);
        replace(&mut draft.rooms_replicas, rooms_replicas);
        if let Some(patch) = autoscaling {
            patch_autoscaling(draft.autoscaling.get_or_insert_default(), patch);
        }
        replace(&mut draft.forwarders, not_empty(all(forwarders)));
        replace(
            &mut draft.annotations,
            self.has_annotations.then_some(annotations),
        );
        replace(&mut draft.labels, self.has_labels.then_some(labels));
        replace(
            &mut draft.match_allocation,
            match_allocation.map(|allocation| Some(allocation.into())),
        );
    }
}

/// A message that did not come as JSON cannot clear a map.
impl From<PatchSchedulerRequest> for Patch {
    fn from(request: PatchSchedulerRequest) -> Self {
        Self {
            has_annotations: !request.annotations.is_empty(),
            has_labels: !request.labels.is_empty(),
            request,
        }
    }
}

fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn not_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn patch_spec(draft: &mut SpecDraft, patch: OptionalSpec) {
    let OptionalSpec {
        termination_grace_period,
        containers,
        toleration,
        affinity,
    } = patch;
    replace(
        &mut draft.termination_grace_period,
        termination_grace_period.map(|period| Some(period.into())),
    );
    replace(&mut draft.toleration, toleration);
    replace(&mut draft.affinity, affinity);
    for (index, patch) in containers.into_iter().enumerate() {
        if index == draft.containers.len() {
            draft.containers.push(ContainerDraft::default());
        }
        patch_container(&mut draft.containers[index], patch);
    }
}

fn patch_container(draft: &mut ContainerDraft, patch: OptionalContainer) {
    let OptionalContainer {
        name,
        image,
        image_pull_policy,
        command,
        environment,
        requests,
        limits,
        ports,
    } = patch;
    replace(&mut draft.name, name);
    replace(&mut draft.image, image);
    replace(&mut draft.image_pull_policy, image_pull_policy);
    replace(&mut draft.command, not_empty(command));
    replace(&mut draft.environment, not_empty(all(environment)));
    replace(
        &mut draft.requests,
        requests.map(|requests| Some(requests.into())),
    );
    replace(&mut draft.limits, limits.map(|limits| Some(limits.into())));
    replace(&mut draft.ports, not_empty(all(ports)));
}

fn patch_autoscaling(draft: &mut AutoscalingDraft, patch: OptionalAutoscaling) {
    let OptionalAutoscaling {
        enabled,
        min,
        max,
        policy,
        cooldown,
    } = patch;
    replace(&mut draft.enabled, enabled);
    replace(&mut draft.min, min);
    replace(&mut draft.max, max);
    replace(&mut draft.policy, policy.map(|policy| Some(policy.into())));
    replace(&mut draft.cooldown, cooldown);
}

#[cfg(test)]
mod tests {
    use maestro_core::scheduler::testing;
    use maestro_core::scheduler::{Difference, Recipe};

    use super::*;

    /// Patches the sample; `expected` are the paths that differ then.
    fn check(json: &str, expected: &[&str]) {
        let patch = Patch::decode(json.as_bytes()).unwrap().message;
        assert!(!patch.is_empty());
        let old = Recipe::parse(&testing::draft()).unwrap();
        let mut draft = old.to_draft();
        patch.apply(&mut draft);
        let difference = Difference::between(&old, &Recipe::parse(&draft).unwrap());
        let paths: Vec<_> = difference
            .fields
            .iter()
            .map(|field| field.path.as_str())
            .collect();
        assert_eq!(paths, expected, "{json}");
    }

    #[test]
    fn patches() {
        check(r#"{"maxSurge":"50%"}"#, &["maxSurge"]);
        check(
            r#"{"max_surge":"50%","roomsReplicas":0}"#,
            &["maxSurge", "roomsReplicas"],
        );
        check(r#"{"spec":{}}"#, &[]);
        check(
            r#"{"spec":{"terminationGracePeriod":"7s"}}"#,
            &["spec.terminationGracePeriod"],
        );
        check(
            r#"{"spec":{"containers":[{},{"image":"other"}]}}"#,
            &["spec.containers[1].image"],
        );
        check(r#"{"spec":{"containers":[{"command":[]}]}}"#, &[]);
        check(
            r#"{"spec":{"containers":[{},{},{"name":"third","image":"i","imagePullPolicy":"Never",
                "requests":{"memory":"1Mi","cpu":"1m"},"limits":{"memory":"1Mi","cpu":"1m"}}]}}"#,
            &["spec.containers[2]"],
        );
        check(
            r#"{"autoscaling":{"enabled":false,"max":-1}}"#,
            &["autoscaling.enabled", "autoscaling.max"],
        );
        check(r#"{"portRange":{"start":1,"end":2}}"#, &["portRange"]);
        check(r#"{"annotations":{}}"#, &["annotations.owner"]);
        check(r#"{"labels":{"team":"b"}}"#, &["labels.team"]);
        check(
            r#"{"matchAllocation":{"maxMatches":1}}"#,
            &["matchAllocation.maxMatches"],
        );
    }

    #[test]
    fn patches_of_nothing() {
        for json in [
            "",
            "{}",
            r#"{"colour":"red"}"#,
            r#"{"name":"arena"}"#,
            r#"{"forwarders":[]}"#,
            r#"{"labels":null}"#,
        ] {
            assert!(
                Patch::decode(json.as_bytes()).unwrap().message.is_empty(),
                "{json}"
            );
        }
    }
}
