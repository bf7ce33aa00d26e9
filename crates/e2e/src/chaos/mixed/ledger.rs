//! What was asked for, and whether all of it was done once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;

use super::history::{self, fleet_size_delta};
use crate::{Answer, Client, Operation};

/// What makes an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    Create,
    Add(u32),
    Remove(u32),
    Version,
    Switch,
    CancelRollout,
    Delete,
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Who asks: by this name the operation is found again when the answer was lost.
    pub(super) user: String,
    fleet: String,
    wish: Wish,
    at: Timestamp,
    outcome: Outcome,
}

#[derive(Debug, Clone)]
enum Outcome {
    /// With the id of the operation, where the answer names it.
    Accepted(Option<String>),
    Refused,
    /// The server died, or was dead: it may have had its effect or not.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    requests: Vec<Request>,
    others: u32,
}

/// What there was to check. `Display` is a line of the report.
#[derive(Debug, Default)]
pub struct Tally {
    requests: usize,
    accepted: usize,
    /// Without an answer, and what they asked for is there all the same.
    unanswered_and_done: usize,
    unanswered: usize,
    operations: usize,
    taken_over: usize,
    by_status: BTreeMap<String, usize>,
    /// Went with their schedulers.
    forgotten: usize,
}

impl Ledger {
    pub(super) fn begin(&self, fleet: &str, wish: Wish) -> Request {
        Request {
            user: format!("chaos-{}", self.requests.len()),
            fleet: fleet.to_owned(),
            wish,
            at: Timestamp::now(),
            outcome: Outcome::Unknown,
        }
    }

    /// The operation, if the answer names one.
    pub(super) fn note(
        &mut self,
        mut request: Request,
        answer: Option<&Answer>,
    ) -> anyhow::Result<Option<String>> {
        let mut operation = None;
        request.outcome = match answer {
            None => Outcome::Unknown,
            Some(answer) if answer.status == 200 => {
                if !matches!(request.wish, Wish::Create) {
                    operation = Some(answer.operation_id()?);
                }
                Outcome::Accepted(operation.clone())
            }
            Some(_) => Outcome::Refused,
        };
        self.requests.push(request);
        Ok(operation)
    }

    pub(super) fn note_other(&mut self) {
        self.others += 1;
    }

    /// Everything that was accepted is there, ended as it may, and was done once.
    pub(super) fn check(&self, client: &Client) -> anyhow::Result<Tally> {
        let fleets: BTreeSet<&str> = self.requests.iter().map(|request| request.fleet.as_str()).collect();
        let mut tally = Tally { requests: self.requests.len() + self.others as usize, ..Tally::default() };
        for fleet in fleets {
            let book = Book::of(client, fleet)?;
            for operation in book.operations.values() {
                history::check(operation)?;
                tally.count(operation);
            }
            for request in self.requests.iter().filter(|request| request.fleet == fleet) {
                book.check(request, &mut tally).with_context(|| format!("of {fleet}: {request:?}"))?;
            }
        }
        Ok(tally)
    }
}

/// All operations of a fleet that are remembered.
struct Book {
    operations: BTreeMap<String, Operation>,
    /// When the scheduler was forgotten with all its operations but the one that did it.
    forgotten_at: Vec<Timestamp>,
}

impl Book {
    fn of(client: &Client, fleet: &str) -> anyhow::Result<Self> {
        let mut operations = BTreeMap::new();
        for listed in client.operations(fleet)? {
            let whole = client.operation(fleet, &listed.id)?;
            operations.insert(listed.id, whole);
        }
        Ok(Self::new(operations))
    }

    fn new(operations: BTreeMap<String, Operation>) -> Self {
        let forgets = |operation: &&Operation| match operation.definition_name.as_str() {
            "delete_scheduler" => operation.status == "finished",
            "create_scheduler" => operation.status != "finished",
            _ => false,
        };
        let forgotten_at = operations.values().filter(forgets).filter_map(Operation::last_event_at).collect();
        Self { operations, forgotten_at }
    }

    fn check(&self, request: &Request, tally: &mut Tally) -> anyhow::Result<()> {
        let made = self.made_by(&request.user);
        ensure!(
            made.len() <= 1,
            "it was done twice:\n{}",
            made.iter().map(|one| one.to_text()).collect::<String>()
        );
        let found = match &request.outcome {
            Outcome::Refused => {
                ensure!(made.is_empty(), "it was refused and is there:\n{}", made[0].to_text());
                return Ok(());
            }
            Outcome::Accepted(id) => {
                tally.accepted += 1;
                let named = id.as_ref().and_then(|id| self.operations.get(id));
                let found = named.or(made.first().copied());
                if found.is_none() {
                    let excused = self.forgotten_at.iter().any(|at| *at >= request.at);
                    ensure!(
                        excused,
                        "it was accepted and is not there, and nobody deleted the scheduler since"
                    );
                    tally.forgotten += 1;
                }
                found
            }
            Outcome::Unknown => {
                tally.unanswered += 1;
                tally.unanswered_and_done += made.len();
                made.first().copied()
            }
        };
        let Some(operation) = found else { return Ok(()) };
        ensure!(operation.is_final(), "it has not ended:\n{}", operation.to_text());
        check_delta(&request.wish, operation)
    }

