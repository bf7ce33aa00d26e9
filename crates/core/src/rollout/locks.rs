//! The locks that belong to a rollout. It has the recipe from its switch to its end, and the rooms on their way out while
//! it replaces any.

use crate::lock::{Holder, LockKind, Locks, Taker};
use crate::time::Timestamp;

use super::RolloutRecord;

/// What happens to a lock, or to a place in its order.
#[derive(Debug, Clone)]
pub enum LockChange {
    Take { kind: LockKind, taker: Taker, reason: String },
    Release { kind: LockKind, holder: Holder },
    Await { kind: LockKind, holder: Holder },
    StopAwaiting { kind: LockKind, holder: Holder },
}

/// The lock changes when `from` becomes `to`. Locks that `handed_over_by` holds pass to the new rollout.
pub(super) fn changes(
    from: Option<&RolloutRecord>,
    to: Option<&RolloutRecord>,
    handed_over_by: Option<Holder>,
    locks: &Locks,
    now: Timestamp,
) -> Vec<LockChange> {
    let before = from.map(RolloutRecord::holder);
    let Some(rollout) = to else {
        return before.into_iter().flat_map(give_up).collect();
    };
    let holder = rollout.holder();
    let hands_over = |kind| {
        let held = locks.held(kind).map(|lock| lock.holder);
        held.filter(|held| Some(*held) == before || Some(*held) == handed_over_by)
    };
    let locks = &locks.clone().without(Holder::HealthController);
    let take = |kind| {
        let instead_of = hands_over(kind).or(before);
        locks.may_take(kind, Taker { holder, instead_of }, now).ok()?;
        Some(rollout.take_lock(kind, instead_of))
    };
    // Cycles wait as the rollout from now on, or, if it replaces nothing, ask again as themselves.
    let kind = LockKind::Downscaling;
    let mut changes = vec![LockChange::StopAwaiting { kind, holder: Holder::HealthController }];
    // A rollout can do without `config` here: only an operation that is about to replace this rollout can hold it.
    changes.extend(take(LockKind::Config));
    let other = before.filter(|before| *before != holder);
    if !rollout.is_moving() {
        changes.extend(other.into_iter().chain([holder]).flat_map(stop_downscaling));
    } else if let Some(taken) = take(kind) {
        changes.push(taken);
    } else {
        changes.extend(other.map(|holder| LockChange::StopAwaiting { kind, holder }));
        changes.push(LockChange::Await { kind, holder });
    }
    changes
}

pub(super) fn stop_downscaling(holder: Holder) -> [LockChange; 2] {
    let kind = LockKind::Downscaling;
    [LockChange::Release { kind, holder }, LockChange::StopAwaiting { kind, holder }]
}

fn give_up(holder: Holder) -> impl Iterator<Item = LockChange> {
    let config = LockChange::Release { kind: LockKind::Config, holder };
    std::iter::once(config).chain(stop_downscaling(holder))
}
