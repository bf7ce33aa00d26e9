//! Bad luck of rooms, hosts and tables.

use maestro_core::room::RoomId;

use crate::coverage::RareEvent;
use crate::host::{Habits, HostFaults, RoomOnHost, Span};

use super::outages;
use super::people::{crashing, never_ready};
use super::recipes::GENERATION;
use super::stage::Stage;

pub(super) fn strikes(stage: &mut Stage) {
    if stage.world.has_several_regions() && stage.random.u32(0..4) == 0 {
        outages::strike(stage);
        return;
    }
    match stage.random.u32(0..10) {
        0..=4 => strike_room(stage),
        5 => strike_generation(stage),
        6 if stage.random.bool() => lose_table(stage),
        _ => strike_host(stage),
    }
}

fn lose_table(stage: &mut Stage) {
    match stage.late_faults.bool() {
        true => stage.world.lose_table(),
        false => stage.world.bring_back_old_table(),
    }
}

/// Now and then a dump is made of the room table, or somebody tells of an instance of a room that is not any more.
pub(super) fn looks_back(stage: &mut Stage) {
    match stage.late_faults.u32(0..16) {
        0 => stage.world.dump_table(),
        1 => {
            let rooms = stage.world.rooms();
            let Some(room) = rooms.get(stage.late_faults.usize(0..rooms.len().max(1))) else { return };
            stage.world.coverage().saw(RareEvent::EarlierInstance);
            stage.world.host_of(&room.region).recall_earlier_instance(&room.id);
        }
        _ => {}
    }
}

fn strike_room(stage: &mut Stage) {
    let rooms = stage.world.rooms();
    let Some(room) = rooms.get(stage.random.usize(0..rooms.len().max(1))) else { return };
    let (host, coverage) = (stage.world.host_of(&room.region), stage.world.coverage());
    match stage.random.u32(0..5) {
        0 | 1 => {
            coverage.saw(RareEvent::RoomCrashed);
            host.crash(&room.id);
        }
        2 => {
            stage.world.trace().note(format_args!("room {} is gone, and nobody is told", room.id));
            coverage.saw(RareEvent::RoomLost);
            host.lose(&room.id);
        }
        3 => {
            stage.world.trace().note(format_args!("room {} falls silent", room.id));
            coverage.saw(RareEvent::RoomSilent);
            host.silence(&room.id);
        }
        _ => invent(stage, room),
    }
}

/// A room of a known scheduler that nobody asked for: made by someone who died, or by hand.
fn invent(stage: &mut Stage, beside: &RoomOnHost) {
    let room = RoomId::new(&format!("{}-invented-{}", beside.scheduler, stage.random.u32(..)));
    stage.world.coverage().saw(RareEvent::RoomInvented);
    stage.world.host_of(&beside.region).invent(&beside.scheduler, &room, Vec::new());
}

/// A generation of the game turns out to be bad, which nobody saw when it was tried; or it is mended.
fn strike_generation(stage: &mut Stage) {
    let flag = format!("{GENERATION}{}", stage.random.u32(1..=stage.generation));
    let (how, habits) = match stage.random.u32(0..3) {
        0 => ("is never ready", never_ready()),
        1 => ("crashes", crashing()),
        _ => ("is well", Habits::default()),
    };
    stage.world.trace().note(format_args!("from now on a room with {flag} {how}"));
    stage.world.hosts().for_each(|host| host.set_habits_of_flag(&flag, habits.clone()));
}

fn strike_host(stage: &mut Stage) {
    let fine = HostFaults::default();
    let (how, host_faults) = match stage.random.u32(0..7) {
        0 => {
            stage.world.coverage().saw(RareEvent::RuntimeGone);
            ("does not answer", HostFaults { available: false, ..fine })
        }
        1 => {
            let refuses_starts = Some("there is no such program".into());
            ("starts no rooms", HostFaults { refuses_starts, ..fine })
        }
        3 => {
            let rooms_max = Some(stage.random.u32(3..30));
            ("holds few rooms", HostFaults { rooms_max, ..fine })
        }
        2 => ("is slow", HostFaults { latency: Span::millis(0, 3_000), ..fine }),
        _ => ("is well", fine),
    };
    let mut regions = stage.world.regions();
    match regions.len() {
        1 => stage.world.trace().note(format_args!("the host {how}")),
        several => {
            regions.swap(0, stage.random.usize(0..several));
            stage.world.trace().note(format_args!("the host of {} {how}", regions[0]));
        }
    }
    stage.world.host_of(&regions[0]).set_host_faults(host_faults);
}
