//! Versions of schedulers.

use std::ops::RangeInclusive;

use maestro_core::scheduler::{SchedulerName, Version, VersionStatus};
use maestro_engine::ports::store::{Refusal, VersionRecord};

use super::state::State;

impl State {
    pub(super) fn versions(&self, name: &SchedulerName) -> Vec<VersionRecord> {
        let versions = self.versions_of(name);
        versions.rev().map(|(_, record)| record.clone()).collect()
    }

    pub(super) fn version_numbers(&self, name: &SchedulerName) -> Vec<Version> {
        let numbers = self.version_numbers.range(all_of(name));
        numbers.map(|((_, version), ())| *version).collect()
    }

    fn versions_of(
        &self,
        name: &SchedulerName,
    ) -> impl DoubleEndedIterator<Item = (&(SchedulerName, Version), &VersionRecord)> {
        self.versions.range(all_of(name))
    }

    pub(super) fn insert_version(
        &mut self,
        scheduler: SchedulerName,
        record: VersionRecord,
    ) -> Result<(), Refusal> {
        self.existing(&scheduler)?;
        let version = record.version;
        let key = (scheduler, version);
        if self.version_numbers.contains(&key) {
            let (scheduler, version) = key;
            return Err(Refusal::VersionExists { scheduler, version });
        }
        self.version_numbers.put(key.clone(), ());
        self.versions.put(key, record);
        Ok(())
    }

    /// Its number is not given again.
    pub(super) fn delete_version(
        &mut self,
        scheduler: SchedulerName,
        version: Version,
    ) -> Result<(), Refusal> {
        let key = (scheduler, version);
        if self.versions.get(&key).is_some_and(|record| record.is_active) {
            let (scheduler, version) = key;
            return Err(Refusal::VersionIsActive { scheduler, version });
        }
        self.versions.remove(&key);
        Ok(())
    }

    pub(super) fn set_version_status(
        &mut self,
        scheduler: SchedulerName,
        version: Version,
        status: VersionStatus,
        cause: String,
    ) -> Result<(), Refusal> {
        self.existing(&scheduler)?;
        let key = (scheduler, version);
        let changed = self.versions.change(&key, |record| {
            record.status = status;
            record.cause = cause;
        });
        let (scheduler, version) = key;
        changed.ok_or(Refusal::VersionNotFound { scheduler, version })
    }

    pub(super) fn activate(
        &mut self,
        scheduler: &SchedulerName,
        from: Version,
        to: Version,
    ) -> Result<(), Refusal> {
        if !self.versions.contains(&(scheduler.clone(), to)) {
            return Err(Refusal::VersionNotFound { scheduler: scheduler.clone(), version: to });
        }
        // In this order, so that `to` is active also if it was before.
        for (version, is_active) in [(from, false), (to, true)] {
            let key = (scheduler.clone(), version);
            self.versions.change(&key, |record| record.is_active = is_active);
        }
        Ok(())
    }

    pub(super) fn forget_all_versions(&mut self, scheduler: &SchedulerName) {
        for version in self.version_numbers(scheduler) {
            let key = (scheduler.clone(), version);
            self.versions.remove(&key);
            self.version_numbers.remove(&key);
        }
    }
}

fn all_of(scheduler: &SchedulerName) -> RangeInclusive<(SchedulerName, Version)> {
    let number = |number| Version { major: number, minor: number, patch: number };
    (scheduler.clone(), number(0))..=(scheduler.clone(), number(u32::MAX))
}
