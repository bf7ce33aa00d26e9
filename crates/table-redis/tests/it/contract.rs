//! The table keeps the contract of its port.

use std::sync::Arc;

use maestro_engine::ports::RoomTable;
use maestro_engine::ports::contract::room_table;

use crate::tables::fresh;

#[tokio::test]
async fn room_table() {
    room_table::run_all(|| async { Arc::new(fresh(&[]).await) as Arc<dyn RoomTable> }).await;
}
