//! A change of some fields of a recipe, `PATCH /schedulers/{name}`: what is set replaces what is there.
//!
//! Lists and maps are replaced as a whole, and an empty one clears; v10 took an empty list for one that is not there.
//! Containers are changed one by one: a patch with the name of a container changes that one, any other patch the
//! container at its index, and a patch past the end adds a container. A patch cannot remove one, so an empty list of
//! them changes nothing.

use maestro_core::scheduler::Recipe;
use maestro_core::violation::Violations;
use serde_json::Value;

use crate::json::{DecodeError, Decoded, FromJson, decode};
use crate::v1::{
    Autoscaling, Container, CreateSchedulerRequest, OptionalAutoscaling, OptionalContainer, OptionalSpec,
    PatchSchedulerRequest, Rollout, Spec,
};

/// A patch, with the one thing that its message cannot say: which lists and maps were given at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    request: PatchSchedulerRequest,
    /// What the message was read from.
    json: Value,
}

impl FromJson for Patch {
    fn from_json(json: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let Decoded { message: request, unknown_fields } = decode(json)?;
        // Nothing at all is a message too.
        let json = serde_json::from_slice(json).unwrap_or_default();
        Ok(Decoded { message: Self { request, json }, unknown_fields })
    }
}

impl Patch {
    /// Whether nothing is set, so that there is nothing to change.
    pub fn is_empty(&self) -> bool {
        let nothing =
            PatchSchedulerRequest { name: self.request.name.clone(), ..PatchSchedulerRequest::default() };
        let lists = ["annotations", "labels", "forwarders", "policies"];
        self.request == nothing && lists.iter().all(|list| self.json[list].is_null())
    }

    /// The scheduler that the patch itself names, if it does.
    pub fn name(&self) -> Option<&str> {
        Some(self.request.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether it says how many rooms there should be.
    pub fn states_rooms_replicas(&self) -> bool {
        self.request.rooms_replicas.is_some()
    }

    /// The recipe with the patch's changes, if it is one then.
    pub fn apply(&self, recipe: &Recipe) -> Result<Recipe, Violations> {
        let mut patched = recipe.into();
        self.clone().change(&mut patched);
        Recipe::try_from(&patched)
    }

    fn change(self, recipe: &mut CreateSchedulerRequest) {
        let Self { request, json } = self;
        if let Some(patch) = request.spec {
            change_spec(recipe.spec.get_or_insert_default(), patch, &json["spec"]["containers"]);
        }
        replace_option(&mut recipe.port_range, request.port_range);
        replace(&mut recipe.max_surge, request.max_surge);
        replace(&mut recipe.rooms_replicas, request.rooms_replicas);
        if let Some(patch) = request.autoscaling {
            change_autoscaling(recipe.autoscaling.get_or_insert_default(), patch);
        }
        replace_given(&mut recipe.forwarders, request.forwarders, &json["forwarders"]);
        replace_given(&mut recipe.annotations, request.annotations, &json["annotations"]);
        replace_given(&mut recipe.labels, request.labels, &json["labels"]);
        replace_option(&mut recipe.match_allocation, request.match_allocation);
        if let Some(patch) = request.rollout {
            change_rollout(recipe.rollout.get_or_insert_default(), patch);
        }
        if !json["policies"].is_null() {
            // The documents are all policies there are, in whichever form those were written before.
            (recipe.placement, recipe.deletion) = (None, None);
            recipe.policies = request.policies;
        }
        replace_option(&mut recipe.placement, request.placement);
        replace_option(&mut recipe.deletion, request.deletion);
    }
}

fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn replace_option<T>(field: &mut Option<T>, value: Option<T>) {
    replace(field, value.map(Some));
}

/// A list or a map, which may be given and empty; `json` is what it was read from.
fn replace_given<T>(field: &mut T, value: T, json: &Value) {
    replace(field, (!json.is_null()).then_some(value));
}

fn change_spec(spec: &mut Spec, patch: OptionalSpec, json: &Value) {
    replace_option(&mut spec.termination_grace_period, patch.termination_grace_period);
    replace(&mut spec.toleration, patch.toleration);
    replace(&mut spec.affinity, patch.affinity);
    replace_option(&mut spec.region, patch.region);
    for (index, patch) in patch.containers.into_iter().enumerate() {
        change_container(container_to_change(&mut spec.containers, index, &patch), patch, &json[index]);
    }
}

/// The container of that name; or else the one at that index, as v10 does; or else a new one.
fn container_to_change<'a>(
    containers: &'a mut Vec<Container>,
    index: usize,
    patch: &OptionalContainer,
) -> &'a mut Container {
    let named =
        patch.name.as_ref().and_then(|name| containers.iter().position(|container| container.name == *name));
    let mut index = named.unwrap_or(index);
    if index >= containers.len() {
        index = containers.len();
        containers.push(Container::default());
    }
    &mut containers[index]
}

