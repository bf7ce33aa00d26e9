//! The store, as it is opened.

use std::sync::Arc;

use crate::error::OpenError;
use crate::migrations;
use crate::opening::Warning;
use crate::options::Options;
use crate::server::Server;
use crate::value::values;

pub struct PostgresStore {
    id: String,
    pub(crate) server: Arc<Server>,
}

/// A store, and what people should know about the server that it is on.
pub struct Opened {
    pub store: PostgresStore,
    pub warnings: Vec<Warning>,
}

impl PostgresStore {
    /// Connects to the database, and refuses one that this Maestro cannot work with. Changes nothing: only
    /// [`migrate`](crate::migrate) does.
    pub async fn open(options: &Options) -> Result<Opened, OpenError> {
        let server = Arc::new(Server::new(options)?);
        let session = server.connect().await?;
        let warnings = server.check_server(&session).await?;
        migrations::check(&session, true).await?;
        if options.prepared_statements {
            server.check_prepared_statements(&session).await?;
        }
        let id = session.find("SELECT id FROM store", values![]).await;
        let id = id.map_err(OpenError::of("read the store's id"))?.unwrap_or_default();
        drop(session);
        Ok(Opened { store: Self { id, server }, warnings })
    }

    /// What marks rooms as this store's.
    pub fn store_id(&self) -> &str {
        &self.id
    }
}
