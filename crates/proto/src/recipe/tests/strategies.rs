//! Every recipe that can be written, for properties that must hold for all of them.

use std::collections::BTreeMap;

use maestro_core::scheduler::{Recipe, WHOLE};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::protobuf;
use crate::v1::{self, CreateSchedulerRequest};

/// Any valid recipe.
pub(in crate::recipe) fn recipes() -> impl Strategy<Value = Recipe> {
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
            let wire = CreateSchedulerRequest {
                name,
                game: format!("g{game}"),
                spec: Some(v1::Spec {
                    version: String::new(),
                    termination_grace_period: Some(protobuf::Duration { seconds, nanos }),
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
                forwarders: with_names_of_their_own(forwarders),
                annotations,
                labels,
                match_allocation: max_matches.map(|max_matches| v1::MatchAllocation { max_matches }),
                rollout,
                policies: Vec::new(),
                placement,
                deletion: criteria.map(|criteria| v1::Deletion { criteria }),
            };
            Recipe::try_from(&wire).unwrap_or_else(|violations| panic!("{violations}\n{wire:#?}"))
        },
    )
}

/// Gives containers and ports names of their own, and leaves one style of port range. Returns the shared range.
fn distinct(containers: &mut [v1::Container], shared_range: Option<v1::PortRange>) -> Option<v1::PortRange> {
    let has_ports = containers.iter().any(|container| !container.ports.is_empty());
    let shared_range = match shared_range {
        None if !has_ports => Some(v1::PortRange { start: 1, end: 2 }),
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
                port.host_port_range.get_or_insert(v1::PortRange { start: 7, end: 9 });
            }
        }
    }
    shared_range
}

