//! Starting rooms: intent before effect.
//!
//! [`intend`] writes the rows of the next batch: from then on these rooms are wanted, whoever carries it out.
//! [`start`] asks the runtime for rooms that are wanted and records what came of it. Both may be repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use maestro_core::room::{Ending, HostPort, Purpose, Region, RoomId, ports};
use maestro_core::scheduler::{Recipe, Version};

use crate::allocations::settling;
use crate::events::room_gone::room_gone_events;
use crate::operations::{Result, Step, StepError, Work};
use crate::ports::room_table::{NewRoom, OrIfLost, RoomAddress};
use crate::ports::runtime::{Handle, RoomToStart, RuntimeError};
use crate::ports::store::{Change, Ended, NewRoomRecord, RoomRecord};
use crate::regions::Contact;

/// How often ports are chosen anew because someone outside listens to them.
const PORT_ATTEMPTS: u32 = 20;

/// What rooms an operation makes.
pub(crate) struct Making<'a> {
    pub(crate) version: Version,
    pub(crate) recipe: &'a Recipe,
    pub(crate) purpose: Purpose,
    /// All together, with those it has made already.
    pub(crate) amount: u32,
    /// How many of them in each region.
    pub(crate) regions: &'a BTreeMap<Region, u32>,
}

impl Making<'_> {
    /// How many are still to be made, by region.
    pub(crate) fn left(&self, rows: &[RoomRecord]) -> BTreeMap<Region, u32> {
        let mut left = self.regions.clone();
        for row in rows {
            if let Some(left) = left.get_mut(&row.region) {
                *left = left.saturating_sub(1);
            }
        }
        left.retain(|_, left| *left > 0);
        left
    }
}

/// The rows of the next batch of an operation that has made `rows` so far: those of one region, so that no other batch has
/// chosen ports of the same host.
pub(crate) async fn intend(work: &Work, rows: &[RoomRecord], making: &Making<'_>) -> Result<Step> {
    let mut outcome = Ok(Step::default());
    for (region, left) in making.left(rows) {
        outcome = intend_in(work, rows, making, (region, left)).await;
        // One region without free ports does not keep rooms from the others.
        if !matches!(outcome, Err(StepError::Failed(_))) {
            break;
        }
    }
    outcome
}

async fn intend_in(
    work: &Work,
    rows: &[RoomRecord],
    making: &Making<'_>,
    (region, left): (Region, u32),
) -> Result<Step> {
    let engine = &work.engine;
    let regions_beside = engine.regions_beside(&region);
    let made: BTreeSet<&RoomId> = rows.iter().map(|row| &row.id).collect();
    let mut used = BTreeSet::new();
    for region in regions_beside.iter().chain([&region]) {
        used.extend(engine.ports.store.ports_in_use(region).await?);
    }
    let batch = engine.settings.rooms_add_batch.min(left) as usize;
    let mut changes = Vec::with_capacity(batch);
    for index in 0..making.amount {
        if changes.len() >= batch {
            break;
        }
        let Some(id) = unused_id(work, &made, index).await? else {
            continue;
        };
        let ports = match choose_ports(work, &region, making.recipe, &mut used).await {
            Ok(ports) => ports,
            // Those that fit come first.
            Err(StepError::Failed(_)) if !changes.is_empty() => break,
            Err(error) => return Err(error),
        };
        changes.push(Change::IntendRoom(NewRoomRecord {
            id,
            scheduler: work.scheduler.name.clone(),
            version: making.version,
            region: region.clone(),
            regions_beside: regions_beside.clone(),
            purpose: making.purpose,
            ports,
            operation: work.operation.id,
            token: work.guard.token,
            created_at: work.now(),
        }));
    }
    Ok(Step::again(changes))
}

