//! Schedulers and versions: create, read, delete.

use std::collections::BTreeSet;
use std::sync::Arc;

use maestro_core::lock::Locks;
use maestro_core::operation::{Definition, HistoryEvent, OperationId, OperationStatus, Origin};
use maestro_core::rollout::RolloutEvent;
use maestro_core::room::ports;
use maestro_core::scheduler::{Recipe, SchedulerName, Version, VersionStatus};
use maestro_core::violation::{Violation, Violations};

use crate::operations::DeletionProgress;
use crate::ports::Ports;
use crate::ports::room_table::FleetCounts;
use crate::ports::store::{
    Change, NewOperation, NewScheduler, OperationUpdate, Refusal, SchedulerRecord, SchedulerState,
    SchedulerUpdate, StoreError, Transaction, UnreadableScheduler, UnreadableVersion, VersionRecord,
};
use crate::rollouts::RolloutWrite;
use crate::{Engine, Error, Result};

use super::{ATTEMPTS, changes_too_fast, known_name, scheduler_not_found};

/// Exact matches; what is `None` is not asked for.
#[derive(Debug, Clone, Default)]
pub struct SchedulerFilter {
    pub name: Option<String>,
    pub game: Option<String>,
    /// The active one.
    pub version: Option<String>,
}

impl SchedulerFilter {
    fn matches(&self, name: &SchedulerName, game: &str, version: &str) -> bool {
        let is = |asked: &Option<String>, value: &str| asked.as_deref().is_none_or(|asked| asked == value);
        is(&self.name, name.as_str()) && is(&self.game, game) && is(&self.version, version)
    }
}

/// A scheduler and how many rooms it has.
#[derive(Debug, Clone)]
pub struct FleetInfo {
    pub scheduler: SchedulerRecord,
    pub counts: FleetCounts,
}

impl Engine {
    /// Stores the recipe as version v1.0.0 and enqueues the operation that makes the scheduler.
    pub async fn create_scheduler(&self, recipe: Recipe, user: &str) -> Result<SchedulerRecord> {
        self.check_recipe(&recipe, recipe.rooms_replicas, None)?;
        let _admitted = self.admit_scheduler().await?;
        let now = self.now();
        let name = recipe.name.clone();
        let recipe = Arc::new(recipe);
        let create = NewScheduler {
            recipe: recipe.clone(),
            version: Version::FIRST,
            version_status: VersionStatus::Validated,
            at: now,
        };
        let definition = Definition::CreateScheduler { recipe: Box::new((*recipe).clone()) };
        let operation = self.new_operation(&name, definition, Origin::Person(user.into()));
        let changes = vec![Change::CreateScheduler(create), Change::Enqueue(operation)];
        match self.commit(Transaction::new("request create_scheduler", &name, changes)).await {
            Err(StoreError::Refused(Refusal::SchedulerExists(_))) => {
                let text = format!("error creating scheduler {name}: name already exists");
                return Err(Error::AlreadyExists(text));
            }
            other => other?,
        }
        self.ports.wake.scheduler_created(&name);
        tracing::info!(scheduler_name = %name, user, "scheduler submitted");
        Ok(SchedulerRecord {
            name,
            state: SchedulerState::Creating,
            active_version: Version::FIRST,
            fleet_size: recipe.rooms_replicas,
            recipe,
            created_at: now,
            version_created_at: now,
            last_shrunk_at: None,
            rollout: None,
            revision: 0,
        })
    }

    /// Marks the scheduler as being deleted, durably, and enqueues the operation that does it. Asking again while
    /// that operation is unfinished gives the same operation. Regions that cannot be reached are waited for.
    pub async fn delete_scheduler(&self, name: &str, user: &str) -> Result<OperationId> {
        self.ask_for_deletion(name, false, user).await
    }

    /// The same, and what is in regions that cannot be reached is forgotten, also by a deletion that waits for them
    /// already.
    pub async fn delete_scheduler_by_force(&self, name: &str, user: &str) -> Result<OperationId> {
        self.ask_for_deletion(name, true, user).await
    }

