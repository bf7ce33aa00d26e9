//! Explanations: what an operation waits for, who works on it, what will happen next, and which ones are stuck.

use std::collections::BTreeMap;

use maestro_core::operation::explain::{Explanation, Scene, explain};
use maestro_core::operation::{Lease, Operation, OperationId};
use maestro_core::plan::SilentRooms;
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp, after};

use crate::ports::room_table::OrIfLost;
use crate::ports::store::{Intent, StoreError};
use crate::{Engine, Result};

/// An operation, and why it is where it is.
#[derive(Debug, Clone)]
pub struct ExplainedOperation {
    pub operation: Operation,
    /// Who owns its scheduler.
    pub ownership: Option<Lease>,
    pub explanation: Explanation,
    pub seen_at: Timestamp,
}

impl Engine {
    pub async fn explain_operation(&self, scheduler: &str, id: &str) -> Result<ExplainedOperation> {
        let seen = self.operation(scheduler, id).await?.operation;
        let scene = self.scene(&seen.scheduler).await?;
        // As it is together with the others; one that has ended is not among them.
        let unfinished = scene.unfinished.iter().find(|operation| operation.id == seen.id).cloned();
        match unfinished {
            Some(operation) => Ok(explained(&scene, operation)),
            None => Ok(explained(&scene, self.operation(scheduler, id).await?.operation)),
        }
    }

    /// Those that have not moved for longer than they should.
    pub async fn stuck_operations(&self, scheduler: &str) -> Result<Vec<ExplainedOperation>> {
        let name = self.scheduler_name(scheduler).await?;
        let scene = self.scene(&name).await?;
        let explained = scene.unfinished.iter().cloned().map(|operation| explained(&scene, operation));
        Ok(explained.filter(|explained| explained.explanation.stuck.is_some()).collect())
    }

    async fn scene(&self, scheduler: &SchedulerName) -> Result<Scene> {
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

    /// Rooms that were asked to go: by which operation, and when each is killed.
    async fn leaving(&self, scheduler: &SchedulerName) -> Result<Vec<(OperationId, Timestamp)>> {
        let mut graces: BTreeMap<Version, Millis> = BTreeMap::new();
        let mut leaving = Vec::new();
        for room in self.ports.store.live_rooms(scheduler).await? {
            let Intent::Stop(stop) = &room.intent else { continue };
            let grace = match graces.get(&room.version) {
                Some(grace) => *grace,
                None => self.grace_period(scheduler, room.version).await?,
            };
            graces.insert(room.version, grace);
            leaving.push((stop.operation, after(stop.at, grace)));
        }
        Ok(leaving)
    }

    async fn silent_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<SilentRooms>> {
        let views = self.ports.table.rooms(scheduler).await.or_if_lost(Vec::new())?;
        let silent = self.spared_rooms(scheduler, &views).await?;
        let spared = views.iter().filter_map(|view| Some((&view.region, silent.get(&view.id)?.until)));
        Ok(SilentRooms::by_region(spared))
    }

    /// How long a room of this version has to go by itself; nothing if the version is gone or cannot be read.
    async fn grace_period(&self, scheduler: &SchedulerName, version: Version) -> Result<Millis> {
        let found = match self.ports.store.version(scheduler, version).await {
            Err(StoreError::Unreadable(_)) => None,
            found => found?,
        };
        Ok(found.map_or(Millis(0), |found| found.recipe.spec.termination_grace_period.into()))
    }
}

fn explained(scene: &Scene, operation: Operation) -> ExplainedOperation {
    let explanation = explain(scene, &operation);
    ExplainedOperation { operation, ownership: scene.ownership.clone(), explanation, seen_at: scene.now }
}