/// The id of the `index`-th room, or `None` if it is made already. An id that another operation's room has is
/// hashed again.
async fn unused_id(work: &Work, made: &BTreeSet<&RoomId>, index: u32) -> Result<Option<RoomId>> {
    let scheduler = &work.scheduler.name;
    for attempt in 0.. {
        let id = RoomId::derive(scheduler, work.operation.id, index, attempt);
        if made.contains(&id) {
            return Ok(None);
        }
        if work.engine.ports.store.room(scheduler, &id).await?.is_none() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Host ports that no room has and nobody outside listens to.
async fn choose_ports(
    work: &Work,
    region: &Region,
    recipe: &Recipe,
    used: &mut BTreeSet<u16>,
) -> Result<Vec<HostPort>> {
    let engine = &work.engine;
    let wanted = ports::needed_ports(recipe);
    let runtime = engine.runtime(region)?;
    for _ in 0..PORT_ATTEMPTS {
        let chosen = ports::pick(&wanted, used, engine.ports.random.draw())
            .map_err(|exhausted| StepError::Failed(exhausted.to_string()))?;
        let free = runtime.free_ports(&chosen).await?;
        if free.len() == chosen.len() {
            return Ok(chosen);
        }
        // Those that are taken stay in `used`: another attempt must not come back to them.
        for port in free {
            used.remove(&port.host_port);
        }
    }
    Err(StepError::Failed(format!(
        "no free host port found in {PORT_ATTEMPTS} attempts: other programs listen to those of the port range"
    )))
}

/// Asks the runtimes for rooms whose rows are there, side by side. Those whose region is lost meanwhile are given up: if
/// one runs there after all, it is stopped when the region is back. The history says which rooms could not be started, and
/// why.
pub(crate) async fn start(work: &Work, rows: &[RoomRecord]) -> Result<Step> {
    let mut recipes = Vec::with_capacity(rows.len());
    for row in rows {
        recipes.push(work.recipe_of(row.version).await?);
        // Before the runtime is asked: a room may ping before we hear that it runs.
        work.engine.ports.table.insert(table_room(work, row)).await?;
    }
    settled(work, rows.iter().map(|row| &row.region))?;
    make_place(work, rows).await?;
    work.still_owner()?;
    for row in rows {
        forget_what_was_said(work, row).await?;
    }
    let starts = rows.iter().zip(recipes).map(|(row, recipe)| start_one(work, row, recipe));
    let outcomes = join_all(starts).await;
    let mut started = Step::default();
    let mut not_now = None;
    for (row, outcome) in rows.iter().zip(outcomes) {
        let (scheduler, room) = (row.scheduler.clone(), row.id.clone());
        match outcome {
            Ok(handle) => {
                let address = RoomAddress::of(&handle, &row.ports);
                // A start is written down in any case. Lost, the table gets the room with the others of the registry.
                work.engine.ports.table.set_address(&scheduler, &room, address).await.or_if_lost(())?;
                started.changes.push(Change::RoomStarted { scheduler, room, handle });
            }
            Err(error) => {
                let ending = match (error, &work.engine.regions.contact(&row.region)) {
                    (RuntimeError::Refused(why), _) => Ending::NeverStarted { why },
                    // Another fleet was faster; that says nothing about this room.
                    (RuntimeError::Full(why), _) => Ending::GivenUp { why },
                    (RuntimeError::Unavailable(_), Contact::Unreachable { why }) => {
                        Ending::GivenUp { why: format!("region {} cannot be reached: {why}", row.region) }
                    }
                    (
                        RuntimeError::Unavailable(why),
                        Contact::Reachable { .. } | Contact::Unsettled { .. },
                    ) => {
                        not_now = Some(why);
                        continue;
                    }
                };
                end(work, row, &ending, &mut started).await?;
            }
        }
    }
    match not_now {
        // Nothing can be recorded yet; what did start is found running when this is tried again.
        Some(why) if started.changes.is_empty() => Err(StepError::NotNow(why)),
        _ => Ok(started),
    }
}

/// Nobody waits for these rooms any more. If one runs after all, it is stopped when it is found.
pub(crate) async fn give_up(work: &Work, rows: &[RoomRecord], why: &str) -> Result<Step> {
    let mut given_up = Step::default();
    for row in rows {
        end(work, row, &Ending::GivenUp { why: why.into() }, &mut given_up).await?;
    }
    Ok(given_up)
}

async fn end(work: &Work, row: &RoomRecord, ending: &Ending, step: &mut Step) -> Result {
    work.engine.ports.table.remove(&row.scheduler, &row.id).await.or_if_lost(None)?;
    step.history.push(format!("room {} {ending}", row.id));
    let ended = Ended::by(ending, work.now(), false);
    step.changes.extend(room_gone_events(&work.engine, &work.scheduler, row));
    step.changes.push(row.end(ended));
    Ok(())
}

/// A room that has pinged was already started, but its start was not recorded. It may have ended, and now be started a
/// second time, so its old pings are forgotten. Call this only when the runtime will certainly be asked, because only then
/// is the room observed again.
async fn forget_what_was_said(work: &Work, row: &RoomRecord) -> Result {
    let table = &work.engine.ports.table;
    let view = table.room(&row.scheduler, &row.id).await?;
    if view.is_some_and(|view| view.last_ping_at.is_some() && view.claimed_by.is_none()) {
        table.remove(&row.scheduler, &row.id).await?;
        table.insert(NewRoom { known: false, ..table_room(work, row) }).await?;
        // Whoever was given the room keeps it.
        settling::reconcile(&work.engine, &row.scheduler).await?;
    }
    Ok(())
}

/// A region that has not adopted its rooms may not know that one of them runs already; and it is too early to do
/// without it.
fn settled<'a>(work: &Work, regions: impl Iterator<Item = &'a Region>) -> Result {
    for region in regions {
        if let Contact::Unsettled { why } = work.engine.regions.contact(region) {
            return Err(StepError::NotNow(format!("region {region} is not adopted yet: {why}")));
        }
    }
    Ok(())
}

/// Before one decides where rooms of a recipe go that somebody waits for.
pub(crate) fn all_settled(work: &Work, recipe: &Recipe) -> Result {
    match &recipe.spec.region {
        Some(region) => settled(work, std::iter::once(region)),
        None => settled(work, work.engine.regions.names().iter()),
    }
}

/// A deletion that was taken back, or one of an earlier scheduler of this name that comes late, may have removed it.
async fn make_place(work: &Work, rows: &[RoomRecord]) -> Result {
    let regions: BTreeSet<_> = rows.iter().map(|row| &row.region).collect();
    // Rooms of the others are given up: nobody waits for their place.
    for region in regions.into_iter().filter(|region| work.engine.regions.is_reachable(region)) {
        work.engine.runtime(region)?.create_scheduler(&work.scheduler.name).await?;
    }
    Ok(())
}

async fn start_one(work: &Work, row: &RoomRecord, recipe: Arc<Recipe>) -> Result<Handle, RuntimeError> {
    let runtime =
        work.engine.runtime(&row.region).map_err(|error| RuntimeError::Unavailable(error.to_string()))?;
    let room = RoomToStart {
        id: row.id.clone(),
        scheduler: row.scheduler.clone(),
        version: row.version,
        recipe,
        ports: row.ports.clone(),
        purpose: row.purpose,
    };
    runtime.start(&room).await
}

fn table_room(work: &Work, row: &RoomRecord) -> NewRoom {
    NewRoom::starting(row, work.scheduler.recipe.match_allocation.max_matches, work.now())
}
