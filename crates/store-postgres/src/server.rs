//! The server: how it is connected to, and the pool of connections.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use maestro_engine::ports::store::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_postgres::{Config, NoTls};

use crate::error::OpenError;
use crate::failure::Result;
use crate::options::Options;
use crate::recipes::RecipeCache;
use crate::session::{Manners, Session, Statement};

/// How long a connection may take to be there; also how long a question waits for one that is free.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// A server that says nothing for as long as its own limit and this is not there.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Shows who is connected, in PostgreSQL's own lists.
const APPLICATION: &str = "maestro";

pub(crate) struct Server {
    pool: Pool,
    manners: Arc<Manners>,
    pub(crate) recipes: RecipeCache,
    /// When old transactions were last forgotten.
    pub(crate) forgotten_at: Mutex<Option<Instant>>,
}

impl Server {
    /// Connects to nothing yet.
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let Options { url: _, connections_max, statement_timeout, prepared_statements } = options;
        let mut config = parse(options)?;
        let limits = limits(*statement_timeout);
        let mut begin = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
        let mut begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned();
        if *prepared_statements {
            let limits: String = limits.map(|(name, value)| format!(" -c {name}={value}")).concat();
            config.options(format!("{}{limits}", config.get_options().unwrap_or_default()));
        } else {
            // A pooler passes no options on, and gives each transaction another connection.
            let limits: String = limits.map(|(name, value)| format!("; SET LOCAL {name} = {value}")).concat();
            begin += &limits;
            begin_snapshot += &limits;
        }
        let patience = *statement_timeout + SILENCE_MAX;
        let manners = Manners { begin, begin_snapshot, prepares: *prepared_statements, patience };
        let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, fast))
            .max_size(*connections_max)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_MAX))
            .create_timeout(Some(CONNECT_MAX))
            .recycle_timeout(Some(CONNECT_MAX))
            .build()
            .map_err(|error| OpenError::Settings { why: error.to_string() })?;
        Ok(Self {
            pool,
            manners: Arc::new(manners),
            recipes: RecipeCache::default(),
            forgotten_at: Mutex::default(),
        })
    }

    pub(crate) async fn session(&self) -> Result<Session> {
        Ok(Session::new(self.pool.get().await?, self.manners.clone()))
    }

    /// `what` completes "the store could not …".
    pub(crate) async fn reader(&self, what: &'static str) -> Result<Session, StoreError> {
        self.session().await.map_err(|failure| failure.into_store_error(what))
    }

    /// All that is asked of it is answered as of the same moment. The transaction is over when it is dropped.
    pub(crate) async fn snapshot(&self) -> Result<Session> {
        let session = self.session().await?;
        session.begin_snapshot(&[] as &[Statement<'_>]).await?;
        Ok(session)
    }
}

pub(crate) fn parse(options: &Options) -> Result<Config, OpenError> {
    let wrong = |why: String| OpenError::Url { why };
    let mut config =
        Config::from_str(&options.url).map_err(|error| wrong(maestro_engine::with_sources(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(wrong("it names no host".into()));
    }
    if config.get_dbname().is_none() && config.get_user().is_none() {
        return Err(wrong("it names neither a database nor a user".into()));
    }
    config.application_name(config.get_application_name().unwrap_or(APPLICATION).to_owned());
    config.connect_timeout(*config.get_connect_timeout().unwrap_or(&CONNECT_MAX));
    // A server that is gone without a word is noticed by the system, not only by whoever asks next.
    config.tcp_user_timeout(options.statement_timeout + SILENCE_MAX);
    Ok(config)
}

/// The server's own limits, in milliseconds.
fn limits(statement_timeout: Duration) -> [(&'static str, u128); 3] {
    let millis = statement_timeout.as_millis().max(1);
    ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"].map(|name| (name, millis))
}
