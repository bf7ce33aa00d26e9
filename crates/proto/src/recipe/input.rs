//! How an operation shows the scheduler it was given, in its `input`.
//!
//! v10 stores its own Go value there: keys in capitals, null for what is absent, lengths of time in nanoseconds, and
//! the year 1 for times that are not known. Clients read it, so it is kept. Its fields are those of
//! [`super::document`], which is what we read, so it is made from that.

use maestro_core::scheduler::{Recipe, Version};
use serde_json::{Map, Value, json};

use super::document::recipe_to_json;
use crate::well_known::parse_duration;

/// What Go prints for a time that was never set.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// The scheduler of a recipe as v10 would store it.
///
/// `version` is `None` until it has a number. `rollback_version` is the version that was active when this one was
/// numbered, if there was one.
pub fn go_cased_scheduler(
    recipe: &Recipe,
    version: Option<Version>,
    state: &str,
    rollback_version: Option<Version>,
) -> Value {
    // Empty for a version that is not known.
    let number = |version: Option<Version>| version.map(|version| version.to_string()).unwrap_or_default();
    let mut scheduler = go_cased("scheduler", recipe_to_json(recipe));
    scheduler["State"] = state.into();
    scheduler["Spec"]["Version"] = number(version).into();
    scheduler["RollbackVersion"] = number(rollback_version).into();
    scheduler["CreatedAt"] = NEVER.into();
    scheduler["LastDownscaleAt"] = NEVER.into();
    scheduler
}

/// The value of the field `name`; the items of a list have its name.
fn go_cased(name: &str, value: Value) -> Value {
    match (name, value) {
        ("annotations" | "labels", Value::Object(map)) if map.is_empty() => Value::Null,
        // The keys in these are not ours: people chose them, or Kubernetes.
        ("annotations" | "labels" | "metadata" | "fieldRef" | "secretKeyRef", value) => value,
        ("requests" | "limits", Value::Null) => json!({"Memory": "", "CPU": ""}),
        (name, Value::String(text)) if LENGTHS_OF_TIME.contains(&name) => nanos_or_number(&text),
        // One with many digits, as the nearest 64-bit float: people look at this number, and no decision reads it. v10
        // shows 0.800000011920929 for 0.8.
        ("readyTarget" | "downThreshold", Value::String(text)) => json!(text.parse::<f64>().ok()),
        (name, Value::Array(items)) => items.into_iter().map(|item| go_cased(name, item)).collect(),
        (name, Value::Object(fields)) => {
            let mut shown = if_absent(name);
            shown.extend(
                fields.into_iter().map(|(field, value)| (go_name(name, &field), go_cased(&field, value))),
            );
            Value::Object(shown)
        }
        (_, value) => value,
    }
}

const LENGTHS_OF_TIME: [&str; 5] =
    ["terminationGracePeriod", "timeout", "matchEndDeadline", "rejoinGrace", "occupiedInterval"];

/// A forwarder's timeout is a number of milliseconds, which JSON has as text because it has 64 bits.
fn nanos_or_number(text: &str) -> Value {
    match parse_duration(text) {
        Some(time) => {
            let nanos = time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanos.into());
            Value::from(nanos)
        }
        None => text.parse::<u64>().map_or(Value::Null, Value::from),
    }
}

