//! A connection of the pool for as long as a question or a transaction takes.
//!
//! Statements that do not depend on each other's answers are sent together: the server works through them in their order
//! while the answers to the first ones are on their way. Each wait for an answer has a bound of its own, because a server
//! that cannot be reached any more does not say so.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::Object;
use futures_util::TryStreamExt;
use futures_util::future::maybe_done;
use tokio_postgres::error::Severity;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{Row, RowStream};

use crate::failure::{Failure, Result};
use crate::value::Value;

/// Statements that are sent before the first answer is read: bounds what is in flight on one connection.
const SENT_MAX: usize = 256;

/// How sessions speak to the server.
#[derive(Debug)]
pub(crate) struct Manners {
    /// Begins a transaction that writes.
    pub(crate) begin: String,
    /// Begins one whose questions are all answered as of the same moment.
    pub(crate) begin_snapshot: String,
    /// Statements are prepared once for each connection.
    pub(crate) prepares: bool,
    /// More than the server takes for any statement before it gives up.
    pub(crate) patience: Duration,
}

/// What is asked of the server.
#[derive(Debug, Clone)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: Cow<'a, str>,
    pub(crate) values: Vec<Value<'a>>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: impl Into<Cow<'a, str>>, values: impl IntoIterator<Item = Value<'a>>) -> Self {
        Self { sql: sql.into(), values: values.into_iter().collect() }
    }

    fn types(&self) -> Vec<Type> {
        self.values.iter().map(Value::type_of).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    /// How many rows were written, or else returned.
    pub(crate) affected: u64,
}

impl Answer {
    /// The first column of the first row, if there is one.
    pub(crate) fn value<T: FromSqlOwned>(&self) -> Result<Option<T>> {
        self.rows.first().map(|row| Ok(row.try_get(0)?)).transpose()
    }

    /// Of a statement that answers whether it was done.
    pub(crate) fn is_done(&self) -> Result<bool> {
        Ok(self.value()?.unwrap_or(false))
    }

    /// What such a statement says beside.
    pub(crate) fn also(&self, column: &'static str) -> Result<bool> {
        self.rows.first().map_or(Ok(false), |row| Ok(row.try_get(column)?))
    }
}

/// Given back to the pool when it is dropped; closed instead if a transaction is open, which the server rolls back then.
pub(crate) struct Session {
    /// `None` only while it is being dropped.
    client: Option<Object>,
    manners: Arc<Manners>,
    is_open: AtomicBool,
}

impl Session {
    pub(crate) fn new(client: Object, manners: Arc<Manners>) -> Self {
        Self { client: Some(client), manners, is_open: AtomicBool::new(false) }
    }

