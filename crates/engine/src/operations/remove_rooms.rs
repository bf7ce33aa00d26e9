//! remove_rooms: chooses rooms, takes them out of service, asks them to go, and waits until they are gone.
//!
//! A plan may be stale when it is carried out, so each batch looks again: what the health controller wanted gone may
//! be needed by now, and an expired room may have pinged. There is no rollback: who was asked to go, goes.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::lock::LockKind;
use maestro_core::operation::{Definition, Operation, RemovalReason, RoomsToRemove};
use maestro_core::plan::{self, Occupied, RoomFact, matches_in};
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::text::count_of;
use maestro_core::time::{Timestamp, after};
use serde::{Deserialize, Serialize};

use crate::invariants::TakenRooms;
use crate::ports::store::{Change, Intent, NewOperation, RoomRecord, SchedulerRecord};
use crate::rooms::stopping::{self, HeldRooms, claim};

use super::fleet::{FleetState, fleet};
use super::placing::{self, RemovalOrder};
use super::{Executor, LockNeed, Next, Result, Step, Work};

pub(super) struct RemoveRooms;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Rooms that were asked to go.
    pub(super) asked: u32,
    /// No more are to be chosen.
    pub(super) chosen: bool,
    /// The cycle that asked for it chose rooms with players: it was their turn.
    #[serde(default)]
    occupied_may_go: bool,
}

/// What a removal begins with that takes rooms with players.
pub(super) fn may_take_occupied() -> serde_json::Value {
    let progress = Progress { occupied_may_go: true, ..Progress::default() };
    serde_json::to_value(progress).unwrap_or_default()
}

/// Players are in some of the rooms that it takes.
pub(super) fn takes_occupied(operation: &NewOperation) -> bool {
    operation.progress == may_take_occupied()
}

#[async_trait]
impl Executor for RemoveRooms {
    /// The rollout's removals, and those of dead rooms meanwhile, go under the rollout's own lock. An operation that has
    /// chosen its rooms takes no others out of service: it keeps the lock that it has, and waits for none.
    async fn needs(&self, work: &Work) -> Result<Vec<LockNeed>> {
        let need = match work.operation.origin.is_person() {
            true => LockNeed::own(LockKind::Downscaling),
            false => LockNeed::own_or_lent(LockKind::Downscaling),
        };
        let has_chosen = progress_of(&work.operation).chosen;
        Ok(if has_chosen { Vec::new() } else { vec![need] })
    }

    /// Those that were asked to go do: others may wait for their end.
    async fn before_it_waits(&self, work: &Work) -> Result {
        stopping::stop_leaving(work).await
    }

    async fn step(&self, work: &Work) -> Result<Step> {
        let progress = progress_of(&work.operation);
        if !progress.chosen {
            return choose(work, progress).await;
        }
        let leaving = stopping::leaving(work).await?;
        let done = |but: String| {
            let removed = count_of(progress.asked, "room");
            Ok(Step::done().with_history(format!("removed {removed}{but}")))
        };
        if leaving.is_empty() {
            return done(String::new());
        }
        let (lost, here): (Vec<_>, Vec<_>) =
            leaving.iter().partition(|row| work.engine.regions.is_lost(&row.region));
        if here.is_empty() {
            // Others need the lock; when their region is back, reconciling asks them again.
            return done(format!("; {} out of reach: removed when their region is back", lost.len()));
        }
        if deadline(work, &leaving).is_some_and(|deadline| deadline <= work.now()) {
            let (rooms, waited) = (leaving.len(), work.engine.settings.downscaling_timeout);
            return done(format!("; {rooms} still there after {waited}, the health controller takes over"));
        }
        let mut step = stopping::stop_and_wait(work, &leaving).await?;
        if let (Next::Park(wait), Some(deadline)) = (&mut step.next, deadline(work, &leaving)) {
            wait.until = wait.until.min(deadline);
        }
        Ok(step)
    }

    /// Rooms that were taken out of service and not yet asked to go come back. Those whose end is written down go,
    /// and the runtime may not know that yet.
    async fn undo(&self, work: &Work) -> Result<Step> {
        let (_, fleet) = fleet(&work.engine, &work.scheduler.name, Some(work.operation.id)).await?;
        let claimed = claimed_but_not_asked(work, &fleet);
        let operation = work.operation.id;
        work.engine.ports.table.unclaim(&work.scheduler.name, operation, &claimed).await?;
        stopping::stop_leaving(work).await?;
        Ok(Step::done())
    }

    async fn wait_is_over(&self, work: &Work) -> Result<bool> {
        if progress_of(&work.operation).chosen {
            return stopping::all_gone(work).await;
        }
        let (_, fleet) = fleet(&work.engine, &work.scheduler.name, Some(work.operation.id)).await?;
        let rooms = work.operation.definition.removes();
        Ok(rooms.is_none_or(|(rooms, _)| fleet.unknown(&rooms) == 0))
    }
}

