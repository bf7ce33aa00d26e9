//! Tables on a Redis that all tests of this program share, each with keys of its own.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::RoomTable;
use maestro_table_redis::{Options, RedisRoomTable};
use maestro_testkit::RedisServer;

pub(crate) fn server() -> &'static RedisServer {
    static SERVER: LazyLock<RedisServer> = LazyLock::new(|| RedisServer::start(&[]).unwrap());
    &SERVER
}

pub(crate) fn name(text: &str) -> SchedulerName {
    SchedulerName::parse(text).unwrap()
}

/// With keys that no other table has.
pub(crate) fn own_keys(server: &RedisServer) -> Options {
    static TABLES: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("test-{}", TABLES.fetch_add(1, Ordering::Relaxed));
    Options { prefix, ..Options::new(&server.url()) }
}

pub(crate) async fn open(options: &Options) -> RedisRoomTable {
    RedisRoomTable::open(options).await.unwrap()
}

/// Empty, and of these schedulers everything is there.
pub(crate) async fn fresh(schedulers: &[&str]) -> RedisRoomTable {
    let table = open(&own_keys(server())).await;
    for scheduler in schedulers {
        begin(&table, &name(scheduler)).await;
    }
    table
}

/// A scheduler without rooms.
pub(crate) async fn begin(table: &dyn RoomTable, scheduler: &SchedulerName) {
    assert!(table.begin_rebuild(scheduler).await.unwrap(), "{scheduler} is lost");
    table.end_rebuild(scheduler).await.unwrap();
}