fn container() -> impl Strategy<Value = v1::Container> {
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
            v1::Container {
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

fn environment_variable() -> impl Strategy<Value = v1::ContainerEnvironment> {
    let value = prop_oneof![
        text().prop_map(|text| (Some(text), None)),
        Just((None, None)),
        text().prop_map(|path| (None, Some(field_ref(&format!("f{path}"))))),
        (text(), text())
            .prop_map(|(name, key)| (None, Some(secret_key_ref(&format!("s{name}"), &format!("k{key}"))))),
    ];
    ("[A-Z_a-z. é-]{1,8}", value).prop_map(|(name, (value, value_from))| v1::ContainerEnvironment {
        name,
        value,
        value_from,
    })
}

fn container_port() -> impl Strategy<Value = v1::ContainerPort> {
    let protocol = prop::sample::select(vec!["tcp", "udp", "sctp"]);
    (protocol, 1..=65_535_i32, 0..=65_535_i32, option::of(port_range())).prop_map(
        |(protocol, port, host_port, host_port_range)| v1::ContainerPort {
            name: "port".into(),
            protocol: protocol.into(),
            port,
            host_port,
            host_port_range,
        },
    )
}

fn port_range() -> impl Strategy<Value = v1::PortRange> {
    (1..65_535_i32)
        .prop_flat_map(|start| (Just(start), start + 1..=65_535))
        .prop_map(|(start, end)| v1::PortRange { start, end })
}

fn autoscaling() -> impl Strategy<Value = v1::Autoscaling> {
    // As a recipe writes them: without zeros at the end.
    let fraction = |units: u64| format!("0.{units:018}").trim_end_matches('0').to_owned();
    let room_occupancy =
        (WHOLE / 10..=WHOLE / 10 * 9, option::of(1..WHOLE)).prop_map(move |(target, threshold)| {
            v1::RoomOccupancy::of_decimals(fraction(target), threshold.map(fraction))
        });
    let fixed_buffer = (1..=i32::MAX).prop_map(|amount| v1::FixedBuffer { amount: Some(amount) });
    let limits = (1..i32::MAX).prop_flat_map(|min| {
        let max = prop_oneof![Just(-1), min + 1..=i32::MAX];
        (Just(min), max)
    });
    let parameters = (any::<bool>(), option::of(room_occupancy), option::of(fixed_buffer));
    (any::<bool>(), limits, 0..=i32::MAX, parameters, option::of(panic_scale())).prop_map(
        |(enabled, (min, max), cooldown, parameters, panic)| {
            let (by_occupancy, mut room_occupancy, mut fixed_buffer) = parameters;
            let policy = if by_occupancy {
                room_occupancy
                    .get_or_insert(v1::RoomOccupancy { ready_target: 0.5, ..v1::RoomOccupancy::default() });
                "roomOccupancy"
            } else {
                fixed_buffer.get_or_insert(v1::FixedBuffer { amount: Some(1) });
                "fixedBuffer"
            };
            v1::Autoscaling {
                enabled,
                min,
                max,
                policy: Some(v1::AutoscalingPolicy {
                    r#type: policy.into(),
                    parameters: Some(v1::PolicyParameters { room_occupancy, fixed_buffer }),
                }),
                cooldown,
                panic,
            }
        },
    )
}

fn panic_scale() -> impl Strategy<Value = v1::PanicScale> {
    (option::of(any::<bool>()), option::of(1..=99_i32), option::of(1..=i32::MAX), option::of(time()))
        .prop_map(|(enabled, limit, delta, timeout)| v1::PanicScale { enabled, limit, delta, timeout })
}

/// Longer than zero, in whole milliseconds.
fn time() -> impl Strategy<Value = protobuf::Duration> {
    (1..1_000_000_i64, 0..1000_i32)
        .prop_map(|(seconds, millis)| protobuf::Duration { seconds, nanos: millis * 1_000_000 })
}

fn rollout() -> impl Strategy<Value = v1::Rollout> {
    let word = |words: [&'static str; 2]| option::of(prop::sample::select(words.map(str::to_owned).to_vec()));
    (
        option::of(0..=i32::MAX),
        word(["deleteLast", "waitForMatchEnd"]),
        word(["rollback", "halt"]),
        option::of(1..=i32::MAX),
        option::of(time()),
        option::of(time()),
        option::of(prop_oneof![Just(protobuf::Duration::default()), time()]),
        option::of(prop_oneof![Just(protobuf::Duration::default()), time()]),
    )
        .prop_map(
            |(max_unavailable, occupied, on_failure, max_failures, timeout, deadline, grace, interval)| {
                v1::Rollout {
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
fn placement() -> impl Strategy<Value = v1::Placement> {
    let region = (region_name(), option::of(0..=i32::MAX), option::of(-1..=i32::MAX));
    vec(region, 1..4).prop_map(|regions| {
        let region = |(index, (name, weight, cap)): (usize, (String, Option<i32>, Option<i32>))| {
            let weight = if index == 0 { weight.map(|weight| weight.max(1)) } else { weight };
            v1::PlacementRegion { name: format!("{index}-{name}"), weight, cap }
        };
        v1::Placement { regions: regions.into_iter().enumerate().map(region).collect() }
    })
}

fn criteria() -> impl Strategy<Value = Option<String>> {
    let words = ["OLDEST_FIRST", "OLDEST_PROFILE_FIRST", "YOUNGEST_FIRST", "RANDOM"];
    option::of(prop::sample::select(words.map(str::to_owned).to_vec()))
}

fn region_name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-zA-Z0-9._-]{0,8}[a-zA-Z0-9])?"
}

/// A queue belongs to a name.
fn with_names_of_their_own(forwarders: Vec<v1::Forwarder>) -> Vec<v1::Forwarder> {
    let named = |(number, forwarder): (usize, v1::Forwarder)| {
        let name = format!("{}{number}", forwarder.name);
        v1::Forwarder { name, ..forwarder }
    };
    forwarders.into_iter().enumerate().map(named).collect()
}

fn forwarder() -> impl Strategy<Value = v1::Forwarder> {
    let metadata = btree_map(text(), json_value(), 0..3).prop_map(|map| Map::from_iter(map).into());
    let delivery = option::of(prop::sample::select(vec!["direct".to_owned(), "queued".to_owned()]));
    let options = (1..=i64::MAX, metadata, delivery).prop_map(|(timeout, metadata, delivery)| {
        v1::ForwarderOptions { timeout, metadata: Some(metadata), delivery }
    });
    (text(), any::<bool>(), text(), option::of(options)).prop_map(|(name, enable, address, options)| {
        v1::Forwarder {
            name: format!("n{name}"),
            enable,
            r#type: "gRPC".into(),
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

fn resources(memory: &str, cpu: &str) -> v1::ContainerResources {
    v1::ContainerResources { memory: memory.into(), cpu: cpu.into() }
}

fn field_ref(path: &str) -> v1::ContainerEnvironmentValueFrom {
    let field_ref = Some(v1::ContainerEnvironmentValueFromFieldRef { field_path: path.into() });
    v1::ContainerEnvironmentValueFrom { field_ref, secret_key_ref: None }
}

fn secret_key_ref(name: &str, key: &str) -> v1::ContainerEnvironmentValueFrom {
    let (name, key) = (name.into(), key.into());
    let secret_key_ref = Some(v1::ContainerEnvironmentValueFromSecretKeyRef { name, key });
    v1::ContainerEnvironmentValueFrom { field_ref: None, secret_key_ref }
}
