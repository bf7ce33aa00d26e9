//! In which order rooms are removed: rooms that serve nobody first, rooms with players last.

use crate::guards;
use crate::invariant::Invariant;
use crate::room::{RoomId, RoomStatus};

use super::RoomFact;
use super::counted::serves_players;

/// May rooms go that players are in?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupied {
    Stay,
    /// A person asked for it, or a new version replaces them.
    MayGo,
}

/// The rooms that may be removed, in the order in which they go: in error and terminated, pending, unready, ready,
/// then active, allocated and occupied; those of old versions and drained regions first, and by id, among equals. Unknown rooms never go,
/// nor do those that leave already, cannot be reached, or fell silent together.
pub fn removable(rooms: &[RoomFact], occupied: Occupied) -> Vec<&RoomFact> {
    let mut candidates: Vec<&RoomFact> = rooms
        .iter()
        .filter(|room| room.known && room.reachable && !room.leaving && room.spared_until.is_none())
        .filter(|room| room.status != RoomStatus::Terminating)
        .filter(|room| occupied == Occupied::MayGo || !serves_players(room))
        .collect();
    candidates.sort_by_key(|room| (rank(room.status), !(room.old || room.draining), &room.id));
    candidates
}

/// Their ids.
pub fn removal_order(rooms: &[RoomFact], occupied: Occupied) -> Vec<RoomId> {
    removable(rooms, occupied).into_iter().map(|room| room.id.clone()).collect()
}

fn rank(status: RoomStatus) -> u8 {
    match status {
        _ if !guards::stands(Invariant::ReadyBeforeOccupied) => 0,
        RoomStatus::Error | RoomStatus::Terminated => 0,
        RoomStatus::Pending => 1,
        RoomStatus::Unready => 2,
        RoomStatus::Ready => 3,
        RoomStatus::Active => 4,
        RoomStatus::Allocated => 5,
        RoomStatus::Occupied => 6,
        RoomStatus::Terminating => 7,
    }
}
