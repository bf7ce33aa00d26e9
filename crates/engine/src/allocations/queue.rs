//! The queue of a scheduler: requests in the order in which they came. A new request goes to its end, even one that does
//! not want to wait, so that no request overtakes another.

use std::collections::VecDeque;
use std::sync::Arc;

use maestro_core::allocation::{
    AllocationId, AllocationRequest, AllocationRules, Wish, fits_new_room, overlap,
};
use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, after};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::ports::room_table::{HeldRoom, HoldAnswer, HoldRequest, TableError};
use crate::{Engine, Result};

use super::AllocationView;
use super::recording::ClaimedRequest;

#[derive(Default)]
pub(super) struct RequestQueue(VecDeque<WaitingRequest>);

/// A request whose caller waits for the answer.
pub(crate) struct WaitingRequest {
    pub(super) scheduler: SchedulerName,
    pub(super) request: AllocationRequest,
    /// Until when the caller waits for a room.
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<Vec<AllocationView>>>,
    /// It was looked up whether this request was answered before.
    pub(super) is_looked_up: bool,
    /// How often it got rooms that were taken away again before it was answered.
    pub(super) attempts: u32,
}

/// What makes a request the same as another one.
pub(super) type RequestKey = (SchedulerName, Arc<str>);

impl WaitingRequest {
    pub(crate) fn new(
        scheduler: SchedulerName,
        request: AllocationRequest,
        reply: oneshot::Sender<Result<Vec<AllocationView>>>,
    ) -> Self {
        let deadline = Instant::now() + request.wait.as_duration();
        Self { scheduler, request, deadline, reply, is_looked_up: false, attempts: 0 }
    }

    /// `None`: the request has no id.
    pub(super) fn request_key(&self) -> Option<RequestKey> {
        let id = self.request.request_id.clone()?;
        Some((self.scheduler.clone(), id))
    }

    /// False: the caller has hung up.
    pub(super) fn answer(self, answer: Result<Vec<AllocationView>>) -> bool {
        self.reply.send(answer).is_ok()
    }
}

impl RequestQueue {
    pub(super) fn push(&mut self, waiting: WaitingRequest) {
        self.0.push_back(waiting);
    }

    /// Back to the front, because its rooms were taken away.
    pub(super) fn push_front(&mut self, waiting: WaitingRequest) {
        self.0.push_front(waiting);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingRequest> {
        self.0.iter()
    }

    /// When the first of them stops waiting. One that is not looked up yet waits for a commit, and no clock.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.0.iter().filter(|waiting| waiting.is_looked_up).map(|waiting| waiting.deadline).min()
    }

    /// Removes all requests for which this holds and returns them, in their order.
    pub(super) fn remove_where(
        &mut self,
        mut holds: impl FnMut(&WaitingRequest) -> bool,
    ) -> Vec<WaitingRequest> {
        let (removed, kept): (VecDeque<_>, VecDeque<_>) = self.0.drain(..).partition(|one| holds(one));
        self.0 = kept;
        removed.into()
    }

    /// How many slots these requests wait for that new rooms could give them.
    pub(super) fn demand(&self, rules: &AllocationRules) -> u32 {
        let fits = self.0.iter().filter(|waiting| fits_new_room(&waiting.request.wishes, rules));
        fits.map(|waiting| waiting.request.count).fold(0, u32::saturating_add)
    }

    /// Claims rooms for as many requests as possible, in their order, and adds them to `claimed`. Each room goes to the first
    /// request that accepts it. A request for several rooms that cannot have all of them takes none, and those behind it get
    /// no room that it would accept, nor one that somebody would accept who is held back for it.
    pub(super) async fn claim(
        &mut self,
        engine: &Engine,
        scheduler: &SchedulerName,
        now: Timestamp,
        claimed: &mut Vec<ClaimedRequest>,
    ) -> Result<(), TableError> {
        if !guards::stands(Invariant::FirstCome) {
            self.0.make_contiguous().reverse();
        }
        let mut held_back = HeldBack::default();
        let mut next = 0;
        while next < self.0.len() {
            let wishes = &self.0[next].request.wishes;
            if held_back.includes(wishes) {
                held_back.add(wishes);
                next += 1;
                continue;
            }
            // Requests for one room each are claimed together.
            let is_single = |waiting: &&WaitingRequest| {
                waiting.request.count == 1 && !held_back.includes(&waiting.request.wishes)
            };
            let together = self.0.iter().skip(next).take_while(is_single).count().max(1);
            let asked = self.0.iter().skip(next).take(together);
            let answers = hold(engine, scheduler, now, asked).await?;
            for answer in answers {
                match answer {
                    Some(rooms) => {
                        let Some(waiting) = self.0.remove(next) else { continue };
                        claimed.push(ClaimedRequest { waiting, rooms });
                    }
                    None => {
                        let request = &self.0[next].request;
                        if request.count > 1 {
                            held_back.add(&request.wishes);
                        }
                        next += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The wishes of requests that later ones must not take rooms from.
#[derive(Default)]
struct HeldBack(Vec<Vec<Wish>>);

impl HeldBack {
    fn includes(&self, wishes: &[Wish]) -> bool {
        self.0.iter().any(|held_back| overlap(held_back, wishes))
    }

    fn add(&mut self, wishes: &[Wish]) {
        // Most requests wish the same.
        if !self.0.iter().any(|held_back| held_back == wishes) {
            self.0.push(wishes.to_vec());
        }
    }
}

async fn hold<'a>(
    engine: &Engine,
    scheduler: &SchedulerName,
    now: Timestamp,
    waiting: impl Iterator<Item = &'a WaitingRequest>,
) -> Result<Vec<Option<Vec<HeldRoom>>>, TableError> {
    let heard_since = now.checked_sub(engine.settings.room_ping_timeout.as_duration()).unwrap_or(now);
    let ids = |waiting: &'a WaitingRequest| {
        let ids = (0..waiting.request.count).map(|_| engine.ports.random.allocation_id(now));
        (waiting, ids.collect::<Vec<AllocationId>>())
    };
    let waiting: Vec<_> = waiting.map(ids).collect();
    let mut requests = Vec::with_capacity(waiting.len());
    for (waiting, allocations) in &waiting {
        let request = &waiting.request;
        requests.push(HoldRequest {
            scheduler,
            allocations,
            wishes: &request.wishes,
            metadata: request.metadata.as_ref(),
            now,
            expires_at: after(now, engine.hold_for(request)),
            heard_since,
            draw: engine.ports.random.draw(),
        });
    }
    let rooms = |answer| match answer {
        HoldAnswer::Held(rooms) => Some(rooms),
        HoldAnswer::NotEnough => None,
    };
    Ok(engine.ports.table.hold(&requests).await?.into_iter().map(rooms).collect())
}
