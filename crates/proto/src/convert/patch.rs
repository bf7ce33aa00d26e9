//! A change of some fields of a recipe, `PATCH /schedulers/{name}`: what is set replaces what is there.
//!
//! Lists and maps are replaced as a whole, and an empty one clears; v10 took an empty list for one that is not there.
//! Containers are changed one by one: a patch that has the name of a container changes that one, any other the one
//! in its place, and what is past the end is added. None can be taken away, so an empty list of them changes nothing.

use maestro_core::scheduler::draft::{
    AutoscalingDraft, ContainerDraft, PanicScaleDraft, RecipeDraft, RolloutDraft, SpecDraft,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::to_draft::all;
use crate::json::{DecodeError, Decoded, FromJson, decode};
use crate::v1::{
    OptionalAutoscaling, OptionalContainer, OptionalSpec, PanicScale, PatchSchedulerRequest, Rollout,
};

/// A patch, with the one thing that its message cannot say: which lists and maps were given at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    request: PatchSchedulerRequest,
    given: Given,
}

/// Which lists and maps are there, be they empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Given {
    annotations: Option<IgnoredAny>,
    labels: Option<IgnoredAny>,
    forwarders: Option<IgnoredAny>,
    policies: Option<IgnoredAny>,
    spec: Option<GivenSpec>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct GivenSpec {
    containers: Option<Vec<GivenContainer>>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct GivenContainer {
    command: Option<IgnoredAny>,
    environment: Option<IgnoredAny>,
    ports: Option<IgnoredAny>,
}

impl FromJson for Patch {
    fn from_json(json: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let Decoded { message: request, unknown_fields } = decode(json)?;
        let given = decode(json)?.message;
        Ok(Decoded { message: Self { request, given }, unknown_fields })
    }
}

impl Patch {
    /// Whether nothing is set, so that there is nothing to change.
    pub fn is_empty(&self) -> bool {
        let nothing =
            PatchSchedulerRequest { name: self.request.name.clone(), ..PatchSchedulerRequest::default() };
        self.request == nothing && self.given == Given::default()
    }

    /// The scheduler that the patch itself names, if it does.
    pub fn name(&self) -> Option<&str> {
        Some(self.request.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether it says how many rooms there should be.
    pub fn states_rooms_replicas(&self) -> bool {
        self.request.rooms_replicas.is_some()
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
            rollout,
            policies,
            placement,
            deletion,
        } = self.request;
        let given = self.given;
        if let Some(patch) = spec {
            let containers = given.spec.and_then(|spec| spec.containers);
            patch_spec(draft.spec.get_or_insert_default(), patch, &containers.unwrap_or_default());
        }
        replace(&mut draft.port_range, port_range.map(|range| Some(range.into())));
        replace(&mut draft.max_surge, max_surge);
        replace(&mut draft.rooms_replicas, rooms_replicas);
        if let Some(patch) = autoscaling {
            patch_autoscaling(draft.autoscaling.get_or_insert_default(), patch);
        }
        replace(&mut draft.forwarders, given.forwarders.map(|_| all(forwarders)));
        replace(&mut draft.annotations, given.annotations.map(|_| annotations));
        replace(&mut draft.labels, given.labels.map(|_| labels));
        replace(&mut draft.match_allocation, match_allocation.map(|allocation| Some(allocation.into())));
        if let Some(patch) = rollout {
            patch_rollout(draft.rollout.get_or_insert_default(), patch);
        }
        if given.policies.is_some() {
            // The documents are all policies there are, in whichever form those were written before.
            (draft.placement, draft.deletion) = (None, None);
            draft.policies = all(policies);
        }
        replace(&mut draft.placement, placement.map(|placement| Some(placement.into())));
        replace(&mut draft.deletion, deletion.map(|deletion| Some(deletion.into())));
    }
}

/// A message that did not come as JSON cannot clear a list or a map.
impl From<PatchSchedulerRequest> for Patch {
    fn from(request: PatchSchedulerRequest) -> Self {
        let container = |container: &OptionalContainer| GivenContainer {
            command: unless(container.command.is_empty()),
            environment: unless(container.environment.is_empty()),
            ports: unless(container.ports.is_empty()),
        };
        let spec = |spec: &OptionalSpec| GivenSpec {
            containers: Some(spec.containers.iter().map(container).collect()),
        };
        Self {
            given: Given {
                annotations: unless(request.annotations.is_empty()),
                labels: unless(request.labels.is_empty()),
                forwarders: unless(request.forwarders.is_empty()),
                policies: unless(request.policies.is_empty()),
                spec: request.spec.as_ref().map(spec),
            },
            request,
        }
    }
}

fn unless(empty: bool) -> Option<IgnoredAny> {
    (!empty).then_some(IgnoredAny)
}

fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn patch_spec(draft: &mut SpecDraft, patch: OptionalSpec, given: &[GivenContainer]) {
    let OptionalSpec { termination_grace_period, containers, toleration, affinity, region } = patch;
    replace(&mut draft.termination_grace_period, termination_grace_period.map(|period| Some(period.into())));
    replace(&mut draft.toleration, toleration);
    replace(&mut draft.affinity, affinity);
    replace(&mut draft.region, region.map(Some));
    for (index, (patch, given)) in containers.into_iter().zip(given).enumerate() {
        patch_container(container_to_patch(&mut draft.containers, index, &patch), patch, given);
    }
}

/// The one of that name; or else the one in that place, as v10 does; or else a new one.
fn container_to_patch<'a>(
    containers: &'a mut Vec<ContainerDraft>,
    index: usize,
    patch: &OptionalContainer,
) -> &'a mut ContainerDraft {
    let named =
        patch.name.as_ref().and_then(|name| containers.iter().position(|container| container.name == *name));
    let mut index = named.unwrap_or(index);
    if index >= containers.len() {
        index = containers.len();
        containers.push(ContainerDraft::default());
    }
    &mut containers[index]
}

