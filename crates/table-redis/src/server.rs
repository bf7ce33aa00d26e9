//! The connection to Redis: one that all calls share, made again when it breaks or does not answer.
//!
//! A call never lasts longer than its deadline, and nothing is asked twice: a request whose answer is missing may have been
//! carried out. A connection over which an answer did not come in time is given up. If its server was stopped for a while,
//! that costs a new connection; if the network lost it without a word, nothing else would notice.

use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, RedisError};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::scripts::Script;

/// So long nobody tries to connect after a failed attempt: calls fail at once meanwhile.
const RECONNECT_AFTER: Duration = Duration::from_millis(100);

/// The last arguments of a script are what is asked for.
const KEYS: u8 = 1;

pub(crate) struct Server {
    client: Client,
    deadline: Duration,
    state: Mutex<State>,
    /// One at a time connects; the others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<Numbered>,
    last_number: u64,
    failed: Option<(Instant, String)>,
}

#[derive(Clone)]
struct Numbered {
    number: u64,
    connection: MultiplexedConnection,
}

/// What a script answers.
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    /// Statuses have changed that are not in the ring of events yet.
    pub(crate) has_told: bool,
}

/// Why a script has no answer.
pub(crate) enum ScriptFailure {
    Lost,
    Other(Failure),
}

impl From<Failure> for ScriptFailure {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl Server {
    pub(crate) fn new(client: Client, deadline: Duration) -> Self {
        Self { client, deadline, state: Mutex::default(), connecting: tokio::sync::Mutex::default() }
    }

    /// Where it is, without its password.
    pub(crate) fn address(&self) -> String {
        match self.client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                format!("{host}:{port}")
            }
            other => other.to_string(),
        }
    }

    pub(crate) async fn run<T: DeserializeOwned>(
        &self,
        script: &Script,
        keys: &str,
        asked: &[u8],
    ) -> Result<Answer<T>, ScriptFailure> {
        let answer = self.in_time(async |connection: &mut MultiplexedConnection| {
            let known = redis::cmd("EVALSHA").arg(&script.hash).arg(KEYS).arg(keys).arg(asked).to_owned();
            match known.query_async(connection).await {
                Err(error) if error.code() == Some("NOSCRIPT") => {
                    let whole =
                        redis::cmd("EVAL").arg(&script.source).arg(KEYS).arg(keys).arg(asked).to_owned();
                    whole.query_async(connection).await
                }
                answer => answer,
            }
        });
        let (word, has_told, packed): (String, u8, Vec<u8>) = answer.await?;
        if word == "LOST" {
            return Err(ScriptFailure::Lost);
        }
        let value = rmp_serde::from_slice(&packed);
        let value = value.map_err(|error| Failure::unreadable("the answer of a script", error))?;
        Ok(Answer { value, has_told: has_told == 1 })
    }

    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        self.in_time(async |connection: &mut MultiplexedConnection| command.query_async(connection).await)
            .await
    }

    /// A connection of its own, for commands that wait for so long.
    pub(crate) async fn connect_to_wait(
        &self,
        longest_wait: Duration,
    ) -> Result<MultiplexedConnection, Failure> {
        self.connect(self.deadline + longest_wait).await.map_err(|error| self.failure(&error))
    }

    async fn in_time<T>(
        &self,
        ask: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, Failure> {
        let mut used = None;
        let answer = timeout(self.deadline, async {
            let Numbered { number, mut connection } = self.connection().await?;
            used = Some(number);
            ask(&mut connection).await.map_err(|error| {
                if is_broken(&error) {
                    self.give_up(number);
                }
                self.failure(&error)
            })
        });
        match answer.await {
            Ok(answer) => answer,
            Err(_) => {
                used.into_iter().for_each(|number| self.give_up(number));
                Err(self.no_answer())
            }
        }
    }

    fn no_answer(&self) -> Failure {
        Failure::Unavailable(format!(
            "Redis at {} has not answered within {:?}",
            self.address(),
            self.deadline
        ))
    }

    fn failure(&self, error: &RedisError) -> Failure {
        match error.kind() {
            _ if error.is_timeout() => self.no_answer(),
            ErrorKind::AuthenticationFailed => {
                Failure::Unavailable(format!("Redis at {}: user or password is wrong", self.address()))
            }
            _ => Failure::Unavailable(format!("Redis at {}: {error}", self.address())),
        }
    }

    async fn connection(&self) -> Result<Numbered, Failure> {
        if let Some(known) = self.known_connection()? {
            return Ok(known);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(known) = self.known_connection()? {
            return Ok(known);
        }
        match self.connect(self.deadline).await {
            Ok(connection) => {
                let mut state = self.state.lock();
                state.last_number += 1;
                let numbered = Numbered { number: state.last_number, connection };
                state.connection = Some(numbered.clone());
                state.failed = None;
                Ok(numbered)
            }
            Err(error) => {
                let failure = self.failure(&error);
                self.state.lock().failed = Some((Instant::now(), failure.to_string()));
                Err(failure)
            }
        }
    }

    fn known_connection(&self) -> Result<Option<Numbered>, Failure> {
        let state = self.state.lock();
        match (&state.connection, &state.failed) {
            (Some(known), _) => Ok(Some(known.clone())),
            (None, Some((at, why))) if at.elapsed() < RECONNECT_AFTER => {
                Err(Failure::Unavailable(why.clone()))
            }
            (None, _) => Ok(None),
        }
    }

    async fn connect(&self, response_timeout: Duration) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.deadline))
            .set_response_timeout(Some(response_timeout));
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    fn give_up(&self, number: u64) {
        let mut state = self.state.lock();
        if state.connection.as_ref().is_some_and(|known| known.number == number) {
            state.connection = None;
        }
    }
}

/// Nothing will come over this connection, or not from a server that may be written to.
fn is_broken(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || error.is_timeout()
        || error.code() == Some("READONLY")
}
