//! How far a rollout is: which version is validated or rolled out, what has become of it, and what it waits for.

use std::collections::BTreeMap;

use maestro_core::operation::{Operation, OperationId, queue};
use maestro_core::plan::Held;
use maestro_core::rollout::{Outcome, Progress, Stored, Subject, leads_back};
use maestro_core::room::{Purpose, Region};
use maestro_core::scheduler::{Version, VersionStatus};

use crate::operations::{validation_attempts, whole_fleet};
use crate::ports::store::{RolloutRecord, RolloutState, SchedulerRecord, VersionRecord};
use crate::{Engine, Error};

/// Version operations that are looked back at: people submit few versions a day, and each takes two.
const OPERATIONS_SEEN: u32 = 100;

/// How far the replacement of rooms is.
#[derive(Debug, Clone)]
pub struct RolloutView {
    pub state: RolloutPhase,
    /// The version that is validated or rolled out, else the last that was; `None`: it was never numbered.
    pub version: Option<Version>,
    pub status: VersionStatus,
    pub outcome: Outcome,
    /// Why the version is not, or will not be, deployed; empty if all is well.
    pub cause: String,
    /// What the last validation room wrote before it failed.
    pub log_lines: Vec<String>,
    /// The operation that says most about the version.
    pub operation: Option<OperationId>,
    pub active: Version,
    pub rooms_by_version: BTreeMap<Version, u32>,
    pub old_rooms: u32,
    pub new_rooms: u32,
    pub total: u32,
    pub percent: u32,
    pub waiting_for: String,
}

/// What a scheduler does about its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutPhase {
    None,
    /// A version is being made, or is about to become the active one.
    Validating,
    Replacing(RolloutState),
}

impl RolloutPhase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Validating => "validating",
            Self::Replacing(state) => state.as_str(),
        }
    }
}

impl Engine {
    /// About the version that was submitted or switched to last, or about the one that is named.
    pub async fn rollout(&self, name: &str, version: Option<&str>) -> Result<RolloutView, Error> {
        let name = self.scheduler(name).await?.name;
        // Operations first: whatever they have done is in what is read after them.
        let operations = self.ports.store.version_operations(&name, OPERATIONS_SEEN).await?;
        let record = self.scheduler(name.as_str()).await?;
        let (subject, progress) = self.subject(&record, &operations, version).await?;
        let under_way =
            operations.iter().find(|operation| !operation.status.is_final() && !leads_back(operation));
        let state = match (under_way, &record.rollout) {
            (Some(_), _) => RolloutPhase::Validating,
            (None, Some(rollout)) => RolloutPhase::Replacing(rollout.state),
            (None, None) => RolloutPhase::None,
        };
        let rooms = self.replaced_rooms(&record).await?;
        let mut waiting_for = Vec::new();
        if let Some(operation) = under_way {
            waiting_for.push(self.validation(&record, operation).await?);
        }
        let no_place = if record.rollout.is_some() { self.no_place(&record).await? } else { None };
        waiting_for.extend(replacement(record.rollout.as_ref(), &rooms, no_place.as_deref()));
        let ReplacedRooms { by_version: rooms_by_version, old: old_rooms, new: new_rooms, .. } = rooms;
        let total = old_rooms + new_rooms;
        let percent = match state {
            RolloutPhase::Validating => 0,
            RolloutPhase::None | RolloutPhase::Replacing(_) if old_rooms == 0 => 100,
            RolloutPhase::None | RolloutPhase::Replacing(_) => new_rooms * 100 / total.max(1),
        };
        let Progress { status, outcome, cause } = progress;
        Ok(RolloutView {
            state,
            version: subject.version,
            status,
            outcome,
            cause,
            log_lines: subject.made_by.map(validation_attempts::log_lines).unwrap_or_default(),
            operation: subject.operation().map(|operation| operation.id),
            active: record.active_version,
            rooms_by_version,
            old_rooms,
            new_rooms,
            total,
            percent,
            waiting_for: waiting_for.join("; "),
        })
    }

