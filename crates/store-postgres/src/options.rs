//! What can be chosen when a store is opened.

use std::time::Duration;

/// How a store is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database`, or `host=… user=…`; several hosts for a server with replicas.
    pub url: String,
    /// Connections of this process, at most.
    pub connections_max: usize,
    /// How long the server works on one statement, waits for one lock, or for the next statement of a transaction, before
    /// it gives up. Below a third of the time after which ownerships run out: a process that is stopped inside a
    /// transaction holds up nobody for longer.
    pub statement_timeout: Duration,
    /// Off behind a pooler that gives each transaction another connection and knows nothing of prepared statements.
    pub prepared_statements: bool,
}

impl Options {
    /// Few: a connection is a process of the server, and two per core of it are as fast as any number.
    pub const CONNECTIONS_MAX: usize = 16;

    /// A third of the ten seconds that ownerships last is more.
    pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);

    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections_max: Self::CONNECTIONS_MAX,
            statement_timeout: Self::STATEMENT_TIMEOUT,
            prepared_statements: true,
        }
    }
}
