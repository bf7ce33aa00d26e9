//! The desk: takes up requests, claims rooms for them, has that written down, and answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::RoomStatus;
use maestro_core::scheduler::SchedulerName;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::services::wanted;
use crate::{Engine, Error, Result, with_sources};

use super::line::{Line, Waiting};
use super::recording::{self, Outcome, Taken};
use super::{NoRooms, Order};

/// Requests that share one claim and one commit.
const TOGETHER_MAX: usize = 256;
/// Who waits is looked after so often, whatever happens.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Rooms that become free within this are looked at together.
const FREED_TOGETHER: Duration = Duration::from_millis(10);
/// How often a request gets other rooms instead of those that it could not keep.
const ATTEMPTS_MAX: u32 = 5;
/// Refusals in a row say the same for so long.
const REFUSAL_KEPT: Duration = Duration::from_millis(500);

pub(crate) struct Desk {
    orders: mpsc::Receiver<Order>,
    /// One for each scheduler that somebody waits for; none is empty between two rounds.
    lines: BTreeMap<SchedulerName, Line>,
    /// The schedulers of which the room table knows that somebody waits, and when it was told.
    reported: BTreeMap<SchedulerName, Instant>,
    refusals: BTreeMap<SchedulerName, (Instant, NoRooms)>,
    last_round: Instant,
}

/// Works at the desk for as long as the engine is up. The desk outlives a crash of it, with all who wait.
pub(crate) async fn serve(engine: Arc<Engine>) {
    engine.allocations.desk.lock().await.run(&engine).await;
}

impl Desk {
    pub(super) fn new(orders: mpsc::Receiver<Order>) -> Self {
        Self {
            orders,
            lines: BTreeMap::new(),
            reported: BTreeMap::new(),
            refusals: BTreeMap::new(),
            last_round: Instant::now(),
        }
    }

    async fn run(&mut self, engine: &Engine) {
        loop {
            self.next_round(engine).await;
            self.last_round = Instant::now();
            let taken = self.claim(engine).await;
            for outcome in recording::record(engine, taken).await {
                self.answer(engine, outcome).await;
            }
            self.send_away(engine).await;
            self.lines.retain(|_, line| !line.is_empty());
            self.report(engine).await;
        }
    }

    /// Waits until there is something to do.
    async fn next_round(&mut self, engine: &Engine) {
        let Self { orders, lines, reported, last_round, .. } = self;
        let is_waited_for = !lines.is_empty() || !reported.is_empty();
        let first_end = lines.values().filter_map(Line::first_end).min();
        let look_again = Instant::now() + LOOK_AGAIN;
        let look_again = first_end.map_or(look_again, |end| end.min(look_again));
        let freed = async {
            tokio::time::sleep_until(*last_round + FREED_TOGETHER).await;
            engine.allocations.freed.notified().await;
        };
        let mut new = Vec::new();
        tokio::select! {
            biased;
            _ = orders.recv_many(&mut new, TOGETHER_MAX) => {}
            () = freed, if is_waited_for => {}
            () = tokio::time::sleep_until(look_again), if is_waited_for => {}
        }
        for order in new {
            lines.entry(order.scheduler.clone()).or_default().push(Waiting::new(order));
        }
    }

    async fn claim(&mut self, engine: &Engine) -> Vec<Taken> {
        let mut taken = Vec::new();
        for (scheduler, line) in &mut self.lines {
            // Whoever hung up wants no room.
            line.take_if(|waiting| waiting.order.reply.is_closed());
            match line.claim(engine, scheduler).await {
                Ok(rooms) => taken.extend(rooms),
                Err(error) => {
                    tracing::warn!(scheduler_name = %scheduler, error = with_sources(&error), "cannot claim rooms");
                    for waiting in line.take_if(|_| true) {
                        waiting.answer(Err(error.clone().into()));
                    }
                }
            }
        }
        taken
    }

