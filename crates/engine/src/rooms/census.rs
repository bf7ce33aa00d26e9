//! What the registry wants beside what runs, and where the two differ. Nothing is changed here.
//!
//! The registry is read before and after the runtimes are listed, and only rows that are equal both times count: someone is
//! working on whatever changed in between. Nothing is known about a region that cannot be reached or does not answer.

use std::collections::BTreeMap;

use maestro_core::operation::OperationId;
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;

use crate::Engine;
use crate::ports::runtime::RunningRoom;
use crate::ports::store::{Intent, RoomRecord, StoreError};

pub(super) struct Census {
    before: Rows,
    after: Rows,
    /// What runs, in those regions that answered.
    pub(super) listed: BTreeMap<Region, BTreeMap<RoomId, RunningRoom>>,
    /// False: a region that can be reached did not answer.
    pub(super) is_complete: bool,
}

type Rows = BTreeMap<RoomId, RoomRecord>;

/// Why a room that runs should not.
pub(super) enum Unwanted<'a> {
    NotRegistered,
    InOtherRegion,
    /// Its row is about another instance, which is no fault if its containers may be restarted.
    OtherInstance(&'a RoomRecord),
}

/// What is wrong with a row.
pub(super) enum Fault<'a> {
    /// It runs, and whoever started it could not write that down.
    StartNotRecorded(&'a RunningRoom),
    /// It runs, although it was asked to go.
    StillRuns,
    /// It does not run.
    Lost,
}

impl Census {
    /// `scheduler`: `None` for all of them.
    pub(super) async fn take(engine: &Engine, scheduler: Option<&SchedulerName>) -> Result<Self, StoreError> {
        let before = rows(engine, scheduler).await?;
        let (mut listed, mut is_complete) = (BTreeMap::new(), true);
        for (region, runtime) in engine.ports.runtimes.iter() {
            if !engine.regions.is_reachable(region) {
                continue;
            }
            let rooms = match scheduler {
                Some(scheduler) => runtime.list_of(scheduler).await,
                None => runtime.list().await,
            };
            match rooms {
                Ok(rooms) => {
                    let by_id = rooms.into_iter().map(|room| (room.id.clone(), room)).collect();
                    listed.insert(region.clone(), by_id);
                }
                Err(error) => {
                    is_complete = false;
                    tracing::warn!(%region, scheduler_name = scheduler.map(SchedulerName::as_str), %error, "rooms not listed");
                }
            }
        }
        Ok(Self { before, after: rows(engine, scheduler).await?, listed, is_complete })
    }

    pub(super) fn is_registered(&self, room: &RoomId) -> bool {
        self.before.contains_key(room) || self.after.contains_key(room)
    }

    /// Rows that nobody is working on.
    pub(super) fn settled(&self) -> impl Iterator<Item = &RoomRecord> {
        self.after.values().filter(|row| self.before.get(&row.id) == Some(row))
    }

    pub(super) fn unwanted(&self) -> impl Iterator<Item = (&Region, &RunningRoom, Unwanted<'_>)> {
        let rooms =
            self.listed.iter().flat_map(|(region, rooms)| rooms.values().map(move |room| (region, room)));
        rooms.filter_map(|(region, room)| Some((region, room, self.why_unwanted(region, room)?)))
    }

    fn why_unwanted(&self, region: &Region, room: &RunningRoom) -> Option<Unwanted<'_>> {
        let row = match (self.before.get(&room.id), self.after.get(&room.id)) {
            (None, None) => return Some(Unwanted::NotRegistered),
            (Some(one), Some(other)) if one == other => one,
            (Some(_), Some(_) | None) | (None, Some(_)) => return None,
        };
        if row.scheduler != room.scheduler {
            return Some(Unwanted::NotRegistered);
        }
        if row.region != *region {
            return Some(Unwanted::InOtherRegion);
        }
        let differs = row.handle.as_ref().is_some_and(|handle| !handle.is_of_same_instance(&room.handle));
        differs.then_some(Unwanted::OtherInstance(row))
    }

    /// Each is a fault unless the operation beside it is still at work.
    pub(super) fn faults(&self) -> impl Iterator<Item = (&RoomRecord, Fault<'_>, Option<OperationId>)> {
        self.settled().filter_map(|row| Some((row, self.listed.get(&row.region)?))).flat_map(
            |(row, running)| {
                let Some(room) = running.get(&row.id) else {
                    let maker = row.handle.is_none().then_some(row.operation);
                    return [Some((row, Fault::Lost, maker)), None].into_iter().flatten();
                };
                let unrecorded =
                    row.handle.is_none().then_some((row, Fault::StartNotRecorded(room), Some(row.operation)));
                let still_runs = match &row.intent {
                    Intent::Stop(stop) => Some((row, Fault::StillRuns, Some(stop.operation))),
                    Intent::Run => None,
                };
                [unrecorded, still_runs].into_iter().flatten()
            },
        )
    }
}

async fn rows(engine: &Engine, scheduler: Option<&SchedulerName>) -> Result<Rows, StoreError> {
    let rows = match scheduler {
        Some(scheduler) => engine.ports.store.live_rooms(scheduler).await?,
        None => engine.ports.store.all_live_rooms().await?,
    };
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}
