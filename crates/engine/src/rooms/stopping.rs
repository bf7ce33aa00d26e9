//! Stopping rooms: the registry records first that a room should go, then the runtime is asked to stop it, then the
//! operation waits until it is gone. Every step may be repeated. A room that was asked to go cannot be called back.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use maestro_core::operation::RemovalReason;
use maestro_core::room::{Ending, InstanceStatus, Purpose, RoomId, RoomStatus};
use maestro_core::scheduler::Version;
use maestro_core::text::count_of;
use maestro_core::time::{Millis, age};
use tokio::time::Instant;

use crate::events::room_gone::room_gone_events;
use crate::operations::{Result, Step, StepError, Work};
use crate::ports::Runtime;
use crate::ports::room_table::Claim;
use crate::ports::store::{Change, ClaimedSince, Ended, Intent, RoomRecord, StopIntent};

/// Rooms that one step asks to go.
pub(crate) const ROOMS_PER_STEP: usize = 200;
/// Of them, so many side by side.
const STOPS_AT_ONCE: usize = 32;
/// How long one step goes on asking: the slot is needed by others, too.
const STEP_MAX: Duration = Duration::from_secs(5);
/// A grace period that ended is given this much for the signal to be seen, before one looks again.
const SLACK: Millis = Millis::from_seconds(5);

/// Live rooms that this operation has asked, or will have to ask, to go.
pub(crate) async fn leaving(work: &Work) -> Result<Vec<RoomRecord>> {
    Ok(work.engine.ports.store.leaving_rooms(&work.scheduler.name, work.operation.id).await?)
}

pub(crate) async fn all_gone(work: &Work) -> Result<bool> {
    Ok(leaving(work).await?.is_empty())
}

/// Whether a room may go that a matchmaker was given, and in which no match has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldRooms {
    Stay,
    MayGo,
}

pub(crate) fn intend_stop(work: &Work, row: &RoomRecord, reason: &str, held: HeldRooms) -> Change {
    let (operation, reason, at) = (work.operation.id, reason.into(), work.now());
    stop_intent(row, StopIntent { operation, cause: None, matches: 0, reason, at }, held)
}

fn stop_intent(row: &RoomRecord, stop: StopIntent, held: HeldRooms) -> Change {
    let unless = ClaimedSince { number: row.claim_number, takes_held: held == HeldRooms::MayGo };
    Change::IntendStop { scheduler: row.scheduler.clone(), room: row.id.clone(), stop, unless }
}

/// `matches`: that are in the room.
pub(crate) fn intend_removal(
    work: &Work,
    row: &RoomRecord,
    cause: RemovalReason,
    matches: u32,
    held: HeldRooms,
) -> Change {
    let players = match cause {
        RemovalReason::RollingUpdate if matches > 0 => ", with players in it",
        _ => "",
    };
    let (operation, at) = (work.operation.id, work.now());
    let reason = format!("{}{players} ({})", cause.as_str(), work.operation.reason);
    stop_intent(row, StopIntent { operation, cause: Some(cause), matches, reason, at }, held)
}

/// Asks the runtime to end rooms whose stop intent is written, and parks until they are gone. Those of a region that
/// cannot be reached are asked when it is back; validation rooms there are not waited for.
pub(crate) async fn stop_and_wait(work: &Work, rows: &[RoomRecord]) -> Result<Step> {
    let lost: Vec<_> = rows.iter().filter(|row| !work.engine.regions.is_reachable(&row.region)).collect();
    let given_up: Vec<_> = lost.iter().filter(|row| row.purpose == Purpose::Validation).collect();
    if !given_up.is_empty() {
        return Ok(Step::again(given_up.into_iter().flat_map(|row| give_up(work, row)).collect()));
    }
    let graces = graces(work, rows).await?;
    if !ask_all(work, rows, &graces).await? {
        return Ok(Step::default());
    }
    let longest = graces.values().max().copied().unwrap_or_default();
    let mut what = match rows {
        [one] => format!("room {} to be gone", one.id),
        rows => format!("{} to be gone", count_of(rows.len(), "room")),
    };
    if !lost.is_empty() {
        let regions: BTreeSet<String> = lost.iter().map(|row| row.region.to_string()).collect();
        let regions = regions.into_iter().collect::<Vec<_>>().join(", ");
        what += &format!(", {} of them in region {regions}, which cannot be reached", lost.len());
    }
    let patience = Millis(Millis::from(longest).0.saturating_add(SLACK.0));
    Ok(Step::park(what, work.in_time(patience)))
}

