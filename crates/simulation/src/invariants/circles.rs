//! Who goes round in circles: an operation that is woken again and again, and has nothing to do.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::invariant::{Invariant, InvariantViolation};
use maestro_core::operation::{Activity, OperationId};
use maestro_engine::ports::store::{Change, Transaction};

/// Whoever waits is woken when something has happened: not so often within [`WINDOW`].
const TIMES_MAX: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Circles(BTreeMap<OperationId, Round>);

struct Round {
    since: Duration,
    times: u32,
}

impl Circles {
    pub(super) fn note(&mut self, transaction: &Transaction, now: Duration) -> Option<InvariantViolation> {
        transaction
            .changes
            .iter()
            .filter_map(begun_again)
            .find_map(|operation| self.goes_round(operation, now))
    }

    fn goes_round(&mut self, operation: OperationId, now: Duration) -> Option<InvariantViolation> {
        let round = self.0.entry(operation).or_insert(Round { since: now, times: 0 });
        if now - round.since > WINDOW {
            *round = Round { since: now, times: 0 };
        }
        round.times += 1;
        (round.times == TIMES_MAX).then(|| {
            let what =
                format!("operation {operation} goes round in circles: {TIMES_MAX} times within {WINDOW:?}");
            InvariantViolation::new(Invariant::Converges, what)
        })
    }
}

fn begun_again(change: &Change) -> Option<OperationId> {
    match change {
        Change::UpdateOperation(update) if update.activity == Some(Activity::Executing) => {
            Some(update.operation)
        }
        Change::RollBack { operation, .. } => Some(*operation),
        _ => None,
    }
}
