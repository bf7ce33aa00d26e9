//! Opens the stores: those of the data directory, or those on servers that several processes share.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use maestro_engine::Tasks;
use maestro_engine::ports::{RoomTable, Store, WakeUpChannel};
use maestro_store_embedded::{EmbeddedStore, Failpoints, MemoryRoomTable, OpenError, server_of};
use maestro_store_postgres::{PostgresStore, PostgresWakeUps};
use maestro_table_redis::RedisRoomTable;

use crate::config::{SharedStores, StoreServer};

use super::system::SystemClock;

/// Tests kill the process, or fill the disk, at writes that this variable names; see `maestro_store_embedded`. A build
/// without the feature `failpoints` refuses to start with it.
const FAILPOINT_VARIABLE: &str = "MAESTRO_FAILPOINT";

/// Where everything is kept, and the way to the other processes that keep it there too.
pub(super) struct Stores {
    pub(super) store: Arc<dyn Store>,
    pub(super) table: Arc<dyn RoomTable>,
    /// `None`: there are no others.
    pub(super) wake_up_channel: Option<Arc<dyn WakeUpChannel>>,
    pub(super) store_id: String,
}

impl Stores {
    /// Of one process.
    pub(super) fn embedded(store: EmbeddedStore, tasks: &Tasks) -> Self {
        store.report_to(tasks.health().clone());
        Self {
            store_id: store.store_id().to_owned(),
            store: Arc::new(store),
            table: Arc::new(MemoryRoomTable::new()),
            wake_up_channel: None,
        }
    }

    /// Looks at both servers before anything is done, and changes nothing.
    pub(super) async fn connect(servers: SharedStores<'_>) -> anyhow::Result<Self> {
        let options = postgres_options(servers);
        let maestro_store_postgres::Opened { store, warnings } = PostgresStore::open(&options).await?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let table = RedisRoomTable::open(&redis_options(servers)).await?;
        let wake_ups = PostgresWakeUps::open(&options).await?;
        if !wake_ups.passes() {
            tracing::warn!(
                "notifications do not pass over store.postgres.url, probably because of a pooler: every process looks for \
                 work once a second instead"
            );
        }
        Ok(Self {
            store_id: store.store_id().to_owned(),
            store: Arc::new(store),
            table: Arc::new(table),
            wake_up_channel: Some(Arc::new(wake_ups)),
        })
    }
}

pub(crate) fn postgres_options(servers: SharedStores<'_>) -> maestro_store_postgres::Options {
    let StoreServer { pool_size, statement_timeout, prepared_statements, url: _ } = servers.store;
    maestro_store_postgres::Options {
        connections_max: usize::try_from(*pool_size).unwrap_or(usize::MAX),
        statement_timeout: *statement_timeout,
        prepared_statements: *prepared_statements,
        ..maestro_store_postgres::Options::new(servers.postgres.with_password())
    }
}

fn redis_options(servers: SharedStores<'_>) -> maestro_table_redis::Options {
    let deadline = servers.room_table.deadline;
    maestro_table_redis::Options {
        deadline,
        ..maestro_table_redis::Options::new(servers.redis.with_password())
    }
}

/// Opens the data directory; the error says who has it, or what is wrong with it.
pub(super) fn open_embedded(
    directory: &Path,
    stop_unknown_rooms: bool,
    tasks: &Tasks,
) -> anyhow::Result<EmbeddedStore> {
    let failpoints = match std::env::var(FAILPOINT_VARIABLE) {
        Ok(text) => text.parse::<Failpoints>().map_err(anyhow::Error::msg).context(FAILPOINT_VARIABLE)?,
        Err(_) => Failpoints::default(),
    };
    let open = || {
        let options = maestro_store_embedded::Options {
            clock: Arc::new(SystemClock),
            failpoints: failpoints.clone(),
            rooms_of: Some(|store_id| maestro_runtime_process::rooms_of_store(store_id, server_of)),
            tasks: tasks.clone(),
            ..maestro_store_embedded::Options::default()
        };
        EmbeddedStore::open_with(directory, options)
    };
    match open() {
        Err(OpenError::Abandoned(rooms)) if stop_unknown_rooms => {
            tracing::warn!(store_id = rooms.store_id, rooms = ?rooms.rooms, "stopping rooms of a store that is gone");
            maestro_runtime_process::end_rooms_of_store(&rooms.store_id, server_of)?;
            Ok(open()?)
        }
        other => Ok(other?),
    }
}
