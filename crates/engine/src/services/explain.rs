//! Explanations: what an operation waits for, who works on it, what will happen next, and which ones are stuck.

use std::collections::BTreeMap;

use maestro_core::lock::Locks;
use maestro_core::operation::explain::{Explanation, Snapshot, explain};
use maestro_core::operation::{Lease, Operation};
use maestro_core::plan::SilentRooms;
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp, after};

use crate::ports::store::{Intent, RoomRecord, StoreError};
use crate::{Engine, Error};

/// An operation, and why it is where it is.
#[derive(Debug, Clone)]
pub struct ExplainedOperation {
    pub operation: Operation,
    /// Who owns its scheduler.
    pub ownership: Option<Lease>,
    pub explanation: Explanation,
    pub seen_at: Timestamp,
}

/// What explanations of one scheduler's operations are made from.
struct Scene {
    now: Timestamp,
    unfinished: Vec<Operation>,
    locks: Locks,
    ownership: Option<Lease>,
    workers: usize,
    /// Rooms that were asked to go, and when each is killed.
    leaving: Vec<(RoomRecord, Timestamp)>,
    silent: Vec<SilentRooms>,
    sweep: Millis,
    /// Why the scheduler is left alone, if this build cannot read it or what it is to do.
    unreadable: Option<String>,
}

impl Engine {
    pub async fn explain_operation(&self, scheduler: &str, id: &str) -> Result<ExplainedOperation, Error> {
        let seen = self.operation(scheduler, id).await?.operation;
        let scene = self.scene(&seen.scheduler).await?;
        // As it is together with the others; one that has ended is not among them.
        let unfinished = scene.unfinished.iter().find(|operation| operation.id == seen.id).cloned();
        match unfinished {
            Some(operation) => Ok(scene.explain(operation)),
            None => Ok(scene.explain(self.operation(scheduler, id).await?.operation)),
        }
    }

    /// Those that have not moved for longer than they should.
    pub async fn stuck_operations(&self, scheduler: &str) -> Result<Vec<ExplainedOperation>, Error> {
        let name = self.scheduler_name(scheduler).await?;
        let scene = self.scene(&name).await?;
        let explained = scene.unfinished.iter().cloned().map(|operation| scene.explain(operation));
        Ok(explained.filter(|explained| explained.explanation.stuck.is_some()).collect())
    }

    async fn scene(&self, scheduler: &SchedulerName) -> Result<Scene, Error> {
        let store = &self.ports.store;
        let mut unreadable = match store.scheduler(scheduler).await {
            Err(StoreError::Unreadable(why)) => Some(why.to_string()),
            found => found.map(|_| None)?,
        };
        let unfinished = match store.unfinished(scheduler).await {
            Err(StoreError::Unreadable(why)) => {
                unreadable.get_or_insert(why.to_string());
                Vec::new()
            }
            unfinished => unfinished?,
        };
        let locks = store.locks(scheduler).await?;
        let workforce = store.workers().await?;
        let leaving = self.leaving(scheduler).await?;
        let silent = self.silent_rooms(scheduler).await?;
        let now = self.now();
        let ownership = workforce.ownerships.into_iter().find(|ownership| ownership.scheduler == *scheduler);
        Ok(Scene {
            now,
            unfinished,
            locks,
            ownership: ownership.map(|ownership| Lease {
                owner: ownership.owner,
                token: ownership.token,
                expires_at: ownership.expires_at,
            }),
            workers: workforce.workers.iter().filter(|worker| worker.expires_at > now).count(),
            leaving,
            silent,
            sweep: self.settings.sync_interval.into(),
            unreadable,
        })
    }

    async fn leaving(&self, scheduler: &SchedulerName) -> Result<Vec<(RoomRecord, Timestamp)>, Error> {
        let mut graces: BTreeMap<Version, Millis> = BTreeMap::new();
        let mut leaving = Vec::new();
        for room in self.ports.store.live_rooms(scheduler).await? {
            let Intent::Stop(stop) = &room.intent else { continue };
            let grace = match graces.get(&room.version) {
                Some(grace) => *grace,
                None => self.grace_period(scheduler, room.version).await?,
            };
            graces.insert(room.version, grace);
            let killed_at = after(stop.at, grace);
            leaving.push((room, killed_at));
        }
        Ok(leaving)
    }

    async fn silent_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<SilentRooms>, Error> {
        let views = self.ports.table.rooms(scheduler).await?;
        let silent = self.spared_rooms(scheduler, &views).await?;
        let spared = views.iter().filter_map(|view| Some((&view.region, silent.get(&view.id)?.until)));
        Ok(SilentRooms::by_region(spared))
    }

    /// How long a room of this version has to go by itself; nothing if the version is gone or cannot be read.
    async fn grace_period(&self, scheduler: &SchedulerName, version: Version) -> Result<Millis, Error> {
        let found = match self.ports.store.version(scheduler, version).await {
            Err(StoreError::Unreadable(_)) => None,
            found => found?,
        };
        Ok(found.map_or(Millis(0), |found| found.recipe.spec.termination_grace_period.into()))
    }
}

impl Scene {
    fn explain(&self, operation: Operation) -> ExplainedOperation {
        let asked_by_it = |room: &RoomRecord| match &room.intent {
            Intent::Stop(stop) => stop.operation == operation.id,
            Intent::Run => false,
        };
        let kills = self.leaving.iter().filter(|(room, _)| asked_by_it(room)).map(|(_, at)| *at);
        let explanation = explain(&Snapshot {
            now: self.now,
            operation: &operation,
            unfinished: &self.unfinished,
            locks: &self.locks,
            ownership: self.ownership.as_ref(),
            workers: self.workers,
            rooms_killed_at: kills.max(),
            silent: &self.silent,
            sweep: self.sweep,
            unreadable: self.unreadable.as_deref(),
        });
        ExplainedOperation { operation, ownership: self.ownership.clone(), explanation, seen_at: self.now }
    }
}
