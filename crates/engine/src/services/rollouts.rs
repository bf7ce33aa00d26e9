//! How far a rollout is: which version is validated or rolled out, what has become of it, and what it waits for.

use std::collections::BTreeMap;

use maestro_core::operation::{Operation, OperationId, queue};
use maestro_core::plan::{HeldBack, OldVersions, Plan, RoomFact, SilentRooms};
use maestro_core::rollout::{StoredVersion, VersionOutcome, VersionProgress, VersionSubject, is_switch_back};
use maestro_core::room::Region;
use maestro_core::scheduler::{OccupiedRooms, Version, VersionStatus};
use maestro_core::time::{Timestamp, after};

use crate::operations::{StepError, occupied_pace, validation_attempts, whole_fleet};
use crate::ports::store::{RolloutRecord, RolloutState, RoomCount, SchedulerRecord, VersionRecord};
use crate::{Engine, Error, Result};

/// Version operations that are looked back at: people submit few versions a day, and each takes two.
const OPERATIONS_SEEN: u32 = 100;

/// How far the replacement of rooms is.
#[derive(Debug, Clone)]
pub struct RolloutView {
    pub state: RolloutPhase,
    /// The version that is validated or rolled out, else the last that was; `None`: it was never numbered.
    pub version: Option<Version>,
    pub status: VersionStatus,
    pub outcome: VersionOutcome,
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
    pub occupied: OccupiedOldRooms,
}

/// Old rooms that players are in, and what will happen to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OccupiedOldRooms {
    /// 0 unless rooms are being replaced.
    pub rooms: u32,
    /// They stay until their matches end.
    pub waits_for_match_end: bool,
    /// When the next of them is ended although players are in it, at the earliest; `None`: none is.
    pub next_at: Option<Timestamp>,
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
    pub async fn rollout(&self, name: &str, version: Option<&str>) -> Result<RolloutView> {
        let name = self.scheduler(name).await?.name;
        // Operations first: whatever they have done is in what is read after them.
        let operations = self.ports.store.version_operations(&name, OPERATIONS_SEEN).await?;
        let record = self.scheduler(name.as_str()).await?;
        let (subject, progress) = self.subject(&record, &operations, version).await?;
        let under_way =
            operations.iter().find(|operation| !operation.status.is_final() && !is_switch_back(operation));
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
        let mut occupied = OccupiedOldRooms::default();
        if let Some(rollout) = &record.rollout {
            match whole_fleet(self, &record.name, None).await {
                Err(lost @ StepError::Lost(_)) => waiting_for.push(lost.to_string()),
                fleet => {
                    let (seen, fleet) = fleet?;
                    occupied = self.occupied_old_rooms(&record, rollout, &fleet.facts);
                    let silent = SilentRooms::among(fleet.facts.iter().filter(|room| room.old), self.now());
                    let no_place = no_place(&fleet.plan(&seen));
                    waiting_for.push(replacement(rollout, &rooms, &silent, occupied, no_place));
                }
            }
        }
        let ReplacedRooms { by_version: rooms_by_version, old: old_rooms, new: new_rooms, .. } = rooms;
        let total = old_rooms + new_rooms;
        let percent = match state {
            RolloutPhase::Validating => 0,
            RolloutPhase::None | RolloutPhase::Replacing(_) if old_rooms == 0 => 100,
            RolloutPhase::None | RolloutPhase::Replacing(_) => new_rooms * 100 / total.max(1),
        };
        let VersionProgress { status, outcome, cause } = progress;
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
            occupied,
        })
    }

    async fn subject<'a>(
        &self,
        record: &SchedulerRecord,
        operations: &'a [Operation],
        version: Option<&str>,
    ) -> Result<(VersionSubject<'a>, VersionProgress)> {
        let text = version.unwrap_or_default();
        let missing = || Error::NotFound(format!("scheduler {} not found in version {text:?}", record.name));
        let subject = match version {
            Some(text) => VersionSubject::of(operations, Version::parse(text).map_err(|_| missing())?),
            None => VersionSubject::newest(operations, self.last_rolled_out(record).await?),
        };
        let stored = match subject.version {
            Some(version) => self.ports.store.version(&record.name, version).await?,
            None => None,
        };
        let stored = stored.as_ref().map(|VersionRecord { status, cause, is_active, .. }| StoredVersion {
            status: *status,
            is_active: *is_active,
            cause,
        });
        let progress = subject.progress(stored).ok_or_else(missing)?;
        Ok((subject, progress))
    }

    /// If no operation says it any more: what is rolled out, or the version that a rollback leaves.
    async fn last_rolled_out(&self, record: &SchedulerRecord) -> Result<Version> {
        let goes_back = record.rollout.as_ref().is_some_and(RolloutRecord::is_rollback);
        if !goes_back {
            return Ok(record.active_version);
        }
        let (versions, _) = self.ports.store.versions(&record.name).await?;
        let left = |version: &&VersionRecord| {
            matches!(version.status, VersionStatus::Error | VersionStatus::Canceled)
        };
        let latest = versions.iter().filter(left).max_by_key(|version| version.created_at);
        Ok(latest.map_or(record.active_version, |version| version.version))
    }

    /// What the making of a version, or its switch, waits for.
    async fn validation(&self, record: &SchedulerRecord, operation: &Operation) -> Result<String> {
        let store = &self.ports.store;
        let unfinished = store.unfinished(&record.name).await?;
        let locks = store.locks(&record.name).await?;
        let (name, id) = (operation.definition.name(), operation.id);
        Ok(match queue::waiting_for(operation, &unfinished, &locks, self.now()) {
            Some(what) => format!("{what} ({name} {id})"),
            None => format!("{name} {id}"),
        })
    }

    async fn replaced_rooms(&self, record: &SchedulerRecord) -> Result<ReplacedRooms> {
        let rooms = self.ports.store.room_counts(&record.name).await?;
        let mut by_version: BTreeMap<Version, u32> = BTreeMap::new();
        for count in &rooms {
            *by_version.entry(count.version).or_default() += count.rooms;
        }
        let old_versions = self.old_versions(record, by_version.keys().copied()).await?;
        let (mut old, mut new, mut lost) = (0, 0, BTreeMap::new());
        for RoomCount { version, region, rooms } in rooms {
            if !old_versions.contains(&version) {
                new += rooms;
                continue;
            }
            old += rooms;
            if !self.regions.is_reachable(&region) {
                *lost.entry(region).or_default() += rooms;
            }
        }
        Ok(ReplacedRooms { by_version, old, new, lost })
    }

    fn occupied_old_rooms(
        &self,
        record: &SchedulerRecord,
        rollout: &RolloutRecord,
        rooms: &[RoomFact],
    ) -> OccupiedOldRooms {
        let serves = |room: &&RoomFact| room.old && !room.leaving && room.status.serves_players();
        let rooms = u32::try_from(rooms.iter().filter(serves).count()).unwrap_or(u32::MAX);
        let is_replaced = rollout.old_versions() == OldVersions::Replaced;
        if rooms == 0 || !is_replaced {
            return OccupiedOldRooms { rooms, ..OccupiedOldRooms::default() };
        }
        let (now, rules) = (self.now(), record.recipe.rollout());
        let deadline = rules.match_end_deadline.map(|deadline| after(rollout.since, deadline));
        let waits_for_match_end = match rules.occupied {
            OccupiedRooms::WaitForMatchEnd => deadline.is_none_or(|deadline| deadline > now),
            OccupiedRooms::DeleteLast => false,
        };
        let next_cycle = after(now, self.settings.health_controller_interval.into());
        let next_at = match waits_for_match_end {
            true => deadline,
            false => Some(occupied_pace(self, record).next_at().unwrap_or(next_cycle).max(now)),
        };
        OccupiedOldRooms { rooms, waits_for_match_end, next_at }
    }
}

