//! Versions and rollouts: submit, switch, pause, resume, cancel.

use std::sync::Arc;

use maestro_core::operation::{Definition, OperationId, Origin, SwitchVersion};
use maestro_core::rollout::RolloutEvent;
use maestro_core::scheduler::{Recipe, RecipeChange, Version, VersionStatus};
use maestro_core::violation::Violations;
use serde_json::Value;

use crate::operations::begin_version;
use crate::ports::store::{Change, Refusal, SchedulerRecord, StoreError, Transaction};
use crate::rollouts::RolloutWrite;
use crate::{Engine, Error, Result};

use super::{ATTEMPTS, changes_too_fast, known_name};

/// The numbers that a version would get which is submitted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextVersions {
    pub major: Version,
    pub minor: Version,
}

impl Engine {
    /// Enqueues the operation that tries the recipe and makes it a version.
    pub async fn create_version(&self, name: &str, recipe: Recipe, user: &str) -> Result<OperationId> {
        let record = self.scheduler_to_change(name).await?;
        let size = recipe.rooms_replicas;
        let definition = self.new_version(&record, recipe, size)?;
        let progress = begin_version(Some(record.fleet_size));
        let enqueued = self.enqueue_version_operation(&record, definition, progress, user, None).await;
        enqueued.map_err(|error| refused("cannot create new scheduler version", error))
    }

    /// The same for a recipe that is the active one but for a few changes. Should another version become active in
    /// between, the changes are made to that one: nobody's update is lost. `states_size`: `roomsReplicas` is among them;
    /// otherwise the fleet size stays as people made it.
    pub async fn patch_version(
        &self,
        name: &str,
        patch: impl Fn(&Recipe) -> Result<Recipe, Violations>,
        states_size: bool,
        user: &str,
    ) -> Result<OperationId> {
        for _ in 0..ATTEMPTS {
            let record = self.scheduler_to_change(name).await?;
            let recipe = patch(&record.recipe)?;
            let size = if states_size { recipe.rooms_replicas } else { record.fleet_size };
            let definition = self.new_version(&record, recipe, size)?;
            let progress = begin_version(states_size.then_some(record.fleet_size));
            let check = Some(Change::UpdateScheduler(record.update()));
            match self.enqueue_version_operation(&record, definition, progress, user, check).await {
                Err(StoreError::Refused(refusal)) if refusal.is_outdated() => {}
                enqueued => return enqueued.map_err(|error| refused("cannot patch scheduler", error)),
            }
        }
        Err(changes_too_fast(name))
    }

    /// `size`: the fleet size that it leads to.
    fn new_version(&self, record: &SchedulerRecord, recipe: Recipe, size: u32) -> Result<Definition> {
        if recipe.name != record.name {
            let text = format!("name: {} is not the scheduler's name, which is {}", recipe.name, record.name);
            return Err(Error::Invalid(text));
        }
        self.check_recipe(&recipe, size, Some(record))?;
        Ok(Definition::CreateVersion { recipe: Box::new(recipe) })
    }

    /// Makes a version that exists the active one.
    pub async fn switch_version(&self, name: &str, version: &str, user: &str) -> Result<OperationId> {
        if version.is_empty() {
            return Err(Error::Invalid(
                "version: is missing; name the version to switch to, such as v1.2.0".into(),
            ));
        }
        let record = self.scheduler(name).await?;
        let missing = || Error::NotFound(format!("scheduler {name} not found in version {version:?}"));
        let to = Version::parse(version).map_err(|_| missing())?;
        let found = self.ports.store.version(&record.name, to).await?.ok_or_else(missing)?;
        if found.status == VersionStatus::Validating {
            return Err(Error::Conflict(format!("version {to} is still being validated")));
        }
        self.check_recipe(&found.recipe, size_with(&record, &found.recipe), Some(&record))?;
        let definition = Definition::SwitchVersion(SwitchVersion { to, only_from: None });
        let enqueued = self.enqueue_version_operation(&record, definition, Value::Null, user, None).await;
        enqueued.map_err(|error| refused("cannot switch active version", error))
    }

    async fn scheduler_to_change(&self, name: &str) -> Result<SchedulerRecord> {
        let missing = || {
            let text = "no scheduler found, can not create new version for inexistent scheduler";
            Error::NotFound(format!("{text}: scheduler {name} not found"))
        };
        let scheduler = known_name(name).map_err(|_| missing())?;
        self.ports.store.scheduler(&scheduler).await?.ok_or_else(missing)
    }

