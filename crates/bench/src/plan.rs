//! The plan of large fleets: how long it takes, and whether a room of a large fleet costs more than one of a small.

use std::hint::black_box;
use std::time::{Duration, Instant};

use maestro_core::plan::{FleetSnapshot, Limits, RoomFact, plan};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::Version;
use maestro_core::time::Millis;

use crate::figure::Figure;
use crate::statistics::median;
use crate::{Effort, fleet};

pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Figure>> {
    let small = seconds_per_plan(1_000, effort);
    let large = seconds_per_plan(effort.pick(100_000, 2_000), effort);
    let huge_rooms = effort.pick(1_000_000, 4_000);
    let huge = seconds_per_plan(huge_rooms, effort);
    let per_small_room = small / 1_000.0;
    let per_huge_room = huge / f64::from(huge_rooms);
    Ok(vec![
        Figure::new("plan.rooms100k", large * 1e3, "ms"),
        Figure::new("plan.room1m", per_huge_room * 1e9, "ns")
            .compared("a room of a fleet of 1000", per_huge_room / per_small_room),
    ])
}

fn seconds_per_plan(rooms: u32, effort: Effort) -> f64 {
    let facts = facts(rooms);
    let snapshot = FleetSnapshot {
        now: fleet::at(30),
        fleet_size: rooms,
        rooms: &facts,
        adding: 0,
        removing: 0,
        ended: &[],
        limits: Limits {
            initialization_timeout: Millis::from_seconds(120),
            ping_timeout: Millis::from_seconds(240),
            deletion_timeout: Millis::from_seconds(120),
            add_max: 1000,
            remove_max: 1000,
        },
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

/// A fleet at work: most rooms occupied, some ready, a few on their way up, and one in a thousand in error.
fn facts(rooms: u32) -> Vec<RoomFact> {
    let scheduler = fleet::scheduler();
    let fact = |index: u32| {
        let status = match index % 1000 {
            0 => RoomStatus::Error,
            1..20 => RoomStatus::Pending,
            20..300 => RoomStatus::Ready,
            _ => RoomStatus::Occupied,
        };
        RoomFact {
            id: fleet::room_id(&scheduler, index),
            status,
            version: Version::FIRST,
            created_at: fleet::at(0),
            heard_at: Some(fleet::at(i64::from(index % 30))),
            known: true,
            was_ready: !matches!(status, RoomStatus::Pending | RoomStatus::Error),
            leaving: false,
        }
    };
    (0..rooms).map(fact).collect()
}