fn patch_container(draft: &mut ContainerDraft, patch: OptionalContainer, given: &GivenContainer) {
    let OptionalContainer { name, image, image_pull_policy, command, environment, requests, limits, ports } =
        patch;
    replace(&mut draft.name, name);
    replace(&mut draft.image, image);
    replace(&mut draft.image_pull_policy, image_pull_policy);
    replace(&mut draft.command, given.command.map(|_| command));
    replace(&mut draft.environment, given.environment.map(|_| all(environment)));
    replace(&mut draft.requests, requests.map(|requests| Some(requests.into())));
    replace(&mut draft.limits, limits.map(|limits| Some(limits.into())));
    replace(&mut draft.ports, given.ports.map(|_| all(ports)));
}

fn patch_autoscaling(draft: &mut AutoscalingDraft, patch: OptionalAutoscaling) {
    let OptionalAutoscaling { enabled, min, max, policy, cooldown, panic } = patch;
    replace(&mut draft.enabled, enabled);
    replace(&mut draft.min, min);
    replace(&mut draft.max, max);
    replace(&mut draft.policy, policy.map(|policy| Some(policy.into())));
    replace(&mut draft.cooldown, cooldown);
    if let Some(patch) = panic {
        patch_panic_scale(draft.panic.get_or_insert_default(), patch);
    }
}

fn patch_panic_scale(draft: &mut PanicScaleDraft, patch: PanicScale) {
    let PanicScaleDraft { enabled, limit, delta, timeout } = patch.into();
    draft.enabled = enabled.or(draft.enabled);
    draft.limit = limit.or(draft.limit);
    draft.delta = delta.or(draft.delta);
    draft.timeout = timeout.or(draft.timeout);
}

fn patch_rollout(draft: &mut RolloutDraft, patch: Rollout) {
    let RolloutDraft {
        max_unavailable,
        occupied,
        on_failure,
        max_failures,
        timeout,
        match_end_deadline,
        rejoin_grace,
        occupied_interval,
    } = patch.into();
    draft.max_unavailable = max_unavailable.or(draft.max_unavailable);
    draft.occupied = occupied.or(draft.occupied.take());
    draft.on_failure = on_failure.or(draft.on_failure.take());
    draft.max_failures = max_failures.or(draft.max_failures);
    draft.timeout = timeout.or(draft.timeout);
    draft.match_end_deadline = match_end_deadline.or(draft.match_end_deadline);
    draft.rejoin_grace = rejoin_grace.or(draft.rejoin_grace);
    draft.occupied_interval = occupied_interval.or(draft.occupied_interval);
}

#[cfg(test)]
mod tests {
    use maestro_core::scheduler::testing;
    use maestro_core::scheduler::{Difference, Recipe};

    use super::*;

