//! Kills Maestro at random moments and checks what is left; see `scripts/chaos`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use maestro_e2e::chaos::{allocations, mixed, scaling};

/// Kills Maestro or its rooms with -9 at random moments, and checks that nothing is lost, doubled, stuck or orphaned
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    workload: Workload,
    /// What the random moments and changes come from [default: another one each time]
    #[arg(long, global = true)]
    seed: Option<u64>,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Several fleets and a user who asks for everything there is, all the time; checked at the end
    Mixed {
        /// How often it is killed
        #[arg(long, default_value_t = 200)]
        kills: u32,
        /// How many fleets there are; every second one is autoscaled, and the last one is deleted now and then
        #[arg(long, default_value_t = 5)]
        fleets: u32,
    },
    /// One fleet that grows and shrinks; checked after each restart that the same rooms run
    Scaling {
        /// How often it is killed
        #[arg(long, default_value_t = 10)]
        rounds: u32,
        /// About how many rooms are up
        #[arg(long, default_value_t = 50)]
        rooms: u32,
    },
    /// Matchmakers compete for the rooms of a fleet that scales, rolls out and loses rooms; no room may be given twice
    Allocations {
        /// The most that the fleet has
        #[arg(long, default_value_t = 1000)]
        rooms: u32,
        /// How many matchmakers ask at the same time
        #[arg(long, default_value_t = 64)]
        callers: u32,
        /// How long; the last rollout is waited for
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// How often a new major version replaces all rooms
        #[arg(long, default_value_t = 2)]
        rollouts: u32,
    },
}

fn main() -> ExitCode {
    let Arguments { workload, seed } = Arguments::parse();
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("{workload:?}, seed {seed}");
    let started = Instant::now();
    let outcome = match workload {
        Workload::Mixed { kills, fleets } => run_mixed(&mixed::Options { kills, fleets, seed }),
        Workload::Scaling { rounds, rooms } => {
            let options = scaling::Options { rounds, rooms, seed };
            scaling::run(&options, |round| println!("{round}"))
        }
        Workload::Allocations { rooms, callers, seconds, rollouts } => {
            let work = allocations::Work::Time(Duration::from_secs(seconds));
            let ping_every = Duration::from_secs(1);
            let options = allocations::Options { rooms, callers, work, ping_every, rollouts, seed };
            allocations::run(&options).map(|tally| println!("{tally}"))
        }
    };
    match outcome {
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

fn run_mixed(options: &mixed::Options) -> anyhow::Result<()> {
    let mut serving_after: Vec<Duration> = Vec::new();
    let tally = mixed::run(options, |killed| {
        println!("{killed}");
        serving_after.extend(killed.serving_after());
    })?;
    serving_after.sort();
    if let (Some(median), Some(longest)) = (serving_after.get(serving_after.len() / 2), serving_after.last())
    {
        println!("serving again in {} ms, {} ms at most", median.as_millis(), longest.as_millis());
    }
    println!("{tally}");
    Ok(())
}
