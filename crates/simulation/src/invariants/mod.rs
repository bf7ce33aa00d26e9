//! Watches a world from outside: after every write, claim and reading it compares what is there with what it remembers,
//! and names the [`Invariant`] that does not hold.
//!
//! It looks at the raw store, not at what an engine was told, and adds up numbers by itself: none of the engine's plans
//! are asked. An engine may decide on what it read a moment ago, so a decision is judged by what its node could have
//! seen, and only what is wrong by all of that is a violation.

mod allocations;
mod caps;
mod circles;
mod claims;
mod effects;
mod events;
mod fleet;
mod memory;
mod plans;
mod regions;
mod rest;
mod tables;
mod work;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use maestro_core::invariant::{Invariant, InvariantViolation, renewed_stays, token_grew};
use maestro_core::operation::{OperationId, Token};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::Settings;
use maestro_engine::ports::room_table::{Claim, RoomView};
use maestro_engine::ports::store::{OwnershipRecord, Store, Transaction};
use parking_lot::Mutex;

use crate::host::Host;
use crate::trace::Trace;

pub(crate) use allocations::Caller;
pub(crate) use events::MARK;
pub(crate) use work::{Subject, subject};

use allocations::Lines;
use circles::Circles;
use events::KnownEvents;
use memory::{Known, SeenRoom};
use regions::KnownRegions;
use tables::Heard;

/// What is remembered of violations; a world that is this wrong needs no longer list.
const VIOLATIONS_MAX: usize = 50;

/// Cheap to clone; all clones share what they have seen.
#[derive(Clone)]
pub struct Inspector {
    trace: Trace,
    /// What really runs.
    hosts: Arc<[Arc<Host>]>,
    /// For how long it is tried to deliver an event.
    events_kept: Millis,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    schedulers: BTreeMap<SchedulerName, Known>,
    /// Every operation that was ever enqueued, also those of schedulers that are gone.
    enqueued: BTreeMap<OperationId, SchedulerName>,
    /// What people were told will be done.
    accepted: BTreeMap<OperationId, SchedulerName>,
    /// The last owner's, also of schedulers that are gone.
    tokens: BTreeMap<SchedulerName, (String, Token)>,
    regions: KnownRegions,
    circles: Circles,
    lines: Lines,
    events: KnownEvents,
    heard: Heard,
    /// Rooms whose end was written.
    ended: BTreeSet<RoomId>,
    violations: Vec<InvariantViolation>,
}

impl Inspector {
    pub fn new(trace: Trace) -> Self {
        Self::of_hosts(trace, Vec::new(), Settings::default().events_kept)
    }

    /// One that also sees what really runs.
    pub(crate) fn of_hosts(trace: Trace, hosts: Vec<Arc<Host>>, events_kept: Millis) -> Self {
        Self { trace, hosts: hosts.into(), events_kept, state: Arc::default() }
    }

    /// After a successful commit of the engine that calls itself `node` in leases. `before` is who owned the scheduler
    /// when it was made; see [`Self::scheduler_of`].
    pub async fn committed(
        &self,
        node: &str,
        transaction: &Transaction,
        before: Option<&OwnershipRecord>,
        store: &dyn Store,
    ) {
        self.judge_regions(transaction, store).await;
        self.judge_observed_ends(transaction, store).await;
        let Some(scheduler) = self.scheduler_of(transaction) else {
            return;
        };
        let is_owners = work::is_owners(transaction);
        if is_owners {
            self.judge_owner(node, transaction, &scheduler, before, store).await;
        }
        let found = self.state.lock().remember(&scheduler, transaction, self.trace.elapsed());
        self.note_all(found);
        let circle = self.state.lock().circles.note(transaction, self.trace.elapsed());
        self.note_all(circle);
        self.refresh_record(&scheduler, transaction, store).await;
        self.judge_work(&scheduler, transaction, store).await;
        self.judge_effects(&scheduler, transaction, store).await;
        self.judge_allocations(transaction, store).await;
        self.judge_events(&scheduler, transaction, store).await;
        self.note_all(caps::overstepped(&scheduler, transaction, store).await.unwrap_or_default());
        self.judge_plan(node, &scheduler, transaction, store).await;
        if is_owners && !work::is_beside_steps(transaction) {
            self.state.lock().known(&scheduler).step_ended(node, transaction);
        }
    }

