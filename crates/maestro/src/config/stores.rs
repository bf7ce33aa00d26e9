//! Where the stores are: in the data directory, or on servers that several processes share.

use std::time::Duration;

use super::keys::{Config, RoomTableServer, StoreServer};
use super::server_url::ServerUrl;

const POSTGRES: &str = "store.postgres.url";
const REDIS: &str = "roomTable.redis.url";

/// The servers of shared stores.
#[derive(Debug, Clone, Copy)]
pub struct SharedStores<'a> {
    pub postgres: &'a ServerUrl,
    pub store: &'a StoreServer,
    pub redis: &'a ServerUrl,
    pub room_table: &'a RoomTableServer,
}

impl Config {
    /// `None`: the embedded store.
    pub fn shared_stores(&self) -> Option<SharedStores<'_>> {
        let (store, room_table) = (&self.store_server, &self.room_table_server);
        let (postgres, redis) = (store.url.as_ref()?, room_table.url.as_ref()?);
        Some(SharedStores { postgres, store, redis, room_table })
    }

    /// What does not go together.
    pub(super) fn conflicts_of_stores(&self) -> Vec<String> {
        let Self { store_server, room_table_server, workers, .. } = self;
        let needs = |set: &str, other: &str| {
            format!(
                "{other}: is not set, and {set} is: processes that share one store share a room table too. Set both, \
                 or neither for the embedded store"
            )
        };
        let mut conflicts = Vec::new();
        match (&store_server.url, &room_table_server.url) {
            (Some(_), None) => conflicts.push(needs(POSTGRES, REDIS)),
            (None, Some(_)) => conflicts.push(needs(REDIS, POSTGRES)),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let most = workers.ownership_ttl / 3;
        if store_server.url.is_some() && store_server.statement_timeout > most {
            conflicts.push(format!(
                "store.postgres.statementTimeout: must be at most {}, a third of workers.ownershipTtlMillis: a process \
                 that is stopped inside a transaction would keep others from their schedulers",
                super::duration::format(round_down(most))
            ));
        }
        conflicts
    }
}

fn round_down(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