/// What is stored of an operation's progress; nothing yet reads as the beginning.
pub(super) fn progress_of(operation: &Operation) -> Progress {
    serde_json::from_value(operation.progress.clone()).unwrap_or_default()
}

/// How many rooms a removal has asked to go so far.
pub(crate) fn rooms_asked_to_go(operation: &Operation) -> u32 {
    progress_of(operation).asked
}

/// One batch: choose, take out of service, write down that they are to go.
async fn choose(work: &Work, mut progress: Progress) -> Result<Step> {
    let Some((rooms, reason)) = work.operation.definition.removes() else {
        return Ok(Step::done());
    };
    let (_, fleet) = fleet(&work.engine, &work.scheduler.name, Some(work.operation.id)).await?;
    let held = held(work, reason, &progress);
    let (mut taken, called_off) = left_claimed(work, &fleet, reason, held);
    if !called_off.is_empty() {
        work.engine.ports.table.unclaim(&work.scheduler.name, work.operation.id, &called_off).await?;
    }
    if taken.is_empty() {
        if let Some(wait) = wait_for_unknown(work, &rooms, &progress, &fleet) {
            stopping::stop_leaving(work).await?;
            return Ok(wait);
        }
        taken = match &rooms {
            RoomsToRemove::Amount(amount) => match claim_some(work, &fleet, *amount, &progress).await? {
                Claimed::Rooms(rooms) => rooms,
                Claimed::Nothing(data) => return Ok(Step { data: Some(data), ..Step::default() }),
            },
            RoomsToRemove::Ids(ids) => match reason {
                RemovalReason::RollingUpdate | RemovalReason::Drain => {
                    claim_replaced(work, &fleet, ids).await?
                }
                // Those that a person named, whoever is in them.
                RemovalReason::ScaleDown => claim_named(work, &fleet, ids, true, |_| true).await?,
                // Only those that are still expired: a ping that came meanwhile saves a room.
                RemovalReason::ExpiredRoom | RemovalReason::ValidationFinished => {
                    let (now, limits) = (work.now(), work.engine.settings.limits());
                    let is_expired = |room: &RoomFact| plan::expiry(room, now, &limits).is_some();
                    claim_named(work, &fleet, ids, false, is_expired).await?
                }
            },
        };
    }
    let taken: BTreeSet<RoomId> = taken.into_iter().collect();
    let matches_max = work.scheduler.recipe.match_allocation.max_matches;
    let matches: BTreeMap<&RoomId, u32> =
        fleet.facts.iter().map(|room| (&room.id, matches_in(room, matches_max))).collect();
    let stop = |row: &RoomRecord| {
        let matches = matches.get(&row.id).copied().unwrap_or(0);
        stopping::intend_removal(work, row, reason, matches, held)
    };
    let changes: Vec<Change> = fleet.rows.iter().filter(|row| taken.contains(&row.id)).map(stop).collect();
    progress.asked += u32::try_from(changes.len()).unwrap_or(u32::MAX);
    progress.chosen = changes.is_empty();
    let mut step = Step::again(changes);
    if progress.chosen && progress.asked == 0 {
        step.history.push("no room had to go any more".into());
        step.next = Next::Done { took_action: true };
    }
    if let Some(rest) = rest(work, &rooms, &progress) {
        step.history.push(rest.created_event());
        step.changes.push(Change::Enqueue(rest));
    }
    step.progress = serde_json::to_value(&progress).ok();
    Ok(step)
}

/// Autoscaling and drains never take a room that a matchmaker was given. A rollout does when it is the turn of rooms with
/// players; a person may, and a room that has expired is of no use to anyone.
fn held(work: &Work, reason: RemovalReason, progress: &Progress) -> HeldRooms {
    let may_go = match reason {
        RemovalReason::RollingUpdate => progress.occupied_may_go,
        RemovalReason::Drain => false,
        RemovalReason::ScaleDown => work.operation.origin.is_person(),
        RemovalReason::ExpiredRoom | RemovalReason::ValidationFinished => true,
    };
    if may_go { HeldRooms::MayGo } else { HeldRooms::Stay }
}

