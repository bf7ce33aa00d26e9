//! create_new_scheduler_version: numbers the recipe, tries a room of it if rooms will have to be replaced, and enqueues the
//! switch. Rolled back, nothing of the version is left.
//!
//! The validation room never counts as part of the fleet, and is removed whatever happens: its row says which operation
//! started it, so it is found again after a crash.

use std::collections::BTreeMap;

use async_trait::async_trait;
use maestro_core::lock::{LockKind, Taker};
use maestro_core::operation::{Definition, Origin, RemovalReason, SwitchVersion};
use maestro_core::plan;
use maestro_core::room::{EndCause, Purpose, RoomStatus};
use maestro_core::scheduler::{Difference, Recipe, RecipeChange, Version, VersionStatus};
use maestro_core::time::{Millis, Timestamp, after};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ports::room_table::RoomView;
use crate::ports::store::{Change, Intent, RoomRecord};
use crate::rooms::log_tail::{in_words, log_tail};
use crate::rooms::starting::{self, Making};
use crate::rooms::stopping::{self, HeldRooms};

use super::validation_attempts::with_attempt;
use super::{Executor, LockNeed, Result, Step, StepError, Work, switch_version};

pub(super) struct CreateVersion;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Progress {
    /// Empty: it has no number yet.
    version: String,
    major: bool,
    /// Rooms tried so far.
    attempts: u32,
    validated: bool,
    /// `None`: an older Maestro enqueued it.
    #[serde(default)]
    submitted: Option<Submitted>,
    /// Of the last attempt that failed, in words.
    #[serde(default)]
    failure: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Submitted {
    /// The fleet size when it was submitted, if it was submitted with a number of rooms; otherwise the fleet size stays as
    /// people make it.
    stated_at: Option<u32>,
}

/// What an operation begins with. `stated_at`: the fleet size, if a number of rooms is stated.
pub(crate) fn begin(stated_at: Option<u32>) -> serde_json::Value {
    let progress = Progress { submitted: Some(Submitted { stated_at }), ..Progress::default() };
    serde_json::to_value(progress).unwrap_or_default()
}

#[async_trait]
impl Executor for CreateVersion {
    /// A rollout has the recipe until its last old room is gone; who changes the recipe does not wait for that.
    async fn needs(&self, _work: &Work) -> Result<Vec<LockNeed>> {
        Ok(vec![LockNeed::own_or_lent(LockKind::Config)])
    }

    async fn step(&self, work: &Work) -> Result<Step> {
        let progress = progress_of(work);
        let Ok(version) = Version::parse(&progress.version) else {
            return number(work).await;
        };
        if !progress.major || progress.validated {
            return finish(work, version).await;
        }
        let rows = work.made_rooms().await?;
        match rows.iter().find(|row| row.ended.is_none()) {
            Some(room) if room.intent != Intent::Run => {
                stopping::stop_and_wait(work, std::slice::from_ref(room)).await
            }
            Some(room) if room.handle.is_none() => start(work, room).await,
            Some(room) => look_at(work, progress, room).await,
            None => match ended_unseen(&progress, &rows) {
                Some(room) => fail_attempt(work, progress, room, &ended_how(room)).await,
                None => try_next(work, &progress, version, &rows).await,
            },
        }
    }

    async fn undo(&self, work: &Work) -> Result<Step> {
        let rows = work.made_rooms().await?;
        let live: Vec<_> = rows.into_iter().filter(|row| row.ended.is_none()).collect();
        let staying: Vec<_> = live.iter().filter(|row| row.intent == Intent::Run).collect();
        if !staying.is_empty() {
            let stop = |row: &&RoomRecord| {
                stopping::intend_stop(work, row, "new_version_rollback", HeldRooms::MayGo)
            };
            return Ok(Step::again(staying.iter().map(stop).collect()));
        }
        if !live.is_empty() {
            return stopping::stop_and_wait(work, &live).await;
        }
        let mut step = Step::done();
        if let Ok(version) = Version::parse(&progress_of(work).version) {
            step.changes.push(Change::DeleteVersion { scheduler: work.scheduler.name.clone(), version });
        }
        Ok(step)
    }

