//! Memory per room in the room table: what the process grows by, the allocator's own share and spare places in hash
//! maps included. That is what has to be paid for.

use std::fs;

use anyhow::Context as _;
use maestro_core::room::{InstanceStatus, PingStatus, Region};
use maestro_engine::ports::RoomTable;
use maestro_engine::ports::room_table::Ping;
use maestro_store_embedded::MemoryRoomTable;

use crate::figure::Figure;
use crate::{Effort, fleet};

pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Figure>> {
    let rooms = effort.pick(100_000, 2_000);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let before = resident_bytes()?;
    let table = MemoryRoomTable::new();
    let said_bytes = runtime.block_on(fill(&table, rooms))?;
    let grown_by = resident_bytes()?.saturating_sub(before);
    let counts = runtime.block_on(table.counts(&fleet::scheduler()))?;
    let there = counts.by_instance.of(InstanceStatus::Ready);
    anyhow::ensure!(there == rooms, "{there} of {rooms} rooms are in the table");
    let figure = Figure::new("memory.room", grown_by as f64 / f64::from(rooms), "bytes");
    Ok(vec![figure.compared("its id and metadata alone", grown_by as f64 / said_bytes as f64)])
}

/// Rooms that have pinged, each with metadata of its own. Answers how many bytes ids and metadata have together.
async fn fill(table: &MemoryRoomTable, rooms: u32) -> anyhow::Result<usize> {
    let (scheduler, region) = (fleet::scheduler(), Region::default_region());
    table.begin_rebuild(&scheduler).await?;
    table.end_rebuild(&scheduler).await?;
    let mut said_bytes = 0;
    for index in 0..rooms {
        let room = fleet::new_room(&scheduler, &region, index);
        let id = room.id.clone();
        table.insert(room).await?;
        let metadata = format!(r#"{{"map":"harbour","mode":"ranked","players":{}}}"#, index % 64);
        said_bytes += id.as_str().len() + metadata.len();
        let ping = Ping {
            metadata: Some(&metadata),
            ..Ping::of(scheduler.as_str(), id.as_str(), PingStatus::Ready)
        };
        table.ping(ping, fleet::at(10)).await?;
    }
    Ok(said_bytes)
}

fn resident_bytes() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kilobytes.context("VmRSS is not where it was")? * 1024)
}
