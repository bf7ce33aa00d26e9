//! How many rooms there should be, added up independently of the engine's plans. Decisions are judged by what their
//! node could have seen, so there are two sums: the most that anybody could have wanted, and the least.

use std::collections::BTreeSet;

use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::{MaxSurge, ScalingPolicy, WHOLE};
use maestro_engine::ports::store::SchedulerRecord;

use super::memory::{KnownOperation, SeenRoom};

/// What a fleet's size is decided on.
pub(super) struct Demand<'a> {
    pub(super) record: &'a SchedulerRecord,
    pub(super) rooms: &'a [SeenRoom],
    /// Rooms of the fleet that have not ended: the table may show others for a while.
    pub(super) live: &'a BTreeSet<RoomId>,
    /// Unfinished operations that roll back: their part of the fleet size may or may not count.
    pub(super) turned_round: &'a [KnownOperation],
    /// Players whose room has just gone.
    pub(super) rejoining: u64,
    /// Matches that rooms are waited for, at most.
    pub(super) waiting: u64,
}

impl Demand<'_> {
    /// The most rooms that could be desired: whoever may be a player is one.
    pub(super) fn desired_at_most(&self) -> u64 {
        let plays = |room: &SeenRoom| room.serves_players() || room.matches > 0;
        let (occupied, matches) = self.players(plays);
        let given_back = self.turned_round.iter().map(|one| (-one.fleet_delta).max(0)).sum();
        self.desired((occupied + self.rejoining, matches + self.rejoining), given_back, self.waiting)
            .max(occupied)
    }

    /// The fewest: only those are players who will surely stay.
    pub(super) fn desired_at_least(&self) -> u64 {
        let stays = |room: &SeenRoom| {
            room.serves_players() && room.claimed_by.is_none() && self.live.contains(&room.id)
        };
        let (occupied, matches) = self.players(stays);
        let taken_back: i64 = self.turned_round.iter().map(|one| one.fleet_delta.max(0)).sum();
        self.desired((occupied, matches), -taken_back, 0).min(self.caps().unwrap_or(u64::MAX))
    }

    /// What the caps of its regions hold, if all that may grow have one.
    fn caps(&self) -> Option<u64> {
        let policy = self.record.recipe.policies.placement.as_ref()?;
        let growing = policy.regions.iter().filter(|region| region.weight > 0);
        growing.map(|region| region.cap.map(u64::from)).sum()
    }

    /// How many must be ready at least, if whoever may be a player has a room already.
    pub(super) fn ready_at_least(&self) -> u64 {
        let plays = |room: &SeenRoom| room.serves_players() || room.matches > 0;
        self.desired_at_least().saturating_sub(self.players(plays).0)
    }

    pub(super) fn surge(&self) -> u64 {
        let desired = self.desired_at_most();
        let rooms = match self.record.recipe.max_surge {
            MaxSurge::Rooms(rooms) => rooms.into(),
            MaxSurge::Percent(percent) => desired * u64::from(percent) / 100,
        };
        rooms.max(1)
    }

    /// Rooms with players, and their matches.
    fn players(&self, plays: impl Fn(&SeenRoom) -> bool) -> (u64, u64) {
        let several = self.record.recipe.match_allocation.max_matches > 1;
        let in_rooms = self.rooms.iter().filter(|room| room.purpose == Purpose::Fleet && plays(room));
        in_rooms.fold((0, 0), |(rooms, matches), room| {
            let more = if several { room.matches.max(1) } else { 1 };
            (rooms + 1, matches + u64::from(more))
        })
    }

    fn desired(&self, (occupied, matches): (u64, u64), size_change: i64, waiting: u64) -> u64 {
        let Some(autoscaling) = self.record.autoscaling() else {
            let size = i64::from(self.record.fleet_size) + size_change;
            return u64::try_from(size).unwrap_or(0);
        };
        let wanted = match &autoscaling.policy {
            ScalingPolicy::FixedBuffer(buffer) => occupied + u64::from(buffer.amount),
            ScalingPolicy::RoomOccupancy(policy) => {
                let per_room = self.record.recipe.match_allocation.max_matches.max(1);
                let busy = u128::from(WHOLE - policy.ready_target.units());
                let rooms = (u128::from(matches) * u128::from(WHOLE)).div_ceil(busy * u128::from(per_room));
                u64::try_from(rooms).unwrap_or(u64::MAX)
            }
        };
        let wanted = (wanted + waiting).max(autoscaling.min.into());
        autoscaling.max.map_or(wanted, |max| wanted.min(max.into()))
    }
}
