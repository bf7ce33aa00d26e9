//! A lease holds for as long as its operation runs, and no longer.

use std::time::{Duration, Instant};

use anyhow::ensure;
use jiff::Timestamp;
use maestro_e2e::{Maestro, checks};

/// Shown in whole seconds, so shorter ones would seem to be over before they are.
const LEASE_TTL: Duration = Duration::from_secs(3);

#[test]
fn an_operation_of_three_ttls_has_a_live_lease_all_along() -> anyhow::Result<()> {
    let ttl = LEASE_TTL.as_millis().to_string();
    let maestro = Maestro::started(&[("SERVICES_OPERATIONMANAGER_OPERATIONLEASETTLMILLIS", &ttl)])?;
    // The rooms do not go before they are killed, which is when the grace period is over.
    let recipe = maestro
        .recipe("stubborn", 2)?
        .with("ROOM_IGNORE_SIGTERM", 1)
        .with_grace("10s");
    maestro.api().create(&recipe.json())?.expect(200)?;
    maestro.until("two rooms", || checks::settled(&maestro, "stubborn", 2))?;

    let removal = maestro
        .api()
        .remove("stubborn", 1, "ada")?
        .expect(200)?
        .operation_id()?;
    let started = Instant::now();
    let mut observations = 0;
    let ended = maestro.until("the removal to end", || {
        let operation = maestro.api().operation("stubborn", &removal)?;
        if operation.status == "in_progress" {
            let ttl = operation.lease_ttl();
            assert!(
                ttl.is_some_and(|ttl| ttl > Timestamp::now()),
                "after {:?} the lease is {ttl:?}",
                started.elapsed()
            );
            observations += 1;
        }
        ensure!(operation.is_final(), "it is {}", operation.status);
        Ok(operation)
    })?;
    assert!(
        started.elapsed() > 3 * LEASE_TTL,
        "it ended too early to show anything"
    );
    assert!(observations > 50, "only {observations} observations");
    assert_eq!((ended.status.as_str(), ended.lease_ttl()), ("finished", None));
    checks::settled(&maestro, "stubborn", 1)?;
    Ok(())
}
