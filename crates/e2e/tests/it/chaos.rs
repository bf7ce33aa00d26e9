//! A small round of what `scripts/chaos` does at length.

use maestro_e2e::chaos::{self, Options};

/// Another one would do as well; with this one a failure can be seen again.
const SEED: u64 = 20;

#[test]
fn a_fleet_survives_kills_at_random_moments_of_scaling() -> anyhow::Result<()> {
    let options = Options { rounds: 3, rooms: 15, seed: SEED };
    chaos::run(&options, |round| println!("{round}"))
}
