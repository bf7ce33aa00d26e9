//! How a transaction is begun, done, undone and done again.

use std::sync::Arc;

use maestro_engine::ports::store::StoreError;

use crate::failure::{Failure, Result};
use crate::server::Server;
use crate::session::{Answer, Session, Statement};

/// How often a transaction is done that meets others again and again: each time, one of those has got on.
const ATTEMPTS_MAX: u32 = 8;

/// What is done in one transaction, as often as it takes.
pub(crate) trait Write: Send + Sync + 'static {
    type Answer: Send + 'static;

    /// The first statements: the locks, in an order that is the same for all. They are statements of their own, so that
    /// whatever follows sees what was committed before the locks were given.
    fn begin(&self, pace: Pace) -> Vec<Statement<'_>>;

    /// `begun`: the answers to the first statements.
    fn carry_out(
        &self,
        session: &Session,
        begun: &[Answer],
        pace: Pace,
    ) -> impl Future<Output = Result<Self::Answer>> + Send;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Many changes on one way to the server and back; one that is refused undoes all, and is looked for
    /// [one by one](Pace::OneByOne).
    Together,
    OneByOne,
}

impl Server {
    /// Done, and as durable as the database is, when it returns. Once it is begun it is carried out, also if nobody waits for
    /// the answer any more.
    pub(crate) async fn write<W: Write>(self: &Arc<Self>, write: W) -> Result<W::Answer, StoreError> {
        let server = self.clone();
        let task = tokio::spawn(async move { server.write_until_done(&write).await });
        match task.await {
            Ok(answer) => answer.map_err(|failure| failure.into_store_error("write")),
            Err(panicked) => Err(StoreError::unknown("write", panicked)),
        }
    }

    async fn write_until_done<W: Write>(&self, write: &W) -> Result<W::Answer> {
        let mut pace = Pace::Together;
        let mut attempt = 1;
        loop {
            match self.try_to_write(write, pace).await {
                Err(Failure::RefusedTogether) if pace == Pace::Together => pace = Pace::OneByOne,
                Err(failure) if failure.is_conflict() && attempt < ATTEMPTS_MAX => {
                    tracing::debug!(%failure, attempt, "a transaction is done again");
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn try_to_write<W: Write>(&self, write: &W, pace: Pace) -> Result<W::Answer> {
        let session = self.session().await?;
        let done = async {
            let begun = session.begin(&write.begin(pace)).await?;
            write.carry_out(&session, &begun, pace).await
        };
        match done.await {
            Ok(answer) => {
                session.commit().await?;
                Ok(answer)
            }
            // Closing the connection undoes it too, and waits for no answer.
            Err(failure @ Failure::TooSlow(_)) => Err(failure),
            Err(failure) => {
                session.roll_back().await;
                Err(failure)
            }
        }
    }
}
