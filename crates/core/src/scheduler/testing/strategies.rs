//! Every recipe that can be written, for properties that must hold for all of them.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{field_ref, resources, secret_key_ref};
use crate::scheduler::draft::{
    AutoscalingDraft, ContainerDraft, ContainerPortDraft, DeletionDraft, DurationDraft,
    EnvironmentVariableDraft, FixedBufferDraft, ForwarderDraft, ForwarderOptionsDraft, MatchAllocationDraft,
    PanicScaleDraft, PlacementDraft, PlacementRegionDraft, PolicyParametersDraft, PortRangeDraft,
    RecipeDraft, RolloutDraft, RoomOccupancyDraft, ScalingPolicyDraft, SpecDraft,
};
use crate::scheduler::{Recipe, WHOLE};

/// Any valid recipe.
pub fn recipes() -> impl Strategy<Value = Recipe> {
    let fleet = (label(), text(), max_surge(), 0..i32::MAX, option::of(autoscaling()));
    let room = (
        vec(container(), 1..4),
        (1..1_000_000_i64, 0..1_000_000_000_i32),
        option::of(prop::sample::select(vec!["", "Always", "OnFailure", "Never"])),
        text(),
        text(),
        option::of(region_name()),
    );
    let rest =
        (vec(forwarder(), 0..3), string_map(), string_map(), option::of(1..=35_i32), option::of(rollout()));
    let policies = (option::of(placement()), option::of(criteria()));
    (fleet, room, rest, policies, option::of(port_range())).prop_map(
        |(fleet, room, rest, policies, shared_range)| {
            let (name, game, max_surge, rooms_replicas, autoscaling) = fleet;
            let (mut containers, (seconds, nanos), restart_policy, toleration, affinity, region) = room;
            let (forwarders, annotations, labels, max_matches, rollout) = rest;
            let (placement, criteria) = policies;
            let port_range = distinct(&mut containers, shared_range);
            let draft = RecipeDraft {
                name,
                game: format!("g{game}"),
                spec: Some(SpecDraft {
                    termination_grace_period: Some(DurationDraft { seconds, nanos }),
                    containers,
                    toleration,
                    affinity,
                    restart_policy: restart_policy.map(str::to_owned),
                    region,
                }),
                port_range,
                max_surge,
                rooms_replicas,
                autoscaling,
                forwarders,
                annotations,
                labels,
                match_allocation: max_matches.map(|max_matches| MatchAllocationDraft { max_matches }),
                rollout,
                policies: Vec::new(),
                placement,
                deletion: criteria.map(|criteria| DeletionDraft { criteria }),
            };
            Recipe::parse(&draft).unwrap_or_else(|violations| panic!("{violations}\n{draft:#?}"))
        },
    )
}

/// Gives containers and ports names of their own, and leaves one style of port range. Returns the shared range.
fn distinct(
    containers: &mut [ContainerDraft],
    shared_range: Option<PortRangeDraft>,
) -> Option<PortRangeDraft> {
    let has_ports = containers.iter().any(|container| !container.ports.is_empty());
    let shared_range = match shared_range {
        None if !has_ports => Some(PortRangeDraft { start: 1, end: 2 }),
        range => range,
    };
    for (index, container) in containers.iter_mut().enumerate() {
        container.name = format!("{index}-{}", container.name);
        container.name.truncate(20);
        container.name.push('x');
        for (port_index, port) in container.ports.iter_mut().enumerate() {
            port.name = format!("p{index}-{port_index}");
            if shared_range.is_some() {
                port.host_port_range = None;
            } else {
                port.host_port_range.get_or_insert(PortRangeDraft { start: 7, end: 9 });
            }
        }
    }
    shared_range
}

