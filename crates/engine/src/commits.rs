//! Transactions on their way to the store. If an answer is lost, nobody can say whether it was done; so the transaction is
//! sent again, under the same id, until the store says what became of it. Callers hear of a lost answer only when the store
//! has not given one for a long time.

use std::time::Duration;

use tokio::time::Instant;

use crate::Engine;
use crate::ports::store::{Refusal, StoreError, Transaction};

/// For this long a transaction is sent again: much longer than a failover of the store, shorter than what callers wait.
const SETTLE_MAX: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl Engine {
    #[expect(clippy::disallowed_methods, reason = "what is written here is told by the callers")]
    pub(crate) async fn write(&self, mut transaction: Transaction) -> Result<(), StoreError> {
        self.name(&mut transaction);
        until_answered(transaction.label, || self.ports.store.commit(transaction.clone())).await
    }

    #[expect(clippy::disallowed_methods, reason = "what is written here is told by the callers")]
    pub(crate) async fn write_each(
        &self,
        mut transactions: Vec<Transaction>,
    ) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        transactions.iter_mut().for_each(|transaction| self.name(transaction));
        let label = transactions.first().map_or("nothing", |transaction| transaction.label);
        until_answered(label, || self.ports.store.commit_each(transactions.clone())).await
    }

    fn name(&self, transaction: &mut Transaction) {
        transaction.id = Some(self.ports.random.transaction_id(self.now()));
    }
}

/// A refusal, or that it was not done, is an answer, too.
async fn until_answered<T, Sent>(label: &'static str, send: impl Fn() -> Sent) -> Result<T, StoreError>
where
    Sent: Future<Output = Result<T, StoreError>>,
{
    let deadline = Instant::now() + SETTLE_MAX;
    let mut pause = FIRST_PAUSE;
    let mut is_lost = false;
    loop {
        let lost = match send().await {
            Err(lost @ StoreError::Unknown { .. }) => lost,
            // It cannot be reached now, and may have done it before.
            Err(StoreError::Unavailable { step, source }) if is_lost => StoreError::Unknown { step, source },
            answer => return answer,
        };
        is_lost = true;
        if Instant::now() + pause > deadline {
            return Err(lost);
        }
        tracing::debug!(write = label, error = crate::with_sources(&lost), "an answer is lost: sent again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    fn lost() -> Result<(), StoreError> {
        Err(StoreError::unknown("write", "the connection broke"))
    }

    fn down() -> Result<(), StoreError> {
        Err(StoreError::unavailable("write", "no connection"))
    }

    fn refused() -> Result<(), StoreError> {
        Err(Refusal::RoomExists(maestro_core::room::RoomId::new("r-1")).into())
    }

    /// What a caller hears of these answers, of which the last one is given again and again, and how many were heard.
    async fn heard(mut answers: Vec<fn() -> Result<(), StoreError>>) -> (Result<(), StoreError>, usize) {
        answers.reverse();
        let (answers, sent) = (Mutex::new(answers), Mutex::new(0));
        let send = || {
            *sent.lock() += 1;
            let mut answers = answers.lock();
            let answer = if answers.len() > 1 { answers.pop() } else { answers.first().copied() };
            std::future::ready(answer.map_or(Ok(()), |answer| answer()))
        };
        let answer = until_answered("test", send).await;
        let sent = *sent.lock();
        (answer, sent)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_asked_for_again() {
        assert!(matches!(heard(vec![|| Ok(())]).await, (Ok(()), 1)));
        assert!(matches!(heard(vec![lost, lost, || Ok(())]).await, (Ok(()), 3)));
        assert!(matches!(heard(vec![lost, refused]).await, (Err(StoreError::Refused(_)), 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_done_is_not_sent_again() {
        assert!(matches!(heard(vec![down]).await, (Err(StoreError::Unavailable { .. }), 1)));
        assert!(matches!(heard(vec![refused]).await, (Err(StoreError::Refused(_)), 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_goes_away_after_a_lost_answer_leaves_it_unknown() {
        assert!(matches!(heard(vec![lost, down, || Ok(())]).await, (Ok(()), 3)));
        let (answer, sent) = heard(vec![lost, down]).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })) && sent > 10, "{answer:?} after {sent}");
        let (answer, sent) = heard(vec![lost]).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })) && sent < 30, "{answer:?} after {sent}");
    }
}
