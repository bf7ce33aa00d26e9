//! The plan of large fleets: how long it takes, and whether a room of a large fleet costs more than one of a small.
//! Once at rest, and once in a rollout, with rooms of two versions among which it has to choose.

use std::hint::black_box;
use std::time::{Duration, Instant};

use maestro_core::plan::{FleetSnapshot, Limits, ReplacementRules, RoomFact, Scaling, plan};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::{
    Autoscaling, MaxSurge, OccupiedRooms, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy, Version,
};
use maestro_core::time::Millis;

use crate::figure::Figure;
use crate::statistics::median;
use crate::{Effort, fleet};

/// What the fleet goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    OneVersion,
    /// Every second room is of an older major version.
    Rollout,
}

const LIMITS: Limits = Limits {
    initialization_timeout: Millis::from_seconds(120),
    ping_timeout: Millis::from_seconds(240),
    deletion_timeout: Millis::from_seconds(120),
    add_max: 1000,
    remove_max: 1000,
};

const RULES: ReplacementRules = ReplacementRules {
    max_surge: MaxSurge::Percent(25),
    max_unavailable: 0,
    occupied: OccupiedRooms::DeleteLast,
};

pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Figure>> {
    let autoscaling = autoscaling()?;
    let mut figures = Vec::new();
    for (life, large_name, huge_name) in [
        (Life::OneVersion, "plan.rooms100k", "plan.room1m"),
        (Life::Rollout, "plan.rollout.rooms100k", "plan.rollout.room1m"),
    ] {
        let seconds = |rooms| seconds_per_plan(rooms, life, &autoscaling, effort);
        let huge_rooms = effort.pick(1_000_000, 4_000);
        let per_small_room = seconds(1_000) / 1_000.0;
        let large = seconds(effort.pick(100_000, 2_000));
        let per_huge_room = seconds(huge_rooms) / f64::from(huge_rooms);
        figures.push(Figure::new(large_name, large * 1e3, "ms"));
        figures.push(
            Figure::new(huge_name, per_huge_room * 1e9, "ns")
                .compared("a room of a fleet of 1000", per_huge_room / per_small_room),
        );
    }
    Ok(figures)
}

fn seconds_per_plan(rooms: u32, life: Life, autoscaling: &Autoscaling, effort: Effort) -> f64 {
    let facts = facts(rooms, life);
    let snapshot = FleetSnapshot {
        now: fleet::at(30),
        scaling: Scaling::Auto { autoscaling, last_shrunk_at: None },
        matches_max: 1,
        replacement: Some(RULES),
        rooms: &facts,
        adding: 0,
        removing: 0,
        rejoining: 0,
        ended: &[],
        limits: LIMITS,
    };
    let repeat_for = effort.pick(Duration::from_secs(1), Duration::from_millis(10));
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.is_empty() || begin.elapsed() < repeat_for {
        let begin = Instant::now();
        black_box(plan(black_box(&snapshot)));
        times.push(begin.elapsed().as_secs_f64());
    }
    median(times)
}

/// With seven of ten rooms occupied it asks for a few more than there are, and a rollout has rooms to take away.
fn autoscaling() -> anyhow::Result<Autoscaling> {
    let ready_target = ReadyTarget::parse("0.25").map_err(anyhow::Error::msg)?;
    Ok(Autoscaling {
        enabled: true,
        min: 1,
        max: None,
        cooldown_seconds: 0,
        policy: ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None }),
        other_parameters: OtherParameters::default(),
    })
}

/// A fleet at work: most rooms occupied, some ready, a few on their way up, and one in a thousand in error.
fn facts(rooms: u32, life: Life) -> Vec<RoomFact> {
    let scheduler = fleet::scheduler();
    let next_major = Version { major: 2, ..Version::FIRST };
    let fact = |index: u32| {
        let status = match index % 1000 {
            0 => RoomStatus::Error,
            1..20 => RoomStatus::Pending,
            20..300 => RoomStatus::Ready,
            _ => RoomStatus::Occupied,
        };
        let old = life == Life::Rollout && index.is_multiple_of(2);
        RoomFact {
            id: fleet::room_id(&scheduler, index),
            status,
            version: if old { Version::FIRST } else { next_major },
            old,
            matches: u32::from(status.serves_players()),
            created_at: fleet::at(0),
            heard_at: Some(fleet::at(i64::from(index % 30))),
            known: true,
            was_ready: !matches!(status, RoomStatus::Pending | RoomStatus::Error),
            leaving: false,
        }
    };
    (0..rooms).map(fact).collect()
}
