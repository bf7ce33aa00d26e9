//! What is refused, in which words, and that nothing else is. The [`sample`] is edited, row by row.

mod fleet;
mod policies;
mod room;
pub(super) mod strategies;

use expect_test::{Expect, expect};
use maestro_core::policy::Policies;
use maestro_core::scheduler::{EnvironmentValue, Recipe, RestartPolicy, Rollout};
use proptest::prelude::*;
use serde_json::Value;

use self::strategies::recipes;
use crate::json::{Decoded, decode};
use crate::v1::{self, CreateSchedulerRequest};
use crate::{RECIPE_FIELDS, protobuf};
pub(super) const SAMPLE: &[u8] = include_bytes!("../../../tests/sample.json");

/// A valid recipe with something in every field, but for documents that would say the same again; its ports share one
/// range.
pub(super) fn sample() -> CreateSchedulerRequest {
    let Decoded { message, unknown_fields } = decode(SAMPLE).unwrap();
    assert_eq!(unknown_fields, [""; 0]);
    message
}

/// Ways into a recipe that has the part in question, as the [`sample`] does.
impl CreateSchedulerRequest {
    pub(super) fn spec(&mut self) -> &mut v1::Spec {
        self.spec.as_mut().unwrap()
    }

    fn container(&mut self, index: usize) -> &mut v1::Container {
        &mut self.spec().containers[index]
    }

    fn autoscaling(&mut self) -> &mut v1::Autoscaling {
        self.autoscaling.as_mut().unwrap()
    }

    fn panic(&mut self) -> &mut v1::PanicScale {
        self.autoscaling().panic.as_mut().unwrap()
    }

    fn rollout(&mut self) -> &mut v1::Rollout {
        self.rollout.as_mut().unwrap()
    }

    fn region(&mut self, index: usize) -> &mut v1::PlacementRegion {
        &mut self.placement.as_mut().unwrap().regions[index]
    }

    fn policy(&mut self) -> &mut v1::AutoscalingPolicy {
        self.autoscaling().policy.as_mut().unwrap()
    }

    fn parameters(&mut self) -> &mut v1::PolicyParameters {
        self.policy().parameters.as_mut().unwrap()
    }

    pub(super) fn set_decimals(&mut self, ready_target: &str, down_threshold: Option<&str>) {
        let decimals = v1::RoomOccupancy::of_decimals(ready_target.into(), down_threshold.map(str::to_owned));
        self.parameters().room_occupancy = Some(decimals);
    }
}

/// Edits the sample and says what is wrong then.
#[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
fn check(edit: impl FnOnce(&mut CreateSchedulerRequest), expected: Expect) {
    let mut wire = sample();
    edit(&mut wire);
    let outcome = match Recipe::try_from(&wire) {
        Ok(_) => "ok".to_owned(),
        Err(violations) => violations.to_string(),
    };
    expected.assert_eq(&outcome);
}