/// The end of a room that nobody waits for any more. Should it be found again, it is stopped as unwanted.
pub(crate) fn give_up(work: &Work, row: &RoomRecord) -> Vec<Change> {
    let ending = Ending::GivenUp { why: format!("region {} cannot be reached", row.region) };
    let ended = Ended::by(&ending, work.now(), true);
    let mut changes = room_gone_events(&work.engine, &work.scheduler, row);
    changes.push(row.end(ended));
    changes
}

/// Asks the runtime to end the rooms that this operation wrote down as leaving, and does not wait for them.
pub(crate) async fn stop_leaving(work: &Work) -> Result {
    let rows = leaving(work).await?;
    let graces = graces(work, &rows).await?;
    // Who is not asked now is found by the next comparison of registry and runtime.
    ask_all(work, &rows, &graces).await.map(drop)
}

/// The grace periods of their versions.
async fn graces(work: &Work, rows: &[RoomRecord]) -> Result<BTreeMap<Version, Duration>> {
    let mut graces = BTreeMap::new();
    for row in rows {
        if let Entry::Vacant(vacant) = graces.entry(row.version) {
            vacant.insert(work.recipe_of(row.version).await?.spec.termination_grace_period);
        }
    }
    Ok(graces)
}

/// False: there was not enough time for all of them. Who does not go down yet is asked first, so that each time brings
/// more of them on their way.
async fn ask_all(work: &Work, rows: &[RoomRecord], graces: &BTreeMap<Version, Duration>) -> Result<bool> {
    let views = work.engine.ports.table.rooms(&work.scheduler.name).await?;
    let going_down: BTreeSet<_> = views
        .into_iter()
        .filter(|view| view.instance == InstanceStatus::Terminating)
        .map(|view| view.id)
        .collect();
    let (later, first): (Vec<_>, Vec<_>) = rows.iter().partition(|row| going_down.contains(&row.id));
    let began = Instant::now();
    for batch in [first, later].concat().chunks(STOPS_AT_ONCE) {
        if began.elapsed() >= STEP_MAX {
            return Ok(false);
        }
        let grace = |row: &RoomRecord| graces.get(&row.version).copied().unwrap_or_default();
        let asked = batch.iter().map(|row| ask_to_end(work, row, grace(row)));
        for outcome in join_all(asked).await {
            outcome?;
        }
    }
    Ok(true)
}

/// Asks the runtime to end a room. Its grace period counts from the moment the intent was written: a restart does
/// not extend it. One in a region that cannot be reached is asked when the region is back.
pub(crate) async fn stop(work: &Work, row: &RoomRecord) -> Result {
    let grace = work.recipe_of(row.version).await?.spec.termination_grace_period;
    ask_to_end(work, row, grace).await
}

async fn ask_to_end(work: &Work, row: &RoomRecord, grace: Duration) -> Result {
    if !work.engine.regions.is_reachable(&row.region) {
        return Ok(());
    }
    let asked_at = match &row.intent {
        // While the machine slept, it could not go.
        Intent::Stop(stop) => {
            work.engine.listening.awake_since(work.now()).map_or(stop.at, |since| since.max(stop.at))
        }
        Intent::Run => work.now(),
    };
    let left = grace.saturating_sub(age(work.now(), asked_at).as_duration());
    let runtime = work.engine.runtime(&row.region)?;
    work.still_owner()?;
    runtime.stop(&row.scheduler, &row.id, row.handle.as_ref(), left).await?;
    Ok(())
}

/// Ends rooms of the scheduler that the registry does not know, left by a start that nobody heard of or made by hand,
/// and fails as long as there are any. For the end of a scheduler: after it nobody would look for them.
pub(crate) async fn stop_unknown(work: &Work, runtimes: &[&Arc<dyn Runtime>]) -> Result {
    let scheduler = &work.scheduler.name;
    let grace = work.scheduler.recipe.spec.termination_grace_period;
    let mut left = 0;
    for runtime in runtimes {
        let rooms = runtime.list_of(scheduler).await?;
        left += rooms.len();
        for batch in rooms.chunks(STOPS_AT_ONCE) {
            work.still_owner()?;
            let stops = batch.iter().map(|room| runtime.stop(scheduler, &room.id, Some(&room.handle), grace));
            for outcome in join_all(stops).await {
                outcome?;
            }
        }
    }
    match left {
        0 => Ok(()),
        left => {
            Err(StepError::NotNow(format!("{} unknown to the registry: still there", count_of(left, "room"))))
        }
    }
}