    /// When the node becomes the owner of the scheduler, at the store's time. `before` is who owned it until then.
    pub fn owned(
        &self,
        node: &str,
        scheduler: &SchedulerName,
        token: Token,
        before: Option<&OwnershipRecord>,
        now: Timestamp,
    ) {
        let another = before.filter(|ownership| ownership.owner != node);
        self.note_all(renewed_stays(another.map(|last| (last.owner.as_str(), last.expires_at)), now));
        let last = self.state.lock().tokens.insert(scheduler.clone(), (node.to_owned(), token));
        let last = last.filter(|last| *last != (node.to_owned(), token));
        self.note_all(token_grew(last.map(|(_, token)| token), token));
    }

    /// After the node has read the rooms of the scheduler from the table.
    pub fn table_read(&self, node: &str, scheduler: &SchedulerName, views: &[RoomView]) {
        let seen = views.iter().map(SeenRoom::of).collect();
        let at = self.trace.elapsed();
        self.state.lock().known(scheduler).node(node).read(seen, at);
    }

    /// After the node has taken rooms out of service.
    pub async fn claimed(
        &self,
        node: &str,
        claim: &Claim<'_>,
        claimed: &[RoomId],
        at: Timestamp,
        store: &dyn Store,
    ) {
        self.judge_claim(node, claim, claimed, at, store).await;
        self.state.lock().known(claim.scheduler).node(node).offered.extend(claim.candidates.iter().cloned());
    }

    /// A person was told that this operation will be carried out.
    pub fn accepted(&self, scheduler: &str, operation: OperationId) {
        if let Ok(scheduler) = SchedulerName::parse(scheduler) {
            self.state.lock().accepted.insert(operation, scheduler);
        }
    }

    /// The bound passed, and the world did not come to rest. What is still at work is named as well.
    pub async fn not_converged(&self, why: &str) {
        let left = self.state.lock().left_in_progress();
        self.note_all(left);
        self.note_all([InvariantViolation::new(Invariant::Converges, why)]);
    }

    /// All that did not hold, in the order in which it was found: `invariant-name: what happened`.
    pub fn violations(&self) -> Vec<String> {
        self.state.lock().violations.iter().map(ToString::to_string).collect()
    }

    /// Which scheduler a transaction is about, also one without a guard that only names an operation.
    pub fn scheduler_of(&self, transaction: &Transaction) -> Option<SchedulerName> {
        if let Some(guard) = &transaction.guard {
            return Some(guard.scheduler.clone());
        }
        let state = self.state.lock();
        transaction.changes.iter().find_map(|change| match subject(change)? {
            Subject::Scheduler(name) => Some(name.clone()),
            Subject::Operation(id) => state.enqueued.get(&id).cloned(),
        })
    }

    fn note_all(&self, violations: impl IntoIterator<Item = InvariantViolation>) {
        for violation in violations {
            let mut state = self.state.lock();
            if state.violations.len() < VIOLATIONS_MAX && !state.violations.contains(&violation) {
                self.trace.note(format_args!("violation of {violation}"));
                state.violations.push(violation);
            }
        }
    }
}

impl State {
    fn known(&mut self, scheduler: &SchedulerName) -> &mut Known {
        self.schedulers.entry(scheduler.clone()).or_default()
    }

    fn forget(&mut self, scheduler: &SchedulerName) -> Known {
        self.schedulers.remove(scheduler).unwrap_or_default()
    }
}