fn container() -> impl Strategy<Value = ContainerDraft> {
    let resources_pair = prop::sample::select(vec![
        (resources("16Mi", "5m"), resources("64Mi", "100m")),
        (resources("0", "0"), resources("1e9", "1.5")),
        (resources("1Gi", "1000m"), resources("1024Mi", "1")),
    ]);
    (
        label(),
        text(),
        prop::sample::select(vec!["Always", "Never", "IfNotPresent"]),
        vec(text(), 0..3),
        vec(environment_variable(), 0..4),
        resources_pair,
        vec(container_port(), 0..3),
    )
        .prop_map(|(name, image, policy, command, environment, (requests, limits), ports)| {
            ContainerDraft {
                name,
                image: format!("i{image}"),
                image_pull_policy: policy.into(),
                command,
                environment,
                requests: Some(requests),
                limits: Some(limits),
                ports,
            }
        })
}

fn environment_variable() -> impl Strategy<Value = EnvironmentVariableDraft> {
    let value = prop_oneof![
        text().prop_map(|text| (Some(text), None)),
        Just((None, None)),
        text().prop_map(|path| (None, Some(field_ref(&format!("f{path}"))))),
        (text(), text())
            .prop_map(|(name, key)| (None, Some(secret_key_ref(&format!("s{name}"), &format!("k{key}"))))),
    ];
    ("[A-Z_a-z. é-]{1,8}", value).prop_map(|(name, (value, value_from))| EnvironmentVariableDraft {
        name,
        value,
        value_from,
    })
}

fn container_port() -> impl Strategy<Value = ContainerPortDraft> {
    let protocol = prop::sample::select(vec!["tcp", "udp", "sctp"]);
    (protocol, 1..=65_535_i32, 0..=65_535_i32, option::of(port_range())).prop_map(
        |(protocol, port, host_port, host_port_range)| ContainerPortDraft {
            name: "port".into(),
            protocol: protocol.into(),
            port,
            host_port,
            host_port_range,
        },
    )
}

fn port_range() -> impl Strategy<Value = PortRangeDraft> {
    (1..65_535_i32)
        .prop_flat_map(|start| (Just(start), start + 1..=65_535))
        .prop_map(|(start, end)| PortRangeDraft { start, end })
}

fn autoscaling() -> impl Strategy<Value = AutoscalingDraft> {
    // As a recipe writes them: without zeros at the end.
    let fraction = |units: u64| format!("0.{units:018}").trim_end_matches('0').to_owned();
    let room_occupancy =
        (WHOLE / 10..=WHOLE / 10 * 9, option::of(1..WHOLE)).prop_map(move |(target, threshold)| {
            RoomOccupancyDraft { ready_target: fraction(target), down_threshold: threshold.map(fraction) }
        });
    let fixed_buffer = (1..=i32::MAX).prop_map(|amount| FixedBufferDraft { amount: Some(amount) });
    let limits = (1..i32::MAX).prop_flat_map(|min| {
        let max = prop_oneof![Just(-1), min + 1..=i32::MAX];
        (Just(min), max)
    });
    let parameters = (any::<bool>(), option::of(room_occupancy), option::of(fixed_buffer));
    (any::<bool>(), limits, 0..=i32::MAX, parameters, option::of(panic_scale())).prop_map(
        |(enabled, (min, max), cooldown, parameters, panic)| {
            let (by_occupancy, mut room_occupancy, mut fixed_buffer) = parameters;
            let policy_type = if by_occupancy {
                room_occupancy
                    .get_or_insert(RoomOccupancyDraft { ready_target: "0.5".into(), down_threshold: None });
                "roomOccupancy"
            } else {
                fixed_buffer.get_or_insert(FixedBufferDraft { amount: Some(1) });
                "fixedBuffer"
            };
            AutoscalingDraft {
                enabled,
                min,
                max,
                policy: Some(ScalingPolicyDraft {
                    policy_type: policy_type.into(),
                    parameters: Some(PolicyParametersDraft { room_occupancy, fixed_buffer }),
                }),
                cooldown,
                panic,
            }
        },
    )
}

