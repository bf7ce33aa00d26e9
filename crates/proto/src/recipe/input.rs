//! How an operation shows the scheduler it was given, in its `input`.
//!
//! v10 stores its own Go value there: keys in capitals, null for what is absent, lengths of time in nanoseconds, and
//! the year 1 for times that are not known. Clients read it, so it is kept; [`super::document`] is what we read.

use maestro_core::policy::{DeletionPolicy, PlacementPolicy, PlacementRegion};
use maestro_core::scheduler::{
    Autoscaling, Container, ContainerPort, EnvironmentValue, EnvironmentVariable, FixedBuffer, Forwarder,
    Fraction, PanicScale, PortRange, Recipe, Resources, Rollout, RoomOccupancy, Spec, Version,
};
use maestro_core::time::Millis;
use serde_json::{Value, json};

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
    let mut scheduler = json!({
        "Name": recipe.name.as_str(),
        "Game": recipe.game,
        "State": state,
        "RollbackVersion": number(rollback_version),
        "Spec": spec(&recipe.spec, version),
        "Autoscaling": recipe.autoscaling.as_ref().map(autoscaling),
        "PortRange": recipe.port_range.map(port_range),
        "RoomsReplicas": recipe.rooms_replicas,
        "CreatedAt": NEVER,
        "LastDownscaleAt": NEVER,
        "MaxSurge": recipe.max_surge.to_string(),
        "Forwarders": recipe.forwarders.iter().map(forwarder).collect::<Value>(),
        "Annotations": Some(&recipe.annotations).filter(|map| !map.is_empty()),
        "Labels": Some(&recipe.labels).filter(|map| !map.is_empty()),
        "MatchAllocation": {"MaxMatches": recipe.match_allocation.max_matches},
    });
    // v10 does not know these, so they are there only if they were written.
    if let Some(rules) = recipe.rollout_rules {
        scheduler["Rollout"] = rollout(rules);
    }
    if let Some(policy) = &recipe.policies.placement {
        scheduler["Placement"] = placement(policy);
    }
    if let Some(DeletionPolicy { criteria }) = recipe.policies.deletion {
        scheduler["Deletion"] = json!({"Criteria": criteria.as_str()});
    }
    scheduler
}

/// Empty for a version that is not known.
fn number(version: Option<Version>) -> String {
    version.map(|version| version.to_string()).unwrap_or_default()
}

fn spec(spec: &Spec, version: Option<Version>) -> Value {
    let mut value = json!({
        "Version": number(version),
        // A parsed recipe's fits.
        "TerminationGracePeriod": u64::try_from(spec.termination_grace_period.as_nanos()).unwrap_or(u64::MAX),
        "Containers": spec.containers.iter().map(container).collect::<Value>(),
        "Toleration": spec.toleration,
        "Affinity": spec.affinity,
        "RestartPolicy": spec.restart_policy.as_str(),
    });
    if let Some(region) = &spec.region {
        value["Region"] = Value::from(region.as_str());
    }
    value
}

fn container(container: &Container) -> Value {
    json!({
        "Name": container.name,
        "Image": container.image,
        "ImagePullPolicy": container.image_pull_policy.as_str(),
        "Command": container.command,
        "Environment": container.environment.iter().map(environment_variable).collect::<Value>(),
        "Requests": resources(&container.requests),
        "Limits": resources(&container.limits),
        "Ports": container.ports.iter().map(container_port).collect::<Value>(),
    })
}

fn environment_variable(variable: &EnvironmentVariable) -> Value {
    let (value, value_from) = match &variable.value {
        EnvironmentValue::Text(text) => (text.as_str(), Value::Null),
        EnvironmentValue::Field { path } => {
            ("", json!({"FieldRef": {"fieldPath": path}, "SecretKeyRef": null}))
        }
        EnvironmentValue::Secret { name, key } => {
            ("", json!({"FieldRef": null, "SecretKeyRef": {"name": name, "key": key}}))
        }
    };
    json!({"Name": variable.name, "Value": value, "ValueFrom": value_from})
}

fn resources(resources: &Resources) -> Value {
    json!({"Memory": resources.memory, "CPU": resources.cpu})
}

fn container_port(port: &ContainerPort) -> Value {
    json!({
        "Name": port.name,
        "Protocol": port.protocol.as_str(),
        "Port": port.port,
        "HostPort": port.host_port,
        "HostPortRange": port.host_port_range.map(port_range),
    })
}

fn port_range(range: PortRange) -> Value {
    json!({"Start": range.start, "End": range.end})
}

fn autoscaling(autoscaling: &Autoscaling) -> Value {
    let mut shown = json!({
        "Enabled": autoscaling.enabled,
        "Min": autoscaling.min,
        "Max": autoscaling.max.map_or(-1, i64::from),
        "Cooldown": autoscaling.cooldown_seconds,
        "Policy": {
            "Type": autoscaling.policy.type_name(),
            "Parameters": {
                "RoomOccupancy": autoscaling.room_occupancy().map(room_occupancy),
                "FixedBuffer": autoscaling.fixed_buffer().map(|FixedBuffer { amount }| json!({"Amount": amount})),
            },
        },
    });
    // As with the rollout: v10 does not know it.
    if let Some(panic) = autoscaling.panic {
        shown["Panic"] = panic_scale(panic);
    }
    shown
}

fn panic_scale(panic: PanicScale) -> Value {
    json!({
        "Enabled": panic.enabled,
        "Limit": panic.limit,
        "Delta": panic.delta,
        "Timeout": nanos(panic.timeout),
    })
}

fn room_occupancy(occupancy: RoomOccupancy) -> Value {
    json!({
        "ReadyTarget": decimal(occupancy.ready_target.fraction()),
        "DownThreshold": occupancy.down_threshold.map_or(json!(1), |threshold| json!(decimal(threshold))),
    })
}

/// The nearest 64-bit float, which prints as the decimal it is, 0.8, where v10 shows 0.800000011920929. Up to 15 digits
/// are exact. People look at this number; no decision reads it.
fn decimal(fraction: Fraction) -> f64 {
    fraction.to_string().parse().unwrap_or_default()
}

fn forwarder(forwarder: &Forwarder) -> Value {
    json!({
        "Name": forwarder.name,
        "Enabled": forwarder.enabled,
        "ForwardType": Forwarder::TYPE,
        "Address": forwarder.address,
        "Options": {"Timeout": forwarder.timeout_ms, "Metadata": forwarder.metadata},
    })
}

fn rollout(rollout: Rollout) -> Value {
    json!({
        "MaxUnavailable": rollout.max_unavailable,
        "Occupied": rollout.occupied.as_str(),
        "OnFailure": rollout.on_failure.as_str(),
        "MaxFailures": rollout.max_failures,
        "Timeout": rollout.timeout.map(nanos),
        "MatchEndDeadline": rollout.match_end_deadline.map(nanos),
        "RejoinGrace": nanos(rollout.rejoin_grace),
        "OccupiedInterval": nanos(rollout.occupied_interval),
    })
}

fn nanos(Millis(millis): Millis) -> u64 {
    millis.saturating_mul(1_000_000)
}

fn placement(policy: &PlacementPolicy) -> Value {
    let region = |PlacementRegion { name, weight, cap }: &PlacementRegion| json!({"Name": name.as_str(), "Weight": weight, "Cap": cap.map_or(-1, i64::from)});
    json!({"Regions": policy.regions.iter().map(region).collect::<Value>()})
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
