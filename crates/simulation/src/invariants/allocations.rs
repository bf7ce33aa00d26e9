//! What must be true of rooms that matchmakers get.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maestro_core::allocation::{AllocationRequest, AllocationState};
use maestro_core::invariant::{Invariant, InvariantViolation};
use maestro_core::operation::RemovalReason;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, after};
use maestro_engine::AllocationView;
use maestro_engine::ports::store::{
    AllocationPageRequest, AllocationRecord, Change, NewAllocation, StopIntent, Store, StoreError,
    Transaction,
};

use crate::world::NodeNumber;

use super::Inspector;
use super::memory::Known;

/// Somebody who lost a room to the store's refusal stands at the front again, and is passed by those who were answered
/// meanwhile: at no more than so many instants, since all requests of one batch are answered at once.
const PASSED_MAX: u32 = 3;
/// After its time, and a ping timeout for a room that says nothing any more.
const ENDS_WITHIN: Millis = Millis::from_seconds(60);

/// What was waited for counts for five minutes, and what is said for a moment after; calls may be slow.
const WAITED_FOR: Duration = Duration::from_secs(5 * 60 + 30);

/// A matchmaker that asks for one room, whichever it is, waits in one queue with all others that do.
pub(crate) struct Caller {
    node: NodeNumber,
    scheduler: SchedulerName,
    ticket: u64,
    /// Others that ask for the same have to wait behind it.
    stands_in_line: bool,
}

/// Those who wait, and how often somebody who came later has got a room meanwhile.
pub(super) type Lines = BTreeMap<(NodeNumber, SchedulerName, u64), Passed>;

#[derive(Default)]
pub(super) struct Passed {
    instants: u32,
    last: Option<Duration>,
}

impl Caller {
    pub(crate) fn new(node: NodeNumber, scheduler: &SchedulerName, request: &AllocationRequest) -> Self {
        static TICKETS: AtomicU64 = AtomicU64::new(0);
        let AllocationRequest { request_id, count, wishes, .. } = request;
        let stands_in_line = request_id.is_none() && *count == 1 && wishes.is_empty();
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed);
        Self { node, scheduler: scheduler.clone(), ticket, stands_in_line }
    }
}

impl Known {
    /// The most that may count: of each process the highest number.
    pub(super) fn waited_for(&mut self, now: Duration) -> u64 {
        while self.waiting.front().is_some_and(|(at, _, _)| now.saturating_sub(*at) > WAITED_FOR) {
            self.waiting.pop_front();
        }
        let mut by_process: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, process, slots) in &self.waiting {
            let most = by_process.entry(process).or_default();
            *most = (*most).max(*slots);
        }
        by_process.into_values().map(u64::from).sum()
    }
}

impl Inspector {
    /// A process says for how many matches its callers wait.
    pub(crate) fn waits(&self, scheduler: &SchedulerName, process: &str, slots: u32) {
        let at = self.trace.elapsed();
        self.state.lock().known(scheduler).waiting.push_back((at, process.to_owned(), slots));
    }

    pub(crate) fn asks(&self, caller: &Caller) {
        if caller.stands_in_line {
            let key = (caller.node, caller.scheduler.clone(), caller.ticket);
            self.state.lock().lines.insert(key, Passed::default());
        }
    }

    pub(crate) fn turned_away(&self, caller: &Caller) {
        self.state.lock().lines.remove(&(caller.node, caller.scheduler.clone(), caller.ticket));
    }

    /// A matchmaker was told that these rooms are its own.
    pub(crate) async fn allocated(&self, caller: &Caller, allocations: &[AllocationView], store: &dyn Store) {
        let passed = self.step_forward(caller);
        self.note_all(passed);
        for one in allocations {
            let AllocationView { scheduler, id, room, .. } = one;
            // A scheduler that is gone has taken its allocations along.
            let is_there = async {
                let row = store.allocation(scheduler, *id).await?;
                Ok::<_, StoreError>(row.is_some() || store.scheduler(scheduler).await?.is_none())
            };
            if matches!(is_there.await, Ok(false)) {
                let what =
                    format!("allocation {id} of room {room} was handed over, and the store does not know it");
                self.note_all([InvariantViolation::new(Invariant::AnswersKept, what)]);
            }
        }
    }

