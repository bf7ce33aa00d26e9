//! A change of some fields of a recipe, `PATCH /schedulers/{name}`: what is set replaces what is there.
//!
//! Lists and maps are replaced as a whole, and an empty one clears; v10 took an empty list for one that is not there.
//! Containers are changed one by one: a patch with the name of a container changes that one, any other patch the
//! container at its index, and a patch past the end adds a container. A patch cannot remove one, so an empty list of
//! them changes nothing.
//!
//! A patch has the JSON of a recipe, so it is merged into the recipe's [`document`](super::document).

use maestro_core::scheduler::Recipe;
use maestro_core::violation::Violations;
use serde::Deserialize;
use serde_json::{Map, Value, to_value};

use super::document::{keep_decimals, recipe_to_json};
use crate::json::{DecodeError, Decoded, FromJson, decode};
use crate::rpc::Named;
use crate::v1::{CreateSchedulerRequest, PatchSchedulerRequest};

#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    name: String,
    /// What was given, and nothing else, by the names that documents have.
    changes: Map<String, Value>,
}

impl FromJson for Patch {
    fn from_json(json: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let Decoded { message, unknown_fields } = decode::<PatchSchedulerRequest>(json)?;
        // The message cannot say which lists and maps were given. Nothing at all is a message too.
        let given: Value = serde_json::from_slice(json).unwrap_or_default();
        Ok(Decoded { message: Self::new(message, &given), unknown_fields })
    }
}

/// A message of its own cannot say that a list was given and is empty: such a list changes nothing. What has no JSON,
/// such as a number that is none, is refused.
impl TryFrom<PatchSchedulerRequest> for Patch {
    type Error = DecodeError;

    fn try_from(message: PatchSchedulerRequest) -> Result<Self, DecodeError> {
        let json = serde_json::to_vec(&message)
            .map_err(|error| DecodeError { field: String::new(), reason: error.to_string() })?;
        let message = decode::<PatchSchedulerRequest>(&json)?.message;
        let mut given: Value = serde_json::from_slice(&json).unwrap_or_default();
        without_empty_lists(&mut given);
        Ok(Self::new(message, &given))
    }
}