fn panic_scale() -> impl Strategy<Value = PanicScaleDraft> {
    (option::of(any::<bool>()), option::of(1..=99_i32), option::of(1..=i32::MAX), option::of(time()))
        .prop_map(|(enabled, limit, delta, timeout)| PanicScaleDraft { enabled, limit, delta, timeout })
}

/// Longer than zero, in whole milliseconds.
fn time() -> impl Strategy<Value = DurationDraft> {
    (1..1_000_000_i64, 0..1000_i32)
        .prop_map(|(seconds, millis)| DurationDraft { seconds, nanos: millis * 1_000_000 })
}

fn rollout() -> impl Strategy<Value = RolloutDraft> {
    let word = |words: [&'static str; 2]| option::of(prop::sample::select(words.map(str::to_owned).to_vec()));
    (
        option::of(0..=i32::MAX),
        word(["deleteLast", "waitForMatchEnd"]),
        word(["rollback", "halt"]),
        option::of(1..=i32::MAX),
        option::of(time()),
        option::of(time()),
        option::of(prop_oneof![Just(DurationDraft::default()), time()]),
        option::of(prop_oneof![Just(DurationDraft::default()), time()]),
    )
        .prop_map(
            |(max_unavailable, occupied, on_failure, max_failures, timeout, deadline, grace, interval)| {
                RolloutDraft {
                    max_unavailable,
                    occupied,
                    on_failure,
                    max_failures,
                    timeout,
                    match_end_deadline: deadline,
                    rejoin_grace: grace,
                    occupied_interval: interval,
                }
            },
        )
}

/// At least one region has a weight.
fn placement() -> impl Strategy<Value = PlacementDraft> {
    let region = (region_name(), option::of(0..=i32::MAX), option::of(-1..=i32::MAX));
    vec(region, 1..4).prop_map(|regions| {
        let region = |(index, (name, weight, cap)): (usize, (String, Option<i32>, Option<i32>))| {
            let weight = if index == 0 { weight.map(|weight| weight.max(1)) } else { weight };
            PlacementRegionDraft { name: format!("{index}-{name}"), weight, cap }
        };
        PlacementDraft { regions: regions.into_iter().enumerate().map(region).collect() }
    })
}

fn criteria() -> impl Strategy<Value = Option<String>> {
    let words = ["OLDEST_FIRST", "OLDEST_PROFILE_FIRST", "YOUNGEST_FIRST", "RANDOM"];
    option::of(prop::sample::select(words.map(str::to_owned).to_vec()))
}

fn region_name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-zA-Z0-9._-]{0,8}[a-zA-Z0-9])?"
}

fn forwarder() -> impl Strategy<Value = ForwarderDraft> {
    let metadata = btree_map(text(), json_value(), 0..3).prop_map(Map::from_iter);
    let options =
        (1..=i64::MAX, metadata).prop_map(|(timeout, metadata)| ForwarderOptionsDraft { timeout, metadata });
    (text(), any::<bool>(), text(), option::of(options)).prop_map(|(name, enable, address, options)| {
        ForwarderDraft {
            name: format!("n{name}"),
            enable,
            forwarder_type: "gRPC".into(),
            address: format!("a{address}"),
            options,
        }
    })
}

/// What a `google.protobuf.Struct` can hold: its numbers are doubles.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        (-1_000_000..1_000_000_i32).prop_map(|eighths| match eighths % 8 {
            0 => Value::from(eighths / 8),
            _ => Value::from(f64::from(eighths) / 8.0),
        }),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(text(), inner, 0..3).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn max_surge() -> impl Strategy<Value = String> {
    (1..=u32::MAX, any::<bool>())
        .prop_map(|(number, percent)| format!("{number}{}", if percent { "%" } else { "" }))
}

fn string_map() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text(), text(), 0..3)
}

fn label() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?"
}

/// Short, sometimes empty, with what JSON must escape.
fn text() -> impl Strategy<Value = String> {
    "[a-z0-9/:.% \"\\\\é=\n-]{0,6}"
}
