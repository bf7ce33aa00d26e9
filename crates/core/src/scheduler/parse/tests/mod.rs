//! What is refused, in which words, and that nothing else is. The sample of [`testing`] is edited, row by row.

mod fleet;
mod policies;
mod room;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::policy::Policies;
use crate::scheduler::draft::{
    AutoscalingDraft, ContainerDraft, DurationDraft, FixedBufferDraft, ForwarderOptionsDraft,
    PolicyParametersDraft, PortRangeDraft, RecipeDraft, ResourcesDraft, RolloutDraft, RoomOccupancyDraft,
    ScalingPolicyDraft, SpecDraft,
};
use crate::scheduler::testing::{self, recipes};
use crate::scheduler::{EnvironmentValue, Recipe, RestartPolicy, Rollout};

/// Edits the sample and says what is wrong then.
#[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
fn check(edit: impl FnOnce(&mut RecipeDraft), expected: Expect) {
    let mut draft = testing::draft();
    edit(&mut draft);
    let outcome = match Recipe::parse(&draft) {
        Ok(_) => "ok".to_owned(),
        Err(violations) => violations.to_string(),
    };
    expected.assert_eq(&outcome);
}

#[test]
fn identity() {
    check(|_| {}, expect!["ok"]);
    check(
        |draft| draft.name = String::new(),
        expect!["name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed"],
    );
    check(
        |draft| draft.name = "Arena".into(),
        expect![[
            r#"name: "Arena" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |draft| draft.name = "-arena".into(),
        expect![[
            r#"name: "-arena" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |draft| draft.name = "a".repeat(64),
        expect![[
            r#"name: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |draft| draft.game = String::new(),
        expect!["game: is missing; the name of the game that the rooms run is needed"],
    );
}

#[test]
fn everything_at_once() {
    check(
        |draft| *draft = RecipeDraft::default(),
        expect![[r#"
        name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed
        game: is missing; the name of the game that the rooms run is needed
        maxSurge: is missing; write a number of rooms such as 10, or a percentage such as 25%, of at least 1
        spec: is missing; it says what a room is
        portRange: is missing; give the scheduler a portRange, or every port a hostPortRange"#]],
    );
    check(
        |draft| {
            draft.game.clear();
            draft.max_surge = "x".into();
            draft.rooms_replicas = -2;
            draft.container(0).ports[1].name = "Chat!".into();
            draft.container(1).image.clear();
            draft.room_occupancy().ready_target = "1.5".into();
            draft.forwarders[0].address.clear();
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
        |draft| *draft.spec() = SpecDraft::default(),
        expect![[r#"
        spec.terminationGracePeriod: is missing; write how long a room may take to end, such as "30s"
        spec.containers: is empty; a room is made of at least one container"#]],
    );
    check(
        |draft| *draft.container(1) = ContainerDraft::default(),
        expect![[r#"
            spec.containers[1].name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed
            spec.containers[1].image: is missing; an image or a command to run is needed"#]],
    );
}

#[test]
fn what_is_not_written_has_a_default() {
    let mut draft = testing::draft();
    draft.spec().restart_policy = None;
    draft.match_allocation = None;
    draft.rollout = None;
    draft.placement = None;
    draft.deletion = None;
    draft.spec().region = None;
    draft.autoscaling = None;
    draft.forwarders[0].options = None;
    draft.container(0).environment[0].value = None;
    let recipe = Recipe::parse(&draft).unwrap();
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

#[test]
fn a_draft_comes_back_as_it_was_written() {
    let draft = testing::draft();
    assert_eq!(Recipe::parse(&draft).unwrap().to_draft(), draft);
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
    fn a_recipe_survives_its_draft(recipe in recipes()) {
        prop_assert_eq!(Recipe::parse(&recipe.to_draft()), Ok(recipe));
    }

    #[test]
    fn no_draft_panics(
        texts in prop::collection::vec("\\PC{0,12}|[0-9.eEKMGi%-]{0,24}", 8),
        numbers in prop::collection::vec(number(), 8),
        decimals in (decimal(), decimal()),
        wide in any::<i64>(),
    ) {
        let mut draft = testing::draft();
        draft.name.clone_from(&texts[0]);
        draft.max_surge.clone_from(&texts[1]);
        draft.rooms_replicas = numbers[0];
        draft.port_range = Some(PortRangeDraft { start: numbers[1], end: numbers[2] });
        draft.spec().termination_grace_period = Some(DurationDraft { seconds: wide, nanos: numbers[3] });
        draft.container(0).environment[0].name.clone_from(&texts[2]);
        draft.container(0).requests = Some(ResourcesDraft { memory: texts[3].clone(), cpu: texts[4].clone() });
        draft.container(0).limits = Some(ResourcesDraft { memory: texts[5].clone(), cpu: texts[6].clone() });
        draft.container(0).ports[0].port = numbers[4];
        draft.container(0).ports[0].name.clone_from(&texts[7]);
        draft.forwarders[0].options = Some(ForwarderOptionsDraft { timeout: wide, ..Default::default() });
        draft.autoscaling = Some(AutoscalingDraft {
            min: numbers[5],
            max: numbers[6],
            cooldown: numbers[7],
            policy: Some(ScalingPolicyDraft {
                policy_type: texts[0].clone(),
                parameters: Some(PolicyParametersDraft {
                    room_occupancy: Some(RoomOccupancyDraft { ready_target: decimals.0, down_threshold: Some(decimals.1) }),
                    fixed_buffer: Some(FixedBufferDraft { amount: Some(numbers[0]) }),
                }),
            }),
            ..AutoscalingDraft::default()
        });
        draft.rollout = Some(RolloutDraft {
            max_unavailable: Some(numbers[1]),
            occupied: Some(texts[1].clone()),
            max_failures: Some(numbers[2]),
            timeout: Some(DurationDraft { seconds: wide, nanos: numbers[3] }),
            rejoin_grace: Some(DurationDraft { seconds: wide, nanos: numbers[4] }),
            occupied_interval: Some(DurationDraft { seconds: wide, nanos: numbers[3] }),
            ..RolloutDraft::default()
        });
        draft.region(0).name.clone_from(&texts[2]);
        draft.region(1).cap = Some(numbers[5]);
        draft.region(1).weight = Some(numbers[6]);
        if let Err(violations) = Recipe::parse(&draft) {
            prop_assert!(!violations.0.is_empty());
            for violation in violations.0 {
                prop_assert!(!violation.field.is_empty() && !violation.reason.is_empty());
            }
        }
    }
}
