//! What is looked at before a database is used. Nothing is changed.

use crate::columns::Columns;
use crate::error::{OLDEST, OpenError};
use crate::failure::{Failure, Result};
use crate::server::Server;
use crate::session::Session;
use crate::value::values;

/// What may be meant so, and will hurt one day if it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "synchronous_commit is off in the database of store.postgres.url: what was answered as done may be gone when \
         PostgreSQL crashes"
    )]
    AsynchronousCommit,
    #[error(
        "PostgreSQL at store.postgres.url has replicas, and none is synchronous (synchronous_standby_names): what was \
         answered as done may be gone after a failover"
    )]
    NoSynchronousReplica,
}

impl Server {
    pub(crate) async fn connect(&self) -> Result<Session, OpenError> {
        self.session().await.map_err(|failure| OpenError::unconnected(&failure))
    }

    /// Whether this server can hold a store at all.
    pub(crate) async fn check_server(&self, session: &Session) -> Result<Vec<Warning>, OpenError> {
        let failed = OpenError::of("look at the settings");
        let sql = "SELECT current_setting('server_version') AS version,
                current_setting('server_version_num')::BIGINT AS version_number,
                pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS is_read_only,
                current_setting('synchronous_commit') AS synchronous_commit,
                (SELECT count(*) FROM pg_stat_replication) AS replicas,
                current_setting('synchronous_standby_names') AS synchronous_replicas";
        let rows = session.rows(sql, values![]).await.map_err(failed)?;
        let columns = rows.first().map(Columns);
        let Some(columns) = columns else { return Ok(Vec::new()) };
        if columns.get::<i64>("version_number").map_err(failed)? < OLDEST {
            return Err(OpenError::TooOld { version: columns.get("version").map_err(failed)? });
        }
        if columns.get("is_read_only").map_err(failed)? {
            return Err(OpenError::ReadOnly);
        }
        warnings(&columns).map_err(failed)
    }

    /// Behind a pooler that gives each transaction the next best connection, a statement is gone as soon as another client
    /// has got the connection on which it was prepared.
    pub(crate) async fn check_prepared_statements(&self, session: &Session) -> Result<(), OpenError> {
        const PROBE: &str = "SELECT 'maestro'::TEXT";
        let failed = OpenError::of("try a prepared statement");
        session.find::<String>(PROBE, values![]).await.map_err(failed)?;
        let other = self.connect().await?;
        other.begin(&[]).await.map_err(failed)?;
        let found = session.find::<String>(PROBE, values![]).await;
        other.roll_back().await;
        match found {
            Ok(_) => Ok(()),
            Err(Failure::Postgres(error)) if error.as_db_error().is_some() => Err(OpenError::Pooler),
            Err(failure) => Err(failed(failure)),
        }
    }
}

fn warnings(columns: &Columns<'_>) -> Result<Vec<Warning>> {
    let mut warnings = Vec::new();
    if columns.get::<&str>("synchronous_commit")? == "off" {
        warnings.push(Warning::AsynchronousCommit);
    }
    if columns.get::<i64>("replicas")? > 0 && columns.get::<&str>("synchronous_replicas")?.is_empty() {
        warnings.push(Warning::NoSynchronousReplica);
    }
    Ok(warnings)
}
