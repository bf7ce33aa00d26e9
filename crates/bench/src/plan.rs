//! The plan of large fleets: how long it takes, and whether a room of a large fleet costs more than one of a small.
//! Once at rest, and once in a rollout, with rooms of two versions among which it has to choose.

use std::hint::black_box;
use std::time::{Duration, Instant};

use maestro_core::plan::{FleetSnapshot, Limits, OldVersions, ReplacementRules, RoomFact, Scaling, plan};
use maestro_core::room::{Region, RoomStatus};
use maestro_core::scheduler::{
    Autoscaling, MaxSurge, OccupiedRooms, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy, Version,
};
use maestro_core::time::Millis;

use crate::figure::Figure;
use crate::statistics::median;
use crate::{Effort, fleet, instructions};

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
    versions: OldVersions::Replaced,
    max_surge: MaxSurge::Percent(25),
    max_unavailable: 0,
    occupied: OccupiedRooms::DeleteLast,
    occupied_may_go: true,
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
    figures.extend(measure_instructions(effort)?);
    Ok(figures)
}

/// Of a rollout: no plan has more to do.
fn measure_instructions(effort: Effort) -> anyhow::Result<Vec<Figure>> {
    let huge_rooms = effort.pick(1_000_000, 4_000);
    let Some(small) = instructions_per_plan(1_000)? else {
        eprintln!("plan: there is no valgrind here, so nothing is measured in instructions");
        return Ok(Vec::new());
    };
    let large = instructions_per_plan(effort.pick(100_000, 2_000))?.unwrap_or(0.0);
    let huge = instructions_per_plan(huge_rooms)?.unwrap_or(0.0);
    let per_small_room = small / 1_000.0;
    let per_huge_room = huge / f64::from(huge_rooms);
    Ok(vec![
        Figure::new("plan.instructions.rooms100k", large, "instructions"),
        Figure::new("plan.instructions.room1m", per_huge_room, "instructions")
            .compared("a room of a fleet of 1000", per_huge_room / per_small_room),
    ])
}

/// What a run that plans takes more than one that only makes the fleet.
fn instructions_per_plan(rooms: u32) -> anyhow::Result<Option<f64>> {
    let run = |times: u32| instructions::count(&["plans".into(), rooms.to_string(), times.to_string()]);
    let (Some(without), Some(with)) = (run(0)?, run(1)?) else {
        return Ok(None);
    };
    Ok(Some(with.saturating_sub(without) as f64))
}

/// Makes a fleet in a rollout and plans it `times` times.
pub(crate) fn repeat(rooms: u32, times: u32) -> anyhow::Result<()> {
    let autoscaling = autoscaling()?;
    let facts = black_box(facts(rooms, Life::Rollout));
    let snapshot = snapshot(&facts, &autoscaling);
    for _ in 0..times {
        black_box(plan(black_box(&snapshot)));
    }
    Ok(())
}

fn seconds_per_plan(rooms: u32, life: Life, autoscaling: &Autoscaling, effort: Effort) -> f64 {
    let facts = facts(rooms, life);
    let snapshot = snapshot(&facts, autoscaling);
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

fn snapshot<'a>(rooms: &'a [RoomFact], autoscaling: &'a Autoscaling) -> FleetSnapshot<'a> {
    let scaling = Scaling::Auto { autoscaling, last_shrunk_at: None };
    FleetSnapshot::at_rest(fleet::at(30), scaling, 1, RULES, rooms, LIMITS)
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
        panic: None,
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
            region: Region::default_region(),
            status,
            version: if old { Version::FIRST } else { next_major },
            old,
            draining: false,
            matches: u32::from(status.serves_players()),
            created_at: fleet::at(0),
            heard_at: Some(fleet::at(i64::from(index % 30))),
            known: true,
            was_ready: !matches!(status, RoomStatus::Pending | RoomStatus::Error),
            held: false,
            leaving: false,
            reachable: true,
            reachable_since: None,
            spared_until: None,
        }
    };
    (0..rooms).map(fact).collect()
}
