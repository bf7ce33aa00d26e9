//! The allocator: takes requests for rooms in rounds, claims rooms for them, has the allocations written down, and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::ports::store::SchedulerState;
use crate::services::rooms_wanted;
use crate::{Engine, Error, Result, with_sources};

use super::NoRooms;
use super::queue::{RequestKey, RequestQueue, WaitingRequest};
use super::recording::{self, ClaimedRequest, RecordedRequest};

/// Requests that share one claim and one commit.
const BATCH_MAX: usize = 256;
/// Commits in flight: one that the disk is busy with, and the next one, so that the disk never waits for claims. With more of
/// them, fewer requests would share each.
const COMMITS_MAX: usize = 2;
/// While requests wait, there is a round at least this often: a wake-up may have been missed.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Rooms that become free within this time make one round.
const FREED_DEBOUNCE: Duration = Duration::from_millis(10);
/// How often a request may get other rooms instead of those that were taken away from it.
const ATTEMPTS_MAX: u32 = 5;
/// For this long, the numbers in a refusal are not read again.
const REFUSAL_CACHED_FOR: Duration = Duration::from_millis(500);

pub(crate) struct Allocator {
    inbox: mpsc::Receiver<WaitingRequest>,
    /// One for each scheduler that somebody waits for; none is empty between two rounds.
    queues: BTreeMap<SchedulerName, RequestQueue>,
    /// The schedulers of which the room table knows that somebody waits, and when it was told.
    reported: BTreeMap<SchedulerName, Instant>,
    refusals: BTreeMap<SchedulerName, (Instant, NoRooms)>,
    last_round: Instant,
    /// Requests whose rooms are being written down.
    in_flight: BTreeSet<RequestKey>,
    /// A request is in its queue again because its rooms were taken away, or waits for what becomes of the same one.
    round_is_due: bool,
}

/// Allocates for as long as the engine is up. If this task crashes and is started again, all requests still wait.
pub(crate) async fn run(engine: Arc<Engine>) {
    engine.allocations.allocator.lock().await.run(&engine).await;
}

impl Allocator {
    pub(super) fn new(inbox: mpsc::Receiver<WaitingRequest>) -> Self {
        Self {
            inbox,
            queues: BTreeMap::new(),
            reported: BTreeMap::new(),
            refusals: BTreeMap::new(),
            last_round: Instant::now(),
            in_flight: BTreeSet::new(),
            round_is_due: false,
        }
    }

    async fn run(&mut self, engine: &Engine) {
        // In order: whoever came first is also answered first.
        let mut commits = FuturesOrdered::<BoxFuture<'_, Vec<RecordedRequest>>>::new();
        // Those of an earlier run are lost with it.
        self.in_flight.clear();
        loop {
            let begins_round = tokio::select! {
                biased;
                Some(outcomes) = commits.next() => {
                    outcomes.into_iter().for_each(|outcome| self.answer(engine, outcome));
                    std::mem::take(&mut self.round_is_due)
                }
                () = self.next_round(engine), if commits.len() < COMMITS_MAX => true,
            };
            if begins_round {
                commits.extend(self.round(engine).await.map(FutureExt::boxed));
            }
        }
    }