    async fn wait_is_over(&self, work: &Work) -> Result<bool> {
        let rows = work.made_rooms().await?;
        let Some(room) = rows.iter().find(|row| row.ended.is_none()) else {
            // Its end has to be written down first; then the pause before the next attempt is what it waits for.
            let is_unseen = ended_unseen(&progress_of(work), &rows).is_some();
            return Ok(is_unseen || next_attempt_at(&rows).is_none_or(|at| at <= work.now()));
        };
        let view = work.engine.ports.table.room(&room.scheduler, &room.id).await?;
        Ok(room.intent == Intent::Run && outcome(work, room, view.as_ref()) != Outcome::NotYet)
    }
}

fn progress_of(work: &Work) -> Progress {
    serde_json::from_value(work.operation.progress.clone()).unwrap_or_default()
}

fn recipe(work: &Work) -> Result<&Recipe> {
    match &work.operation.definition {
        Definition::CreateVersion { recipe } => Ok(recipe),
        _ => Err(StepError::Failed("no recipe was given".into())),
    }
}

fn with_progress(mut step: Step, progress: &Progress) -> Step {
    step.progress = serde_json::to_value(progress).ok();
    step
}

/// The first step: how much changes, and so which number it gets. Version operations exclude each other, so nobody
/// else takes that number.
async fn number(work: &Work) -> Result<Step> {
    let scheduler = &work.scheduler;
    let recipe = recipe(work)?;
    let progress = progress_of(work);
    // There is one number of rooms, which people may have changed since the recipe was written. Who says nothing about it
    // does not change it.
    let is_stated = progress.submitted.is_none_or(|submitted| submitted.stated_at.is_some());
    let rooms_replicas = if is_stated { scheduler.fleet_size } else { scheduler.recipe.rooms_replicas };
    let active = Recipe { rooms_replicas, ..(*scheduler.recipe).clone() };
    let difference = Difference::between(&active, recipe);
    let change = difference.change();
    let given = work.engine.ports.store.version_numbers(&scheduler.name).await?;
    let version = Version::next(change, scheduler.active_version, &given);
    let major = change == RecipeChange::Major;
    let status = if major { VersionStatus::Validating } else { VersionStatus::Validated };
    let insert = Change::InsertVersion {
        scheduler: scheduler.name.clone(),
        recipe: recipe.clone().into(),
        version,
        status,
        at: work.now(),
    };
    let mut step = Step::again(vec![insert]);
    step.data = Some(json!({
        "version": version.to_string(),
        "rollbackVersion": scheduler.active_version.to_string(),
        "change": if major { "major" } else { "minor" },
        "fields": difference.fields.into_iter().map(|field| field.path).collect::<Vec<_>>(),
    }));
    let step = match major {
        true => step.with_history("Major version detected, starting game room validation process..."),
        false => step.with_history(format!("minor version {version}: rooms stay as they are")),
    };
    Ok(with_progress(step, &Progress { version: version.to_string(), major, ..progress }))
}

/// The room of an attempt that ended before it was looked at.
fn ended_unseen<'a>(progress: &Progress, rows: &'a [RoomRecord]) -> Option<&'a RoomRecord> {
    let ended_at = |row: &&RoomRecord| row.ended.as_ref().map(|ended| ended.at);
    rows.iter().max_by_key(ended_at).filter(|_| made(rows) > progress.attempts)
}

fn ended_how(room: &RoomRecord) -> String {
    room.ended.as_ref().map_or_else(|| "ended".to_owned(), |ended| format!("ended: {}", ended.how))
}

fn made(rows: &[RoomRecord]) -> u32 {
    u32::try_from(rows.len()).unwrap_or(u32::MAX)
}

/// Writes down that an attempt failed, how, and what the room said last.
async fn fail_attempt(work: &Work, progress: Progress, room: &RoomRecord, how: &str) -> Result<Step> {
    let log_lines = log_tail(&work.engine, room).await;
    let (number, most) = (progress.attempts + 1, work.engine.settings.room_validation_attempts);
    let failure =
        format!("attempt {number} of {most} failed: room {} {how}{}", room.id, in_words(&log_lines));
    let attempt = json!({ "attempt": number, "room": room.id.as_str(), "how": how, "logLines": log_lines });
    let progress = Progress { attempts: number, failure: failure.clone(), ..progress };
    let step = Step { data: Some(with_attempt(&work.operation.data, attempt)), ..Step::default() };
    Ok(with_progress(step.with_history(failure), &progress))
}

async fn try_next(work: &Work, progress: &Progress, version: Version, rows: &[RoomRecord]) -> Result<Step> {
    if progress.attempts >= work.engine.settings.room_validation_attempts {
        return Err(StepError::Failed(format!("version {version} was not validated: {}", progress.failure)));
    }
    if let Some(at) =
        next_attempt_at(rows).filter(|at| work.now() < *at && *at <= work.in_time(LONGEST_PAUSE))
    {
        return Ok(Step::park("the next attempt: the last room ended early".into(), at));
    }
    let made = made(rows);
    let recipe = recipe(work)?;
    starting::all_settled(work, recipe)?;
    let places = work.engine.places(recipe).await?;
    let region = places.for_validation().map_err(StepError::Failed)?;
    // Those of earlier attempts may be elsewhere, where nothing could be started by now.
    let here = rows.iter().filter(|row| row.region == region).count();
    let regions = BTreeMap::from([(region, u32::try_from(here).unwrap_or(u32::MAX).saturating_add(1))]);
    let making =
        Making { version, recipe, purpose: Purpose::Validation, amount: made + 1, regions: &regions };
    starting::intend(work, rows, &making).await
}