/// What a person asked for beyond what one operation may remove goes in a further one. It has priority: it was asked for
/// before what waits now, and must not be refused for a queue that is full.
fn rest(work: &Work, rooms: &RoomsToRemove, progress: &Progress) -> Option<NewOperation> {
    let Operation { id, origin, .. } = &work.operation;
    let limit = work.engine.settings.rooms_remove_limit;
    let left = rooms.amount()?.checked_sub(progress.asked).filter(|left| *left > 0)?;
    if !progress.chosen || progress.asked < limit || !origin.is_person() {
        return None;
    }
    let definition =
        Definition::RemoveRooms { rooms: RoomsToRemove::Amount(left), reason: RemovalReason::ScaleDown };
    let operation = work.engine.new_operation(&work.scheduler.name, definition, origin.clone());
    let reason = format!(
        "the other {} of operation {id}: one removes at most {limit} (operations.rooms.remove.limit)",
        count_of(left, "room")
    );
    Some(NewOperation { priority: true, reason, ..operation })
}

/// Unknown is not zero: while rooms have not been heard of since a restart, nobody can say which ones may go. They
/// ping, or expire. The health controller's removals do not wait: it asks again when it knows more.
fn wait_for_unknown(
    work: &Work,
    rooms: &RoomsToRemove,
    progress: &Progress,
    fleet: &FleetState,
) -> Option<Step> {
    let unknown = fleet.unknown(rooms);
    let is_left = rooms.amount().is_none_or(|amount| amount > progress.asked);
    let chooses = work.operation.origin.is_person() && is_left;
    (chooses && unknown > 0).then(|| {
        let what = format!("{} to ping after the restart", count_of(unknown, "room"));
        let mut step = Step::park(what, work.in_time(work.engine.settings.room_ping_timeout));
        // One that is never heard of again is removed as expired, which takes the lock.
        step.changes.push(Change::ReleaseLock {
            scheduler: work.scheduler.name.clone(),
            kind: LockKind::Downscaling,
            holder: work.operation.holder(),
        });
        step
    })
}

/// What a lost reply or a crash left claimed: it is asked to go before anything else is chosen. And what is not to go any
/// more: of a replacement, because the rollout may have been paused or called back, the region uncordoned; and what a
/// matchmaker was given while the room table was lost.
fn left_claimed(
    work: &Work,
    fleet: &FleetState,
    reason: RemovalReason,
    held: HeldRooms,
) -> (Vec<RoomId>, Vec<RoomId>) {
    let rules = fleet.replacement(&work.scheduler, false);
    let mut stays: BTreeSet<&RoomId> = match reason {
        RemovalReason::RollingUpdate | RemovalReason::Drain => {
            fleet.facts.iter().filter(|room| !plan::is_replaced(room, &rules)).map(|room| &room.id).collect()
        }
        RemovalReason::ExpiredRoom | RemovalReason::ScaleDown | RemovalReason::ValidationFinished => {
            BTreeSet::new()
        }
    };
    if held == HeldRooms::Stay {
        stays.extend(fleet.rows.iter().filter(|row| row.holds > 0).map(|row| &row.id));
    }
    claimed_but_not_asked(work, fleet).into_iter().partition(|room| !stays.contains(room))
}

fn claimed_but_not_asked(work: &Work, fleet: &FleetState) -> Vec<RoomId> {
    let mine = |id: &RoomId| fleet.claimed_by.get(id) == Some(&work.operation.id);
    let not_asked = |row: &&RoomRecord| row.intent == Intent::Run && mine(&row.id);
    fleet.rows.iter().filter(not_asked).map(|row| row.id.clone()).collect()
}

/// Rooms that were taken out of service, or none because policies have just decided about them.
enum Claimed {
    Rooms(Vec<RoomId>),
    Nothing(serde_json::Value),
}

async fn claim_some(work: &Work, fleet: &FleetState, amount: u32, progress: &Progress) -> Result<Claimed> {
    let amount = amount.min(work.engine.settings.rooms_remove_limit);
    let budget = amount.saturating_sub(progress.asked) as usize;
    if work.operation.origin.is_person() {
        let budget = budget.min(above_size(work, fleet));
        let candidates = plan::removable(&fleet.facts, Occupied::MayGo);
        let order = match placing::removal(work, fleet, &candidates, budget as u64)? {
            RemovalOrder::Planned(order) => order,
            RemovalOrder::Decided(data) => return Ok(Claimed::Nothing(data)),
        };
        return claim(work, &order, &RoomStatus::ALL, true, budget).await.map(Claimed::Rooms);
    }
    // Its own wish began the cooldown: that must not keep it from being carried out.
    let scheduler = SchedulerRecord { last_shrunk_at: None, ..work.scheduler.clone() };
    let plan = fleet.plan(&scheduler);
    let budget = budget.min(plan.remove as usize);
    // Rooms that are on their way are counted and cannot be taken; ready ones must not go in their place.
    let ready_max = plan.seen.ready.saturating_sub(plan.desired_ready) as usize;
    let ready: BTreeSet<&RoomId> =
        fleet.facts.iter().filter(|room| room.status == RoomStatus::Ready).map(|room| &room.id).collect();
    let (occupied, not_ready): (_, &[RoomStatus]) = match guards::stands(Invariant::OccupiedStays) {
        true => (Occupied::Stay, &stopping::NOT_READY),
        false => (Occupied::MayGo, &RoomStatus::ALL),
    };
    let candidates = plan::removable(&fleet.facts, occupied);
    let idle = candidates.iter().filter(|room| !ready.contains(&room.id)).count();
    let count = budget.min(idle.saturating_add(ready_max)).min(candidates.len());
    let order = match placing::removal(work, fleet, &candidates, count as u64)? {
        RemovalOrder::Planned(order) => order,
        RemovalOrder::Decided(data) => return Ok(Claimed::Nothing(data)),
    };
    let (ready, idle): (Vec<_>, Vec<_>) = order.into_iter().partition(|room| ready.contains(room));
    let mut taken = claim(work, &idle, not_ready, true, budget).await?;
    let rest = budget.saturating_sub(taken.len()).min(ready_max);
    taken.extend(claim(work, &ready, &stopping::IDLE, true, rest).await?);
    let (facts, rooms, plan) = (&fleet.facts, &taken, &plan);
    let removal = TakenRooms { facts, rooms, plan, may_be_missing: 0, is_scale_down: true };
    work.engine.watch_taken(&work.scheduler.name, &removal);
    Ok(Claimed::Rooms(taken))
}

