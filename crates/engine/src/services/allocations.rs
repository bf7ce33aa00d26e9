//! Rooms for matchmakers: ask for one, see who has which, give one back.

use std::sync::Arc;

use maestro_core::allocation::{
    AllocationId, AllocationRequest, AllocationState, COUNT_MAX, HoldEnd, HoldStage, METADATA_MAX_BYTES,
    REQUEST_ID_MAX_BYTES, TTL_MAX, TTL_MIN, WAIT_MAX, WISHES_MAX,
};
use maestro_core::room::RoomId;
use maestro_core::time::{Millis, Timestamp};
use maestro_core::violation::{Violation, Violations};
use tokio::sync::oneshot;

use crate::allocations::{AllocationView, WaitingRequest};
use crate::ports::room_table::{HoldKey, OrIfLost};
use crate::ports::store::{
    AllocationPageRequest, AllocationRecord, Change, Refusal, StoreError, Transaction,
};
use crate::{Engine, Error, Result};

use super::known_name;

/// A page of a list of allocations.
#[derive(Debug, Clone)]
pub struct AllocationList {
    pub total: u32,
    pub allocations: Vec<AllocationView>,
}

/// An allocation as its room sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedMatch {
    pub id: AllocationId,
    pub expires_at: Timestamp,
    /// A JSON object.
    pub metadata: Option<Arc<str>>,
}

/// The answer that a caller waits for. If the caller hangs up when the answer is already on its way, and cannot ask for it
/// again, the rooms are taken back.
struct PendingAnswer<'a> {
    engine: &'a Engine,
    may_be_repeated: bool,
    receiver: oneshot::Receiver<Result<Vec<AllocationView>>>,
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        self.receiver.close();
        match self.receiver.try_recv() {
            Ok(Ok(allocated)) if !self.may_be_repeated => self.engine.allocations.take_back(allocated),
            Ok(Ok(_) | Err(_)) | Err(_) => {}
        }
    }
}

impl Engine {
    /// Hands rooms to a matchmaker: as many as it asks for, or none. What it answers is durable.
    pub async fn allocate(&self, scheduler: &str, request: AllocationRequest) -> Result<Vec<AllocationView>> {
        check(&request)?;
        let scheduler = known_name(scheduler)?;
        let may_be_repeated = request.request_id.is_some();
        let (reply, receiver) = oneshot::channel();
        let mut answer = PendingAnswer { engine: self, may_be_repeated, receiver };
        let submitted = self.allocations.submit(WaitingRequest::new(scheduler.clone(), request, reply));
        let answered = match submitted {
            Ok(()) => (&mut answer.receiver).await.unwrap_or_else(|_| {
                let what = "the server stops; the room may or may not have been handed over".to_owned();
                Err(Error::Unavailable { what, source: None })
            }),
            Err(refused) => Err(refused),
        };
        self.metrics.allocation_answered(&scheduler, &answered);
        answered
    }

    pub async fn allocation(&self, scheduler: &str, id: &str) -> Result<AllocationView> {
        self.allocation_record(scheduler, id).await.map(AllocationView::from)
    }

    /// Newest first.
    pub async fn allocations(&self, scheduler: &str, page: AllocationPageRequest) -> Result<AllocationList> {
        let name = self.scheduler_name(scheduler).await?;
        let page = self.ports.store.allocations(&name, page).await?;
        let allocations = page.allocations.into_iter().map(AllocationView::from).collect();
        Ok(AllocationList { total: page.total, allocations })
    }

    /// Returns a room whose match has not begun. Returned twice, it stays returned; an allocation that is over otherwise
    /// is refused.
    pub async fn return_allocation(&self, scheduler: &str, id: &str) -> Result {
        let record = self.allocation_record(scheduler, id).await?;
        if record.state != AllocationState::Held {
            return already(&record.id, record.state);
        }
        let key = record.key();
        // Marked before it is written: a match that begins meanwhile comes too late for this allocation. If the table has
        // lost the hold, only the row counts.
        let end = self.ports.table.mark(&key, HoldEnd::Returned).await.or_if_lost(None)?;
        let end = end.unwrap_or(HoldEnd::Returned);
        if end != HoldEnd::Returned {
            self.allocations.hold_ended();
            return already(&record.id, end.into());
        }
        self.end_returned(&record.id, key).await
    }