    async fn subject<'a>(
        &self,
        record: &SchedulerRecord,
        operations: &'a [Operation],
        version: Option<&str>,
    ) -> Result<(Subject<'a>, Progress), Error> {
        let text = version.unwrap_or_default();
        let missing = || Error::NotFound(format!("scheduler {} not found in version {text:?}", record.name));
        let subject = match version {
            Some(text) => Subject::of(operations, Version::parse(text).map_err(|_| missing())?),
            None => Subject::newest(operations, self.last_rolled_out(record).await?),
        };
        let stored = match subject.version {
            Some(version) => self.ports.store.version(&record.name, version).await?,
            None => None,
        };
        let stored = stored.as_ref().map(|VersionRecord { status, cause, is_active, .. }| Stored {
            status: *status,
            is_active: *is_active,
            cause,
        });
        let progress = subject.progress(stored).ok_or_else(missing)?;
        Ok((subject, progress))
    }

    /// If no operation says it any more: what is rolled out, or the version that a way back leaves.
    async fn last_rolled_out(&self, record: &SchedulerRecord) -> Result<Version, Error> {
        let goes_back = record.rollout.as_ref().is_some_and(|rollout| rollout.to == rollout.from);
        if !goes_back {
            return Ok(record.active_version);
        }
        let versions = self.ports.store.versions(&record.name).await?;
        let left = |version: &&VersionRecord| {
            matches!(version.status, VersionStatus::Error | VersionStatus::Canceled)
        };
        let latest = versions.iter().filter(left).max_by_key(|version| version.created_at);
        Ok(latest.map_or(record.active_version, |version| version.version))
    }

    /// What the making of a version, or its switch, waits for.
    async fn validation(&self, record: &SchedulerRecord, operation: &Operation) -> Result<String, Error> {
        let store = &self.ports.store;
        let unfinished = store.unfinished(&record.name).await?;
        let locks = store.locks(&record.name).await?;
        let (name, id) = (operation.definition.name(), operation.id);
        Ok(match queue::waiting_for(operation, &unfinished, &locks, self.now()) {
            Some(what) => format!("{what} ({name} {id})"),
            None => format!("{name} {id}"),
        })
    }

    async fn replaced_rooms(&self, record: &SchedulerRecord) -> Result<ReplacedRooms, Error> {
        let mut rooms = self.ports.store.live_rooms(&record.name).await?;
        rooms.retain(|room| room.purpose == Purpose::Fleet);
        let mut by_version: BTreeMap<Version, u32> = BTreeMap::new();
        for room in &rooms {
            *by_version.entry(room.version).or_default() += 1;
        }
        let old_versions = self.old_versions(record, by_version.keys().copied()).await?;
        let count = |old: bool| {
            let of = by_version.iter().filter(|(version, _)| old_versions.contains(version) == old);
            of.map(|(_, rooms)| *rooms).sum::<u32>()
        };
        let (old, new) = (count(true), count(false));
        let mut lost: BTreeMap<Region, u32> = BTreeMap::new();
        let is_lost = |region: &Region| !self.regions.is_reachable(region);
        for room in rooms.iter().filter(|room| old_versions.contains(&room.version) && is_lost(&room.region))
        {
            *lost.entry(room.region.clone()).or_default() += 1;
        }
        Ok(ReplacedRooms { by_version, old, new, lost })
    }

    /// Why no region has place for a room that is wanted.
    async fn no_place(&self, record: &SchedulerRecord) -> Result<Option<String>, Error> {
        let fleet = whole_fleet(self, record, None).await?;
        Ok(fleet.plan(self, record).held.into_iter().find_map(|held| match held {
            Held::NoPlace { why, .. } => Some(why),
            _ => None,
        }))
    }
}

/// The rooms of a fleet, as a rollout sees them.
struct ReplacedRooms {
    by_version: BTreeMap<Version, u32>,
    old: u32,
    new: u32,
    /// How many of the old rooms are in regions that cannot be reached.
    lost: BTreeMap<Region, u32>,
}

/// What the replacement of rooms waits for; `None`: none are replaced.
fn replacement(
    rollout: Option<&RolloutRecord>,
    rooms: &ReplacedRooms,
    no_place: Option<&str>,
) -> Option<String> {
    let rollout = rollout?;
    let lost = &rooms.lost;
    let to_replace = match rooms.old - lost.values().sum::<u32>() {
        0 if !lost.is_empty() => None,
        0 => Some("the next cycle to see that no old room is left".to_owned()),
        1 => Some("1 old room to be replaced".to_owned()),
        rooms => Some(format!("{rooms} old rooms to be replaced")),
    };
    let regions = lost
        .iter()
        .map(|(region, rooms)| format!("region {region} to be reached ({rooms} old rooms are there)"));
    let no_place = no_place.map(|why| format!("place for new ones ({why})"));
    let replacement = to_replace.into_iter().chain(no_place).chain(regions).collect::<Vec<_>>().join(", ");
    Some(match rollout.state {
        RolloutState::Paused | RolloutState::Halted => format!("someone to resume it: {}", rollout.note),
        RolloutState::Rolling => replacement,
        RolloutState::RollingBack => format!("{replacement} on the way back: {}", rollout.note),
    })
}
