//! Schedulers and their owners.

use maestro_core::operation::OperationId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{
    NewScheduler, Refusal, RolloutRecord, SchedulerRecord, SchedulerState, VersionRecord,
};

use super::state::{Scheduler, State};

impl State {
    pub(super) fn scheduler(&self, name: &SchedulerName) -> Option<SchedulerRecord> {
        let Scheduler { state, active_version, fleet_size, created_at, last_shrunk_at, rollout } =
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

    pub(super) fn set_state(
        &mut self,
        scheduler: SchedulerName,
        from: &[SchedulerState],
        to: SchedulerState,
    ) -> Result<(), Refusal> {
        let is = self.existing(&scheduler)?.state;
        if !from.contains(&is) {
            return Err(Refusal::WrongState { scheduler, is });
        }
        self.schedulers.change(&scheduler, |row| row.state = to);
        Ok(())
    }

    pub(super) fn set_fleet_size(
        &mut self,
        scheduler: SchedulerName,
        from: u32,
        to: u32,
    ) -> Result<(), Refusal> {
        let is = self.existing(&scheduler)?.fleet_size;
        if is != from {
            return Err(Refusal::FleetSizeChanged { scheduler, is });
        }
        self.schedulers.change(&scheduler, |row| row.fleet_size = to);
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
            return Err(Refusal::FleetSizeChanged { scheduler, is });
        }
        let to = i64::from(is).saturating_add(delta).clamp(0, u32::MAX.into());
        let to = u32::try_from(to).unwrap_or(u32::MAX);
        self.schedulers.change(&scheduler, |row| row.fleet_size = to);
        Ok(())
    }

    pub(super) fn set_rollout(
        &mut self,
        scheduler: SchedulerName,
        from: Option<&RolloutRecord>,
        to: Option<RolloutRecord>,
    ) -> Result<(), Refusal> {
        if self.existing(&scheduler)?.rollout.as_ref() != from {
            return Err(Refusal::RolloutChanged { scheduler });
        }
        self.schedulers.change(&scheduler, |row| row.rollout = to);
        Ok(())
    }

    pub(super) fn set_last_shrunk(
        &mut self,
        scheduler: &SchedulerName,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let changed = self.schedulers.change(scheduler, |row| row.last_shrunk_at = Some(at));
        changed.ok_or_else(|| Refusal::SchedulerNotFound(scheduler.clone()))
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
        for id in self.operation_ids(&scheduler) {
            if id != keep {
                self.forget_operation(id);
            }
        }
        self.owners.remove(&scheduler);
        self.forget_locks(&scheduler);
        self.schedulers.remove(&scheduler);
        Ok(())
    }

    pub(super) fn existing(&self, name: &SchedulerName) -> Result<&Scheduler, Refusal> {
        self.schedulers.get(name).ok_or_else(|| Refusal::SchedulerNotFound(name.clone()))
    }
}
