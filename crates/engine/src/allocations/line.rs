//! The line of a scheduler: requests in the order in which they came. A newcomer stands at its end, also one that does
//! not want to wait, so that nobody overtakes.

use std::collections::VecDeque;

use maestro_core::allocation::{AllocationId, Terms, Wish, fits_new_room, overlap};
use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::after;
use tokio::time::Instant;

use crate::Engine;
use crate::ports::room_table::{HeldRoom, HoldAnswer, HoldRequest, TableError};

use super::Order;
use super::recording::{Taken, as_stored};

#[derive(Default)]
pub(super) struct Line(VecDeque<Waiting>);

pub(super) struct Waiting {
    pub(super) order: Order,
    /// It was looked up whether this request was answered before.
    pub(super) is_looked_up: bool,
    /// How often it got rooms that somebody else turned out to have.
    pub(super) attempts: u32,
}

impl Waiting {
    pub(super) fn new(order: Order) -> Self {
        Self { order, is_looked_up: false, attempts: 0 }
    }
}

impl Line {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    /// Back to the front: it got rooms that it could not keep.
    pub(super) fn push_front(&mut self, waiting: Waiting) {
        self.0.push_front(waiting);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the first of them stops waiting.
    pub(super) fn first_end(&self) -> Option<Instant> {
        self.0.iter().map(|waiting| waiting.order.until).min()
    }

    /// Takes out all for whom this holds, in their order.
    pub(super) fn take_if(&mut self, mut leaves: impl FnMut(&Waiting) -> bool) -> Vec<Waiting> {
        let (leaving, staying): (VecDeque<_>, VecDeque<_>) = self.0.drain(..).partition(|one| leaves(one));
        self.0 = staying;
        leaving.into()
    }

    /// Slots that are waited for and that new rooms could give.
    pub(super) fn demand(&self, terms: &Terms) -> u32 {
        let fits = self.0.iter().filter(|waiting| fits_new_room(&waiting.order.request.wishes, terms));
        fits.map(|waiting| waiting.order.request.count).fold(0, u32::saturating_add)
    }

    /// Claims rooms for as many as possible, in their order. Each room goes to the first whom it fits: who comes later and
    /// gets one gets what nobody before wanted. A request for several that cannot have all of them takes none, and those
    /// behind it get nothing that it would accept.
    pub(super) async fn claim(
        &mut self,
        engine: &Engine,
        scheduler: &SchedulerName,
    ) -> Result<Vec<Taken>, TableError> {
        if !guards::stands(Invariant::FirstCome) {
            self.0.make_contiguous().reverse();
        }
        let mut taken = Vec::new();
        let mut held_back: Vec<Vec<Wish>> = Vec::new();
        let mut next = 0;
        while next < self.0.len() {
            let may_try = |waiting: &Waiting| {
                !held_back.iter().any(|wishes| overlap(wishes, &waiting.order.request.wishes))
            };
            if !may_try(&self.0[next]) {
                next += 1;
                continue;
            }
            // Requests for one room each are claimed together.
            let is_single = |waiting: &&Waiting| waiting.order.request.count == 1 && may_try(waiting);
            let together = self.0.iter().skip(next).take_while(is_single).count().max(1);
            let answers = hold(engine, scheduler, self.0.iter().skip(next).take(together)).await?;
            for answer in answers {
                match answer {
                    Some(rooms) => {
                        let Some(waiting) = self.0.remove(next) else { continue };
                        taken.push(Taken { waiting, rooms });
                    }
                    None => {
                        let request = &self.0[next].order.request;
                        if request.count > 1 {
                            held_back.push(request.wishes.clone());
                        }
                        next += 1;
                    }
                }
            }
        }
        Ok(taken)
    }
}

async fn hold<'a>(
    engine: &Engine,
    scheduler: &SchedulerName,
    waiting: impl Iterator<Item = &'a Waiting>,
) -> Result<Vec<Option<Vec<HeldRoom>>>, TableError> {
    let now = engine.now();
    let heard_since = now.checked_sub(engine.settings.room_ping_timeout.as_duration()).unwrap_or(now);
    let ids = |waiting: &'a Waiting| {
        let ids = (0..waiting.order.request.count).map(|_| engine.ports.random.allocation_id(now));
        (waiting, ids.collect::<Vec<AllocationId>>())
    };
    let waiting: Vec<_> = waiting.map(ids).collect();
    let mut requests = Vec::with_capacity(waiting.len());
    for (waiting, allocations) in &waiting {
        let request = &waiting.order.request;
        requests.push(HoldRequest {
            scheduler,
            allocations,
            wishes: &request.wishes,
            metadata: request.metadata.as_ref(),
            now,
            expires_at: after(as_stored(now), engine.hold_for(request)),
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