fn change_container(container: &mut Container, patch: OptionalContainer, json: &Value) {
    replace(&mut container.name, patch.name);
    replace(&mut container.image, patch.image);
    replace(&mut container.image_pull_policy, patch.image_pull_policy);
    replace_given(&mut container.command, patch.command, &json["command"]);
    replace_given(&mut container.environment, patch.environment, &json["environment"]);
    replace_option(&mut container.requests, patch.requests);
    replace_option(&mut container.limits, patch.limits);
    replace_given(&mut container.ports, patch.ports, &json["ports"]);
}

fn change_autoscaling(autoscaling: &mut Autoscaling, patch: OptionalAutoscaling) {
    replace(&mut autoscaling.enabled, patch.enabled);
    replace(&mut autoscaling.min, patch.min);
    replace(&mut autoscaling.max, patch.max);
    replace_option(&mut autoscaling.policy, patch.policy);
    replace(&mut autoscaling.cooldown, patch.cooldown);
    if let Some(patch) = patch.panic {
        let panic = autoscaling.panic.get_or_insert_default();
        replace_option(&mut panic.enabled, patch.enabled);
        replace_option(&mut panic.limit, patch.limit);
        replace_option(&mut panic.delta, patch.delta);
        replace_option(&mut panic.timeout, patch.timeout);
    }
}

fn change_rollout(rollout: &mut Rollout, patch: Rollout) {
    replace_option(&mut rollout.max_unavailable, patch.max_unavailable);
    replace_option(&mut rollout.occupied, patch.occupied);
    replace_option(&mut rollout.on_failure, patch.on_failure);
    replace_option(&mut rollout.max_failures, patch.max_failures);
    replace_option(&mut rollout.timeout, patch.timeout);
    replace_option(&mut rollout.match_end_deadline, patch.match_end_deadline);
    replace_option(&mut rollout.rejoin_grace, patch.rejoin_grace);
    replace_option(&mut rollout.occupied_interval, patch.occupied_interval);
}

#[cfg(test)]
mod tests {
    use maestro_core::scheduler::Difference;

    use super::*;
    use crate::recipe::tests::{SAMPLE, sample};

    /// Patches the sample; `expected` are the paths that differ then.
    fn check(json: &str, expected: &[&str]) {
        let patch = Patch::from_json(json.as_bytes()).unwrap().message;
        assert!(!patch.is_empty());
        let old = Recipe::try_from(&sample()).unwrap();
        let difference = Difference::between(&old, &patch.apply(&old).unwrap());
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

    /// The sample has every field, so one that is forgotten above is missing here.
    #[test]
    fn a_patch_of_everything() {
        let wanted = Recipe::try_from(&sample()).unwrap();
        let bare = br#"{"name":"arena","game":"brawl","maxSurge":"1","portRange":{"start":1,"end":2},"spec":{
            "restartPolicy":"OnFailure","terminationGracePeriod":"1s","containers":[{"name":"x","image":"x"}]}}"#;
        let bare = Recipe::try_from(&decode(bare).unwrap().message).unwrap();
        let Decoded { message: patch, unknown_fields } = Patch::from_json(SAMPLE).unwrap();
        assert_eq!(patch.apply(&bare).unwrap(), wanted);
        // What a patch cannot change: v10 has no fields for it.
        assert_eq!(unknown_fields, ["game", "spec.restartPolicy"]);
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
        // The second has no name, so it changes the container at its index.
        check(
            r#"{"spec":{"containers":[{"name":"sidecar","image":"other"},{"imagePullPolicy":"Never"}]}}"#,
            &["spec.containers[1].image", "spec.containers[1].imagePullPolicy"],
        );
        // An unknown name is a new one, for the container at that index or for a new container.
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
