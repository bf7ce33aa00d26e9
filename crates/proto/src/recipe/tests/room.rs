use expect_test::expect;

use super::check;
use crate::protobuf;
use crate::v1::{self, CreateSchedulerRequest};

#[test]
fn grace_period() {
    let set = |seconds, nanos| {
        move |wire: &mut CreateSchedulerRequest| {
            wire.spec().termination_grace_period = Some(protobuf::Duration { seconds, nanos });
        }
    };
    check(set(0, 1), expect!["ok"]);
    check(set(9_223_372_036, 0), expect!["ok"]);
    check(
        |wire| wire.spec().termination_grace_period = None,
        expect![[
            r#"spec.terminationGracePeriod: is missing; write how long a room may take to end, such as "30s""#
        ]],
    );
    check(
        set(0, 0),
        expect![[
            r#"spec.terminationGracePeriod: 0s is too short; write a time longer than zero, such as "30s""#
        ]],
    );
    check(
        set(-5, 0),
        expect![[
            r#"spec.terminationGracePeriod: -5 seconds and 0 nanoseconds is not a time longer than zero, such as "30s""#
        ]],
    );
    check(
        set(5, -1),
        expect![[
            r#"spec.terminationGracePeriod: 5 seconds and -1 nanoseconds is not a time longer than zero, such as "30s""#
        ]],
    );
    check(
        set(5, i32::MAX),
        expect![[
            r#"spec.terminationGracePeriod: 5 seconds and 2147483647 nanoseconds is not a time longer than zero, such as "30s""#
        ]],
    );
    check(
        set(i64::MAX, 999_999_999),
        expect!["spec.terminationGracePeriod: 9223372036854775807s is too long; at most 9223372036s"],
    );
}

