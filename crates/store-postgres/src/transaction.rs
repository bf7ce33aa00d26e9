//! Carries out [`Transaction`]s: the locks first, then whether it was done before, the guard, and the changes in their order.

use maestro_engine::ports::store::{Change, Guard, Refusal, Transaction};

use crate::changes::{Step, step};
use crate::failure::{Failure, Result};
use crate::row_locks::RowLocks;
use crate::session::{Answer, Session, Statement};
use crate::value::values;
use crate::writes::{Pace, Write};
use crate::{carried_out, locks, operations, workers};

/// Transactions that are committed together. Each is accepted or refused by itself.
pub(crate) struct Commit(pub(crate) Vec<Transaction>);

impl Write for Commit {
    type Answer = Vec<Result<(), Refusal>>;

    fn begin(&self, pace: Pace) -> Vec<Statement<'_>> {
        let mut statements = RowLocks::of(&self.0).statements();
        match pace {
            Pace::Together => statements.extend(self.0.iter().flat_map(conditions)),
            Pace::OneByOne => {}
        }
        statements
    }

    async fn carry_out(&self, session: &Session, begun: &[Answer], pace: Pace) -> Result<Self::Answer> {
        match pace {
            Pace::Together => self.together(session, begun).await,
            Pace::OneByOne => self.one_by_one(session).await,
        }
    }
}

impl Commit {
    /// All of them, or none.
    async fn together(&self, session: &Session, begun: &[Answer]) -> Result<Vec<Result<(), Refusal>>> {
        let conditions: usize = self.0.iter().map(|transaction| conditions(transaction).len()).sum();
        let mut answers = begun.get(begun.len().saturating_sub(conditions)..).unwrap_or_default();
        let mut changes = Vec::new();
        for transaction in &self.0 {
            let own;
            (own, answers) = answers.split_at(conditions_of(transaction).min(answers.len()));
            match check(transaction, own) {
                Ok(true) => changes.extend(&transaction.changes),
                Ok(false) => {}
                Err(failure) => return Err(self.in_company(failure)),
            }
        }
        match carry_out(session, &changes, Pace::Together).await {
            Ok(()) => Ok(vec![Ok(()); self.0.len()]),
            Err(failure) => Err(self.in_company(failure)),
        }
    }

    /// The refusal of one is not that of the others.
    fn in_company(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Refused(_) if self.0.len() > 1 => Failure::RefusedTogether,
            failure => failure,
        }
    }

    async fn one_by_one(&self, session: &Session) -> Result<Vec<Result<(), Refusal>>> {
        let mut outcomes = Vec::with_capacity(self.0.len());
        for transaction in &self.0 {
            session.ask("SAVEPOINT one", values![]).await?;
            match carry_out_one_by_one(session, transaction).await {
                Ok(()) => {
                    session.ask("RELEASE one", values![]).await?;
                    outcomes.push(Ok(()));
                }
                Err(Failure::Refused(refusal)) if self.0.len() == 1 => return Err(refusal.into()),
                Err(Failure::Refused(refusal)) => {
                    session.ask("ROLLBACK TO one", values![]).await?;
                    outcomes.push(Err(refusal));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(outcomes)
    }
}

async fn carry_out_one_by_one(session: &Session, transaction: &Transaction) -> Result {
    let answers = session.ask_all(&conditions(transaction)).await?;
    if check(transaction, &answers)? {
        let changes: Vec<_> = transaction.changes.iter().collect();
        carry_out(session, &changes, Pace::OneByOne).await?;
    }
    Ok(())
}

/// What [`check`] reads the answers to: whether the transaction is new, then what its guard asks for.
fn conditions(transaction: &Transaction) -> Vec<Statement<'_>> {
    let Transaction { label: _, id, scheduler: _, guard, changes: _ } = transaction;
    let mut statements = Vec::with_capacity(conditions_of(transaction));
    if let Some(id) = id {
        statements.push(carried_out::note(*id));
    }
    if let Some(Guard { scheduler, token, operation, locks }) = guard {
        statements.push(workers::is_current(scheduler, *token));
        statements.extend(operation.map(operations::goes_forward));
        statements.extend(locks.iter().map(|(kind, token)| locks::is_held(scheduler, *kind, *token)));
    }
    statements
}

fn conditions_of(Transaction { id, guard, .. }: &Transaction) -> usize {
    let of_guard =
        guard.as_ref().map_or(0, |guard| 1 + usize::from(guard.operation.is_some()) + guard.locks.len());
    usize::from(id.is_some()) + of_guard
}

/// False: it was carried out before.
fn check(transaction: &Transaction, answers: &[Answer]) -> Result<bool> {
    let mut answers = answers.iter();
    let mut holds = || answers.next().map_or(Ok(false), Answer::is_done);
    if transaction.id.is_some() && !holds()? {
        return Ok(false);
    }
    let Some(Guard { scheduler, token: _, operation, locks }) = &transaction.guard else { return Ok(true) };
    if !holds()? {
        let scheduler = scheduler.clone();
        return Err(Refusal::StaleToken { scheduler }.into());
    }
    if let Some(operation) = operation
        && !holds()?
    {
        return Err(Refusal::RollsBack(*operation).into());
    }
    for (kind, _) in locks {
        if !holds()? {
            return Err(locks::lost(scheduler, *kind));
        }
    }
    Ok(true)
}

/// Changes that are one statement each are sent together where they stand beside each other.
async fn carry_out(session: &Session, changes: &[&Change], pace: Pace) -> Result {
    let mut together = Vec::new();
    for change in changes {
        match step(session, change) {
            Step::One(statement, _) if pace == Pace::Together && changes.len() > 1 => {
                together.push(statement);
            }
            Step::One(statement, why_not) => {
                let answer = session.ask_one(&statement).await?;
                if !answer.is_done()?
                    && let Some(refusal) = why_not.find_out(session, &answer).await?
                {
                    return Err(refusal.into());
                }
            }
            Step::Several(steps) => {
                ask_together(session, std::mem::take(&mut together)).await?;
                steps.await?;
            }
        }
    }
    ask_together(session, together).await
}

async fn ask_together(session: &Session, statements: Vec<Statement<'_>>) -> Result {
    for answer in session.ask_all(&statements).await? {
        if !answer.is_done()? {
            return Err(Failure::RefusedTogether);
        }
    }
    Ok(())
}
