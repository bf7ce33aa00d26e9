use expect_test::expect;

use super::check;
use crate::scheduler::draft::{
    AutoscalingDraft, FixedBufferDraft, ForwarderDraft, ForwarderOptionsDraft, MatchAllocationDraft,
    RecipeDraft, RoomOccupancyDraft,
};

#[test]
fn fleet_size_and_surge() {
    check(|draft| draft.rooms_replicas = 0, expect!["ok"]);
    check(
        |draft| draft.rooms_replicas = -1,
        expect!["roomsReplicas: -1 is not at least 0"],
    );
    check(|draft| draft.max_surge = "10".into(), expect!["ok"]);
    check(
        |draft| draft.max_surge = String::new(),
        expect![
            "maxSurge: is missing; write a number of rooms such as 10, or a percentage such as 25%, of at least 1"
        ],
    );
    check(
        |draft| draft.max_surge = "0%".into(),
        expect![[
            r#"maxSurge: "0%" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1"#
        ]],
    );
    check(
        |draft| draft.max_surge = "-5%".into(),
        expect![[
            r#"maxSurge: "-5%" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1"#
        ]],
    );
    check(
        |draft| draft.max_surge = "0".into(),
        expect![[
            r#"maxSurge: "0" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1"#
        ]],
    );
}