/// One step of undoing what an operation made: its rooms go, but for those that players have entered and those
/// that have not been heard of since a restart (if they are too many, the health controller finds them later).
pub(crate) async fn take_back(work: &Work, rows: Vec<RoomRecord>, reason: &str) -> Result<Step> {
    let live = rows.into_iter().filter(|row| row.ended.is_none());
    let (going, others): (Vec<_>, Vec<_>) = live.partition(|row| is_stopped_by(row, work));
    // What another operation has asked to go is that one's to wait for.
    let staying: Vec<_> = others.into_iter().filter(|row| row.intent == Intent::Run).collect();
    let taken = claim_idle(work, &staying).await?;
    let changes: Vec<_> = taken.iter().map(|row| intend_stop(work, row, reason, HeldRooms::Stay)).collect();
    if !changes.is_empty() {
        return Ok(Step::again(changes));
    }
    let is_out_of_reach =
        |row: &RoomRecord| row.purpose == Purpose::Fleet && work.engine.regions.is_lost(&row.region);
    if !going.iter().all(is_out_of_reach) {
        return stop_and_wait(work, &going).await;
    }
    if !going.is_empty() {
        // Nobody waits for a region; when it is back, reconciling asks them again.
        let event =
            format!("{} out of reach: removed when their region is back", count_of(going.len(), "room"));
        return Ok(Step::done().with_history(event));
    }
    Ok(match staying.len() {
        0 => Step::done(),
        kept => Step::done().with_history(format!("{} kept: players may be in them", count_of(kept, "room"))),
    })
}

/// Those of the rooms that may go, taken out of service by one atomic step each. A room that the table does not
/// know was never started.
async fn claim_idle<'a>(work: &Work, rows: &'a [RoomRecord]) -> Result<Vec<&'a RoomRecord>> {
    let table = &work.engine.ports.table;
    let candidates: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
    let claimed = claim(work, &candidates, &IDLE, true, ROOMS_PER_STEP).await?;
    let claimed: BTreeSet<_> = claimed.into_iter().collect();
    let mut taken = Vec::new();
    for row in rows {
        let never_started = row.handle.is_none() && table.room(&row.scheduler, &row.id).await?.is_none();
        if claimed.contains(&row.id) || never_started {
            taken.push(row);
        }
    }
    Ok(taken)
}

/// Takes rooms out of service that are in one of these statuses now: `candidates` in their order, at most `rooms_max`.
pub(crate) async fn claim(
    work: &Work,
    candidates: &[RoomId],
    statuses: &[RoomStatus],
    known_only: bool,
    rooms_max: usize,
) -> Result<Vec<RoomId>> {
    let rooms_max = rooms_max.min(ROOMS_PER_STEP);
    // The table also answers with rooms that this operation has claimed before, even if none is asked for. They may come
    // from an outdated plan of a worker that was suspended; the next cycle gives them back.
    if rooms_max == 0 {
        return Ok(Vec::new());
    }
    let (scheduler, operation) = (&work.scheduler.name, work.operation.id);
    let claim = Claim { scheduler, operation, candidates, statuses, known_only, rooms_max };
    work.still_owner()?;
    Ok(work.engine.ports.table.claim(claim).await?)
}

pub(crate) fn is_stopped_by(row: &RoomRecord, work: &Work) -> bool {
    match &row.intent {
        Intent::Stop(stop) => stop.operation == work.operation.id,
        Intent::Run => false,
    }
}

/// Statuses of rooms that serve nobody and could not.
pub(crate) const NOT_READY: [RoomStatus; 4] =
    [RoomStatus::Error, RoomStatus::Terminated, RoomStatus::Pending, RoomStatus::Unready];

/// Statuses in which a removal may take a room.
pub(crate) const IDLE: [RoomStatus; 5] =
    [RoomStatus::Error, RoomStatus::Terminated, RoomStatus::Pending, RoomStatus::Unready, RoomStatus::Ready];
