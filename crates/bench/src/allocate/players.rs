//! What the rooms of the fleet say: that players have come, and that they have left. Said to the engine, without HTTP.

use std::time::{Duration, Instant};

use anyhow::ensure;
use maestro_core::room::{PingStatus, RoomStatus};
use maestro_engine::Engine;
use maestro_engine::ports::room_table::{FleetCounts, Ping};

use crate::fleet;

/// Holds are settled within milliseconds; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// All matches begin, whether somebody has taken the room or not, and end again. Returns when all rooms are free.
pub(super) async fn come_and_leave(engine: &Engine, rooms: u32) -> anyhow::Result<()> {
    say(engine, rooms, PingStatus::Occupied).await?;
    wait_for(engine, "no room is held", |counts| counts.holds == 0).await?;
    leave(engine, rooms).await
}

/// Returns when all rooms are free.
pub(super) async fn leave(engine: &Engine, rooms: u32) -> anyhow::Result<()> {
    say(engine, rooms, PingStatus::Ready).await?;
    wait_for(engine, "all rooms are ready", |counts| counts.by_status.of(RoomStatus::Ready) == rooms).await
}

async fn say(engine: &Engine, rooms: u32, status: PingStatus) -> anyhow::Result<()> {
    let scheduler = fleet::scheduler();
    for index in 0..rooms {
        let room = fleet::room_id(&scheduler, index);
        let matches = u32::from(status == PingStatus::Occupied);
        engine.ping(Ping { matches, ..Ping::of(scheduler.as_str(), room.as_str(), status) }).await?;
    }
    Ok(())
}

async fn wait_for(engine: &Engine, what: &str, holds: impl Fn(&FleetCounts) -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds(&engine.ports().table.counts(&fleet::scheduler()).await?) {
        ensure!(Instant::now() < deadline, "after {PATIENCE:?} it is not so that {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
