//! What happens is told to those who watch, in the ring of events.
//!
//! Changes of a room's status are told by the room table, with the change. What is durable is told here, after its commit:
//! [`Engine::commit`] and [`Engine::commit_each`] are the only ways to write, and what there is to tell is derived from the
//! changes themselves (`derive.rs`).
//!
//! Who can see a change and acts on it tells of that later: a commit takes its place in a [`line`] before it begins, and
//! events are told in the order of their places. So nobody hears of a start before its request, however the tasks of this
//! process are scheduled. A commit of which nobody knows whether it was carried out makes readers begin anew.

mod derive;
mod known;
mod line;
mod resolve;

use maestro_core::operation::Operation;
use maestro_core::region::Region;
use maestro_core::stream::{Happened, StreamEvent};
use parking_lot::Mutex;

use crate::Engine;
use crate::ports::store::{Refusal, StoreError, Transaction};
use crate::regions::Contact;

use derive::Draft;
use known::Known;
use line::{Line, Place};

#[derive(Default)]
pub(crate) struct Stream {
    line: Line,
    known: Mutex<Known>,
    /// Held by who tells: what is told first is in the ring first.
    telling: tokio::sync::Mutex<()>,
}

impl Stream {
    /// What the events of an operation say of it, for a change that does not.
    pub(crate) fn remember(&self, operation: &Operation) {
        let Operation { id, scheduler, definition, .. } = operation;
        self.known.lock().remember_operation(*id, scheduler, definition.name());
    }
}

impl Engine {
    /// The only way to write. Whoever watches is told what has changed.
    pub(crate) async fn commit(&self, transaction: Transaction) -> Result<(), StoreError> {
        let drafts = derive::drafts(&transaction, self.now());
        if drafts.is_empty() {
            return self.write(transaction).await;
        }
        let place = self.stream.line.take_place();
        let drafts = self.with_holds(drafts).await;
        let outcome = self.write(transaction).await;
        match &outcome {
            Ok(()) => self.resolve(place, drafts).await,
            Err(StoreError::Unknown { .. }) => place.lose(),
            Err(_) => place.tell(Vec::new()),
        }
        self.tell().await;
        outcome
    }

    /// The same for several, each accepted or refused by itself.
    pub(crate) async fn commit_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let place = self.stream.line.take_place();
        let now = self.now();
        let mut drafts = Vec::with_capacity(transactions.len());
        for transaction in &transactions {
            drafts.push(self.with_holds(derive::drafts(transaction, now)).await);
        }
        let outcome = self.write_each(transactions).await;
        match &outcome {
            Ok(outcomes) => {
                let accepted = outcomes.iter().zip(drafts).filter(|(outcome, _)| outcome.is_ok());
                let drafts = accepted.flat_map(|(_, drafts)| drafts).collect();
                self.resolve(place, drafts).await;
            }
            Err(StoreError::Unknown { .. }) => place.lose(),
            Err(_) => place.tell(Vec::new()),
        }
        self.tell().await;
        outcome
    }

    /// A region can be reached again, or cannot any more.
    pub(crate) async fn tell_contact(&self, region: &Region, contact: &Contact) {
        let (reachable, why) = match contact {
            Contact::Reachable { .. } => (true, ""),
            Contact::Unsettled { why } | Contact::Unreachable { why } => (false, why.as_str()),
        };
        let what = Happened::RegionReached { region: region.clone(), reachable, why: why.into() };
        let place = self.stream.line.take_place();
        place.tell(vec![StreamEvent { at: self.now(), scheduler: None, what }]);
        self.tell().await;
    }

    async fn resolve(&self, place: Place<'_>, drafts: Vec<Draft>) {
        match self.events_of(drafts).await {
            Ok(events) => place.tell(events),
            Err(error) => {
                tracing::warn!(error = crate::with_sources(&error), "events are lost: readers begin anew");
                place.lose();
            }
        }
    }

    /// Tells what nobody before has still to tell.
    async fn tell(&self) {
        let _one_at_a_time = self.stream.telling.lock().await;
        let Some(ready) = self.stream.line.take_ready() else { return };
        match self.ports.table.append(ready.events, ready.after_loss).await {
            Ok(()) => self.stream.line.told(),
            // Lost, as the line remembers.
            Err(error) => tracing::warn!(%error, "events are lost: readers begin anew"),
        }
    }
}