/// A lower fleet size says how many rooms are to stay: if the fleet lacks some, or a rollout has come down to the size
/// already, fewer are removed. Autoscaling has no size to compare with, so any number may be removed. Rooms that do not
/// count, such as those in error, are removed on top.
fn above_size(work: &Work, fleet: &FleetState) -> usize {
    if work.scheduler.autoscaling().is_some() {
        return usize::MAX;
    }
    let total = fleet.plan(&work.scheduler).seen.total as usize;
    let candidates = plan::removable(&fleet.facts, Occupied::MayGo);
    let uncounted = candidates.iter().filter(|room| !fleet.counts(room)).count();
    (total + uncounted).saturating_sub(fleet.size_to_be(&work.scheduler) as usize)
}

/// Only those that the rollout would still take away, and of those that served nobody only who still does not.
async fn claim_replaced(work: &Work, fleet: &FleetState, ids: &[RoomId]) -> Result<Vec<RoomId>> {
    let players_turn = progress_of(&work.operation).occupied_may_go;
    let plan = fleet.plan_with(&work.scheduler, players_turn);
    let Some(cycle) = &plan.rollout else {
        return Ok(Vec::new());
    };
    let serving = |serves| {
        let chosen = cycle.replaced.iter().filter(move |gone| gone.serves_players == serves);
        chosen.map(|gone| gone.room.clone())
    };
    let ids: BTreeSet<&RoomId> = ids.iter().collect();
    let is_asked = |room: &RoomId| ids.contains(room);
    let idle: Vec<_> = serving(false).chain(cycle.surplus.iter().cloned()).filter(is_asked).collect();
    let occupied: Vec<_> = serving(true).filter(is_asked).collect();
    let mut taken = claim(work, &idle, &stopping::IDLE, true, idle.len()).await?;
    taken.extend(claim(work, &occupied, &RoomStatus::ALL, true, occupied.len()).await?);
    let (facts, rooms, plan) = (&fleet.facts, &taken, &plan);
    let may_be_missing = work.scheduler.recipe.rollout().max_unavailable;
    let removal = TakenRooms { facts, rooms, plan, may_be_missing, is_scale_down: false };
    work.engine.watch_taken(&work.scheduler.name, &removal);
    Ok(taken)
}

/// Those of the named rooms that stay so far and that may go.
async fn claim_named(
    work: &Work,
    fleet: &FleetState,
    ids: &[RoomId],
    known_only: bool,
    may_go: impl Fn(&RoomFact) -> bool,
) -> Result<Vec<RoomId>> {
    let ids: BTreeSet<&RoomId> = ids.iter().collect();
    let goes = |room: &&RoomFact| !room.leaving && ids.contains(&room.id) && may_go(room);
    let candidates: Vec<_> = fleet.facts.iter().filter(goes).map(|room| room.id.clone()).collect();
    claim(work, &candidates, &RoomStatus::ALL, known_only, candidates.len()).await
}

/// When it stops waiting for the rooms that it asked to go.
fn deadline(work: &Work, leaving: &[RoomRecord]) -> Option<Timestamp> {
    let asked_at = |row: &RoomRecord| match &row.intent {
        Intent::Stop(stop) => Some(stop.at),
        Intent::Run => None,
    };
    let first = leaving.iter().filter_map(asked_at).min()?;
    Some(after(first, work.engine.settings.downscaling_timeout))
}