    async fn ask_for_deletion(&self, name: &str, force: bool, user: &str) -> Result<OperationId> {
        let missing = || {
            Error::NotFound(format!(
                "no scheduler found, can not delete nonexistent scheduler: scheduler {name} not found"
            ))
        };
        let scheduler = known_name(name).map_err(|_| missing())?;
        for _ in 0..ATTEMPTS {
            let Some(record) = self.ports.store.scheduler(&scheduler).await? else {
                return Err(missing());
            };
            let mut operation =
                self.new_operation(&scheduler, Definition::DeleteScheduler, Origin::Person(user.into()));
            let is_rolling = self.is_rolling(&record).await?;
            operation.progress = DeletionProgress::new(force, record.rollout.as_ref(), is_rolling).to_json();
            let id = operation.id;
            let began = RolloutEvent::DeletionBegan { is_rolling };
            let RolloutWrite { update, changes: ended, .. } =
                self.rollout_write(&record, began, &Locks::default())?;
            let update = SchedulerUpdate { state: Some(SchedulerState::Deleting), ..update };
            let mut changes = vec![Change::Enqueue(operation), Change::UpdateScheduler(update)];
            changes.extend(ended);
            match self.accepted(Transaction::new("request delete_scheduler", &scheduler, changes)).await {
                Err(StoreError::Refused(Refusal::DeletionUnderWay { operation, .. })) => {
                    if force {
                        self.force_deletion(operation, &scheduler, user).await?;
                    }
                    return Ok(operation);
                }
                accepted => {
                    if accepted? {
                        self.ports.wake.queue_changed(&scheduler);
                        tracing::info!(
                            scheduler_name = %scheduler, operation_id = %id, user, "deletion requested"
                        );
                        return Ok(id);
                    }
                }
            }
        }
        Err(changes_too_fast(name))
    }

    async fn force_deletion(&self, operation: OperationId, scheduler: &SchedulerName, user: &str) -> Result {
        let Some(deletion) = self.ports.store.operation(scheduler, operation).await? else {
            return Ok(());
        };
        let event = format!("what is in regions that cannot be reached is forgotten: forced by {user}");
        let update = OperationUpdate {
            progress: Some(DeletionProgress::of(&deletion).by_force().to_json()),
            history: vec![HistoryEvent { at: self.now(), event }],
            ..OperationUpdate::of(operation)
        };
        let changes = vec![Change::UpdateOperation(update)];
        match self.commit(Transaction::new("force delete_scheduler", scheduler, changes)).await {
            Err(StoreError::Refused(Refusal::WrongStatus { is: OperationStatus::Pending, .. })) => {
                let text = format!("the deletion {operation} has not begun; ask again when it has");
                Err(Error::Precondition(text))
            }
            other => {
                other?;
                self.ports.wake.queue_changed(scheduler);
                Ok(())
            }
        }
    }

    pub async fn scheduler(&self, name: &str) -> Result<SchedulerRecord> {
        let scheduler = known_name(name)?;
        self.ports.store.scheduler(&scheduler).await?.ok_or_else(|| scheduler_not_found(name))
    }

    /// One version of a scheduler; `None`: the active one.
    pub async fn scheduler_version(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<(SchedulerRecord, VersionRecord)> {
        let record = self.scheduler(name).await?;
        let wanted = match version {
            None => Some(record.active_version),
            Some(text) => Version::parse(text).ok(),
        };
        let found = match wanted {
            Some(version) => self.ports.store.version(&record.name, version).await?,
            None => None,
        };
        let text = version.unwrap_or_default();
        let version = found
            .ok_or_else(|| Error::NotFound(format!("scheduler {name} not found in version {text:?}")))?;
        Ok((record, version))
    }

    pub async fn schedulers(&self, filter: &SchedulerFilter) -> Result<Vec<SchedulerRecord>> {
        let mut schedulers = self.ports.store.schedulers().await?;
        schedulers.retain(|scheduler| {
            let version = scheduler.active_version.to_string();
            filter.matches(&scheduler.name, &scheduler.recipe.game, &version)
        });
        Ok(schedulers)
    }

    /// Those that this build cannot read. Nobody knows their game, so who asks for one gets none of them.
    pub async fn unreadable_schedulers(&self, filter: &SchedulerFilter) -> Result<Vec<UnreadableScheduler>> {
        let (_, mut unreadable) = self.ports.store.all_schedulers().await?;
        unreadable.retain(|scheduler| filter.matches(&scheduler.name, "", &scheduler.active_version));
        Ok(unreadable)
    }

    /// What the room table counts of such a scheduler: its rooms go on, and ping.
    pub async fn counts_of_unreadable(&self, scheduler: &UnreadableScheduler) -> Result<FleetCounts> {
        Ok(self.fleet_counts(&scheduler.name).await?.counts)
    }

    /// A scheduler's name, if there is one of that name, readable or not.
    pub(super) async fn scheduler_name(&self, name: &str) -> Result<SchedulerName> {
        let scheduler = known_name(name)?;
        match self.ports.store.scheduler(&scheduler).await {
            Ok(Some(_)) | Err(StoreError::Unreadable(_)) => Ok(scheduler),
            Ok(None) => Err(scheduler_not_found(name)),
            Err(error) => Err(error.into()),
        }
    }

    /// Those that can be read and those that cannot, each newest first.
    pub async fn versions(&self, name: &str) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>)> {
        let (readable, unreadable) = self.ports.store.versions(&known_name(name)?).await?;
        match readable.is_empty() && unreadable.is_empty() {
            true => Err(scheduler_not_found(name)),
            false => Ok((readable, unreadable)),
        }
    }

