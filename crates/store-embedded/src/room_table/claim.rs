//! A claim takes several rooms in one atomic step, so it holds all of their shards at once.

use maestro_core::room::RoomId;
use maestro_engine::ports::room_table::Claim;
use parking_lot::{Mutex, MutexGuard};

use super::fleet::Shard;
use super::{SHARDS, shard_of};

struct Locked<'a>([Option<MutexGuard<'a, Shard>>; SHARDS]);

pub(super) fn claim(shards: &[Mutex<Shard>; SHARDS], claim: &Claim<'_>) -> Vec<RoomId> {
    let mut shards = Locked::all_of(shards, claim.candidates);
    // What was claimed before counts first, wherever it stands among the candidates: a repeated call must not take
    // one room more because an earlier candidate has become free meanwhile.
    let mine: Vec<bool> = claim.candidates.iter().map(|room| shards.is_claimed(claim, room)).collect();
    let claimed_before = mine.iter().filter(|mine| **mine).count();
    let mut left = claim.rooms_max.saturating_sub(claimed_before);

    let mut claimed = Vec::new();
    for (room, mine) in claim.candidates.iter().zip(mine) {
        let taken = !mine && left > 0 && shards.claim(claim, room);
        left -= usize::from(taken);
        if mine || taken {
            claimed.push(room.clone());
        }
    }
    claimed
}

impl<'a> Locked<'a> {
    /// In ascending order: two claims that need the same shards cannot deadlock.
    fn all_of(shards: &'a [Mutex<Shard>; SHARDS], rooms: &[RoomId]) -> Self {
        let mut needed = [false; SHARDS];
        for room in rooms {
            needed[shard_of(room.as_str())] = true;
        }
        Self(std::array::from_fn(|index| needed[index].then(|| shards[index].lock())))
    }

    fn is_claimed(&self, claim: &Claim<'_>, room: &RoomId) -> bool {
        let shard = self.0[shard_of(room.as_str())].as_deref();
        shard
            .and_then(|shard| shard.room(claim.scheduler.as_str(), room.as_str()))
            .is_some_and(|room| room.claimed_by() == Some(claim.operation))
    }

    fn claim(&mut self, claim: &Claim<'_>, room: &RoomId) -> bool {
        let shard = self.0[shard_of(room.as_str())].as_deref_mut();
        shard.is_some_and(|shard| shard.claim(claim, room))
    }
}