    pub(crate) async fn ask<'a>(
        &self,
        sql: impl Into<Cow<'a, str>>,
        values: impl IntoIterator<Item = Value<'a>>,
    ) -> Result<Answer> {
        self.ask_one(&Statement::new(sql, values)).await
    }

    pub(crate) async fn ask_one(&self, statement: &Statement<'_>) -> Result<Answer> {
        let prepared = self.prepare(statement).await?;
        self.in_time(self.send(statement, prepared)).await
    }

    /// The rows alone.
    pub(crate) async fn rows<'a>(
        &self,
        sql: impl Into<Cow<'a, str>>,
        values: impl IntoIterator<Item = Value<'a>>,
    ) -> Result<Vec<Row>> {
        Ok(self.ask(sql, values).await?.rows)
    }

    /// The only value of the only row, or `None` if there is no row.
    pub(crate) async fn find<'a, T: FromSqlOwned>(
        &self,
        sql: impl Into<Cow<'a, str>>,
        values: impl IntoIterator<Item = Value<'a>>,
    ) -> Result<Option<T>> {
        self.ask(sql, values).await?.value()
    }

    /// Of a question that has a row in any case.
    pub(crate) async fn value<'a, T: FromSqlOwned + Default>(
        &self,
        sql: impl Into<Cow<'a, str>>,
        values: impl IntoIterator<Item = Value<'a>>,
    ) -> Result<T> {
        Ok(self.find(sql, values).await?.unwrap_or_default())
    }

    /// Several statements in their order, sent together.
    pub(crate) async fn ask_all(&self, statements: &[Statement<'_>]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(statements.len());
        for some in statements.chunks(SENT_MAX) {
            answers.extend(self.send_all(None, some).await?);
        }
        Ok(answers)
    }

    /// Begins a transaction that writes, with its first statements.
    pub(crate) async fn begin(&self, statements: &[Statement<'_>]) -> Result<Vec<Answer>> {
        self.send_all(Some(&self.manners.begin), statements).await
    }

    /// Begins a transaction that only reads, and sees all as of its first statement.
    pub(crate) async fn begin_snapshot(&self, statements: &[Statement<'_>]) -> Result<Vec<Answer>> {
        self.send_all(Some(&self.manners.begin_snapshot), statements).await
    }

    /// [`Failure::Lost`] if nobody can say whether it was done.
    pub(crate) async fn commit(&self) -> Result {
        let committed = self.in_time(async { Ok(self.client()?.batch_execute("COMMIT").await?) }).await;
        match committed {
            Ok(()) => {
                self.is_open.store(false, Ordering::Relaxed);
                Ok(())
            }
            // The server refused it, and lives on to tell: nothing was done.
            Err(Failure::Postgres(error)) if is_refused(&error) => Err(error.into()),
            Err(failure) => Err(Failure::Lost(Box::new(failure))),
        }
    }

    /// Undoes what was done. If that is not possible, the connection is closed, which does it too.
    pub(crate) async fn roll_back(&self) {
        let undone = self.in_time(async { Ok(self.client()?.batch_execute("ROLLBACK").await?) }).await;
        match undone {
            Ok(()) => self.is_open.store(false, Ordering::Relaxed),
            Err(failure) => tracing::debug!(%failure, "a connection is closed, for it could not roll back"),
        }
    }

    /// Statements without parameters or answers.
    pub(crate) async fn run(&self, statements: &str) -> Result {
        self.in_time(async { Ok(self.client()?.batch_execute(statements).await?) }).await
    }

    async fn send_all(&self, begin: Option<&str>, statements: &[Statement<'_>]) -> Result<Vec<Answer>> {
        // All of them before the first is sent: what is prepared later would be overtaken.
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepare(statement).await?);
        }
        let mut asked: Vec<Pin<Box<dyn Future<Output = Result<Answer>> + Send + '_>>> = Vec::new();
        if let Some(begin) = begin {
            self.is_open.store(true, Ordering::Relaxed);
            asked.push(Box::pin(async move {
                self.client()?.batch_execute(begin).await?;
                Ok(Answer::default())
            }));
        }
        for (statement, prepared) in statements.iter().zip(prepared) {
            asked.push(Box::pin(self.send(statement, prepared)));
        }
        let mut answers = self.in_order(asked).await?;
        if begin.is_some() {
            answers.remove(0);
        }
        Ok(answers)
    }

    /// Starts all of them before it waits for the first one. What is asked is sent when its future is first polled.
    async fn in_order<F>(&self, asked: Vec<Pin<Box<F>>>) -> Result<Vec<Answer>>
    where
        F: Future<Output = Result<Answer>> + Send + ?Sized,
    {
        let mut asked: Vec<_> = asked.into_iter().map(|asked| Box::pin(maybe_done(asked))).collect();
        for asked in &mut asked {
            poll_fn(|context| {
                let _ = asked.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        }
        let mut answers = Vec::with_capacity(asked.len());
        for mut asked in asked {
            let answer = self.in_time(async {
                asked.as_mut().await;
                asked.as_mut().take_output().unwrap_or_else(|| Ok(Answer::default()))
            });
            answers.push(answer.await?);
        }
        Ok(answers)
    }

    async fn prepare(&self, statement: &Statement<'_>) -> Result<Option<tokio_postgres::Statement>> {
        if !self.manners.prepares {
            return Ok(None);
        }
        let prepared =
            async { Ok(self.client()?.prepare_typed_cached(&statement.sql, &statement.types()).await?) };
        self.in_time(prepared).await.map(Some)
    }

    async fn send(
        &self,
        statement: &Statement<'_>,
        prepared: Option<tokio_postgres::Statement>,
    ) -> Result<Answer> {
        let values = statement.values.iter().map(|value| value as &(dyn ToSql + Sync));
        let rows = match prepared {
            Some(prepared) => {
                let values: Vec<_> = values.collect();
                self.client()?.query_raw(&prepared, values).await?
            }
            None => {
                let values: Vec<_> = values.zip(statement.types()).collect();
                self.client()?.query_typed_raw(&statement.sql, values).await?
            }
        };
        read(rows).await
    }

    async fn in_time<T>(&self, asked: impl Future<Output = Result<T>>) -> Result<T> {
        let patience = self.manners.patience;
        tokio::time::timeout(patience, asked).await.unwrap_or(Err(Failure::TooSlow(patience)))
    }

    fn client(&self) -> Result<&Object> {
        // A client that is being dropped is asked nothing any more.
        self.client.as_ref().ok_or(Failure::NoConnection(deadpool_postgres::PoolError::Closed))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if *self.is_open.get_mut()
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}

async fn read(rows: RowStream) -> Result<Answer> {
    let mut rows = pin!(rows);
    let mut answer = Answer::default();
    while let Some(row) = rows.as_mut().try_next().await? {
        answer.rows.push(row);
    }
    answer.affected = rows.rows_affected().unwrap_or_default();
    Ok(answer)
}

/// The transaction failed, and the session did not: whatever ends a session may have come after the commit.
fn is_refused(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|said| said.parsed_severity() == Some(Severity::Error))
}