fn without_empty_lists(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_empty_lists),
        Value::Object(fields) => {
            for field in fields.values_mut() {
                let is_empty = match &*field {
                    Value::Array(items) => items.is_empty(),
                    Value::Object(fields) => fields.is_empty(),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
                };
                if is_empty {
                    *field = Value::Null;
                } else {
                    without_empty_lists(field);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Keeps those of these lists and maps that were given, also if they are empty.
fn keep_given(changes: &mut Value, given: &Value, names: &[&str]) {
    for name in names {
        match &given[name] {
            Value::Null => _ = changes.as_object_mut().and_then(|changes| changes.remove(*name)),
            // A message does not write an empty list that v10 does not know.
            Value::Array(items) if items.is_empty() => changes[name] = Value::Array(Vec::new()),
            _ => {}
        }
    }
}

impl Patch {
    /// A message that was read from JSON, with those of its lists and maps that are `given`.
    fn new(message: PatchSchedulerRequest, given: &Value) -> Self {
        let mut changes = to_value(&message).expect("times that were read can be written");
        keep_decimals(&mut changes, message.autoscaling.as_ref().and_then(|patch| patch.policy.as_ref()));
        keep_given(&mut changes, given, &["annotations", "labels", "forwarders", "policies"]);
        for index in 0..message.spec.map_or(0, |spec| spec.containers.len()) {
            let container = &mut changes["spec"]["containers"][index];
            keep_given(container, &given["spec"]["containers"][index], &["command", "environment", "ports"]);
        }
        let mut changes = Map::deserialize(changes).expect("a message is an object");
        changes.remove("name");
        Self { name: message.name, changes }
    }

    /// Whether nothing is set, so that there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The scheduler that is to be patched.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it says how many rooms there should be.
    pub fn states_rooms_replicas(&self) -> bool {
        self.changes.contains_key("roomsReplicas")
    }

    /// The recipe with the patch's changes, if it is one then.
    pub fn apply(&self, recipe: &Recipe) -> Result<Recipe, Violations> {
        let mut patched = recipe_to_json(recipe);
        if self.changes.contains_key("policies") {
            // The documents are all policies there are, in whichever form those were written before.
            (patched["placement"], patched["deletion"]) = (Value::Null, Value::Null);
        }
        merge(&mut patched, &self.changes);
        let patched = CreateSchedulerRequest::deserialize(patched)
            .expect("the patch is a message, and so is the recipe");
        Recipe::try_from(&patched)
    }
}

impl Named for Patch {
    fn names_mut(&mut self) -> Vec<&mut String> {
        vec![&mut self.name]
    }
}

fn merge(target: &mut Value, changes: &Map<String, Value>) {
    for (name, change) in changes {
        let field = &mut target[name];
        match (name.as_str(), change) {
            ("spec" | "autoscaling" | "panic" | "rollout", Value::Object(changes)) => {
                // One that was not there begins with what is not set.
                if field.is_null() {
                    *field = Value::Object(Map::new());
                }
                merge(field, changes);
            }
            ("containers", Value::Array(patches)) => merge_containers(field, patches),
            (_, change) => *field = change.clone(),
        }
    }
}

/// Each into the container of its name; or else into the one at its index, as v10 does; or else it is a new one.
fn merge_containers(containers: &mut Value, patches: &[Value]) {
    let Value::Array(containers) = containers else { return };
    for (index, patch) in patches.iter().enumerate() {
        let with_name = |name: &Value| containers.iter().position(|container| container["name"] == *name);
        let named = patch.get("name").and_then(with_name);
        match (containers.get_mut(named.unwrap_or(index)), patch) {
            (Some(container), Value::Object(changes)) => merge(container, changes),
            (_, patch) => containers.push(patch.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use maestro_core::scheduler::Difference;

    use super::*;
    use crate::protobuf::Duration;
    use crate::recipe::tests::{SAMPLE, sample};
    use crate::v1::{AutoscalingPolicy, OptionalAutoscaling, OptionalSpec, PolicyParameters, RoomOccupancy};

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

    /// The same patch as a message changes the same, as far as messages can say it.
    #[test]
    fn patches_that_are_messages() {
        let old = Recipe::try_from(&sample()).unwrap();
        for (json, differs) in [
            (r#"{"maxSurge":"50%","roomsReplicas":0}"#, false),
            (r#"{"spec":{"containers":[{},{"image":"other"}]}}"#, false),
            (r#"{"spec":{"containers":[{"command":["a"],"ports":[]}]}}"#, true),
            (r#"{"labels":{"team":"b"},"forwarders":[]}"#, true),
            (r#"{"rollout":{},"autoscaling":{"panic":{}}}"#, false),
            (
                r#"{"autoscaling":{"policy":{"type":"roomOccupancy","parameters":{"roomOccupancy":{"readyTarget":0.12345678901}}}}}"#,
                false,
            ),
        ] {
            let of_json = Patch::from_json(json.as_bytes()).unwrap().message;
            let message = decode::<PatchSchedulerRequest>(json.as_bytes()).unwrap().message;
            let of_message = Patch::try_from(message).unwrap();
            assert_eq!(of_message == of_json, !differs, "{json}: {of_message:?}");
            assert!(!of_message.is_empty(), "{json}");
            assert!(of_message.apply(&old).is_ok(), "{json}");
        }
        let cleared = decode::<PatchSchedulerRequest>(br#"{"forwarders":[],"labels":{}}"#).unwrap().message;
        assert!(Patch::try_from(cleared).unwrap().is_empty());
    }

    #[test]
    fn messages_without_json_are_no_patches() {
        let spec = |seconds, nanos| OptionalSpec {
            termination_grace_period: Some(Duration { seconds, nanos }),
            ..OptionalSpec::default()
        };
        let of_spec = |spec| PatchSchedulerRequest { spec: Some(spec), ..PatchSchedulerRequest::default() };
        assert!(Patch::try_from(of_spec(spec(1, 0))).is_ok());
        assert!(Patch::try_from(of_spec(spec(1, -1))).is_err());
        let occupancy = RoomOccupancy { ready_target: f32::NAN, ..RoomOccupancy::default() };
        let parameters = PolicyParameters { room_occupancy: Some(occupancy), ..PolicyParameters::default() };
        let policy = AutoscalingPolicy { parameters: Some(parameters), ..AutoscalingPolicy::default() };
        let autoscaling = OptionalAutoscaling { policy: Some(policy), ..OptionalAutoscaling::default() };
        let message =
            PatchSchedulerRequest { autoscaling: Some(autoscaling), ..PatchSchedulerRequest::default() };
        assert!(Patch::try_from(message).is_err());
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