    async fn end_returned(&self, id: &AllocationId, key: HoldKey) -> Result {
        let change = Change::EndAllocation {
            scheduler: key.scheduler.clone(),
            allocation: *id,
            state: AllocationState::Returned,
            cause: String::new(),
            at: self.now(),
        };
        match self.commit(Transaction::new("return allocation", &key.scheduler, vec![change])).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::AllocationOver { allocation, is })) => already(&allocation, is)?,
            Err(error) => return Err(error.into()),
        }
        let scheduler = key.scheduler.clone();
        self.ports.table.release(&[key]).await?;
        self.ports.wake.room_changed(scheduler.as_str());
        self.allocations.room_freed();
        Ok(())
    }

    /// What a room waits for: its allocations that are certain and whose matches have not begun.
    pub async fn expected_matches(&self, scheduler: &str, room: &str) -> Result<Vec<ExpectedMatch>> {
        let (name, room) = (known_name(scheduler)?, RoomId::new(room));
        let holds = self.ports.table.holds_of(&name, &room).await.or_if_lost(Vec::new())?;
        let firm = holds.into_iter().filter(|hold| hold.stage == HoldStage::Firm);
        let expected = firm.map(|hold| ExpectedMatch {
            id: hold.allocation,
            expires_at: hold.expires_at,
            metadata: hold.metadata,
        });
        Ok(expected.collect())
    }

    async fn allocation_record(&self, scheduler: &str, id: &str) -> Result<AllocationRecord> {
        let name = self.scheduler_name(scheduler).await?;
        let missing = || Error::NotFound(format!("allocation {id} not found in scheduler {scheduler}"));
        let parsed = AllocationId::parse(id).ok_or_else(missing)?;
        self.ports.store.allocation(&name, parsed).await?.ok_or_else(missing)
    }

    /// How long a room is held.
    pub(crate) fn hold_for(&self, request: &AllocationRequest) -> Millis {
        request.ttl.unwrap_or(self.settings.room_allocation_ttl)
    }
}

fn already(id: &AllocationId, state: AllocationState) -> Result {
    match state {
        AllocationState::Returned => Ok(()),
        AllocationState::Begun => {
            Err(Error::Conflict(format!("allocation {id} cannot be returned: its match has begun")))
        }
        AllocationState::Held | AllocationState::Expired | AllocationState::Lost => {
            Err(Error::Conflict(format!("allocation {id} cannot be returned: it is {state}")))
        }
    }
}

fn check(request: &AllocationRequest) -> Result {
    let AllocationRequest { request_id, count, wishes, wait, ttl, metadata } = request;
    let mut violations = Vec::new();
    let mut demand = |holds: bool, field: &str, reason: String| {
        if !holds {
            violations.push(Violation::new(field, reason));
        }
    };
    demand(
        (1..=COUNT_MAX).contains(count),
        "count",
        format!("{count} rooms cannot be asked for at once; ask for 1 to {COUNT_MAX}"),
    );
    demand(
        wishes.len() <= WISHES_MAX,
        "wishes",
        format!("{} wishes are too many; write at most {WISHES_MAX}", wishes.len()),
    );
    demand(*wait <= WAIT_MAX, "waitMillis", format!("{} is too long; wait at most {}", wait.0, WAIT_MAX.0));
    if let Some(ttl) = ttl {
        demand(
            (TTL_MIN..=TTL_MAX).contains(ttl),
            "ttlMillis",
            format!("{} is not possible; hold a room for {} to {}", ttl.0, TTL_MIN.0, TTL_MAX.0),
        );
    }
    let metadata = metadata.as_ref().map_or(0, |metadata| metadata.len());
    demand(
        metadata <= METADATA_MAX_BYTES,
        "metadata",
        format!("{metadata} bytes are too many; write at most {METADATA_MAX_BYTES}"),
    );
    if let Some(id) = request_id {
        demand(
            (1..=REQUEST_ID_MAX_BYTES).contains(&id.len()),
            "requestId",
            format!("has {} bytes; write 1 to {REQUEST_ID_MAX_BYTES}", id.len()),
        );
    }
    match violations.is_empty() {
        true => Ok(()),
        false => Err(Violations(violations).into()),
    }
}