/// Why no region has place for a room that is wanted.
fn no_place(plan: &Plan) -> Option<String> {
    plan.held_back.iter().find_map(|held| match held {
        HeldBack::NoPlace { why, .. } => Some(why.clone()),
        _ => None,
    })
}

/// The rooms of a fleet, as a rollout sees them.
struct ReplacedRooms {
    by_version: BTreeMap<Version, u32>,
    old: u32,
    new: u32,
    /// How many of the old rooms are in regions that cannot be reached.
    lost: BTreeMap<Region, u32>,
}

/// What the replacement of rooms waits for.
fn replacement(
    rollout: &RolloutRecord,
    rooms: &ReplacedRooms,
    silent: &[SilentRooms],
    occupied: OccupiedOldRooms,
    no_place: Option<String>,
) -> String {
    let lost = &rooms.lost;
    let not_replaced = lost.values().chain(silent.iter().map(|silent| &silent.rooms)).sum::<u32>();
    // What was counted a moment ago may have changed since.
    let to_replace = match rooms.old.saturating_sub(not_replaced) {
        0 if not_replaced > 0 => None,
        0 => Some("the next cycle to see that no old room is left".to_owned()),
        1 => Some(format!("1 old room to be replaced{}", with_players(occupied))),
        rooms => Some(format!("{rooms} old rooms to be replaced{}", with_players(occupied))),
    };
    let regions = lost
        .iter()
        .map(|(region, rooms)| format!("region {region} to be reached ({rooms} old rooms are there)"));
    let silent =
        silent.iter().map(|silent| format!("{silent} to ping, or to be removed at {:.0}", silent.until));
    let no_place = no_place.map(|why| format!("capacity for new rooms ({why})"));
    let replacement =
        to_replace.into_iter().chain(no_place).chain(regions).chain(silent).collect::<Vec<_>>().join(", ");
    match rollout.state {
        RolloutState::Paused | RolloutState::Halted => format!("someone to resume it: {}", rollout.note),
        RolloutState::Rolling => replacement,
        RolloutState::RollingBack => format!("{replacement} on the way back: {}", rollout.note),
    }
}

/// What happens to players, and what would be kinder.
fn with_players(occupied: OccupiedOldRooms) -> String {
    let OccupiedOldRooms { rooms, waits_for_match_end, next_at } = occupied;
    match (rooms, waits_for_match_end, next_at) {
        (0, ..) => String::new(),
        (rooms, true, None) => format!(" ({rooms} with players, which go when their matches end)"),
        (rooms, true, Some(at)) => {
            format!(" ({rooms} with players, which go when their matches end, or from {at:.0} on)")
        }
        (rooms, false, Some(at)) => format!(
            " ({rooms} with players; the next may be ended at {at:.0}; rollout.occupied: waitForMatchEnd lets matches end first)"
        ),
        (rooms, false, None) => format!(" ({rooms} with players)"),
    }
}