/// Rooms that ended by themselves make the next attempt wait, as those of the fleet do.
fn next_attempt_at(rows: &[RoomRecord]) -> Option<Timestamp> {
    let ends = rows.iter().filter_map(|row| row.ended.as_ref());
    let failed: Vec<_> = ends.filter(|ended| ended.cause != EndCause::Asked).collect();
    let last = failed.iter().map(|ended| ended.at).max()?;
    Some(after(last, plan::wait_after(u32::try_from(failed.len()).unwrap_or(u32::MAX))))
}

async fn start(work: &Work, room: &RoomRecord) -> Result<Step> {
    let started = starting::start(work, std::slice::from_ref(room)).await?;
    if !started.history.is_empty() {
        // Its end is in the registry; the next step counts the attempt.
        return Ok(Step::again(started.changes));
    }
    let what = format!("validation room {} to be ready", room.id);
    Ok(Step {
        changes: started.changes,
        ..Step::park(what, work.in_time(work.engine.settings.room_validation_timeout))
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    NotYet,
    Ready,
    Failed(String),
}

/// It may have been written down long before it was started, or before anybody listened to it again.
fn deadline(work: &Work, room: &RoomRecord, view: Option<&RoomView>) -> Timestamp {
    let began = view.map_or(room.created_at, |view| view.listened_since.max(room.created_at));
    let began = work.engine.listening.since(work.now()).map_or(began, |since| since.max(began));
    after(began, work.engine.settings.room_validation_timeout)
}

fn outcome(work: &Work, room: &RoomRecord, view: Option<&RoomView>) -> Outcome {
    let status = view.map(|view| view.status);
    let accepts_occupied = work.engine.settings.room_validation_accepts_occupied;
    match status {
        Some(RoomStatus::Ready) => Outcome::Ready,
        Some(RoomStatus::Active | RoomStatus::Occupied | RoomStatus::Allocated) if accepts_occupied => {
            Outcome::Ready
        }
        Some(RoomStatus::Error | RoomStatus::Terminated) => Outcome::Failed("is in error".to_owned()),
        _ if deadline(work, room, view) <= work.now() => {
            let span = work.engine.settings.room_validation_timeout;
            Outcome::Failed(format!("was not ready within {span}"))
        }
        Some(_) | None => Outcome::NotYet,
    }
}

async fn look_at(work: &Work, progress: Progress, room: &RoomRecord) -> Result<Step> {
    let view = work.engine.ports.table.room(&room.scheduler, &room.id).await?;
    let mut step = match outcome(work, room, view.as_ref()) {
        Outcome::NotYet => {
            let what = format!("validation room {} to be ready", room.id);
            return Ok(Step::park(what, deadline(work, room, view.as_ref()).max(work.in_time(LOOK_AGAIN))));
        }
        Outcome::Ready => {
            let attempts = progress.attempts + 1;
            let event = format!("attempt {attempts} succeeded: validation room {} is ready", room.id);
            let progress = Progress { validated: true, attempts, ..progress };
            with_progress(Step::default().with_history(event), &progress)
        }
        Outcome::Failed(how) => fail_attempt(work, progress, room, &how).await?,
    };
    step.changes.push(stopping::intend_stop(
        work,
        room,
        RemovalReason::ValidationFinished.as_str(),
        HeldRooms::MayGo,
    ));
    Ok(step)
}

/// A pause between attempts that is longer than any was set before the clock was set back.
const LONGEST_PAUSE: Millis = Millis::from_seconds(60);

/// A wait that has passed its deadline looks again after this, not at once.
const LOOK_AGAIN: Millis = Millis::from_seconds(1);

/// The validation room is gone before the version is: only then the switch is enqueued.
async fn finish(work: &Work, version: Version) -> Result<Step> {
    let rows = work.made_rooms().await?;
    let live: Vec<_> = rows.into_iter().filter(|row| row.ended.is_none()).collect();
    if !live.is_empty() {
        return stopping::stop_and_wait(work, &live).await;
    }
    let scheduler = work.scheduler.name.clone();
    let switch = Definition::SwitchVersion(SwitchVersion { to: version, only_from: None });
    let mut operation = work.engine.new_operation(&scheduler, switch, Origin::Engine);
    operation.reason = format!("version {version} was validated ({})", work.operation.reason);
    if let Some(Submitted { stated_at }) = progress_of(work).submitted {
        operation.progress = switch_version::of_new_version(work.operation.id, stated_at);
    }
    let event = format!("enqueued switch active version operation with id: {}", operation.id);
    let status = VersionStatus::Validated;
    let mut step = Step::done().with_history(event);
    let holder = work.operation.holder();
    if work.locks.held_by(LockKind::Config, holder).is_some() {
        let taker = Taker { holder: operation.holder(), instead_of: Some(holder) };
        step.changes.push(work.engine.take_lock(&scheduler, LockKind::Config, taker, &operation.reason));
    }
    step.changes.push(Change::SetVersionStatus { scheduler, version, status, cause: String::new() });
    step.changes.push(Change::Enqueue(operation));
    Ok(step)
}