    /// More than one is one too many.
    fn made_by(&self, user: &str) -> Vec<&Operation> {
        let by = format!("asked for by {user}");
        let is_by = |operation: &&Operation| {
            let rest = operation.reason.strip_prefix(&by);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(';'))
        };
        self.operations.values().filter(is_by).collect()
    }
}

/// What was asked for is what was written.
fn check_delta(wish: &Wish, operation: &Operation) -> anyhow::Result<()> {
    let Some((from, delta)) = fleet_size_delta(operation) else { return Ok(()) };
    let asked = match wish {
        Wish::Add(amount) => i64::from(*amount),
        // Not more than there is.
        Wish::Remove(amount) => -i64::from(*amount).min(from),
        Wish::Create | Wish::Version | Wish::Switch | Wish::CancelRollout | Wish::Delete => {
            bail!("it changed the fleet size:\n{}", operation.to_text())
        }
    };
    ensure!(delta == asked, "the fleet size changed by {delta} instead of {asked}:\n{}", operation.to_text());
    Ok(())
}

impl Tally {
    fn count(&mut self, operation: &Operation) {
        self.operations += 1;
        self.taken_over += usize::from(operation.story().contains("Taken over by"));
        *self.by_status.entry(operation.status.clone()).or_default() += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_status = self.by_status.iter().map(|(status, number)| format!("{number} {status}"));
        write!(
            f,
            "{} requests, {} of them accepted as operations ({} went with their schedulers), {} without an answer \
             ({} of those done all the same); {} operations are remembered: {}; {} of them were taken over",
            self.requests,
            self.accepted,
            self.forgotten,
            self.unanswered,
            self.unanswered_and_done,
            self.operations,
            by_status.collect::<Vec<_>>().join(", "),
            self.taken_over,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::mixed::testing::{AT, operation};

    const DONE: [&str; 3] = ["Created", "Starting operation", "Operation finished"];

    fn request(wish: Wish, outcome: Outcome) -> Request {
        let at = AT.parse().expect("a time");
        Request { user: "chaos-1".into(), fleet: "arena".into(), wish, at, outcome }
    }

    fn check(book: &[Operation], request: &Request) -> String {
        let operations = book.iter().map(|operation| (operation.id.clone(), operation.clone())).collect();
        let outcome = Book::new(operations).check(request, &mut Tally::default());
        outcome
            .err()
            .map(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
            .unwrap_or_default()
    }

    #[test]
    fn what_was_accepted_is_there_once() {
        let one = operation("1", "finished", "asked for by chaos-1; fleet size 4 → 6", &DONE);
        let again = operation("2", "finished", "asked for by chaos-1; fleet size 6 → 8", &DONE);
        let of_another = operation("3", "finished", "asked for by chaos-11; fleet size 4 → 6", &DONE);
        let at_work = operation("1", "in_progress", "asked for by chaos-1; fleet size 4 → 6", &DONE[..2]);
        let accepted = || Outcome::Accepted(Some("1".into()));
        let lost = "it was accepted and is not there, and nobody deleted the scheduler since";
        for (book, wish, outcome, wrong) in [
            (vec![one.clone()], Wish::Add(2), accepted(), ""),
            (vec![one.clone()], Wish::Add(2), Outcome::Unknown, ""),
            (vec![], Wish::Add(2), Outcome::Unknown, ""),
            (vec![], Wish::Add(2), Outcome::Refused, ""),
            (vec![], Wish::Add(2), accepted(), lost),
            (vec![of_another], Wish::Add(2), accepted(), lost),
            (vec![one.clone(), again], Wish::Add(2), Outcome::Unknown, "it was done twice:"),
            (vec![one.clone()], Wish::Add(2), Outcome::Refused, "it was refused and is there:"),
            (vec![at_work], Wish::Add(2), accepted(), "it has not ended:"),
            (vec![one.clone()], Wish::Add(1), accepted(), "the fleet size changed by 2 instead of 1:"),
            (vec![one], Wish::Delete, accepted(), "it changed the fleet size:"),
        ] {
            let request = request(wish, outcome);
            assert_eq!(check(&book, &request), wrong, "{request:?}");
        }
    }

    #[test]
    fn what_went_with_its_scheduler_is_not_lost() {
        let mut deletion = operation("2", "finished", "asked for by chaos-2", &DONE);
        deletion.definition_name = "delete_scheduler".into();
        let request = request(Wish::Add(2), Outcome::Accepted(Some("1".into())));
        assert_eq!(check(&[deletion.clone()], &request), "");
        let later = Request { at: Timestamp::MAX, ..request.clone() };
        assert_ne!(check(&[deletion.clone()], &later), "");
        deletion.status = "canceled".into();
        assert_ne!(check(&[deletion], &request), "");
    }
}
