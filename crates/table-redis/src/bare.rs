//! Pings without anything around them, for benchmarks: what the table is compared with.

use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{Ping, TableError};
use serde::de::IgnoredAny;

use crate::RedisRoomTable;
use crate::pings::{batch, packed};

impl RedisRoomTable {
    pub fn pack_pings(pings: &[Ping<'_>], at: Timestamp) -> Result<Vec<u8>, TableError> {
        let packed = pings.iter().map(|ping| packed(ping, at)).collect::<Result<Vec<_>, _>>()?;
        Ok(batch(&packed)?)
    }

    /// Sends what [`pack_pings`](Self::pack_pings) has packed, and does not look at the answers.
    pub async fn send_packed(&self, scheduler: &SchedulerName, pings: &[u8]) -> Result<(), TableError> {
        self.0.run_packed::<IgnoredAny>(&self.0.scripts.ping, scheduler, pings).await?;
        Ok(())
    }
}