    fn step_forward(&self, caller: &Caller) -> Option<InvariantViolation> {
        if !caller.stands_in_line {
            return None;
        }
        let now = self.trace.elapsed();
        let lines = &mut self.state.lock().lines;
        let first = (caller.node, caller.scheduler.clone(), 0);
        let own = (caller.node, caller.scheduler.clone(), caller.ticket);
        lines.remove(&own);
        let mut most = 0;
        for (_, passed) in lines.range_mut(first..own) {
            if passed.last.replace(now) != Some(now) {
                passed.instants += 1;
            }
            most = most.max(passed.instants);
        }
        let what = || {
            format!(
                "{most} times, matchmakers got a room of {} before one that had come first",
                caller.scheduler
            )
        };
        (most > PASSED_MAX).then(|| InvariantViolation::new(Invariant::FirstCome, what()))
    }

    /// After a commit.
    pub(super) async fn judge_allocations(&self, transaction: &Transaction, store: &dyn Store) {
        let mut found = Vec::new();
        for change in &transaction.changes {
            let judged = match change {
                Change::Allocate(new) => held_twice(new, store).await,
                Change::IntendStop { scheduler, room, stop, .. } => {
                    let page = AllocationPageRequest {
                        page: 1,
                        page_size: 100,
                        state: Some(AllocationState::Lost),
                        room: Some(room.clone()),
                    };
                    taken_away(
                        scheduler,
                        stop,
                        store.allocations(scheduler, page).await.map(|page| page.allocations),
                        store,
                    )
                    .await
                }
                _ => Ok(None),
            };
            found.extend(judged.ok().flatten());
        }
        self.note_all(found);
    }

    /// Nobody keeps a room for ever.
    pub(super) async fn judge_holds(
        &self,
        store: &dyn Store,
        ping_timeout: Millis,
    ) -> Result<(), StoreError> {
        let now = self.trace.now();
        let is_over = |row: &&AllocationRecord| after(after(row.expires_at, ping_timeout), ENDS_WITHIN) < now;
        let left = |row: &AllocationRecord| {
            let AllocationRecord { id, room, expires_at, .. } = row;
            let what = format!("allocation {id} of room {room} is still held; it was to end at {expires_at}");
            InvariantViolation::new(Invariant::HoldsEnd, what)
        };
        let open = store.open_allocations(None).await?;
        self.note_all(open.iter().filter(is_over).map(left));
        Ok(())
    }
}

async fn held_twice(
    new: &NewAllocation,
    store: &dyn Store,
) -> Result<Option<InvariantViolation>, StoreError> {
    let open = store.open_allocations(Some(&new.scheduler)).await?;
    let holds = open.iter().filter(|row| row.room == new.room).count();
    let most = new.matches_max.max(1) as usize;
    Ok((holds > most).then(|| {
        let what = format!("room {} is handed out {holds} times and holds {most}", new.room);
        InvariantViolation::new(Invariant::HeldOnce, what)
    }))
}

/// Those that this stop intent has ended.
async fn taken_away(
    scheduler: &SchedulerName,
    stop: &StopIntent,
    lost: Result<Vec<AllocationRecord>, StoreError>,
    store: &dyn Store,
) -> Result<Option<InvariantViolation>, StoreError> {
    let is_this = |row: &AllocationRecord| row.cause == stop.reason && row.ended_at.is_some();
    let Some(row) = lost?.into_iter().find(is_this) else { return Ok(None) };
    let may_take = match stop.cause {
        None
        | Some(
            RemovalReason::ExpiredRoom | RemovalReason::ValidationFinished | RemovalReason::RollingUpdate,
        ) => true,
        Some(RemovalReason::Drain) => false,
        Some(RemovalReason::ScaleDown) => {
            let operation = store.operation(scheduler, stop.operation).await?;
            operation.is_none_or(|operation| operation.origin.is_person())
        }
    };
    let what = || format!("room {} was taken from a matchmaker: {}", row.room, stop.reason);
    Ok((!may_take).then(|| InvariantViolation::new(Invariant::HeldStays, what())))
}
