//! Recipes to test with: one sample that uses every field, and a strategy for all that can be written.

mod strategies;

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::draft::{
    AutoscalingDraft, ContainerDraft, ContainerPortDraft, DeletionDraft, DurationDraft,
    EnvironmentVariableDraft, FieldRefDraft, FixedBufferDraft, ForwarderDraft, ForwarderOptionsDraft,
    MatchAllocationDraft, PanicScaleDraft, PlacementDraft, PlacementRegionDraft, PolicyParametersDraft,
    PortRangeDraft, RecipeDraft, ResourcesDraft, RolloutDraft, RoomOccupancyDraft, ScalingPolicyDraft,
    SecretKeyRefDraft, SpecDraft, ValueFromDraft,
};

pub use self::strategies::recipes;

/// A valid draft with something in every field, but for documents that would say the same again; its ports share one
/// range.
pub fn draft() -> RecipeDraft {
    RecipeDraft {
        name: "arena".into(),
        game: "brawl".into(),
        spec: Some(SpecDraft {
            termination_grace_period: Some(DurationDraft { seconds: 5, nanos: 0 }),
            containers: vec![room_container(), sidecar_container()],
            toleration: "dedicated".into(),
            affinity: "rooms".into(),
            restart_policy: Some("OnFailure".into()),
            region: Some("us-east".into()),
        }),
        port_range: Some(PortRangeDraft { start: 20_000, end: 29_999 }),
        max_surge: "25%".into(),
        rooms_replicas: 3,
        autoscaling: Some(AutoscalingDraft {
            enabled: true,
            min: 1,
            max: 100,
            policy: Some(ScalingPolicyDraft {
                policy_type: "roomOccupancy".into(),
                parameters: Some(PolicyParametersDraft {
                    room_occupancy: Some(RoomOccupancyDraft {
                        ready_target: "0.8".into(),
                        down_threshold: Some("0.95".into()),
                    }),
                    fixed_buffer: Some(FixedBufferDraft { amount: Some(10) }),
                }),
            }),
            cooldown: 60,
            panic: Some(PanicScaleDraft {
                enabled: Some(true),
                limit: Some(80),
                delta: Some(5),
                timeout: Some(DurationDraft { seconds: 90, nanos: 0 }),
            }),
        }),
        forwarders: vec![ForwarderDraft {
            name: "matchmaker".into(),
            enable: true,
            forwarder_type: "gRPC".into(),
            address: "matchmaker.example:9090".into(),
            options: Some(ForwarderOptionsDraft {
                timeout: 500,
                metadata: Map::from_iter([("tier".to_owned(), json!(["gold", 1, null, 2.5]))]),
            }),
        }],
        annotations: BTreeMap::from([("owner".to_owned(), "a team".to_owned())]),
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        match_allocation: Some(MatchAllocationDraft { max_matches: 2 }),
        rollout: Some(rollout()),
        policies: Vec::new(),
        placement: Some(PlacementDraft { regions: vec![region("us-east", 3, 40), region("eu-west", 2, -1)] }),
        deletion: Some(DeletionDraft { criteria: Some("OLDEST_FIRST".into()) }),
    }
}

fn region(name: &str, weight: i32, cap: i32) -> PlacementRegionDraft {
    PlacementRegionDraft { name: name.into(), weight: Some(weight), cap: Some(cap) }
}

fn rollout() -> RolloutDraft {
    let time = |seconds| Some(DurationDraft { seconds, nanos: 0 });
    RolloutDraft {
        max_unavailable: Some(1),
        occupied: Some("waitForMatchEnd".into()),
        on_failure: Some("halt".into()),
        max_failures: Some(3),
        timeout: time(1800),
        match_end_deadline: time(3600),
        rejoin_grace: time(15),
        occupied_interval: time(60),
    }
}

fn room_container() -> ContainerDraft {
    ContainerDraft {
        name: "room".into(),
        image: "registry.example/room:1".into(),
        image_pull_policy: "IfNotPresent".into(),
        command: vec!["/room".into(), "--verbose".into()],
        environment: vec![
            EnvironmentVariableDraft {
                name: "ROOMS_API".into(),
                value: Some("http://rooms-api.example:8070".into()),
                value_from: None,
            },
            EnvironmentVariableDraft { name: "EMPTY".into(), value: Some(String::new()), value_from: None },
            EnvironmentVariableDraft {
                name: "POD".into(),
                value: None,
                value_from: Some(field_ref("metadata.name")),
            },
            EnvironmentVariableDraft {
                name: "TOKEN".into(),
                value: None,
                value_from: Some(secret_key_ref("api", "token")),
            },
        ],
        requests: Some(resources("16Mi", "5m")),
        limits: Some(resources("64Mi", "100m")),
        ports: vec![port("game", "udp", 7777), port("chat", "tcp", 7778)],
    }
}

fn sidecar_container() -> ContainerDraft {
    ContainerDraft {
        name: "sidecar".into(),
        image: "registry.example/sidecar:1".into(),
        image_pull_policy: "Always".into(),
        requests: Some(resources("1e6", "0.01")),
        limits: Some(resources("1Gi", "1")),
        ..ContainerDraft::default()
    }
}

fn resources(memory: &str, cpu: &str) -> ResourcesDraft {
    ResourcesDraft { memory: memory.into(), cpu: cpu.into() }
}

fn port(name: &str, protocol: &str, port: i32) -> ContainerPortDraft {
    ContainerPortDraft { name: name.into(), protocol: protocol.into(), port, ..ContainerPortDraft::default() }
}

fn field_ref(path: &str) -> ValueFromDraft {
    ValueFromDraft { field_ref: Some(FieldRefDraft { field_path: path.into() }), secret_key_ref: None }
}

fn secret_key_ref(name: &str, key: &str) -> ValueFromDraft {
    ValueFromDraft {
        field_ref: None,
        secret_key_ref: Some(SecretKeyRefDraft { name: name.into(), key: key.into() }),
    }
}

/// Ways into a draft that has the part in question, as [`draft`] does.
#[expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "for tests")]
impl RecipeDraft {
    pub fn spec(&mut self) -> &mut SpecDraft {
        self.spec.as_mut().unwrap()
    }

    pub fn container(&mut self, index: usize) -> &mut ContainerDraft {
        &mut self.spec().containers[index]
    }

    pub fn autoscaling(&mut self) -> &mut AutoscalingDraft {
        self.autoscaling.as_mut().unwrap()
    }

    pub fn panic(&mut self) -> &mut PanicScaleDraft {
        self.autoscaling().panic.as_mut().unwrap()
    }

    pub fn rollout(&mut self) -> &mut RolloutDraft {
        self.rollout.as_mut().unwrap()
    }

    pub fn region(&mut self, index: usize) -> &mut PlacementRegionDraft {
        &mut self.placement.as_mut().unwrap().regions[index]
    }

    pub fn policy(&mut self) -> &mut ScalingPolicyDraft {
        self.autoscaling().policy.as_mut().unwrap()
    }

    pub fn parameters(&mut self) -> &mut PolicyParametersDraft {
        self.policy().parameters.as_mut().unwrap()
    }

    pub fn room_occupancy(&mut self) -> &mut RoomOccupancyDraft {
        self.parameters().room_occupancy.as_mut().unwrap()
    }
}
