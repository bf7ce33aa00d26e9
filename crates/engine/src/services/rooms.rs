//! Rooms as people see them: list, read, logs.

use std::collections::BTreeMap;

use maestro_core::room::{HostPort, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::Version;
use maestro_core::time::Timestamp;

use crate::ports::room_table::{OrIfLost, RoomView};
use crate::ports::store::{Ended, Intent, RoomRecord};
use crate::{Engine, Error, Result};

/// Of a crash loop there may be tens of thousands; the latest ones tell.
const ENDED_ROOMS_LISTED: usize = 200;

#[derive(Debug, Clone)]
pub struct ListedRoom {
    pub id: RoomId,
    pub status: RoomStatus,
    pub version: Version,
    pub region: Region,
    pub host: String,
    pub ports: Vec<HostPort>,
    pub pids: Vec<u32>,
    pub created_at: Timestamp,
    pub last_ping_at: Option<Timestamp>,
    /// It stopped pinging together with others.
    pub silent: Option<RoomSilence>,
    pub validation: bool,
    pub ended: Option<Ended>,
    /// A JSON object, as the room sent it.
    pub metadata: Option<String>,
}

/// It stopped pinging together with others of its region, and is not taken for dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomSilence {
    /// When it was last heard, or could have been.
    pub since: Timestamp,
    /// When it is removed if it does not ping before.
    pub until: Timestamp,
}

impl Engine {
    /// Rooms that have not ended, by id.
    pub async fn rooms(&self, scheduler: &str) -> Result<Vec<ListedRoom>> {
        let name = self.scheduler_name(scheduler).await?;
        let rows = self.ports.store.live_rooms(&name).await?;
        let views = self.ports.table.rooms(&name).await.or_if_lost(Vec::new())?;
        let silent = self.spared_rooms(&name, &views).await?;
        let views: BTreeMap<_, _> = views.into_iter().map(|view| (view.id.clone(), view)).collect();
        let listed = |row: RoomRecord| {
            let (view, silent) = (views.get(&row.id), silent.get(&row.id).copied());
            ListedRoom { silent, ..listed(row, view) }
        };
        Ok(rows.into_iter().map(listed).collect())
    }

    /// Rooms that have ended, latest first, for as long as they are remembered.
    pub async fn ended_rooms(&self, scheduler: &str) -> Result<Vec<ListedRoom>> {
        let record = self.scheduler(scheduler).await?;
        let rows = self.ports.store.ended_rooms(&record.name, ENDED_ROOMS_LISTED).await?;
        Ok(rows.into_iter().map(|row| listed(row, None)).collect())
    }

    /// One room, for as long as it is remembered after its end.
    pub async fn room(&self, scheduler: &str, id: &str) -> Result<ListedRoom> {
        let missing = || Error::NotFound(format!("room {id} not found in scheduler {scheduler}"));
        let name = self.scheduler_name(scheduler).await?;
        let id = RoomId::new(id);
        let row = self.ports.store.room(&name, &id).await?.ok_or_else(missing)?;
        let view = self.ports.table.room(&name, &id).await.or_if_lost(None)?;
        let silent = self.spared_rooms(&name, &view).await?.remove(&id);
        Ok(ListedRoom { silent, ..listed(row, view.as_ref()) })
    }

    pub async fn room_logs(&self, scheduler: &str, id: &str, lines_max: usize) -> Result<String> {
        let room = self.room(scheduler, id).await?;
        let name = self.scheduler_name(scheduler).await?;
        let runtime = self.runtime(&room.region)?;
        let logs = runtime.logs(&name, &room.id, lines_max).await?;
        logs.ok_or_else(|| Error::NotFound(format!("no logs are kept of room {id}")))
    }
}

fn listed(row: RoomRecord, view: Option<&RoomView>) -> ListedRoom {
    let status = match (&row.ended, view, &row.intent) {
        (Some(_), ..) => RoomStatus::Terminated,
        (None, Some(view), _) => view.status,
        (None, None, Intent::Stop(_)) => RoomStatus::Terminating,
        (None, None, Intent::Run) => RoomStatus::Pending,
    };
    let (host, pids) = row.handle.map(|handle| (handle.host, handle.pids)).unwrap_or_default();
    ListedRoom {
        id: row.id,
        status,
        version: row.version,
        region: row.region,
        host,
        ports: row.ports,
        pids,
        created_at: row.created_at,
        last_ping_at: view.and_then(|view| view.last_ping_at),
        silent: None,
        validation: row.purpose == Purpose::Validation,
        ended: row.ended,
        metadata: view.and_then(|view| view.metadata.clone()),
    }
}
