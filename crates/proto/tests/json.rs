//! The JSON of messages, where v10's clients would notice a difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use expect_test::{Expect, expect};
use maestro_core::scheduler::{Recipe, Version};
use maestro_core::time::Timestamp;
use maestro_proto::json::decode;
use maestro_proto::recipe::{self, Shown};
use maestro_proto::v1::{
    Autoscaling, ContainerPort, CreateSchedulerRequest, ForwarderOptions, ListOperationItem,
    ListOperationsRequest, Room, Scheduler, SchedulerInfo, Spec, UpdateRoomWithPingRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a message and prints it, or says why not; then the fields that nobody knows.
#[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
fn check<T: DeserializeOwned + Serialize + Default>(json: &str, expected: Expect) {
    let outcome = match decode::<T>(json.as_bytes()) {
        Ok(decoded) => {
            let unknown = decoded.unknown_fields.iter().map(|path| format!("\nunknown: {path}"));
            serde_json::to_string(&decoded.message).unwrap() + &unknown.collect::<String>()
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&outcome);
}

#[test]
fn what_is_not_set() {
    check::<Scheduler>(
        "",
        expect![[
            r#"{"name":"","game":"","state":"","portRange":null,"createdAt":null,"maxSurge":"","roomsReplicas":0,"spec":null,"forwarders":[],"annotations":{},"labels":{}}"#
        ]],
    );
    check::<SchedulerInfo>(
        "{}",
        expect![[
            r#"{"name":"","game":"","state":"","roomsReplicas":0,"roomsReady":0,"roomsOccupied":0,"roomsPending":0,"roomsTerminating":0,"autoscaling":null}"#
        ]],
    );
    check::<ListOperationItem>(
        "{}",
        expect![[r#"{"id":"","status":"","definitionName":"","schedulerName":"","createdAt":null}"#]],
    );
    check::<Room>(
        "{}",
        expect![[
            r#"{"id":"","status":"","version":"","region":"","host":"","ports":[],"pids":[],"createdAt":null,"lastPingAt":null,"validation":false}"#
        ]],
    );
}

#[test]
fn null_is_not_set() {
    check::<CreateSchedulerRequest>(
        r#"{"name":null,"game":"g","spec":null,"maxSurge":null,"roomsReplicas":null,"autoscaling":null,"forwarders":null,"labels":null}"#,
        expect![[
            r#"{"name":"","game":"g","spec":null,"portRange":null,"maxSurge":"","roomsReplicas":0,"forwarders":[],"annotations":{},"labels":{}}"#
        ]],
    );
}

#[test]
fn both_spellings_of_a_name() {
    check::<ContainerPort>(
        r#"{"host_port":1,"hostPortRange":{"start":2,"end":3}}"#,
        expect![[r#"{"name":"","protocol":"","port":0,"hostPort":1,"hostPortRange":{"start":2,"end":3}}"#]],
    );
    check::<ContainerPort>(
        r#"{"host_port":1,"hostPort":1}"#,
        expect!["duplicate field `hostPort` at line 1 column 25"],
    );
}

#[test]
fn numbers() {
    check::<UpdateRoomWithPingRequest>(
        r#"{"timestamp":"1794733616","runningMatches":2}"#,
        expect![[
            r#"{"schedulerName":"","roomName":"","metadata":null,"status":"","timestamp":"1794733616","runningMatches":"2"}"#
        ]],
    );
    check::<UpdateRoomWithPingRequest>(
        r#"{"timestamp":1e3,"runningMatches":"-9223372036854775808"}"#,
        expect![[
            r#"{"schedulerName":"","roomName":"","metadata":null,"status":"","timestamp":"1000","runningMatches":"-9223372036854775808"}"#
        ]],
    );
    check::<ContainerPort>(
        r#"{"port":7777.0}"#,
        expect![[r#"{"name":"","protocol":"","port":7777,"hostPort":0}"#]],
    );
    check::<ContainerPort>(
        r#"{"port":7777.5}"#,
        expect![
            "port: invalid value: floating point `7777.5`, expected a whole number of 32 bits at line 1 column 14"
        ],
    );
    check::<ContainerPort>(
        r#"{"port":2147483648}"#,
        expect![
            "port: invalid value: integer `2147483648`, expected a whole number of 32 bits at line 1 column 18"
        ],
    );
    check::<ContainerPort>(
        r#"{"port":"many"}"#,
        expect![[
            r#"port: invalid value: string "many", expected a whole number of 32 bits at line 1 column 14"#
        ]],
    );
    check::<ContainerPort>(
        r#"{"port":[]}"#,
        expect!["port: invalid type: sequence, expected a whole number of 32 bits at line 1 column 10"],
    );
    check::<ListOperationsRequest>(
        r#"{"page":"2","perPage":-1}"#,
        expect![
            "perPage: invalid value: integer `-1`, expected a whole number of 32 bits, not negative at line 1 column 24"
        ],
    );
    check::<ForwarderOptions>(
        r#"{"metadata":{"count":5,"ratio":0.5,"big":18446744073709551615}}"#,
        expect![[r#"{"timeout":"0","metadata":{"big":1.8446744073709552e+19,"count":5,"ratio":0.5}}"#]],
    );
}

/// As YAML gives them, where people write them without quotes.
#[test]
fn texts_that_look_like_something_else() {
    let texts = |message: CreateSchedulerRequest| {
        let container = &message.spec.unwrap().containers[0];
        let resources = container.requests.clone().unwrap();
        let values: Vec<_> = container.environment.iter().map(|variable| variable.value.clone()).collect();
        (
            message.max_surge,
            message.labels,
            resources.cpu,
            resources.memory,
            container.command.clone(),
            values,
        )
    };
    let decoded = decode(
        br#"{"maxSurge":1,"labels":{"tier":2,"live":true},"spec":{"containers":[{"command":["sleep",5],
            "requests":{"cpu":0.5,"memory":1e9},
            "environment":[{"name":"A","value":7},{"name":"B","value":false},{"name":"C","value":null}]}]}}"#,
    )
    .unwrap();
    assert_eq!(decoded.unknown_fields, Vec::<String>::new());
    let (max_surge, labels, cpu, memory, command, values) = texts(decoded.message);
    assert_eq!((&*max_surge, &*cpu, &*memory), ("1", "0.5", "1000000000"));
    assert_eq!(
        labels.into_iter().collect::<Vec<_>>(),
        [("live".into(), "true".into()), ("tier".into(), "2".into())]
    );
    assert_eq!(command, ["sleep", "5"]);
    assert_eq!(values, [Some("7".into()), Some("false".into()), None]);
}

#[test]
fn names_of_fields_are_known() {
    for name in ["readyTarget", "maxSurge", "hostPortRange", "fieldPath", "criteria"] {
        assert!(maestro_proto::RECIPE_FIELDS.contains(&name), "{name}");
    }
    assert!(!maestro_proto::RECIPE_FIELDS.contains(&"operationId"));
}

#[test]
fn what_is_wrong_is_named() {
    check::<CreateSchedulerRequest>(
        r#"{"name": "x", "#,
        expect!["EOF while parsing a value at line 1 column 14"],
    );
    check::<CreateSchedulerRequest>("{} {}", expect!["trailing characters at line 1 column 4"]);
    check::<CreateSchedulerRequest>(
        "[]",
        expect!["invalid type: sequence, expected an object at line 1 column 2"],
    );
    check::<CreateSchedulerRequest>(
        r#"{"maxSurge":true}"#,
        expect!["maxSurge: invalid type: boolean `true`, expected a string at line 1 column 16"],
    );
    check::<CreateSchedulerRequest>(
        r#"{"spec":{"terminationGracePeriod":"5m"}}"#,
        expect![[
            r#"spec.terminationGracePeriod: "5m" is not a length of time; write it in seconds, as 30s or 0.5s at line 1 column 39"#
        ]],
    );
    check::<CreateSchedulerRequest>(
        r#"{"spec":{"containers":[{},{"ports":[{"port":"x"}]}]}}"#,
        expect![[
            r#"spec.containers[1].ports[0].port: invalid value: string "x", expected a whole number of 32 bits at line 1 column 47"#
        ]],
    );
    check::<CreateSchedulerRequest>(
        r#"{"labels":{"version":1.10}}"#,
        expect![
            "labels.version: invalid type: floating point `1.1`, expected a string; write it in quotes at line 1 column 25"
        ],
    );
    check::<CreateSchedulerRequest>(
        r#"{"name":"a","name":"b"}"#,
        expect!["duplicate field `name` at line 1 column 18"],
    );
}

#[test]
fn what_nobody_knows_is_named() {
    check::<ContainerPort>(
        r#"{"colour":"red","hostPortRange":{"start":1,"ende":2}}"#,
        expect![[r#"
            {"name":"","protocol":"","port":0,"hostPort":0,"hostPortRange":{"start":1,"end":0}}
            unknown: colour
            unknown: hostPortRange.ende"#]],
    );
    check::<Autoscaling>(
        r#"{"policy":{"parameters":{"roomOccupancy":{"readyTraget":0.5}}}}"#,
        expect![[r#"
            {"enabled":false,"min":0,"max":0,"policy":{"type":"","parameters":{"roomOccupancy":{"readyTarget":0}}},"cooldown":0}
            unknown: policy.parameters.roomOccupancy.readyTraget"#]],
    );
}

#[test]
fn lists_of_messages() {
    check::<Spec>(
        r#"{"containers":[{"name":"a","colour":"red"},{"ports":[{},{"colour":1}]}]}"#,
        expect![[r#"
            {"version":"","terminationGracePeriod":null,"containers":[{"name":"a","image":"","imagePullPolicy":"","command":[],"environment":[],"requests":null,"limits":null,"ports":[]},{"name":"","image":"","imagePullPolicy":"","command":[],"environment":[],"requests":null,"limits":null,"ports":[{"name":"","protocol":"","port":0,"hostPort":0},{"name":"","protocol":"","port":0,"hostPort":0}]}],"toleration":"","affinity":""}
            unknown: containers[0].colour
            unknown: containers[1].ports[1].colour"#]],
    );
    check::<Spec>(
        r#"{"containers":null}"#,
        expect![[
            r#"{"version":"","terminationGracePeriod":null,"containers":[],"toleration":"","affinity":""}"#
        ]],
    );
    check::<Spec>(
        r#"{"containers":[null]}"#,
        expect!["containers[0]: invalid type: null, expected an object at line 1 column 20"],
    );
    check::<Spec>(
        r#"{"containers":[["room"]]}"#,
        expect!["containers[0]: invalid type: sequence, expected an object at line 1 column 16"],
    );
    check::<Spec>(
        r#"{"containers":{}}"#,
        expect!["containers: invalid type: map, expected a list of objects at line 1 column 16"],
    );
}

#[test]
fn a_recipe_that_uses_everything() {
    let sample = decode::<CreateSchedulerRequest>(include_bytes!("sample.json")).unwrap();
    let recipe = Recipe::try_from(&sample.message).unwrap();
    let shown = Shown {
        version: Version::FIRST,
        state: "in-sync",
        created_at: Timestamp::UNIX_EPOCH,
        rooms_replicas: recipe.rooms_replicas,
    };
    let scheduler = recipe::scheduler(&recipe, shown);
    expect![[r#"
        {
          "name": "arena",
          "game": "brawl",
          "state": "in-sync",
          "portRange": {
            "start": 20000,
            "end": 29999
          },
          "createdAt": "1970-01-01T00:00:00Z",
          "maxSurge": "25%",
          "roomsReplicas": 3,
          "spec": {
            "version": "v1.0.0",
            "terminationGracePeriod": "5s",
            "containers": [
              {
                "name": "room",
                "image": "registry.example/room:1",
                "imagePullPolicy": "IfNotPresent",
                "command": [
                  "/room",
                  "--verbose"
                ],
                "environment": [
                  {
                    "name": "ROOMS_API",
                    "value": "http://rooms-api.example:8070"
                  },
                  {
                    "name": "EMPTY"
                  },
                  {
                    "name": "POD",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "metadata.name"
                      }
                    }
                  },
                  {
                    "name": "TOKEN",
                    "valueFrom": {
                      "secretKeyRef": {
                        "name": "api",
                        "key": "token"
                      }
                    }
                  }
                ],
                "requests": {
                  "memory": "16Mi",
                  "cpu": "5m"
                },
                "limits": {
                  "memory": "64Mi",
                  "cpu": "100m"
                },
                "ports": [
                  {
                    "name": "game",
                    "protocol": "udp",
                    "port": 7777,
                    "hostPort": 0
                  },
                  {
                    "name": "chat",
                    "protocol": "tcp",
                    "port": 7778,
                    "hostPort": 0
                  }
                ]
              },
              {
                "name": "sidecar",
                "image": "registry.example/sidecar:1",
                "imagePullPolicy": "Always",
                "command": [],
                "environment": [],
                "requests": {
                  "memory": "1e6",
                  "cpu": "0.01"
                },
                "limits": {
                  "memory": "1Gi",
                  "cpu": "1"
                },
                "ports": []
              }
            ],
            "toleration": "dedicated",
            "affinity": "rooms",
            "restartPolicy": "OnFailure",
            "region": "us-east"
          },
          "autoscaling": {
            "enabled": true,
            "min": 1,
            "max": 100,
            "policy": {
              "type": "roomOccupancy",
              "parameters": {
                "roomOccupancy": {
                  "readyTarget": 0.8,
                  "downThreshold": 0.95
                },
                "fixedBuffer": {
                  "amount": 10
                }
              }
            },
            "cooldown": 60,
            "panic": {
              "enabled": true,
              "limit": 80,
              "delta": 5,
              "timeout": "90s"
            }
          },
          "forwarders": [
            {
              "name": "matchmaker",
              "enable": true,
              "type": "gRPC",
              "address": "matchmaker.example:9090",
              "options": {
                "timeout": "500",
                "metadata": {
                  "tier": [
                    "gold",
                    1,
                    null,
                    2.5
                  ]
                },
                "delivery": "queued"
              }
            }
          ],
          "annotations": {
            "owner": "a team"
          },
          "labels": {
            "team": "a"
          },
          "matchAllocation": {
            "maxMatches": 2
          },
          "rollout": {
            "maxUnavailable": 1,
            "occupied": "waitForMatchEnd",
            "onFailure": "halt",
            "maxFailures": 3,
            "timeout": "1800s",
            "matchEndDeadline": "3600s",
            "rejoinGrace": "15s",
            "occupiedInterval": "60s"
          },
          "placement": {
            "regions": [
              {
                "name": "us-east",
                "weight": 3,
                "cap": 40
              },
              {
                "name": "eu-west",
                "weight": 2,
                "cap": -1
              }
            ]
          },
          "deletion": {
            "criteria": "OLDEST_FIRST"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&scheduler).unwrap());
}
