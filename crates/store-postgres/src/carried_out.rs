//! Transactions that were carried out, and may be sent again.

use std::sync::Arc;
use std::time::Duration;

use maestro_engine::ports::store::TransactionId;
use tokio::time::Instant;

use crate::failure::Result;
use crate::server::Server;
use crate::session::{Answer, Session, Statement};
use crate::time::now_sql;
use crate::value::values;
use crate::writes::{Pace, Write};

/// As long as the port says, in microseconds.
const REMEMBERED: i64 = 15 * 60 * 1_000_000;

/// Often enough that few rows are forgotten at once.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Rows in one transaction: a moment's work.
const FORGOTTEN_MAX: i64 = 10_000;

/// Writes the transaction down. Nothing is written if it was carried out before; one that is being carried out just now under
/// this id is waited for.
pub(crate) fn note(id: TransactionId) -> Statement<'static> {
    let sql = concat!(
        "WITH new AS (INSERT INTO carried_out (id, at) VALUES ($1, ",
        now_sql!(),
        ") ON CONFLICT DO NOTHING RETURNING 1) SELECT EXISTS (SELECT 1 FROM new) AS done"
    );
    Statement::new(sql, values![id])
}

/// Answers how many it forgot.
struct Forget;

impl Write for Forget {
    type Answer = i64;

    /// Several processes forget different ones.
    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        let sql = concat!(
            "WITH old AS (
                SELECT id FROM carried_out WHERE at < ",
            now_sql!(),
            " - $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED),
            forgotten AS (DELETE FROM carried_out WHERE id IN (SELECT id FROM old) RETURNING 1)
            SELECT count(*) FROM forgotten"
        );
        vec![Statement::new(sql, values![REMEMBERED, FORGOTTEN_MAX])]
    }

    async fn carry_out(&self, _: &Session, begun: &[Answer], _: Pace) -> Result<i64> {
        let forgotten = begun.first().map_or(Ok(None), Answer::value)?;
        Ok(forgotten.unwrap_or_default())
    }
}

impl Server {
    /// Forgets old ones beside what else goes on, now and then. Who cannot does it the next time.
    pub(crate) fn forget_now_and_then(self: &Arc<Self>) {
        {
            let mut forgotten_at = self.forgotten_at.lock();
            if forgotten_at.is_some_and(|at: Instant| at.elapsed() < FORGET_EVERY) {
                return;
            }
            *forgotten_at = Some(Instant::now());
        }
        let server = self.clone();
        tokio::spawn(async move { while matches!(server.write(Forget).await, Ok(FORGOTTEN_MAX)) {} });
    }
}