    /// `check`: what has to hold for it.
    async fn enqueue_version_operation(
        &self,
        record: &SchedulerRecord,
        definition: Definition,
        progress: Value,
        user: &str,
        check: Option<Change>,
    ) -> Result<OperationId, StoreError> {
        let mut operation = self.new_operation(&record.name, definition, Origin::Person(user.into()));
        operation.only_version_operation = true;
        operation.progress = progress;
        let id = operation.id;
        let changes = check.into_iter().chain([Change::Enqueue(operation)]).collect();
        self.commit(Transaction::new("request version", &record.name, changes)).await?;
        self.ports.wake.queue_changed(&record.name);
        Ok(id)
    }

    /// The numbers that come next.
    pub async fn next_versions(&self, name: &str) -> Result<NextVersions> {
        let record = self.scheduler(name).await?;
        let given = self.ports.store.version_numbers(&record.name).await?;
        let next = |change| Version::next(change, record.active_version, &given);
        Ok(NextVersions { major: next(RecipeChange::Major), minor: next(RecipeChange::Minor) })
    }

    /// Nothing more is replaced until it is resumed; autoscaling goes on.
    pub async fn pause_rollout(&self, name: &str, user: &str) -> Result {
        self.change_rollout(name, RolloutEvent::PausedBy(user)).await.map(drop)
    }

    /// It goes on with a clean slate: what failed before counts no more.
    pub async fn resume_rollout(&self, name: &str, user: &str) -> Result {
        tracing::info!(scheduler_name = name, user, "resuming the rollout");
        self.change_rollout(name, RolloutEvent::Resumed).await.map(drop)
    }

    /// Back to the last version that was deployed; which is a rollout of its own.
    pub async fn cancel_rollout(&self, name: &str, user: &str) -> Result<OperationId> {
        let switch_back = self.change_rollout(name, RolloutEvent::CanceledBy(user)).await?;
        switch_back.ok_or_else(|| {
            Error::Conflict(format!("the rollout of scheduler {name} has no earlier version to go back to"))
        })
    }

    /// The controller changes rollouts too: who loses the race looks again. What leads back, if anything does.
    async fn change_rollout(&self, name: &str, event: RolloutEvent<'_>) -> Result<Option<OperationId>> {
        for _ in 0..ATTEMPTS {
            let record = self.scheduler(name).await?;
            let locks = self.ports.store.locks(&record.name).await?;
            let RolloutWrite { update, mut changes, switch_back, .. } =
                self.rollout_write(&record, event.clone(), &locks)?;
            changes.push(Change::UpdateScheduler(update));
            if self.accepted(Transaction::new("change rollout", &record.name, changes)).await? {
                self.ports.wake.room_changed(record.name.as_str());
                return Ok(switch_back);
            }
        }
        Err(changes_too_fast(name))
    }

    /// Those of the versions that differ from the active one by a major change: definitions are compared, not
    /// numbers.
    pub(crate) async fn old_versions(
        &self,
        record: &SchedulerRecord,
        versions: impl Iterator<Item = Version>,
    ) -> Result<Vec<Version>> {
        let mut old = Vec::new();
        for version in versions.filter(|version| *version != record.active_version) {
            let found = self.ports.store.version(&record.name, version).await?;
            let recipe: Option<Arc<Recipe>> = found.map(|found| found.recipe);
            let is_major =
                |recipe: &Arc<Recipe>| RecipeChange::between(recipe, &record.recipe) == RecipeChange::Major;
            // A version that is gone can only be replaced.
            if recipe.as_ref().is_none_or(is_major) {
                old.push(version);
            }
        }
        Ok(old)
    }
}

fn refused(what: &str, error: StoreError) -> Error {
    match error {
        StoreError::Refused(refusal @ Refusal::VersionOperationUnderWay { .. }) => {
            Error::Precondition(format!("{what}: {refusal}"))
        }
        other => other.into(),
    }
}

/// How many rooms the fleet is to have after a switch to this recipe, as far as no autoscaling decides it.
fn size_with(record: &SchedulerRecord, recipe: &Recipe) -> u32 {
    let is_autoscaled = recipe.autoscaling.as_ref().is_some_and(|autoscaling| autoscaling.enabled);
    match recipe.rooms_replicas == record.recipe.rooms_replicas && !is_autoscaled {
        true => record.fleet_size,
        false => recipe.rooms_replicas,
    }
}
