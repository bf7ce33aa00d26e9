//! Schedulers of another installation, with the versions that they had there.

use std::collections::BTreeSet;
use std::sync::Arc;

use maestro_core::operation::{Definition, OperationId, Origin};
use maestro_core::scheduler::{Recipe, SchedulerName, Version, VersionStatus};
use maestro_core::time::Timestamp;
use maestro_core::violation::{Violation, Violations};

use crate::ports::store::{Change, NewScheduler, Refusal, StoreError, Transaction};
use crate::{Engine, Error, Result};

#[derive(Debug, Clone)]
pub struct ImportedScheduler {
    pub name: String,
    pub active: Version,
    /// `None`: as the active version says.
    pub fleet_size: Option<u32>,
    pub versions: Vec<ImportedVersion>,
}

#[derive(Debug, Clone)]
pub struct ImportedVersion {
    pub version: Version,
    pub status: VersionStatus,
    pub cause: String,
    pub created_at: Option<Timestamp>,
    pub recipe: Arc<Recipe>,
}

impl Engine {
    /// Stores the scheduler with all of its versions and enqueues the operation that makes it. It is as new as one that was
    /// submitted here: it has no rooms, and no operations from elsewhere.
    pub async fn import_scheduler(&self, imported: ImportedScheduler, user: &str) -> Result<OperationId> {
        let mut violations = violations(&imported);
        let ImportedScheduler { name: _, active, fleet_size, mut versions } = imported;
        let index = versions.iter().position(|version| version.version == active);
        let Some(index) = index.filter(|_| violations.is_empty()) else {
            if index.is_none() {
                let reason = format!("{active} is not among the versions");
                violations.push(Violation::new("activeVersion", reason));
            }
            return Err(Violations(violations).into());
        };
        let recipe = versions.swap_remove(index).recipe;
        let fleet_size = fleet_size.unwrap_or(recipe.rooms_replicas);
        self.check_recipe(&recipe, fleet_size, None)?;
        let _admitted = self.admit_scheduler().await?;
        let name = recipe.name.clone();
        let definition = Definition::CreateScheduler { recipe: Box::new((*recipe).clone()) };
        let mut operation = self.new_operation(&name, definition, Origin::Person(user.into()));
        operation.reason = format!("imported by {user}");
        let id = operation.id;
        let mut changes = self.creation(&name, active, &recipe, fleet_size);
        changes.extend(versions.into_iter().flat_map(|version| self.earlier_version(&name, version)));
        changes.push(Change::Enqueue(operation));
        match self.commit(Transaction::new("request import", &name, changes)).await {
            Err(StoreError::Refused(Refusal::SchedulerExists(_))) => {
                let text = format!("error importing scheduler {name}: name already exists");
                return Err(Error::AlreadyExists(text));
            }
            other => other?,
        }
        self.ports.wake.queue_changed(&name);
        tracing::info!(scheduler_name = %name, user, "scheduler imported");
        Ok(id)
    }

    fn creation(
        &self,
        scheduler: &SchedulerName,
        version: Version,
        recipe: &Arc<Recipe>,
        fleet_size: u32,
    ) -> Vec<Change> {
        let status = VersionStatus::Validated;
        let new = NewScheduler { recipe: recipe.clone(), version, version_status: status, at: self.now() };
        let mut changes = vec![Change::CreateScheduler(new)];
        let delta = i64::from(fleet_size) - i64::from(recipe.rooms_replicas);
        if delta != 0 {
            changes.push(Change::AdjustFleetSize { scheduler: scheduler.clone(), delta, of: None });
        }
        changes
    }

    fn earlier_version(&self, scheduler: &SchedulerName, imported: ImportedVersion) -> Vec<Change> {
        let ImportedVersion { version, status, cause, created_at, recipe } = imported;
        let at = created_at.unwrap_or_else(|| self.now());
        let mut changes =
            vec![Change::InsertVersion { scheduler: scheduler.clone(), recipe, version, status, at }];
        if !cause.is_empty() {
            changes.push(Change::SetVersionStatus { scheduler: scheduler.clone(), version, status, cause });
        }
        changes
    }
}

/// What its versions mean together, but for the active one that is missing.
fn violations(imported: &ImportedScheduler) -> Vec<Violation> {
    let ImportedScheduler { name, active, fleet_size: _, versions } = imported;
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let mut wrong = |field: &str, reason: String| {
            violations.push(Violation::new(format!("versions[{index}].{field}"), reason));
        };
        if !seen.insert(version.version) {
            wrong("version", format!("{} is there twice", version.version));
        }
        if version.recipe.name.as_str() != name {
            let other = &version.recipe.name;
            wrong("recipe.name", format!("{other} is not the scheduler's name, which is {name}"));
        }
        match version.status {
            VersionStatus::Validating | VersionStatus::Rolling if version.version != *active => {
                wrong("status", format!("{} is not over; leave the version out", version.status));
            }
            VersionStatus::Validating
            | VersionStatus::Validated
            | VersionStatus::Rolling
            | VersionStatus::Deployed
            | VersionStatus::Superseded
            | VersionStatus::Canceled
            | VersionStatus::Error => {}
        }
    }
    violations
}