    /// The commit that it begins, if there is anything to write down.
    async fn round<'a>(
        &mut self,
        engine: &'a Engine,
    ) -> Option<impl Future<Output = Vec<RecordedRequest>> + Send + use<'a>> {
        self.last_round = Instant::now();
        // What an allocation says of its times is the same in the table and in its row.
        let now = recording::as_stored(engine.now());
        let claimed = self.claim(engine, now).await;
        self.in_flight.extend(claimed.iter().filter_map(|one| one.waiting.request_key()));
        self.refuse_the_rest(engine).await;
        self.queues.retain(|_, queue| !queue.is_empty());
        self.report_waiting(engine).await;
        (!claimed.is_empty()).then(|| recording::record(engine, claimed, now))
    }

    /// Waits until there is something to do.
    async fn next_round(&mut self, engine: &Engine) {
        let Self { inbox, queues, reported, last_round, .. } = self;
        let is_waited_for = !queues.is_empty() || !reported.is_empty();
        let deadline = queues.values().filter_map(RequestQueue::first_deadline).min();
        let next_round = Instant::now() + ROUND_INTERVAL;
        let next_round = deadline.map_or(next_round, |deadline| deadline.min(next_round));
        let freed = async {
            tokio::time::sleep_until(*last_round + FREED_DEBOUNCE).await;
            engine.allocations.freed.notified().await;
        };
        let mut new = Vec::new();
        tokio::select! {
            biased;
            _ = inbox.recv_many(&mut new, BATCH_MAX) => {}
            () = freed, if is_waited_for => {}
            () = tokio::time::sleep_until(next_round), if is_waited_for => {}
        }
        for request in new {
            queues.entry(request.scheduler.clone()).or_default().push(request);
        }
    }

    async fn claim(&mut self, engine: &Engine, now: Timestamp) -> Vec<ClaimedRequest> {
        let mut claimed = Vec::new();
        for (scheduler, queue) in &mut self.queues {
            // A caller that hung up needs no room.
            queue.remove_where(|waiting| waiting.reply.is_closed());
            if let Err(error) = queue.claim(engine, scheduler, now, &mut claimed).await {
                if error.is_lost() && has_no_rooms(engine, scheduler).await {
                    continue;
                }
                tracing::warn!(scheduler_name = %scheduler, error = with_sources(&error), "cannot claim rooms");
                engine.ports.wake.room_changed(scheduler.as_str());
                for waiting in queue.remove_where(|_| true) {
                    waiting.answer(Err(error.clone().into()));
                }
            }
        }
        claimed
    }

    fn answer(&mut self, engine: &Engine, outcome: RecordedRequest) {
        let (RecordedRequest::Answered { waiting, .. } | RecordedRequest::TryAgain(waiting)) = &outcome;
        if let Some(key) = waiting.request_key() {
            self.in_flight.remove(&key);
        }
        match outcome {
            RecordedRequest::Answered { waiting, answer } => {
                let may_be_repeated = waiting.request.request_id.is_some();
                let allocated = answer.as_ref().map(Clone::clone).unwrap_or_default();
                // A caller that hung up and cannot ask again will never know of its rooms.
                if !waiting.answer(answer) && !may_be_repeated {
                    engine.allocations.take_back(allocated);
                }
            }
            RecordedRequest::TryAgain(mut waiting) => {
                waiting.attempts += 1;
                // When its rooms were written down, there was no earlier answer to it.
                waiting.is_looked_up = true;
                if waiting.attempts >= ATTEMPTS_MAX {
                    let what = format!(
                        "{ATTEMPTS_MAX} rooms of scheduler {} in a row were taken away before they could be handed \
                         over; try again",
                        waiting.scheduler
                    );
                    waiting.answer(Err(Error::Unavailable { what, source: None }));
                    return;
                }
                self.queues.entry(waiting.scheduler.clone()).or_default().push_front(waiting);
                self.round_is_due = true;
            }
        }
    }

    /// Refuses the requests whose time is over, and those that are too many to wait.
    async fn refuse_the_rest(&mut self, engine: &Engine) {
        let queue_max = engine.settings.allocation_queue_max;
        let now = Instant::now();
        let schedulers: Vec<SchedulerName> = self.queues.keys().cloned().collect();
        for scheduler in schedulers {
            let Some(queue) = self.queues.get_mut(&scheduler) else { continue };
            look_up(engine, &scheduler, queue, &self.in_flight, now).await;
            self.round_is_due |= queue.iter().any(|waiting| !waiting.is_looked_up);
            let mut staying = 0;
            let refused = queue.remove_where(|waiting| {
                let leaves = waiting.is_looked_up && (waiting.deadline <= now || staying >= queue_max);
                staying += usize::from(!leaves);
                leaves
            });
            if refused.is_empty() {
                continue;
            }
            let waiting = u32::try_from(queue.len()).unwrap_or(u32::MAX);
            for request in refused {
                let refusal = self.refusal(engine, &scheduler, waiting).await;
                request.answer(Err(refusal));
            }
        }
    }

    /// Why there is no room. A flood of requests must not become one of reads.
    async fn refusal(&mut self, engine: &Engine, scheduler: &SchedulerName, waiting: u32) -> Error {
        let cached = self.refusals.get(scheduler).filter(|(at, _)| at.elapsed() < REFUSAL_CACHED_FOR);
        if let Some((_, refusal)) = cached {
            return NoRooms { waiting, ..refusal.clone() }.into();
        }
        match no_rooms(engine, scheduler, waiting).await {
            Ok(refusal) => {
                self.refusals.retain(|_, (at, _)| at.elapsed() < REFUSAL_CACHED_FOR);
                self.refusals.insert(scheduler.clone(), (Instant::now(), refusal.clone()));
                refusal.into()
            }
            Err(error) => error,
        }
    }

    /// Tells the room table how many slots requests wait for: that is demand.
    async fn report_waiting(&mut self, engine: &Engine) {
        let schedulers: Vec<SchedulerName> =
            self.queues.keys().chain(self.reported.keys()).cloned().collect();
        for scheduler in schedulers {
            let queue = self.queues.get(&scheduler);
            let is_known = self.reported.get(&scheduler).is_some_and(|at| at.elapsed() < ROUND_INTERVAL);
            if is_known && queue.is_some() {
                continue;
            }
            match report_demand(engine, &scheduler, queue).await {
                Ok(()) if queue.is_some() => drop(self.reported.insert(scheduler, Instant::now())),
                Ok(()) => drop(self.reported.remove(&scheduler)),
                Err(error) => {
                    tracing::debug!(scheduler_name = %scheduler, error = with_sources(&error), "cannot report waiting");
                }
            }
        }
    }
}

