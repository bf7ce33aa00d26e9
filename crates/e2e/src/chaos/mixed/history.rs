//! What the record of one operation must look like when it has ended.

use anyhow::ensure;

use crate::Operation;

const STARTING: &str = "Starting operation";
const TAKEN_OVER: &str = "Taken over by";
const FINISHED: &str = "Operation finished";

/// It began once, whoever went on with it, and ended once, as its status says.
pub(super) fn check(operation: &Operation) -> anyhow::Result<()> {
    let events: Vec<&str> = operation.execution_history.iter().map(|event| event.event.as_str()).collect();
    let places_of = |wanted: fn(&str) -> bool| {
        let places = events.iter().enumerate().filter(move |(_, event)| wanted(event));
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let started = places_of(|event| event == STARTING);
    let taken_over = places_of(|event| event.starts_with(TAKEN_OVER));
    let finished = places_of(|event| event == FINISHED);
    let whole = || operation.to_text();

    ensure!(started.len() <= 1, "it was started twice:\n{}", whole());
    let is_later = |place: &usize| started.first().is_some_and(|start| start < place);
    ensure!(taken_over.iter().all(is_later), "it was taken over before it was started:\n{}", whole());
    match operation.status.as_str() {
        "finished" => {
            ensure!(started.len() == 1, "it finished and never started:\n{}", whole());
            ensure!(finished == [events.len() - 1], "it did not end with its one end:\n{}", whole());
        }
        "error" => ensure!(started.len() == 1 && finished.is_empty(), "it failed otherwise:\n{}", whole()),
        "canceled" => ensure!(finished.is_empty(), "it finished and is canceled:\n{}", whole()),
        "evicted" => ensure!(started.is_empty(), "it was started and evicted:\n{}", whole()),
        "pending" => ensure!(started.is_empty(), "it was started and waits to be:\n{}", whole()),
        "in_progress" => {
            ensure!(started.len() == 1 && finished.is_empty(), "it is in progress otherwise:\n{}", whole());
        }
        status => ensure!(false, "there is no status {status}:\n{}", whole()),
    }
    let is_leased = operation.lease_ttl().is_some();
    ensure!(!operation.is_final() || !is_leased, "it ended and has a lease:\n{}", whole());
    Ok(())
}

/// The fleet size when it was asked for, and by how much it changed that, as its reason says.
pub(super) fn fleet_size_delta(operation: &Operation) -> Option<(i64, i64)> {
    let (_, sizes) = operation.reason.split_once("; fleet size ")?;
    let (from, to) = sizes.split_once(" → ")?;
    let (from, to): (i64, i64) = (from.parse().ok()?, to.parse().ok()?);
    Some((from, to - from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::mixed::testing::operation;

    const CREATED: &str = "Created";
    const OVER: &str = "Taken over by b: a held the lease";

    #[test]
    fn an_operation_begins_and_ends_once() {
        for (status, events, wrong) in [
            ("finished", &[CREATED, STARTING, FINISHED][..], ""),
            ("finished", &[CREATED, STARTING, OVER, OVER, FINISHED], ""),
            ("finished", &[CREATED, STARTING, OVER, STARTING, FINISHED], "it was started twice"),
            ("finished", &[CREATED, STARTING, FINISHED, OVER], "it did not end with its one end"),
            ("finished", &[CREATED, STARTING, FINISHED, FINISHED], "it did not end with its one end"),
            ("finished", &[CREATED, FINISHED], "it finished and never started"),
            ("finished", &[CREATED, OVER, STARTING, FINISHED], "it was taken over before it was started"),
            ("error", &[CREATED, STARTING, FINISHED], "it failed otherwise"),
            ("canceled", &[CREATED], ""),
            ("canceled", &[CREATED, STARTING, FINISHED], "it finished and is canceled"),
            ("evicted", &[CREATED, STARTING], "it was started and evicted"),
            ("gone", &[CREATED], "there is no status gone"),
        ] {
            let found = check(&operation("id", status, "", events));
            let found = found.err().map(|error| error.to_string()).unwrap_or_default();
            let is_same = if wrong.is_empty() { found.is_empty() } else { found.starts_with(wrong) };
            assert!(is_same, "{status} {events:?}: {found}");
        }
    }

    #[test]
    fn the_reason_says_how_the_fleet_size_changed() {
        for (reason, delta) in [
            ("asked for by ada; fleet size 3 → 5", Some((3, 2))),
            ("asked for by ada; fleet size 1 → 0", Some((1, -1))),
            ("asked for by ada", None),
        ] {
            assert_eq!(fleet_size_delta(&operation("id", "finished", reason, &[])), delta, "{reason}");
        }
    }
}