/// What Go shows of the fields of a block that the document leaves out. What v10 does not know is not shown.
fn if_absent(block: &str) -> Map<String, Value> {
    let fields: &[(&str, Value)] = match block {
        "scheduler" => &[("Autoscaling", Value::Null)],
        "environment" => &[("Value", json!("")), ("ValueFrom", Value::Null)],
        "valueFrom" => &[("FieldRef", Value::Null), ("SecretKeyRef", Value::Null)],
        "ports" => &[("HostPortRange", Value::Null)],
        "parameters" => &[("RoomOccupancy", Value::Null), ("FixedBuffer", Value::Null)],
        "roomOccupancy" => &[("DownThreshold", json!(1))],
        "rollout" => &[("Timeout", Value::Null), ("MatchEndDeadline", Value::Null)],
        _ => &[],
    };
    fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn go_name(block: &str, field: &str) -> String {
    match (block, field) {
        (_, "cpu") => "CPU".to_owned(),
        ("forwarders", "enable") => "Enabled".to_owned(),
        ("forwarders", "type") => "ForwardType".to_owned(),
        (_, field) => field[..1].to_uppercase() + &field[1..],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::recipe::tests::{missing_from, sample};

    #[test]
    fn a_recipe_that_uses_everything() {
        let recipe = Recipe::try_from(&sample()).unwrap();
        let input = go_cased_scheduler(&recipe, Some(Version::FIRST), "in-sync", None);
        expect![[r#"
            {
              "Annotations": {
                "owner": "a team"
              },
              "Autoscaling": {
                "Cooldown": 60,
                "Enabled": true,
                "Max": 100,
                "Min": 1,
                "Panic": {
                  "Delta": 5,
                  "Enabled": true,
                  "Limit": 80,
                  "Timeout": 90000000000
                },
                "Policy": {
                  "Parameters": {
                    "FixedBuffer": {
                      "Amount": 10
                    },
                    "RoomOccupancy": {
                      "DownThreshold": 0.95,
                      "ReadyTarget": 0.8
                    }
                  },
                  "Type": "roomOccupancy"
                }
              },
              "CreatedAt": "0001-01-01T00:00:00Z",
              "Deletion": {
                "Criteria": "OLDEST_FIRST"
              },
              "Forwarders": [
                {
                  "Address": "matchmaker.example:9090",
                  "Enabled": true,
                  "ForwardType": "gRPC",
                  "Name": "matchmaker",
                  "Options": {
                    "Delivery": "queued",
                    "Metadata": {
                      "tier": [
                        "gold",
                        1,
                        null,
                        2.5
                      ]
                    },
                    "Timeout": 500
                  }
                }
              ],
              "Game": "brawl",
              "Labels": {
                "team": "a"
              },
              "LastDownscaleAt": "0001-01-01T00:00:00Z",
              "MatchAllocation": {
                "MaxMatches": 2
              },
              "MaxSurge": "25%",
              "Name": "arena",
              "Placement": {
                "Regions": [
                  {
                    "Cap": 40,
                    "Name": "us-east",
                    "Weight": 3
                  },
                  {
                    "Cap": -1,
                    "Name": "eu-west",
                    "Weight": 2
                  }
                ]
              },
              "PortRange": {
                "End": 29999,
                "Start": 20000
              },
              "RollbackVersion": "",
              "Rollout": {
                "MatchEndDeadline": 3600000000000,
                "MaxFailures": 3,
                "MaxUnavailable": 1,
                "Occupied": "waitForMatchEnd",
                "OccupiedInterval": 60000000000,
                "OnFailure": "halt",
                "RejoinGrace": 15000000000,
                "Timeout": 1800000000000
              },
              "RoomsReplicas": 3,
              "Spec": {
                "Affinity": "rooms",
                "Containers": [
                  {
                    "Command": [
                      "/room",
                      "--verbose"
                    ],
                    "Environment": [
                      {
                        "Name": "ROOMS_API",
                        "Value": "http://rooms-api.example:8070",
                        "ValueFrom": null
                      },
                      {
                        "Name": "EMPTY",
                        "Value": "",
                        "ValueFrom": null
                      },
                      {
                        "Name": "POD",
                        "Value": "",
                        "ValueFrom": {
                          "FieldRef": {
                            "fieldPath": "metadata.name"
                          },
                          "SecretKeyRef": null
                        }
                      },
                      {
                        "Name": "TOKEN",
                        "Value": "",
                        "ValueFrom": {
                          "FieldRef": null,
                          "SecretKeyRef": {
                            "key": "token",
                            "name": "api"
                          }
                        }
                      }
                    ],
                    "Image": "registry.example/room:1",
                    "ImagePullPolicy": "IfNotPresent",
                    "Limits": {
                      "CPU": "100m",
                      "Memory": "64Mi"
                    },
                    "Name": "room",
                    "Ports": [
                      {
                        "HostPort": 0,
                        "HostPortRange": null,
                        "Name": "game",
                        "Port": 7777,
                        "Protocol": "udp"
                      },
                      {
                        "HostPort": 0,
                        "HostPortRange": null,
                        "Name": "chat",
                        "Port": 7778,
                        "Protocol": "tcp"
                      }
                    ],
                    "Requests": {
                      "CPU": "5m",
                      "Memory": "16Mi"
                    }
                  },
                  {
                    "Command": [],
                    "Environment": [],
                    "Image": "registry.example/sidecar:1",
                    "ImagePullPolicy": "Always",
                    "Limits": {
                      "CPU": "1",
                      "Memory": "1Gi"
                    },
                    "Name": "sidecar",
                    "Ports": [],
                    "Requests": {
                      "CPU": "0.01",
                      "Memory": "1e6"
                    }
                  }
                ],
                "Region": "us-east",
                "RestartPolicy": "OnFailure",
                "TerminationGracePeriod": 5000000000,
                "Toleration": "dedicated",
                "Version": "v1.0.0"
              },
              "State": "in-sync"
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&input).unwrap());
        // v10 calls it `Enabled`; documents are shown in short.
        assert_eq!(missing_from(&input), ["enable", "policies", "properties"]);
    }
}