/// Whether that a scheduler is not in the room table means that it does not exist, or is just being created. Its requests
/// are answered like those that found no room.
async fn has_no_rooms(engine: &Engine, scheduler: &SchedulerName) -> bool {
    match engine.ports.store.scheduler(scheduler).await {
        Ok(record) => record.is_none_or(|record| record.state == SchedulerState::Creating),
        Err(_) => false,
    }
}

/// Answers new requests that need no room, because the same request was answered before, and those that would wait in vain.
/// One that is the same as a request in flight is left alone: it is about to be answered.
async fn look_up(
    engine: &Engine,
    scheduler: &SchedulerName,
    queue: &mut RequestQueue,
    in_flight: &BTreeSet<RequestKey>,
    now: Instant,
) {
    let is_in_flight =
        |waiting: &WaitingRequest| waiting.request_key().is_some_and(|key| in_flight.contains(&key));
    let mut most = None;
    for mut waiting in queue.remove_where(|waiting| !waiting.is_looked_up && !is_in_flight(waiting)) {
        waiting.is_looked_up = true;
        match engine.answered_before(&waiting).await {
            Ok(None) => {}
            answered => {
                waiting.answer(answered.map(Option::unwrap_or_default));
                continue;
            }
        }
        if waiting.deadline > now {
            if most.is_none() {
                most = match slots_max(engine, scheduler).await {
                    Ok(slots) => Some(slots),
                    Err(error) => {
                        waiting.answer(Err(error));
                        continue;
                    }
                };
            }
            // It would hold back others in vain.
            if most.flatten().is_some_and(|most| u64::from(waiting.request.count) > most) {
                waiting.deadline = now;
            }
        }
        queue.push(waiting);
    }
}

/// The most slots that the fleet may ever have; `None`: any number. An error if there is no such scheduler.
async fn slots_max(engine: &Engine, scheduler: &SchedulerName) -> Result<Option<u64>> {
    let record = engine.scheduler(scheduler.as_str()).await?;
    let rooms_max = match record.autoscaling() {
        Some(autoscaling) => autoscaling.max,
        None => Some(record.fleet_size),
    };
    let of_a_room = record.recipe.match_allocation.max_matches.max(1);
    Ok(rooms_max.map(|rooms| u64::from(rooms) * u64::from(of_a_room)))
}

async fn report_demand(engine: &Engine, scheduler: &SchedulerName, queue: Option<&RequestQueue>) -> Result {
    let table = &engine.ports.table;
    let slots = match queue {
        Some(queue) => queue.demand(&table.allocation_rules(scheduler).await?),
        None => 0,
    };
    table.report_waiting(scheduler, &engine.owner, slots, engine.now()).await?;
    if slots > 0 {
        engine.ports.wake.room_changed(scheduler.as_str());
    }
    Ok(())
}

async fn no_rooms(engine: &Engine, scheduler: &SchedulerName, waiting: u32) -> Result<NoRooms> {
    let record = engine.scheduler(scheduler.as_str()).await?;
    let counts = engine.fleet_counts(scheduler).await?.counts;
    let desired = rooms_wanted(&record, &counts, waiting);
    let ready = counts.by_status.of(RoomStatus::Ready);
    let occupied = counts.by_status.occupied();
    Ok(NoRooms { scheduler: scheduler.clone(), ready, occupied, held: counts.holds, waiting, desired })
}