#[test]
fn identity() {
    check(|_| {}, expect!["ok"]);
    check(
        |wire| wire.name = String::new(),
        expect!["name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed"],
    );
    check(
        |wire| wire.name = "Arena".into(),
        expect![[
            r#"name: "Arena" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |wire| wire.name = "-arena".into(),
        expect![[
            r#"name: "-arena" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |wire| wire.name = "a".repeat(64),
        expect![[
            r#"name: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |wire| wire.game = String::new(),
        expect!["game: is missing; the name of the game that the rooms run is needed"],
    );
}

#[test]
fn everything_at_once() {
    check(
        |wire| *wire = CreateSchedulerRequest::default(),
        expect![[r#"
        name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed
        game: is missing; the name of the game that the rooms run is needed
        maxSurge: is missing; write a number of rooms such as 10, or a percentage such as 25%, of at least 1
        spec: is missing; it says what a room is
        portRange: is missing; give the scheduler a portRange, or every port a hostPortRange"#]],
    );
    check(
        |wire| {
            wire.game.clear();
            wire.max_surge = "x".into();
            wire.rooms_replicas = -2;
            wire.container(0).ports[1].name = "Chat!".into();
            wire.container(1).image.clear();
            wire.set_decimals("1.5", None);
            wire.forwarders[0].address.clear();
        },
        expect![[r#"
            game: is missing; the name of the game that the rooms run is needed
            roomsReplicas: -2 is not at least 0
            maxSurge: "x" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1
            spec.containers[0].ports[1].name: "Chat!" is not the name of a port: use 1 to 15 characters a-z, 0-9 and single -, at least one letter, not starting or ending with -
            spec.containers[1].image: is missing; an image or a command to run is needed
            autoscaling.policy.parameters.roomOccupancy.readyTarget: 1.5 is not between 0.1 and 0.9
            forwarders[0].address: is missing; host:port of the receiver is needed"#]],
    );
    check(
        |wire| *wire.spec() = v1::Spec::default(),
        expect![[r#"
        spec.terminationGracePeriod: is missing; write how long a room may take to end, such as "30s"
        spec.containers: is empty; a room is made of at least one container"#]],
    );
    check(
        |wire| *wire.container(1) = v1::Container::default(),
        expect![[r#"
            spec.containers[1].name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed
            spec.containers[1].image: is missing; an image or a command to run is needed"#]],
    );
}

#[test]
fn what_is_not_written_has_a_default() {
    let mut wire = sample();
    wire.spec().restart_policy = None;
    wire.match_allocation = None;
    wire.rollout = None;
    wire.placement = None;
    wire.deletion = None;
    wire.spec().region = None;
    wire.autoscaling = None;
    wire.forwarders[0].options = None;
    wire.container(0).environment[0].value = None;
    let recipe = Recipe::try_from(&wire).unwrap();
    assert_eq!(recipe.spec.restart_policy, RestartPolicy::Never);
    assert_eq!(recipe.match_allocation.max_matches, 1);
    assert_eq!(recipe.rollout_rules, None);
    assert_eq!(recipe.policies, Policies::default());
    assert_eq!(recipe.rollout(), Rollout::default());
    assert_eq!(recipe.spec.region, None);
    assert_eq!(recipe.autoscaling, None);
    assert_eq!(recipe.forwarders[0].timeout_ms, 1000);
    assert_eq!(recipe.spec.containers[0].environment[0].value, EnvironmentValue::Text(String::new()));
}

/// The fields of recipes that are not keys of this JSON, whatever their case.
pub(super) fn missing_from(json: &Value) -> Vec<&'static str> {
    fn keys(value: &Value, found: &mut Vec<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            found.push(key.to_lowercase());
            keys(value, found);
        }
        value.as_array().into_iter().flatten().for_each(|item| keys(item, found));
    }
    let mut found = Vec::new();
    keys(json, &mut found);
    RECIPE_FIELDS.iter().copied().filter(|field| !found.contains(&field.to_lowercase())).collect()
}

/// So that what holds for the sample holds for every field, also for one that is added.
#[test]
fn the_sample_has_every_field() {
    let missing = missing_from(&serde_json::to_value(sample()).unwrap());
    // A range for each port excludes the one for all, and documents say what is said in short.
    assert_eq!(missing, ["hostPortRange", "policies", "properties"]);
}

#[test]
fn a_recipe_comes_back_as_it_was_submitted() {
    let wire = sample();
    assert_eq!(CreateSchedulerRequest::from(&Recipe::try_from(&wire).unwrap()), wire);
}

/// Numbers at the edges and anything between, as a hostile or broken client would send them.
fn number() -> impl Strategy<Value = i32> {
    prop_oneof![Just(i32::MIN), Just(-1), Just(0), Just(1), Just(65_536), Just(i32::MAX), any::<i32>()]
}

fn decimal() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{0,3}\\.?[0-9]{0,20}([eE][+-]?[0-9]{1,4})?",
        any::<f32>().prop_map(|float| float.to_string()),
        ".*"
    ]
}

proptest! {
    #[test]
    fn a_recipe_is_read_as_it_was_written(recipe in recipes()) {
        prop_assert_eq!(Recipe::try_from(&CreateSchedulerRequest::from(&recipe)), Ok(recipe));
    }

    #[test]
    fn nothing_that_is_submitted_panics(
        texts in prop::collection::vec("\\PC{0,12}|[0-9.eEKMGi%-]{0,24}", 8),
        numbers in prop::collection::vec(number(), 8),
        decimals in (decimal(), decimal()),
        wide in any::<i64>(),
    ) {
        let mut wire = sample();
        wire.name.clone_from(&texts[0]);
        wire.max_surge.clone_from(&texts[1]);
        wire.rooms_replicas = numbers[0];
        wire.port_range = Some(v1::PortRange { start: numbers[1], end: numbers[2] });
        wire.spec().termination_grace_period = Some(protobuf::Duration { seconds: wide, nanos: numbers[3] });
        wire.container(0).environment[0].name.clone_from(&texts[2]);
        wire.container(0).requests = Some(v1::ContainerResources { memory: texts[3].clone(), cpu: texts[4].clone() });
        wire.container(0).limits = Some(v1::ContainerResources { memory: texts[5].clone(), cpu: texts[6].clone() });
        wire.container(0).ports[0].port = numbers[4];
        wire.container(0).ports[0].name.clone_from(&texts[7]);
        wire.forwarders[0].options = Some(v1::ForwarderOptions { timeout: wide, ..Default::default() });
        wire.autoscaling = Some(v1::Autoscaling {
            min: numbers[5],
            max: numbers[6],
            cooldown: numbers[7],
            policy: Some(v1::AutoscalingPolicy {
                r#type: texts[0].clone(),
                parameters: Some(v1::PolicyParameters {
                    room_occupancy: Some(v1::RoomOccupancy::of_decimals(decimals.0, Some(decimals.1))),
                    fixed_buffer: Some(v1::FixedBuffer { amount: Some(numbers[0]) }),
                }),
            }),
            ..v1::Autoscaling::default()
        });
        wire.rollout = Some(v1::Rollout {
            max_unavailable: Some(numbers[1]),
            occupied: Some(texts[1].clone()),
            max_failures: Some(numbers[2]),
            timeout: Some(protobuf::Duration { seconds: wide, nanos: numbers[3] }),
            rejoin_grace: Some(protobuf::Duration { seconds: wide, nanos: numbers[4] }),
            occupied_interval: Some(protobuf::Duration { seconds: wide, nanos: numbers[3] }),
            ..v1::Rollout::default()
        });
        wire.region(0).name.clone_from(&texts[2]);
        wire.region(1).cap = Some(numbers[5]);
        wire.region(1).weight = Some(numbers[6]);
        if let Err(violations) = Recipe::try_from(&wire) {
            prop_assert!(!violations.0.is_empty());
            for violation in violations.0 {
                prop_assert!(!violation.field.is_empty() && !violation.reason.is_empty());
            }
        }
    }
}