    /// Patches the sample; `expected` are the paths that differ then.
    fn check(json: &str, expected: &[&str]) {
        let patch = Patch::from_json(json.as_bytes()).unwrap().message;
        assert!(!patch.is_empty());
        let old = Recipe::parse(&testing::draft()).unwrap();
        let mut draft = old.to_draft();
        patch.apply(&mut draft);
        let difference = Difference::between(&old, &Recipe::parse(&draft).unwrap());
        let paths: Vec<_> = difference.fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, expected, "{json}");
    }

    #[test]
    fn patches() {
        check(r#"{"maxSurge":"50%"}"#, &["maxSurge"]);
        check(r#"{"max_surge":"50%","roomsReplicas":0}"#, &["maxSurge", "roomsReplicas"]);
        check(r#"{"spec":{}}"#, &[]);
        check(r#"{"spec":{"terminationGracePeriod":"7s"}}"#, &["spec.terminationGracePeriod"]);
        check(r#"{"spec":{"containers":[{},{"image":"other"}]}}"#, &["spec.containers[1].image"]);
        check(r#"{"spec":{"containers":[]}}"#, &[]);
        check(
            r#"{"spec":{"containers":[{},{},{"name":"third","image":"i","imagePullPolicy":"Never",
                "requests":{"memory":"1Mi","cpu":"1m"},"limits":{"memory":"1Mi","cpu":"1m"}}]}}"#,
            &["spec.containers[2]"],
        );
        check(r#"{"autoscaling":{"enabled":false,"max":-1}}"#, &["autoscaling.enabled", "autoscaling.max"]);
        check(
            r#"{"autoscaling":{"panic":{"limit":50,"timeout":"3s"}}}"#,
            &["autoscaling.panic.limit", "autoscaling.panic.timeout"],
        );
        check(r#"{"autoscaling":{"panic":{}}}"#, &[]);
        check(r#"{"portRange":{"start":1,"end":2}}"#, &["portRange"]);
        check(r#"{"annotations":{}}"#, &["annotations.owner"]);
        check(r#"{"labels":{"team":"b"}}"#, &["labels.team"]);
        check(r#"{"matchAllocation":{"maxMatches":1}}"#, &["matchAllocation.maxMatches"]);
        check(
            r#"{"rollout":{"maxFailures":9,"timeout":"60s"}}"#,
            &["rollout.maxFailures", "rollout.timeout"],
        );
        check(r#"{"rollout":{}}"#, &[]);
        check(r#"{"spec":{"region":"eu-west"}}"#, &["spec.region"]);
        check(r#"{"spec":{"region":""}}"#, &["spec.region"]);
    }

    #[test]
    fn policies() {
        check(
            r#"{"placement":{"regions":[{"name":"us-east","weight":3,"cap":40}]}}"#,
            &["placement.regions[1]"],
        );
        check(r#"{"deletion":{"criteria":"RANDOM"}}"#, &["deletion.criteria"]);
        check(r#"{"policies":[]}"#, &["placement", "deletion"]);
        let document =
            r#"{"type":"senlin.policy.deletion","version":1.0,"properties":{"criteria":"RANDOM"}}"#;
        check(&format!(r#"{{"policies":[{document}]}}"#), &["placement", "deletion.criteria"]);
        check(
            &format!(
                r#"{{"policies":[{document}],"placement":{{"regions":[{{"name":"us-east","cap":40}}]}}}}"#
            ),
            &["placement.regions[0].weight", "placement.regions[1]", "deletion.criteria"],
        );
    }

    #[test]
    fn containers_by_name() {
        check(
            r#"{"spec":{"containers":[{"name":"sidecar","image":"other"}]}}"#,
            &["spec.containers[1].image"],
        );
        // The second has no name: it changes what is in its place.
        check(
            r#"{"spec":{"containers":[{"name":"sidecar","image":"other"},{"imagePullPolicy":"Never"}]}}"#,
            &["spec.containers[1].image", "spec.containers[1].imagePullPolicy"],
        );
        // A name that is not there yet is a new one, in its place or past the end.
        check(r#"{"spec":{"containers":[{"name":"game"}]}}"#, &["spec.containers[0].name"]);
        check(
            r#"{"spec":{"containers":[{"name":"room"},{"name":"room"},{"name":"third","image":"i",
                "imagePullPolicy":"Never","requests":{"memory":"1Mi","cpu":"1m"},"limits":{"memory":"1Mi","cpu":"1m"}}]}}"#,
            &["spec.containers[2]"],
        );
    }

    #[test]
    fn lists_can_be_cleared() {
        check(r#"{"forwarders":[]}"#, &["forwarders[0]"]);
        check(
            r#"{"spec":{"containers":[{"command":[],"environment":[],"ports":[]}]}}"#,
            &[
                "spec.containers[0].command",
                "spec.containers[0].environment[0]",
                "spec.containers[0].environment[1]",
                "spec.containers[0].environment[2]",
                "spec.containers[0].environment[3]",
                "spec.containers[0].ports[0]",
                "spec.containers[0].ports[1]",
            ],
        );
        check(r#"{"spec":{"containers":[{"command":null,"environment":null,"ports":null}]}}"#, &[]);
    }

    #[test]
    fn messages_that_did_not_come_as_json() {
        let request = PatchSchedulerRequest {
            spec: Some(OptionalSpec {
                containers: vec![OptionalContainer {
                    command: vec!["/other".into()],
                    ..OptionalContainer::default()
                }],
                ..OptionalSpec::default()
            }),
            ..PatchSchedulerRequest::default()
        };
        let mut draft = testing::draft();
        Patch::from(request).apply(&mut draft);
        assert_eq!(draft.container(0).command, ["/other"]);
        assert_eq!(draft.container(0).ports, testing::draft().container(0).ports);
        assert_eq!(draft.forwarders, testing::draft().forwarders);
    }

    #[test]
    fn patches_of_nothing() {
        for json in [
            "",
            "{}",
            r#"{"colour":"red"}"#,
            r#"{"name":"arena"}"#,
            r#"{"forwarders":null}"#,
            r#"{"labels":null}"#,
        ] {
            assert!(Patch::from_json(json.as_bytes()).unwrap().message.is_empty(), "{json}");
        }
    }
}
