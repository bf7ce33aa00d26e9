//! Kills Maestro at random moments of scaling and checks what is left; see `scripts/chaos`.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use maestro_e2e::chaos::{self, Options};

/// Kills Maestro with -9 at random moments of scaling, and checks after each restart that the same rooms run
#[derive(Debug, Parser)]
struct Arguments {
    /// How often it is killed
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// About how many rooms are up
    #[arg(long, default_value_t = 50)]
    rooms: u32,
    /// What the random moments and changes come from [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let Arguments { rounds, rooms, seed } = Arguments::parse();
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("{rounds} rounds with about {rooms} rooms, seed {seed}");
    let started = Instant::now();
    let options = Options { rounds, rooms, seed };
    match chaos::run(&options, |round| println!("{round}")) {
        Ok(()) => {
            println!(
                "ok after {:.1} s: none lost, none doubled, none orphaned, no operation stuck",
                started.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("FAILED: {error:?}");
            ExitCode::FAILURE
        }
    }
}