#[test]
fn choices() {
    check(|wire| wire.spec().restart_policy = None, expect!["ok"]);
    check(|wire| wire.spec().restart_policy = Some(String::new()), expect!["ok"]);
    check(
        |wire| wire.spec().restart_policy = Some("always".into()),
        expect![[r#"spec.restartPolicy: "always" is not one of Always, OnFailure, Never"#]],
    );
    check(|wire| wire.container(0).image_pull_policy = String::new(), expect!["ok"]);
    check(
        |wire| wire.container(0).image_pull_policy = "Sometimes".into(),
        expect![[
            r#"spec.containers[0].imagePullPolicy: "Sometimes" is not one of Always, Never, IfNotPresent"#
        ]],
    );
    check(|wire| wire.container(0).ports[0].protocol = "sctp".into(), expect!["ok"]);
    check(
        |wire| wire.container(0).ports[0].protocol = "UDP".into(),
        expect![[r#"spec.containers[0].ports[0].protocol: "UDP" is not one of tcp, udp, sctp"#]],
    );
}

#[test]
fn containers() {
    check(|wire| wire.spec = None, expect!["spec: is missing; it says what a room is"]);
    check(
        |wire| wire.spec().containers.clear(),
        expect!["spec.containers: is empty; a room is made of at least one container"],
    );
    check(
        |wire| wire.container(1).name = "room".into(),
        expect![[
            r#"spec.containers[1].name: "room" is taken by spec.containers[0]; containers of a room need different names"#
        ]],
    );
    check(
        |wire| wire.container(1).name = "side_car".into(),
        expect![[
            r#"spec.containers[1].name: "side_car" is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"#
        ]],
    );
    check(
        |wire| wire.container(0).command[1] = "a\0b".into(),
        expect![[r#"spec.containers[0].command[1]: "a\0b" contains a NUL character"#]],
    );
}

#[test]
fn environment() {
    let set = |variable: v1::ContainerEnvironment| {
        |wire: &mut CreateSchedulerRequest| wire.container(0).environment[0] = variable
    };
    let named =
        |name: &str| v1::ContainerEnvironment { name: name.into(), ..v1::ContainerEnvironment::default() };
    let from = |field_ref, secret_key_ref| v1::ContainerEnvironment {
        value_from: Some(v1::ContainerEnvironmentValueFrom { field_ref, secret_key_ref }),
        ..named("A")
    };
    let field_ref = || Some(v1::ContainerEnvironmentValueFromFieldRef { field_path: "metadata.name".into() });
    check(set(named("A")), expect!["ok"]);
    check(
        set(named("")),
        expect![
            "spec.containers[0].environment[0].name: is missing; the name of an environment variable is needed"
        ],
    );
    check(
        set(named("A=B")),
        expect![[
            r#"spec.containers[0].environment[0].name: "A=B" is not the name of a variable: it may not contain = or NUL"#
        ]],
    );
    check(
        set(named("MAESTRO_ROOM_ID")),
        expect![[
            r#"spec.containers[0].environment[0].name: "MAESTRO_ROOM_ID" is set by Maestro: use a name that does not start with MAESTRO_"#
        ]],
    );
    check(
        set(v1::ContainerEnvironment { value: Some("a\0".into()), ..named("A") }),
        expect![[r#"spec.containers[0].environment[0].value: "a\0" contains a NUL character"#]],
    );
    check(
        set(v1::ContainerEnvironment { value: Some(String::new()), ..from(field_ref(), None) }),
        expect!["ok"],
    );
    check(
        set(v1::ContainerEnvironment { value: Some("a".into()), ..from(field_ref(), None) }),
        expect![[
            r#"spec.containers[0].environment[0]: has the value "a" and a valueFrom; only one of them can count"#
        ]],
    );
    check(
        set(from(None, None)),
        expect![
            "spec.containers[0].environment[0].valueFrom: is empty; a fieldRef or a secretKeyRef is needed"
        ],
    );
    check(
        set(from(Some(v1::ContainerEnvironmentValueFromFieldRef::default()), None)),
        expect![
            "spec.containers[0].environment[0].valueFrom.fieldRef.fieldPath: is missing; the path of a field of the room, such as metadata.name, is needed"
        ],
    );
    check(
        set(from(None, Some(v1::ContainerEnvironmentValueFromSecretKeyRef::default()))),
        expect![[r#"
        spec.containers[0].environment[0].valueFrom.secretKeyRef.name: is missing; the name of a secret is needed
        spec.containers[0].environment[0].valueFrom.secretKeyRef.key: is missing; the key in the secret is needed"#]],
    );
    check(
        set(from(field_ref(), Some(v1::ContainerEnvironmentValueFromSecretKeyRef::default()))),
        expect![
            "spec.containers[0].environment[0].valueFrom: has a fieldRef and a secretKeyRef; only one of them can count"
        ],
    );
}

#[test]
fn resources() {
    let requests = |memory: &str, cpu: &str| {
        let resources = v1::ContainerResources { memory: memory.into(), cpu: cpu.into() };
        |wire: &mut CreateSchedulerRequest| wire.container(0).requests = Some(resources)
    };
    check(requests("64Mi", "0.1"), expect!["ok"]);
    check(requests("0", "0"), expect!["ok"]);
    check(requests("", ""), expect!["ok"]);
    check(
        requests("64MB", "lots"),
        expect![[r#"
        spec.containers[0].requests.memory: "64MB" is not a Kubernetes quantity; write it as 100m, 1.5, 64Mi or 2G
        spec.containers[0].requests.cpu: "lots" is not a Kubernetes quantity; write it as 100m, 1.5, 64Mi or 2G"#]],
    );
    check(
        requests("64m", "-1"),
        expect![[r#"
        spec.containers[0].requests.memory: "64m" is less than one byte; m means thousandths, mebibytes are written 64Mi
        spec.containers[0].requests.cpu: "-1" is not a Kubernetes quantity; write it as 100m, 1.5, 64Mi or 2G"#]],
    );
    check(
        requests("65Mi", "101m"),
        expect![[r#"
        spec.containers[0].requests.memory: "65Mi" is more than the limit of "64Mi"
        spec.containers[0].requests.cpu: "101m" is more than the limit of "100m""#]],
    );
    check(
        requests("9Ei", "1"),
        expect![[
            r#"spec.containers[0].requests.memory: "9Ei" is too large: at most 9223372036854775807 can be asked for"#
        ]],
    );
    check(|wire| wire.container(0).limits = None, expect!["ok"]);
}

#[test]
fn ports() {
    check(|wire| wire.container(0).ports.clear(), expect!["ok"]);
    check(
        |wire| wire.container(0).ports[0].port = 0,
        expect!["spec.containers[0].ports[0].port: 0 is not between 1 and 65535"],
    );
    check(
        |wire| wire.container(0).ports[0].port = 65_536,
        expect!["spec.containers[0].ports[0].port: 65536 is not between 1 and 65535"],
    );
    check(
        |wire| wire.container(0).ports[0].host_port = -1,
        expect!["spec.containers[0].ports[0].hostPort: -1 is not between 0 and 65535"],
    );
    check(
        |wire| wire.container(0).ports[0].name = String::new(),
        expect![
            "spec.containers[0].ports[0].name: is missing; a name of 1 to 15 characters a-z, 0-9 and - is needed"
        ],
    );
    check(
        |wire| wire.container(0).ports[0].name = "sixteen-letters-".into(),
        expect![[
            r#"spec.containers[0].ports[0].name: "sixteen-letters-" is not the name of a port: use 1 to 15 characters a-z, 0-9 and single -, at least one letter, not starting or ending with -"#
        ]],
    );
    check(
        |wire| wire.container(0).ports[0].name = "7777".into(),
        expect![[
            r#"spec.containers[0].ports[0].name: "7777" is not the name of a port: use 1 to 15 characters a-z, 0-9 and single -, at least one letter, not starting or ending with -"#
        ]],
    );
    check(
        |wire| wire.container(0).ports[1].name = "game".into(),
        expect![[
            r#"spec.containers[0].ports[1].name: "game" is taken by spec.containers[0].ports[0]; ports of a room need different names"#
        ]],
    );
    check(
        |wire| {
            let port = wire.container(0).ports[0].clone();
            wire.container(1).ports.push(port);
        },
        expect![[
            r#"spec.containers[1].ports[0].name: "game" is taken by spec.containers[0].ports[0]; ports of a room need different names"#
        ]],
    );
}

#[test]
fn port_ranges() {
    check(|wire| wire.port_range = range(200, 100), expect!["portRange: start 200 is not below end 100"]);
    check(|wire| wire.port_range = range(200, 200), expect!["portRange: start 200 is not below end 200"]);
    check(
        |wire| wire.port_range = range(0, 65_536),
        expect![[r#"
        portRange.start: 0 is not between 1 and 65535
        portRange.end: 65536 is not between 1 and 65535"#]],
    );
    check(
        |wire| wire.port_range = None,
        expect!["portRange: is missing; give the scheduler a portRange, or every port a hostPortRange"],
    );
    check(
        |wire| {
            wire.port_range = None;
            wire.container(0).ports.clear();
        },
        expect!["portRange: is missing; give the scheduler a portRange, or every port a hostPortRange"],
    );
    check(
        |wire| wire.container(0).ports[1].host_port_range = range(1, 2),
        expect![
            "portRange: excludes spec.containers[0].ports[1].hostPortRange; keep portRange, or a hostPortRange on every port"
        ],
    );
    check(
        |wire| {
            wire.port_range = None;
            wire.container(0).ports[1].host_port_range = range(1, 2);
        },
        expect![
            "spec.containers[0].ports[0].hostPortRange: is missing; spec.containers[0].ports[1] has one, so every port needs one, or all share one portRange"
        ],
    );
    check(
        |wire| {
            wire.port_range = None;
            wire.container(0).ports[0].host_port_range = range(1, 2);
            wire.container(0).ports[1].host_port_range = range(2, 1);
        },
        expect!["spec.containers[0].ports[1].hostPortRange: start 2 is not below end 1"],
    );
}

fn range(start: i32, end: i32) -> Option<v1::PortRange> {
    Some(v1::PortRange { start, end })
}
