//! A little of what `scripts/chaos` does at length.

use maestro_e2e::chaos::{mixed, scaling};

/// Another one would do as well; with this one a failure can be seen again.
const SEED: u64 = 20;

#[test]
fn a_fleet_survives_kills_at_random_moments_of_scaling() -> anyhow::Result<()> {
    let options = scaling::Options { rounds: 3, rooms: 15, seed: SEED };
    scaling::run(&options, |round| println!("{round}"))
}

#[test]
fn a_mixed_workload_survives_kills_at_random_moments() -> anyhow::Result<()> {
    let options = mixed::Options { kills: 12, fleets: 3, seed: SEED };
    let tally = mixed::run(&options, |killed| println!("{killed}"))?;
    println!("{tally}");
    Ok(())
}
