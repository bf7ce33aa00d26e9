//! A lease holds for as long as its operation runs, and no longer.

use std::time::{Duration, Instant};

use anyhow::ensure;
use jiff::Timestamp;
use maestro_e2e::{Maestro, Operation, checks};

/// Shown in whole seconds, so shorter ones would seem to be over before they are.
const LEASE_TTL: Duration = Duration::from_secs(3);
/// Of rooms that do not end before they are killed: a removal takes so long.
const GRACE: &str = "10s";

#[test]
fn an_operation_of_three_ttls_has_a_live_lease_all_along() -> anyhow::Result<()> {
    let (maestro, removal) = a_long_removal()?;
    let started = Instant::now();
    let mut observations = 0;
    let ended = maestro.until("the removal to end", || {
        let operation = maestro.api().operation("stubborn", &removal)?;
        if operation.status == "in_progress" {
            assert_live(&operation);
            observations += 1;
        }
        ensure!(operation.is_final(), "it is {}", operation.status);
        Ok(operation)
    })?;
    assert!(started.elapsed() > 3 * LEASE_TTL, "it ended too early to show anything");
    assert!(observations > 50, "only {observations} observations");
    assert_eq!((ended.status.as_str(), ended.lease_ttl()), ("finished", None));
    checks::settled(&maestro, "stubborn", 1)?;
    Ok(())
}

#[test]
fn an_operation_that_is_taken_over_gets_a_lease_that_holds() -> anyhow::Result<()> {
    let (mut maestro, removal) = a_long_removal()?;
    maestro.kill()?;
    maestro.start()?;
    let taken_over = maestro.until("the take-over", || {
        let operation = maestro.api().operation("stubborn", &removal)?;
        ensure!(operation.story().contains("Taken over by"), "{}", operation.story());
        Ok(Instant::now())
    })?;
    let ended = maestro.until("the removal to end", || {
        let operation = maestro.api().operation("stubborn", &removal)?;
        if operation.status == "in_progress" {
            assert_live(&operation);
        }
        ensure!(operation.is_final(), "it is {}", operation.status);
        Ok(operation)
    })?;
    assert!(taken_over.elapsed() > 2 * LEASE_TTL, "it ended too early to show anything");
    assert_eq!((ended.status.as_str(), ended.lease_ttl()), ("finished", None));
    Ok(())
}

/// One of two rooms is asked to go, and does not.
fn a_long_removal() -> anyhow::Result<(Maestro, String)> {
    let ttl = LEASE_TTL.as_millis().to_string();
    let maestro = Maestro::started(&[("SERVICES_OPERATIONMANAGER_OPERATIONLEASETTLMILLIS", &ttl)])?;
    let recipe = maestro.recipe("stubborn", 2)?.with("ROOM_IGNORE_SIGTERM", 1).with_grace(GRACE);
    maestro.api().create(&recipe.json())?.expect(200)?;
    maestro.until("two rooms", || checks::settled(&maestro, "stubborn", 2))?;
    let removal = maestro.api().remove("stubborn", 1, "ada")?.expect(200)?.operation_id()?;
    maestro.until("the removal to begin", || {
        let operation = maestro.api().operation("stubborn", &removal)?;
        ensure!(operation.status == "in_progress", "it is {}", operation.status);
        Ok(())
    })?;
    Ok((maestro, removal))
}

fn assert_live(operation: &Operation) {
    let (ttl, now) = (operation.lease_ttl(), Timestamp::now());
    assert!(ttl.is_some_and(|ttl| ttl > now), "at {now} the lease is {ttl:?}");
}