    pub async fn fleet_infos(&self, game: Option<String>) -> Result<Vec<FleetInfo>> {
        let mut infos = Vec::new();
        for scheduler in self.schedulers(&SchedulerFilter { game, ..SchedulerFilter::default() }).await? {
            let counts = self.fleet_counts(&scheduler.name).await?.counts;
            infos.push(FleetInfo { scheduler, counts });
        }
        Ok(infos)
    }

    /// Whether a fleet of so many rooms could be made from the recipe here. `before`: the scheduler so far.
    pub(super) fn check_recipe(
        &self,
        recipe: &Recipe,
        size: u32,
        before: Option<&SchedulerRecord>,
    ) -> Result {
        self.check_regions_of(recipe)?;
        self.check_ports(recipe, size)?;
        self.check_capacity(recipe, size, before)
    }

    /// Regions that a recipe names are configured here, and it has what they need.
    fn check_regions_of(&self, recipe: &Recipe) -> Result {
        let mut violations = recipe.unconfigured_regions(&self.regions.names());
        let Ports { runtimes, regions_elsewhere, .. } = &self.ports;
        if runtimes.values().any(|runtime| runtime.runs_containers())
            || regions_elsewhere.values().any(|region| region.runs_containers)
        {
            violations.extend(recipe.missing_for_containers());
        }
        if violations.is_empty() { Ok(()) } else { Err(Violations(violations).into()) }
    }

    /// On one host a port range bounds the number of rooms: what can never fit is refused when it is asked for.
    pub(super) fn check_ports(&self, recipe: &Recipe, rooms: u32) -> Result {
        let Ports { runtimes, regions_elsewhere, .. } = &self.ports;
        let here = runtimes.values().map(|runtime| runtime.host());
        let elsewhere = regions_elsewhere.values().map(|region| region.host.as_deref());
        let hosts: Option<BTreeSet<&str>> = here.chain(elsewhere).collect();
        let Some(hosts) = hosts.map(|hosts| hosts.len() as u64) else {
            return Ok(());
        };
        let wanted = ports::needed_ports(recipe);
        let mut violations = Vec::new();
        for port in &wanted {
            let sharing = wanted.iter().filter(|other| other.range == port.range).count() as u64;
            let needed = u64::from(rooms) * sharing;
            let size = u64::from(port.range.size()) * hosts;
            let (start, end) = (port.range.start, port.range.end);
            if needed > size {
                let field = if recipe.port_range.is_some() { "portRange" } else { "hostPortRange" };
                let on_hosts = if hosts == 1 { String::new() } else { format!(" on {hosts} hosts") };
                let reason = format!(
                    "{start}-{end} holds {size} ports{on_hosts}, and {rooms} rooms with {sharing} of them each need {needed}"
                );
                violations.push(Violation::new(field, reason));
            }
        }
        violations.dedup();
        if violations.is_empty() { Ok(()) } else { Err(Violations(violations).into()) }
    }

    pub(crate) fn new_operation(
        &self,
        scheduler: &SchedulerName,
        definition: Definition,
        origin: Origin,
    ) -> NewOperation {
        let now = self.now();
        let reason = match &origin {
            Origin::Person(user) => format!("asked for by {user}"),
            Origin::Controller | Origin::Panic | Origin::Engine => String::new(),
        };
        NewOperation {
            id: self.ports.random.operation_id(now),
            scheduler: scheduler.clone(),
            definition,
            origin,
            priority: false,
            reason,
            progress: serde_json::Value::Null,
            fleet_delta: 0,
            only_version_operation: false,
            created_at: now,
        }
    }
}
