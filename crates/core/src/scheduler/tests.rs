//! A recipe to test with.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::policy::{Criteria, DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use crate::room::Region;
use crate::time::Millis;

/// Something in every field; its ports share one range.
pub(crate) fn recipe() -> Recipe {
    Recipe {
        name: SchedulerName::parse("arena").unwrap(),
        game: "brawl".into(),
        spec: Spec {
            termination_grace_period: Duration::from_secs(5),
            containers: vec![room_container(), sidecar_container()],
            toleration: "dedicated".into(),
            affinity: "rooms".into(),
            restart_policy: RestartPolicy::OnFailure,
            region: Some(Region::parse("us-east").unwrap()),
        },
        port_range: Some(PortRange { start: 20_000, end: 29_999 }),
        max_surge: MaxSurge::Percent(25),
        rooms_replicas: 3,
        autoscaling: Some(Autoscaling {
            enabled: true,
            min: 1,
            max: Some(100),
            cooldown_seconds: 60,
            policy: ScalingPolicy::RoomOccupancy(room_occupancy("0.8", Some("0.95"))),
            other_parameters: OtherParameters {
                room_occupancy: None,
                fixed_buffer: Some(FixedBuffer { amount: 10 }),
            },
            panic: Some(PanicScale { enabled: true, limit: 80, delta: 5, timeout: Millis::from_seconds(90) }),
        }),
        forwarders: vec![Forwarder {
            name: "matchmaker".into(),
            enabled: true,
            address: "matchmaker.example:9090".into(),
            timeout_ms: 500,
            delivery: Delivery::Queued,
            metadata: serde_json::Map::from_iter([("tier".to_owned(), "gold".into())]),
        }],
        annotations: BTreeMap::from([("owner".to_owned(), "a team".to_owned())]),
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        match_allocation: MatchAllocation { max_matches: 2 },
        rollout_rules: Some(Rollout {
            max_unavailable: 1,
            occupied: OccupiedRooms::WaitForMatchEnd,
            on_failure: OnFailure::Halt,
            max_failures: 3,
            timeout: Some(Millis::from_seconds(1800)),
            match_end_deadline: Some(Millis::from_seconds(3600)),
            rejoin_grace: Millis::from_seconds(15),
            occupied_interval: Millis::from_seconds(60),
        }),
        policies: Policies {
            placement: Some(PlacementPolicy {
                regions: vec![region("us-east", 3, Some(40)), region("eu-west", 2, None)],
            }),
            deletion: Some(DeletionPolicy { criteria: Criteria::OldestFirst }),
        },
    }
}

pub(crate) fn room_occupancy(ready_target: &str, down_threshold: Option<&str>) -> RoomOccupancy {
    RoomOccupancy {
        ready_target: ReadyTarget::parse(ready_target).unwrap(),
        down_threshold: down_threshold.map(|text| Fraction::parse(text).unwrap()),
    }
}

fn region(name: &str, weight: u32, cap: Option<u32>) -> PlacementRegion {
    PlacementRegion { name: Region::parse(name).unwrap(), weight, cap }
}

fn room_container() -> Container {
    let variable = |name: &str, value: EnvironmentValue| EnvironmentVariable { name: name.to_owned(), value };
    Container {
        name: "room".into(),
        image: "registry.example/room:1".into(),
        image_pull_policy: ImagePullPolicy::IfNotPresent,
        command: vec!["/room".into(), "--verbose".into()],
        environment: vec![
            variable("ROOMS_API", EnvironmentValue::Text("http://rooms-api.example:8070".into())),
            variable("POD", EnvironmentValue::Field { path: "metadata.name".into() }),
            variable("TOKEN", EnvironmentValue::Secret { name: "api".into(), key: "token".into() }),
        ],
        requests: resources("16Mi", "5m"),
        limits: resources("64Mi", "100m"),
        ports: vec![port("game", Protocol::Udp, 7777), port("chat", Protocol::Tcp, 7778)],
    }
}

fn sidecar_container() -> Container {
    Container {
        name: "sidecar".into(),
        image: "registry.example/sidecar:1".into(),
        image_pull_policy: ImagePullPolicy::Always,
        command: Vec::new(),
        environment: Vec::new(),
        requests: resources("1e6", "0.01"),
        limits: resources("1Gi", "1"),
        ports: Vec::new(),
    }
}

fn resources(memory: &str, cpu: &str) -> Resources {
    Resources { memory: memory.into(), cpu: cpu.into() }
}

fn port(name: &str, protocol: Protocol, port: u16) -> ContainerPort {
    ContainerPort { name: name.into(), protocol, port, host_port: 0, host_port_range: None }
}
