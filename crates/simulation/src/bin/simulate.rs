//! Runs many seeds and says which of them went wrong; see `make simulate` and docs/simulation.md.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use maestro_core::invariant::Invariant;
use maestro_simulation::scenarios::{self, Kind, Options};
use maestro_simulation::sweep::{Failure, Report, Sweep};

/// Runs the engine in a simulated world under faults, and checks its invariants
#[derive(Debug, Parser)]
struct Arguments {
    /// From the first seed to the last, both included
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: RangeInclusive<u64>,
    /// Only runs of this kind [default: what the seed says]
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// All on SQLite, or none [default: what the seed says]
    #[arg(long)]
    sqlite: Option<bool>,
    /// All in several regions, or in one [default: what the seed says]
    #[arg(long)]
    several_regions: Option<bool>,
    /// The clock is set now and then in all, or in none [default: what the seed says]
    #[arg(long)]
    clock_leaps: Option<bool>,
    /// Wake-ups between engines are lost in all, or in none [default: what the seed says]
    #[arg(long)]
    no_wake_ups: Option<bool>,
    /// Takes the guard of an invariant out of the engine
    #[arg(long = "break", value_name = "INVARIANT", value_parser = invariant)]
    taken_out: Option<Invariant>,
    /// Prints the whole trace of each run
    #[arg(long)]
    trace: bool,
    /// Prints a hash of each run's trace, and nothing else
    #[arg(long)]
    trace_hash: bool,
    /// Stops at the first run that goes wrong
    #[arg(long)]
    fail_fast: bool,
    /// Lives that are lived at once [default: as many as there are cores]
    #[arg(long)]
    threads: Option<usize>,
}

/// How often it says how far it is.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// How much of a trace a failure shows.
const TRACE_SHOWN: usize = 60;
/// Failures that are shown in full; of more, the seed and the invariant.
const FAILURES_SHOWN: usize = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Arguments { kind, sqlite, several_regions, clock_leaps, no_wake_ups, .. } = arguments;
    let options = Options { kind, sqlite, several_regions, clock_leaps, no_wake_ups };
    if arguments.trace_hash {
        for seed in arguments.seeds {
            println!("{seed} {:016x}", hash(&scenarios::run(seed, &options).trace));
        }
        return ExitCode::SUCCESS;
    }
    if arguments.trace {
        for seed in arguments.seeds.clone() {
            eprintln!("{}", scenarios::run(seed, &options).trace.join("\n"));
        }
    }
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let sweep = Sweep {
        seeds: arguments.seeds,
        options,
        threads: arguments.threads.unwrap_or_else(cores),
        taken_out: arguments.taken_out,
        fail_fast: arguments.fail_fast,
    };
    let report = run(&sweep);
    for (number, (seed, failure)) in report.failures.iter().enumerate() {
        show(*seed, failure, number < FAILURES_SHOWN);
    }
    let never: Vec<_> = report.never_seen().into_iter().map(|event| event.as_str()).collect();
    eprintln!("seen: {}", seen(&report));
    eprintln!("never seen: {}", if never.is_empty() { "nothing".into() } else { never.join(", ") });
    println!("{}", last_line(&report));
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::disallowed_methods, reason = "how long it takes is not part of any simulated world")]
fn run(sweep: &Sweep) -> Report {
    let began = Instant::now();
    let said = parking_lot::Mutex::new(began);
    let report = sweep.run(|seed, report| {
        let mut said = said.lock();
        if said.elapsed() >= SAY_EVERY {
            *said = Instant::now();
            let rate = report.seeds as f64 / began.elapsed().as_secs_f64();
            eprintln!(
                "{} seeds lived, {rate:.0}/s, the latest is {seed}; {} went wrong",
                report.seeds,
                report.failures.len()
            );
        }
    });
    let took = began.elapsed().as_secs_f64();
    let hours = report.simulated.as_secs_f64() / 3600.0;
    eprintln!(
        "{} seeds in {took:.1} s, {} of them on SQLite: {hours:.1} simulated hours, {:.0} times as fast as real time",
        report.seeds,
        report.on_sqlite,
        report.simulated.as_secs_f64() / took.max(0.001)
    );
    report
}

fn show(seed: u64, failure: &Failure, whole: bool) {
    for violation in &failure.violations {
        eprintln!("seed {seed}: {violation}");
    }
    if !whole {
        return;
    }
    eprintln!("  again: make simulate SEEDS={seed}..{seed} TRACE=1");
    eprintln!("  as a story: maestro simulate --world --seed {seed}");
    let shown = failure.trace.len().saturating_sub(TRACE_SHOWN);
    for line in &failure.trace[shown..] {
        eprintln!("  {line}");
    }
}

fn seen(report: &Report) -> String {
    let counts = report.coverage.iter().map(|(event, times)| format!("{} {times}", event.as_str()));
    counts.collect::<Vec<_>>().join(", ")
}

/// In this order: whatever reads it may be simple.
fn last_line(report: &Report) -> String {
    let hours = report.simulated.as_secs_f64() / 3600.0;
    let first = report.failures.keys().next().map_or("null".into(), u64::to_string);
    format!(
        r#"{{"seeds":{},"simulatedHours":{hours:.1},"violations":{},"firstFailingSeed":{first}}}"#,
        report.seeds,
        report.violations(),
    )
}

fn hash(trace: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    trace.hash(&mut hasher);
    hasher.finish()
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = || format!("{text:?} is no range of seeds; write 1..1000, both included");
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(wrong()) } else { Ok(first..=last) }
}

fn kind(text: &str) -> Result<Kind, String> {
    let known = || Kind::ALL.map(Kind::as_str).join(", ");
    Kind::parse(text).ok_or_else(|| format!("{text:?} is no kind of run; they are {}", known()))
}

fn invariant(text: &str) -> Result<Invariant, String> {
    let known = || Invariant::ALL.map(Invariant::as_str).join(", ");
    Invariant::parse(text).ok_or_else(|| format!("{text:?} is no invariant; they are {}", known()))
}
