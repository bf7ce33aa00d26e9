//! Which rows a transaction locks before it reads anything, and how strongly.
//!
//! All lock in the same order: the scheduler, or the store for what belongs to none; then rooms by their ids; then queues of
//! events. Whoever decides something about a scheduler (its owner, and people's requests) does so alone, under the strong
//! lock of its row. Facts about single rooms, allocations and events need no more than that the scheduler stays, and lock
//! their rooms and queues: many are written at once.

use std::collections::BTreeSet;

use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{Change, IfEnded, NewEvent, Transaction};
use uuid::Uuid;

use crate::session::Statement;
use crate::value::values;
use crate::{outbox, regions};

/// In the order of their strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// It stays.
    KeyShare,
    /// It changes, and nobody else decides anything about it.
    NoKeyUpdate,
    /// It goes.
    Update,
}

pub(crate) struct RowLocks<'a> {
    strength: Strength,
    schedulers: BTreeSet<&'a str>,
    /// Something is written that belongs to no scheduler.
    store: bool,
    rooms: BTreeSet<&'a str>,
    /// Of which the rooms are not known before they are read.
    allocations: Vec<Uuid>,
    /// Queues to be locked, by id, and of schedulers.
    queues: BTreeSet<i64>,
    queues_of: BTreeSet<&'a str>,
    /// Forwarders that may not have a queue yet.
    forwarders: Vec<(&'a SchedulerName, &'a str)>,
}

impl<'a> RowLocks<'a> {
    pub(crate) fn of(transactions: &'a [Transaction]) -> Self {
        let mut locks = Self {
            strength: Strength::KeyShare,
            schedulers: BTreeSet::new(),
            store: false,
            rooms: BTreeSet::new(),
            allocations: Vec::new(),
            queues: BTreeSet::new(),
            queues_of: BTreeSet::new(),
            forwarders: Vec::new(),
        };
        for Transaction { label: _, id: _, scheduler, guard, changes } in transactions {
            locks.store |= scheduler.is_none();
            locks.schedulers.extend(scheduler.as_ref().map(SchedulerName::as_str));
            if let Some(guard) = guard {
                locks.decide(&guard.scheduler);
            }
            changes.iter().for_each(|change| locks.add(change));
        }
        locks
    }