    async fn answer(&mut self, engine: &Engine, outcome: Outcome) {
        match outcome {
            Outcome::Answered { waiting, answer } => {
                let may_be_repeated = waiting.order.request.request_id.is_some();
                let allocated = answer.as_ref().map(Clone::clone).unwrap_or_default();
                // Whoever cannot ask again will never know of its rooms.
                if !waiting.answer(answer) && !may_be_repeated {
                    for allocation in allocated {
                        engine.take_back_allocation(&allocation).await;
                    }
                }
            }
            Outcome::TryAgain(mut waiting) => {
                waiting.attempts += 1;
                // Nobody had answered it when its rooms were written down.
                waiting.is_looked_up = true;
                if waiting.attempts >= ATTEMPTS_MAX {
                    let what = format!(
                        "{ATTEMPTS_MAX} rooms of scheduler {} in a row were taken away before they could be handed \
                         over; try again",
                        waiting.order.scheduler
                    );
                    waiting.answer(Err(Error::Unavailable { what, source: None }));
                    return;
                }
                self.lines.entry(waiting.order.scheduler.clone()).or_default().push_front(waiting);
                engine.allocations.room_freed();
            }
        }
    }

    /// Answers those for whom there is no room and who do not wait any longer, and those who are too many.
    async fn send_away(&mut self, engine: &Engine) {
        let queue_max = engine.settings.allocation_queue_max;
        let now = Instant::now();
        let schedulers: Vec<SchedulerName> = self.lines.keys().cloned().collect();
        for scheduler in schedulers {
            let Some(line) = self.lines.get_mut(&scheduler) else { continue };
            // The same request may have been answered before: then there is no need for a room.
            for waiting in line.take_if(|waiting| !waiting.is_looked_up) {
                match engine.answered_before(&waiting.order).await {
                    Ok(None) => line.push(Waiting { is_looked_up: true, ..waiting }),
                    Ok(Some(answer)) => drop(waiting.answer(Ok(answer))),
                    Err(error) => drop(waiting.answer(Err(error))),
                }
            }
            let mut place = 0;
            let leaving = line.take_if(|waiting| {
                place += 1;
                waiting.order.until <= now || place > queue_max
            });
            if leaving.is_empty() {
                continue;
            }
            let waiting = u32::try_from(line.len()).unwrap_or(u32::MAX);
            for one in leaving {
                let refusal = self.refusal(engine, &scheduler, waiting).await;
                one.answer(Err(refusal));
            }
        }
    }

    /// Why there is no room. A flood of requests must not become one of reads.
    async fn refusal(&mut self, engine: &Engine, scheduler: &SchedulerName, waiting: u32) -> Error {
        let kept = self.refusals.get(scheduler).filter(|(at, _)| at.elapsed() < REFUSAL_KEPT);
        if let Some((_, refusal)) = kept {
            return NoRooms { waiting, ..refusal.clone() }.into();
        }
        match no_rooms(engine, scheduler, waiting).await {
            Ok(refusal) => {
                self.refusals.retain(|_, (at, _)| at.elapsed() < REFUSAL_KEPT);
                self.refusals.insert(scheduler.clone(), (Instant::now(), refusal.clone()));
                refusal.into()
            }
            Err(error) => error,
        }
    }

    /// Tells the room table how much is waited for: that is demand.
    async fn report(&mut self, engine: &Engine) {
        let waited_for: Vec<SchedulerName> = self.lines.keys().chain(self.reported.keys()).cloned().collect();
        for scheduler in waited_for {
            let line = self.lines.get(&scheduler);
            let is_told = self.reported.get(&scheduler).is_some_and(|at| at.elapsed() < LOOK_AGAIN);
            if is_told && line.is_some() {
                continue;
            }
            match report_one(engine, &scheduler, line).await {
                Ok(()) if line.is_some() => drop(self.reported.insert(scheduler, Instant::now())),
                Ok(()) => drop(self.reported.remove(&scheduler)),
                Err(error) => {
                    tracing::debug!(scheduler_name = %scheduler, error = with_sources(&error), "cannot report waiting");
                }
            }
        }
    }
}

async fn report_one(engine: &Engine, scheduler: &SchedulerName, line: Option<&Line>) -> Result {
    let table = &engine.ports.table;
    let slots = match line {
        Some(line) => line.demand(&table.terms(scheduler).await?),
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
    let counts = engine.ports.table.counts(scheduler).await?;
    let desired = wanted(&record, &counts, waiting);
    let ready = counts.by_status.of(RoomStatus::Ready);
    let occupied = counts.by_status.occupied();
    Ok(NoRooms { scheduler: scheduler.clone(), ready, occupied, held: counts.holds, waiting, desired })
}
