//! Players: they enter rooms that have said that they are ready, and leave again.

use crate::host::{Phase, RoomOnHost};

use super::stage::Stage;

/// Rooms that one wave of players enters or leaves at most.
const WAVE: usize = 6;

pub(super) fn come_and_go(stage: &mut Stage) {
    let rooms = stage.world.rooms();
    let coming = stage.random.bool();
    for _ in 0..stage.random.usize(1..=WAVE) {
        let Some(room) = rooms.get(stage.random.usize(0..rooms.len().max(1))) else { return };
        if coming {
            enter(stage, room);
        } else if room.matches > 0 {
            stage.world.host_of(&room.region).end_match(&room.id);
        }
    }
}

fn enter(stage: &Stage, room: &RoomOnHost) {
    let recipe = stage.recipes.iter().find(|recipe| recipe.name == room.scheduler);
    let most = recipe.map_or(1, |recipe| recipe.match_allocation.max_matches);
    if room.phase == Phase::Up && room.has_pinged && room.matches < most {
        stage.world.host_of(&room.region).begin_match(&room.id);
    }
}

pub(super) fn go_home(stage: &Stage) {
    for room in stage.world.rooms() {
        for _ in 0..room.matches {
            stage.world.host_of(&room.region).end_match(&room.id);
        }
    }
}