    pub(crate) fn statements(&self) -> Vec<Statement<'a>> {
        let mut statements = Vec::new();
        if self.store {
            statements.push(regions::lock_store());
        }
        if !self.schedulers.is_empty() {
            let sql = match self.strength {
                Strength::KeyShare => {
                    "SELECT name FROM schedulers WHERE name = ANY ($1) ORDER BY name FOR KEY SHARE"
                }
                Strength::NoKeyUpdate => {
                    "SELECT name FROM schedulers WHERE name = ANY ($1) ORDER BY name FOR NO KEY UPDATE"
                }
                Strength::Update => {
                    "SELECT name FROM schedulers WHERE name = ANY ($1) ORDER BY name FOR UPDATE"
                }
            };
            statements
                .push(Statement::new(sql, values![self.schedulers.iter().copied().collect::<Vec<_>>()]));
        }
        if !self.rooms.is_empty() || !self.allocations.is_empty() {
            let sql = "SELECT room FROM room_claims WHERE room IN (
                 SELECT unnest($1) UNION SELECT room FROM allocations WHERE scheduler = ANY ($2) AND id = ANY ($3))
                 ORDER BY room FOR NO KEY UPDATE";
            let rooms: Vec<_> = self.rooms.iter().copied().collect();
            let schedulers: Vec<_> = self.schedulers.iter().copied().collect();
            statements.push(Statement::new(sql, values![rooms, schedulers, self.allocations.clone()]));
        }
        if !self.forwarders.is_empty() {
            statements.push(outbox::make_queues(&self.forwarders));
        }
        if !self.queues.is_empty() || !self.queues_of.is_empty() {
            let (ids, schedulers) = (&self.queues, &self.queues_of);
            let (ids, schedulers) = (ids.iter().copied().collect(), schedulers.iter().copied().collect());
            statements.push(outbox::lock_queues(ids, schedulers));
        }
        statements
    }

    fn stay(&mut self, scheduler: &'a SchedulerName) {
        self.schedulers.insert(scheduler.as_str());
    }

    fn decide(&mut self, scheduler: &'a SchedulerName) {
        self.stay(scheduler);
        self.strengthen(Strength::NoKeyUpdate);
    }

    fn strengthen(&mut self, strength: Strength) {
        self.strength = self.strength.max(strength);
    }

    fn add(&mut self, change: &'a Change) {
        match change {
            // Nothing is there yet that could be locked.
            Change::CreateScheduler(_) => {}
            Change::DeleteScheduler { scheduler, .. } => {
                self.stay(scheduler);
                self.strengthen(Strength::Update);
            }
            Change::UpdateScheduler(update) => self.decide(&update.scheduler),
            Change::Enqueue(new) => self.decide(&new.scheduler),
            Change::RecordNoAction(new) => self.decide(&new.scheduler),
            Change::TakeLock(new) => self.decide(&new.scheduler),
            Change::IntendRoom(new) => self.decide(&new.scheduler),
            Change::ForgetAllocations(forget) => self.decide(&forget.scheduler),
            Change::AdjustFleetSize { scheduler, .. }
            | Change::SetVersionStatus { scheduler, .. }
            | Change::InsertVersion { scheduler, .. }
            | Change::DeleteVersion { scheduler, .. }
            | Change::ForgetFleetDeltas { scheduler, .. }
            | Change::AwaitLock { scheduler, .. }
            | Change::StopAwaiting { scheduler, .. }
            | Change::ReleaseLock { scheduler, .. }
            | Change::RevokeLock { scheduler, .. } => self.decide(scheduler),
            // Its scheduler is the transaction's.
            Change::StartOperation { .. }
            | Change::UpdateOperation(_)
            | Change::RollBack { .. }
            | Change::EndOperation { .. }
            | Change::CancelPending { .. }
            | Change::RequestCancel { .. } => self.strengthen(Strength::NoKeyUpdate),
            Change::ForgetOperations { scheduler: Some(scheduler), .. } => self.decide(scheduler),
            Change::ForgetOperations { scheduler: None, .. }
            | Change::ForgetNoAction { .. }
            | Change::SetRegion { .. } => self.store = true,
            Change::IntendStop { scheduler, room, .. } => {
                self.decide(scheduler);
                self.rooms.insert(room.as_str());
            }
            Change::ForgetRooms { scheduler, rooms } => {
                self.decide(scheduler);
                self.rooms.extend(rooms.iter().map(|room| room.as_str()));
            }
            Change::RoomStarted { scheduler, room, .. }
            | Change::EndRoom { scheduler, room, .. }
            | Change::SpendClaim { scheduler, room, .. } => {
                self.stay(scheduler);
                self.rooms.insert(room.as_str());
            }
            Change::Allocate(new) => {
                self.stay(&new.scheduler);
                self.rooms.insert(new.room.as_str());
            }
            Change::EndAllocation { scheduler, allocation, .. }
            | Change::WithdrawAllocation { scheduler, allocation, .. } => {
                self.stay(scheduler);
                self.allocations.push(Uuid::from_bytes(*allocation.as_bytes()));
            }
            Change::QueueEvent(new) => self.add_event(new),
            Change::EventsDelivered { scheduler, queue, .. }
            | Change::EventFailed { scheduler, queue, .. }
            | Change::EventsDead { scheduler, queue, .. } => {
                self.stay(scheduler);
                self.queues.insert(queue.0);
            }
            Change::ReplayEvents { scheduler, .. }
            | Change::ForgetDeadEvents { scheduler, .. }
            | Change::OrphanEvents { scheduler, .. } => {
                self.stay(scheduler);
                self.queues_of.insert(scheduler.as_str());
            }
        }
    }

    fn add_event(&mut self, new: &'a NewEvent) {
        self.stay(&new.scheduler);
        match new.if_ended {
            IfEnded::Queue => {}
            IfEnded::Skip | IfEnded::Refuse => {
                self.rooms.insert(new.room.as_str());
            }
        }
        self.queues_of.insert(new.scheduler.as_str());
        self.forwarders.push((&new.scheduler, new.forwarder.as_str()));
    }
}
