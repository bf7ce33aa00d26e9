//! Schedulers and their owners.

use maestro_core::operation::OperationId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{
    NewScheduler, Refusal, SchedulerRecord, SchedulerState, SchedulerUpdate, VersionRecord,
};

use super::state::{Scheduler, State};

impl State {
    pub(super) fn scheduler(&self, name: &SchedulerName) -> Option<SchedulerRecord> {
        let Scheduler { state, active_version, fleet_size, created_at, last_shrunk_at, rollout, revision } =
            self.schedulers.get(name)?.clone();
        let version = self.versions.get(&(name.clone(), active_version))?;
        Some(SchedulerRecord {
            name: name.clone(),
            state,
            active_version,
            recipe: version.recipe.clone(),
            fleet_size,
            created_at,
            version_created_at: version.created_at,
            last_shrunk_at,
            rollout,
            revision,
        })
    }

    pub(super) fn schedulers(&self) -> Vec<SchedulerRecord> {
        let names = self.schedulers.iter().map(|(name, _)| name);
        names.filter_map(|name| self.scheduler(name)).collect()
    }

    pub(super) fn create_scheduler(&mut self, new: NewScheduler) -> Result<(), Refusal> {
        let NewScheduler { recipe, version, version_status, at } = new;
        let name = recipe.name.clone();
        if self.schedulers.contains(&name) {
            return Err(Refusal::SchedulerExists(name));
        }
        let scheduler = Scheduler {
            state: SchedulerState::Creating,
            active_version: version,
            fleet_size: recipe.rooms_replicas,
            created_at: at,
            last_shrunk_at: None,
            rollout: None,
            revision: 0,
        };
        let record = VersionRecord {
            version,
            recipe,
            status: version_status,
            cause: String::new(),
            is_active: true,
            created_at: at,
        };
        self.schedulers.put(name.clone(), scheduler);
        self.version_numbers.put((name.clone(), version), ());
        self.versions.put((name, version), record);
        Ok(())
    }

    pub(super) fn update_scheduler(&mut self, update: SchedulerUpdate) -> Result<(), Refusal> {
        let row = self.existing(&update.scheduler)?;
        if row.revision != update.revision {
            return Err(Refusal::SchedulerChanged(update.scheduler));
        }
        if update.changes_nothing() {
            return Ok(());
        }
        let was_active = row.active_version;
        let SchedulerUpdate { scheduler, state, active_version, fleet_size, rollout, last_shrunk_at, .. } =
            update;
        if let Some(version) = active_version {
            self.activate(&scheduler, was_active, version)?;
        }
        self.schedulers.change(&scheduler, |row| {
            row.revision += 1;
            row.state = state.unwrap_or(row.state);
            row.active_version = active_version.unwrap_or(row.active_version);
            row.fleet_size = fleet_size.unwrap_or(row.fleet_size);
            row.last_shrunk_at = last_shrunk_at.or(row.last_shrunk_at);
            if let Some(rollout) = rollout {
                row.rollout = rollout;
            }
        });
        Ok(())
    }

    pub(super) fn adjust_fleet_size(
        &mut self,
        scheduler: SchedulerName,
        delta: i64,
        of: Option<OperationId>,
    ) -> Result<(), Refusal> {
        let is = self.existing(&scheduler)?.fleet_size;
        let part = |id| self.operation(&scheduler, id).map_or(0, |operation| operation.fleet_delta);
        if of.is_some_and(|id| part(id) != delta.saturating_neg()) {
            return Err(Refusal::SchedulerChanged(scheduler));
        }
        let to = i64::from(is).saturating_add(delta).clamp(0, u32::MAX.into());
        let to = u32::try_from(to).unwrap_or(u32::MAX);
        self.schedulers.change(&scheduler, |row| {
            row.fleet_size = to;
            row.revision += 1;
        });
        Ok(())
    }

    pub(super) fn delete_scheduler(
        &mut self,
        scheduler: SchedulerName,
        keep: OperationId,
    ) -> Result<(), Refusal> {
        self.existing(&scheduler)?;
        let rooms = self.live_room_ids(&scheduler).count();
        if rooms > 0 {
            let rooms = u32::try_from(rooms).unwrap_or(u32::MAX);
            return Err(Refusal::RoomsLeft { scheduler, rooms });
        }
        self.forget_all_versions(&scheduler);
        self.forget_all_ended_rooms(&scheduler);
        self.forget_all_allocations(&scheduler);
        for id in self.operation_ids(&scheduler) {
            if id != keep {
                self.forget_operation(id);
            }
        }
        self.owners.remove(&scheduler);
        self.forget_locks(&scheduler);
        self.forget_event_queues(&scheduler);
        self.schedulers.remove(&scheduler);
        Ok(())
    }

    pub(super) fn existing(&self, name: &SchedulerName) -> Result<&Scheduler, Refusal> {
        self.schedulers.get(name).ok_or_else(|| Refusal::SchedulerNotFound(name.clone()))
    }
}