#[test]
fn autoscaling_limits() {
    let limits = |min, max| {
        move |draft: &mut RecipeDraft| {
            draft.autoscaling().min = min;
            draft.autoscaling().max = max;
        }
    };
    check(limits(1, 2), expect!["ok"]);
    check(limits(5, -1), expect!["ok"]);
    check(
        limits(0, 5),
        expect![
            "autoscaling.min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"
        ],
    );
    check(
        limits(-1, -1),
        expect![
            "autoscaling.min: -1 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"
        ],
    );
    check(
        limits(5, 5),
        expect!["autoscaling.max: 5 is not above min, which is 5; -1 means no limit"],
    );
    check(
        limits(5, 2),
        expect!["autoscaling.max: 2 is not above min, which is 5; -1 means no limit"],
    );
    check(
        limits(5, -2),
        expect!["autoscaling.max: -2 is not above min, which is 5; -1 means no limit"],
    );
    check(
        |draft| draft.autoscaling().cooldown = -1,
        expect!["autoscaling.cooldown: -1 is not at least 0"],
    );
    check(
        |draft| {
            draft.autoscaling().enabled = false;
            draft.autoscaling().min = 0;
        },
        expect![
            "autoscaling.min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"
        ],
    );
    check(
        |draft| draft.autoscaling = Some(AutoscalingDraft::default()),
        expect![[r#"
            autoscaling.min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0
            autoscaling.max: 0 is not above min, which is 0; -1 means no limit
            autoscaling.policy: is missing; a type, roomOccupancy or fixedBuffer, is needed"#]],
    );
}

#[test]
fn autoscaling_policy() {
    check(
        |draft| draft.policy().policy_type = "fixedBuffer".into(),
        expect!["ok"],
    );
    check(
        |draft| draft.policy().policy_type = "roomOccupation".into(),
        expect![[r#"autoscaling.policy.type: "roomOccupation" is neither roomOccupancy nor fixedBuffer"#]],
    );
    check(
        |draft| draft.policy().policy_type = String::new(),
        expect![[r#"autoscaling.policy.type: "" is neither roomOccupancy nor fixedBuffer"#]],
    );
    check(
        |draft| draft.policy().parameters = None,
        expect![
            "autoscaling.policy.parameters.roomOccupancy: is missing; the policy's type is roomOccupancy"
        ],
    );
    check(
        |draft| draft.parameters().room_occupancy = None,
        expect![
            "autoscaling.policy.parameters.roomOccupancy: is missing; the policy's type is roomOccupancy"
        ],
    );
    check(
        |draft| {
            draft.policy().policy_type = "fixedBuffer".into();
            draft.parameters().fixed_buffer = None;
            draft.room_occupancy().ready_target = 2.0;
        },
        expect![[r#"
            autoscaling.policy.parameters.roomOccupancy.readyTarget: 2 is not between 0.1 and 0.9
            autoscaling.policy.parameters.fixedBuffer: is missing; the policy's type is fixedBuffer"#]],
    );
    check(
        |draft| draft.parameters().fixed_buffer = Some(FixedBufferDraft { amount: Some(0) }),
        expect!["autoscaling.policy.parameters.fixedBuffer.amount: 0 is not a number of rooms of at least 1"],
    );
    check(
        |draft| draft.parameters().fixed_buffer = Some(FixedBufferDraft { amount: None }),
        expect![
            "autoscaling.policy.parameters.fixedBuffer.amount: is missing; the number of rooms to keep ready is needed"
        ],
    );
}

#[test]
fn room_occupancy() {
    let set = |ready_target, down_threshold| {
        move |draft: &mut RecipeDraft| {
            *draft.room_occupancy() = RoomOccupancyDraft {
                ready_target,
                down_threshold,
            };
        }
    };
    check(set(0.1, None), expect!["ok"]);
    check(set(0.9, Some(0.000_001)), expect!["ok"]);
    check(
        set(0.099_999, Some(0.0)),
        expect![[r#"
        autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.099999 is not between 0.1 and 0.9
        autoscaling.policy.parameters.roomOccupancy.downThreshold: 0 is not between 0 and 1, both excluded"#]],
    );
    check(
        set(0.900_001, Some(1.0)),
        expect![[r#"
        autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.900001 is not between 0.1 and 0.9
        autoscaling.policy.parameters.roomOccupancy.downThreshold: 1 is not between 0 and 1, both excluded"#]],
    );
    check(
        set(0.123_456_7, Some(-0.5)),
        expect![[r#"
            autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.1234567 has more than 6 digits after the point
            autoscaling.policy.parameters.roomOccupancy.downThreshold: -0.5 is not between 0 and 1, both excluded"#]],
    );
    check(
        set(f32::NAN, Some(f32::INFINITY)),
        expect![[r#"
        autoscaling.policy.parameters.roomOccupancy.readyTarget: NaN is not a number; write a decimal such as 0.5
        autoscaling.policy.parameters.roomOccupancy.downThreshold: inf is not a number; write a decimal such as 0.5"#]],
    );
    check(
        set(-0.0, Some(f32::NEG_INFINITY)),
        expect![[r#"
        autoscaling.policy.parameters.roomOccupancy.readyTarget: -0 is not between 0.1 and 0.9
        autoscaling.policy.parameters.roomOccupancy.downThreshold: -inf is not a number; write a decimal such as 0.5"#]],
    );
}

#[test]
fn forwarders() {
    check(|draft| draft.forwarders[0].options = None, expect!["ok"]);
    check(
        |draft| draft.forwarders[0] = ForwarderDraft::default(),
        expect![[r#"
            forwarders[0].name: is missing; a name is needed
            forwarders[0].type: "" is not gRPC, the only type there is
            forwarders[0].address: is missing; host:port of the receiver is needed"#]],
    );
    check(
        |draft| draft.forwarders[0].forwarder_type = "grpc".into(),
        expect![[r#"forwarders[0].type: "grpc" is not gRPC, the only type there is"#]],
    );
    check(
        |draft| draft.forwarders[0].options = Some(ForwarderOptionsDraft::default()),
        expect![
            "forwarders[0].options.timeout: 0 is not a time in milliseconds of at least 1; without options it is 1000"
        ],
    );
}

#[test]
fn matches() {
    check(
        |draft| draft.match_allocation = Some(MatchAllocationDraft { max_matches: 35 }),
        expect!["ok"],
    );
    check(
        |draft| draft.match_allocation = Some(MatchAllocationDraft { max_matches: 36 }),
        expect!["matchAllocation.maxMatches: 36 is not between 1 and 35"],
    );
    check(
        |draft| draft.match_allocation = Some(MatchAllocationDraft { max_matches: 0 }),
        expect!["matchAllocation.maxMatches: 0 is not between 1 and 35"],
    );
}
