//! What simulated fleets are made from.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::policy::Policies;
use maestro_core::scheduler::{
    Autoscaling, Container, ContainerPort, FixedBuffer, ImagePullPolicy, MatchAllocation, MaxSurge,
    OccupiedRooms, OnFailure, OtherParameters, PanicScale, PortRange, Protocol, ReadyTarget, Recipe,
    Resources, RestartPolicy, Rollout, RoomOccupancy, ScalingPolicy, SchedulerName, Spec,
};
use maestro_core::time::Millis;
use maestro_engine::Settings;

/// How a room's command says which generation of the game it is.
pub(super) const GENERATION: &str = "--generation=";

/// Shorter waits than the defaults: a run has minutes, and what waits must end in it. Where people are patient, whoever
/// waits for a lock waits for longer than the world has to come to rest: two who wait for each other show.
pub(super) fn settings(random: &mut fastrand::Rng, patient: bool) -> Settings {
    Settings {
        room_initialization_timeout: Millis::from_seconds(random.u64(20..60)),
        room_validation_timeout: Millis::from_seconds(20),
        room_validation_attempts: random.u32(1..=3),
        room_ping_timeout: Millis::from_seconds(random.u64(40..120)),
        // Some are so short that silent rooms are taken for dead before anybody hears them again.
        mass_silence_timeout: Millis::from_seconds(random.u64(60..900)),
        room_deletion_timeout: Millis::from_seconds(60),
        lock_wait_timeout: Millis::from_seconds(if patient { 2 * 60 * 60 } else { 60 }),
        downscaling_timeout: Millis::from_seconds(120),
        rooms_add_batch: random.u32(1..=10),
        early_wake_up: random.u32(0..8) > 0,
        ..Settings::default()
    }
}

/// A fleet of so many rooms, the `number`-th scheduler of its world.
pub(super) fn fixed(number: usize, rooms: u32, random: &mut fastrand::Rng) -> Recipe {
    Recipe {
        name: name(number),
        game: "tennis".into(),
        spec: spec(random),
        port_range: Some(PortRange { start: 40_000, end: 41_000 }),
        max_surge: match random.bool() {
            true => MaxSurge::Percent(random.u32(10..=100)),
            false => MaxSurge::Rooms(random.u32(1..=5)),
        },
        rooms_replicas: rooms,
        autoscaling: None,
        forwarders: Vec::new(),
        annotations: BTreeMap::new(),
        labels: BTreeMap::new(),
        match_allocation: MatchAllocation { max_matches: if random.bool() { 1 } else { 2 } },
        rollout_rules: random.bool().then(|| rollout(random)),
        policies: Policies::default(),
    }
}

/// A fleet that follows its players.
pub(super) fn autoscaled(number: usize, random: &mut fastrand::Rng) -> Recipe {
    let min = random.u32(1..4);
    let policy = match random.bool() {
        true => ScalingPolicy::FixedBuffer(FixedBuffer { amount: random.u32(1..5) }),
        false => ScalingPolicy::RoomOccupancy(RoomOccupancy {
            ready_target: ready_target(random),
            down_threshold: None,
        }),
    };
    let autoscaling = Autoscaling {
        enabled: true,
        min,
        max: random.bool().then(|| min + random.u32(1..15)),
        cooldown_seconds: if random.bool() { 0 } else { random.u32(1..60) },
        policy,
        other_parameters: OtherParameters::default(),
        panic: random.bool().then(|| panic_scale(random)),
    };
    Recipe { autoscaling: Some(autoscaling), ..fixed(number, 0, random) }
}

fn panic_scale(random: &mut fastrand::Rng) -> PanicScale {
    PanicScale {
        enabled: true,
        limit: random.u32(30..=90),
        delta: random.u32(1..6),
        timeout: Millis::from_seconds(random.u64(5..60)),
    }
}

fn name(number: usize) -> SchedulerName {
    match SchedulerName::parse(&format!("arena-{number}")) {
        Ok(name) => name,
        Err(violation) => panic!("not a name: {violation}"),
    }
}

fn ready_target(random: &mut fastrand::Rng) -> ReadyTarget {
    let text = format!("0.{}", random.u32(1..=8));
    match ReadyTarget::parse(&text) {
        Ok(target) => target,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn rollout(random: &mut fastrand::Rng) -> Rollout {
    Rollout {
        max_unavailable: random.u32(0..3),
        occupied: match random.bool() {
            true => OccupiedRooms::DeleteLast,
            false => OccupiedRooms::WaitForMatchEnd,
        },
        on_failure: if random.bool() { OnFailure::Rollback } else { OnFailure::Halt },
        max_failures: random.u32(1..6),
        match_end_deadline: random.bool().then(|| Millis::from_seconds(random.u64(10..120))),
        rejoin_grace: Millis::from_seconds(random.u64(0..20)),
        occupied_interval: Millis::from_seconds(random.u64(0..60)),
        ..Rollout::default()
    }
}

fn spec(random: &mut fastrand::Rng) -> Spec {
    Spec {
        termination_grace_period: Duration::from_secs(random.u64(1..20)),
        containers: vec![Container {
            name: "game".into(),
            image: "example/game:1".into(),
            image_pull_policy: ImagePullPolicy::IfNotPresent,
            command: vec!["/game".into(), format!("{GENERATION}1")],
            environment: Vec::new(),
            requests: Resources { memory: "64Mi".into(), cpu: "100m".into() },
            limits: Resources { memory: "128Mi".into(), cpu: "1".into() },
            ports: vec![ContainerPort {
                name: "game".into(),
                protocol: Protocol::Udp,
                port: 7777,
                host_port: 0,
                host_port_range: None,
            }],
        }],
        toleration: String::new(),
        affinity: String::new(),
        restart_policy: RestartPolicy::Never,
        region: None,
    }
}
