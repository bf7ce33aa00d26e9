use expect_test::expect;

use super::check;
use crate::protobuf;
use crate::v1::{self, CreateSchedulerRequest};

#[test]
fn fleet_size_and_surge() {
    check(|wire| wire.rooms_replicas = 0, expect!["ok"]);
    check(|wire| wire.rooms_replicas = -1, expect!["roomsReplicas: -1 is not at least 0"]);
    check(|wire| wire.max_surge = "10".into(), expect!["ok"]);
    check(
        |wire| wire.max_surge = String::new(),
        expect![
            "maxSurge: is missing; write a number of rooms such as 10, or a percentage such as 25%, of at least 1"
        ],
    );
    check(
        |wire| wire.max_surge = "0%".into(),
        expect![[
            r#"maxSurge: "0%" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1"#
        ]],
    );
    check(
        |wire| wire.max_surge = "-5%".into(),
        expect![[
            r#"maxSurge: "-5%" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1"#
        ]],
    );
    check(
        |wire| wire.max_surge = "0".into(),
        expect![[
            r#"maxSurge: "0" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1"#
        ]],
    );
}

#[test]
fn autoscaling_limits() {
    let limits = |min, max| {
        move |wire: &mut CreateSchedulerRequest| {
            wire.autoscaling().min = min;
            wire.autoscaling().max = max;
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
    check(limits(5, 5), expect!["autoscaling.max: 5 is not above min, which is 5; -1 means no limit"]);
    check(limits(5, 2), expect!["autoscaling.max: 2 is not above min, which is 5; -1 means no limit"]);
    check(limits(5, -2), expect!["autoscaling.max: -2 is not above min, which is 5; -1 means no limit"]);
    check(|wire| wire.autoscaling().cooldown = -1, expect!["autoscaling.cooldown: -1 is not at least 0"]);
    check(
        |wire| {
            wire.autoscaling().enabled = false;
            wire.autoscaling().min = 0;
        },
        expect![
            "autoscaling.min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"
        ],
    );
    check(
        |wire| wire.autoscaling = Some(v1::Autoscaling::default()),
        expect![[r#"
            autoscaling.min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0
            autoscaling.max: 0 is not above min, which is 0; -1 means no limit
            autoscaling.policy: is missing; a type, roomOccupancy or fixedBuffer, is needed"#]],
    );
}

#[test]
fn panic_scale() {
    let time = |seconds| Some(protobuf::Duration { seconds, nanos: 0 });
    check(|wire| wire.autoscaling().panic = None, expect!["ok"]);
    check(|wire| *wire.panic() = v1::PanicScale::default(), expect!["ok"]);
    check(|wire| wire.panic().limit = Some(1), expect!["ok"]);
    check(|wire| wire.panic().limit = Some(99), expect!["ok"]);
    check(
        |wire| wire.panic().limit = Some(100),
        expect![
            "autoscaling.panic.limit: 100 is not between 1 and 99; it is the percentage of all places above which it panics, and no fleet is more than full"
        ],
    );
    check(
        |wire| {
            let enabled = Some(false);
            let (limit, delta, timeout) = (Some(0), Some(0), time(0));
            *wire.panic() = v1::PanicScale { enabled, limit, delta, timeout };
        },
        expect![[r#"
            autoscaling.panic.limit: 0 is not between 1 and 99; it is the percentage of all places above which it panics, and no fleet is more than full
            autoscaling.panic.delta: 0 is not at least 1
            autoscaling.panic.timeout: 0s is too short; write a time longer than zero, such as "30s""#]],
    );
}

#[test]
fn autoscaling_policy() {
    check(|wire| wire.policy().r#type = "fixedBuffer".into(), expect!["ok"]);
    check(
        |wire| wire.policy().r#type = "roomOccupation".into(),
        expect![[r#"autoscaling.policy.type: "roomOccupation" is neither roomOccupancy nor fixedBuffer"#]],
    );
    check(
        |wire| wire.policy().r#type = String::new(),
        expect![[r#"autoscaling.policy.type: "" is neither roomOccupancy nor fixedBuffer"#]],
    );
    check(
        |wire| wire.policy().parameters = None,
        expect![
            "autoscaling.policy.parameters.roomOccupancy: is missing; the policy's type is roomOccupancy"
        ],
    );
    check(
        |wire| wire.parameters().room_occupancy = None,
        expect![
            "autoscaling.policy.parameters.roomOccupancy: is missing; the policy's type is roomOccupancy"
        ],
    );
    check(
        |wire| {
            wire.policy().r#type = "fixedBuffer".into();
            wire.parameters().fixed_buffer = None;
            wire.set_decimals("2", None);
        },
        expect![[r#"
            autoscaling.policy.parameters.roomOccupancy.readyTarget: 2 is not between 0.1 and 0.9
            autoscaling.policy.parameters.fixedBuffer: is missing; the policy's type is fixedBuffer"#]],
    );
    check(
        |wire| wire.parameters().fixed_buffer = Some(v1::FixedBuffer { amount: Some(0) }),
        expect!["autoscaling.policy.parameters.fixedBuffer.amount: 0 is not a number of rooms of at least 1"],
    );
    check(
        |wire| wire.parameters().fixed_buffer = Some(v1::FixedBuffer { amount: None }),
        expect![
            "autoscaling.policy.parameters.fixedBuffer.amount: is missing; the number of rooms to keep ready is needed"
        ],
    );
}

#[test]
fn room_occupancy() {
    let set = |ready_target: &'static str, down_threshold: Option<&'static str>| {
        move |wire: &mut CreateSchedulerRequest| wire.set_decimals(ready_target, down_threshold)
    };
    check(set("0.1", None), expect!["ok"]);
    check(set("0.9", Some("0.000000000000000001")), expect!["ok"]);
    check(set("0.123456789012345678", Some("0.999999999999999999")), expect!["ok"]);
    // How v10 writes that there is none, in whichever way a number is written.
    for none in ["0", "0.0", "1", "1.0"] {
        check(set("0.5", Some(none)), expect!["ok"]);
    }
    check(
        set("0.099999", Some("0.0")),
        expect![
            "autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.099999 is not between 0.1 and 0.9"
        ],
    );
    check(
        set("0.999999999999999999", Some("1.0")),
        expect![
            "autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.999999999999999999 is not between 0.1 and 0.9"
        ],
    );
    check(
        set("0.1234567890123456789", Some("-0.5")),
        expect![[r#"
            autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.1234567890123456789 has more than 18 digits after the point
            autoscaling.policy.parameters.roomOccupancy.downThreshold: -0.5 is not between 0 and 1, both excluded"#]],
    );
    check(
        set("NaN", Some("inf")),
        expect![[r#"
            autoscaling.policy.parameters.roomOccupancy.readyTarget: "NaN" is not a decimal number; write it as 0.5
            autoscaling.policy.parameters.roomOccupancy.downThreshold: "inf" is not a decimal number; write it as 0.5"#]],
    );
}

#[test]
fn forwarders() {
    check(|wire| wire.forwarders[0].options = None, expect!["ok"]);
    check(
        |wire| wire.forwarders[0] = v1::Forwarder::default(),
        expect![[r#"
            forwarders[0].name: is missing; a name is needed
            forwarders[0].type: "" is not gRPC, the only type there is
            forwarders[0].address: is missing; host:port of the receiver is needed"#]],
    );
    check(
        |wire| wire.forwarders[0].r#type = "grpc".into(),
        expect![[r#"forwarders[0].type: "grpc" is not gRPC, the only type there is"#]],
    );
    check(
        |wire| wire.forwarders[0].options = Some(v1::ForwarderOptions::default()),
        expect![
            "forwarders[0].options.timeout: 0 is not a time in milliseconds of at least 1; without options it is 1000"
        ],
    );
    for word in ["", "direct", "queued"] {
        let set = |wire: &mut CreateSchedulerRequest| {
            let options = wire.forwarders[0].options.as_mut().unwrap();
            options.delivery = Some(word.into());
        };
        check(set, expect!["ok"]);
    }
    check(
        |wire| wire.forwarders[0].options.as_mut().unwrap().delivery = Some("later".into()),
        expect![[r#"forwarders[0].options.delivery: "later" is not one of direct, queued"#]],
    );
}

#[test]
fn a_queue_has_a_name_of_its_own() {
    let twice = |wire: &mut CreateSchedulerRequest| wire.forwarders.push(wire.forwarders[0].clone());
    check(
        twice,
        expect![[
            r#"forwarders[1].name: "matchmaker" is taken by forwarders[0]; a forwarder with a queue needs a name of its own"#
        ]],
    );
    // As v10 takes it.
    check(
        |wire| {
            wire.forwarders[0].options = None;
            twice(wire);
        },
        expect!["ok"],
    );
}

#[test]
fn matches() {
    check(|wire| wire.match_allocation = Some(v1::MatchAllocation { max_matches: 35 }), expect!["ok"]);
    check(
        |wire| wire.match_allocation = Some(v1::MatchAllocation { max_matches: 36 }),
        expect!["matchAllocation.maxMatches: 36 is not between 1 and 35"],
    );
    check(
        |wire| wire.match_allocation = Some(v1::MatchAllocation { max_matches: 0 }),
        expect!["matchAllocation.maxMatches: 0 is not between 1 and 35"],
    );
}

#[test]
fn rollout() {
    let time = |seconds, nanos| Some(protobuf::Duration { seconds, nanos });
    check(|wire| wire.rollout = Some(v1::Rollout::default()), expect!["ok"]);
    check(|wire| wire.rollout().rejoin_grace = time(0, 0), expect!["ok"]);
    check(|wire| wire.rollout().occupied_interval = time(0, 0), expect!["ok"]);
    check(
        |wire| {
            *wire.rollout() = v1::Rollout {
                max_unavailable: Some(-1),
                occupied: Some("keep".into()),
                on_failure: Some(String::new()),
                max_failures: Some(0),
                timeout: time(0, 0),
                match_end_deadline: time(-5, 0),
                rejoin_grace: time(0, -1),
                occupied_interval: time(-1, 0),
            };
        },
        expect![[r#"
            rollout.maxUnavailable: -1 is not at least 0
            rollout.occupied: "keep" is not one of deleteLast, waitForMatchEnd
            rollout.onFailure: is missing; one of rollback, halt is needed
            rollout.maxFailures: 0 is not at least 1
            rollout.timeout: 0s is too short; write a time longer than zero, such as "30s"
            rollout.matchEndDeadline: -5 seconds and 0 nanoseconds is not a time longer than zero, such as "30s"
            rollout.rejoinGrace: 0 seconds and -1 nanoseconds is not a time of zero or more, such as "30s"
            rollout.occupiedInterval: -1 seconds and 0 nanoseconds is not a time of zero or more, such as "30s""#]],
    );
    check(
        |wire| {
            wire.rollout().timeout = time(i64::MAX, 0);
            wire.rollout().rejoin_grace = time(1, 500_000);
        },
        expect![[r#"
            rollout.timeout: 9223372036854775807s is too long; at most 9223372036s
            rollout.rejoinGrace: 1.0005s is finer than a millisecond"#]],
    );
}
