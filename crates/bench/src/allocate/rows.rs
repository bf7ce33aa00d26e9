//! What the disk's group commit can do: as many callers as there are matchmakers, each of which writes the row of an
//! allocation straight to the store, and the next one as soon as it has heard that it is durable. No HTTP, no room table,
//! nobody to choose a room.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use maestro_core::allocation::{AllocationId, AllocationState, ClaimNumber};
use maestro_core::room::RoomId;
use maestro_core::time::Timestamp;
use maestro_engine::ports::Store;
use maestro_engine::ports::store::{Change, NewAllocation, Transaction};
use maestro_store_embedded::EmbeddedStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::cpu::process_time;
use crate::{fleet, registry};

use super::{Burst, Measured};

/// A store of its own, with the same fleet, on the same disk.
pub(super) struct Rows {
    runtime: Runtime,
    store: Arc<EmbeddedStore>,
    /// In the order in which the room table gives them away.
    rooms: Vec<RoomId>,
    round: u64,
    _directory: TempDir,
}

impl Rows {
    pub(super) fn prepare(directory: &Path, rooms: u32) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(directory)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
        let store = Arc::new(EmbeddedStore::open(directory.path())?);
        runtime.block_on(registry::fill(&*store, &registry::gone(rooms), Vec::new()))?;
        let scheduler = fleet::scheduler();
        let mut rooms: Vec<RoomId> = (0..rooms).map(|index| fleet::room_id(&scheduler, index)).collect();
        rooms.sort_by(|one, other| other.cmp(one));
        Ok(Self { runtime, store, rooms, round: 0, _directory: directory })
    }

    /// The rows are ended afterwards, which is not measured.
    pub(super) fn write(&mut self, burst: Burst) -> anyhow::Result<Measured> {
        self.round += 1;
        let now = Timestamp::now();
        let count = burst.callers * burst.each;
        let rows: Vec<NewAllocation> =
            (0..).zip(&self.rooms[..count]).map(|(index, room)| self.row(index, room, now)).collect();
        let ends = rows.iter().map(|row| Change::EndAllocation {
            scheduler: row.scheduler.clone(),
            allocation: row.id,
            state: AllocationState::Begun,
            cause: String::new(),
            at: now,
        });
        let ends = ends.map(|change| Transaction::of_no_scheduler("bench", vec![change])).collect();
        let (before, begin) = (process_time(), Instant::now());
        self.runtime.block_on(write_all(&self.store, rows, burst.callers))?;
        let per_second = count as f64 / begin.elapsed().as_secs_f64();
        let cpu_us = (process_time() - before).as_secs_f64() * 1e6 / count as f64;
        let ended = self.runtime.block_on(self.store.commit_each(ends))?;
        ended.into_iter().collect::<Result<(), _>>()?;
        Ok(Measured { per_second, cpu_us })
    }

    fn row(&self, index: u64, room: &RoomId, now: Timestamp) -> NewAllocation {
        // As real ones: new ids are greater than all before.
        let id = u128::from(now.as_microsecond().unsigned_abs()) << 64 | u128::from(index);
        NewAllocation {
            id: AllocationId::from_u128(id),
            scheduler: fleet::scheduler(),
            room: room.clone(),
            number: ClaimNumber(self.round),
            matches_max: 1,
            request: None,
            created_at: now,
            expires_at: now,
            metadata: None,
        }
    }
}

/// The callers take turns with the rows, so that those that are written together belong to rooms that are close together.
async fn write_all(
    store: &Arc<EmbeddedStore>,
    rows: Vec<NewAllocation>,
    callers: usize,
) -> anyhow::Result<()> {
    let mut of_callers = vec![Vec::new(); callers];
    for (index, row) in rows.into_iter().enumerate() {
        of_callers[index % callers].push(row);
    }
    let mut tasks = JoinSet::new();
    for own in of_callers {
        let store = store.clone();
        tasks.spawn(async move {
            for row in own {
                store.commit(Transaction::of_no_scheduler("bench", vec![Change::Allocate(row)])).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
