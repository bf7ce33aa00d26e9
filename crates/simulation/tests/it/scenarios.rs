//! Runs under faults, one per seed.

use std::path::Path;
use std::process::Command;

use maestro_simulation::RareEvent;
use maestro_simulation::scenarios::{self, Kind, Options};
use maestro_simulation::sweep::{Report, Sweep};

/// Seeds that showed something, and must not show it again.
const REGRESSIONS: &str = include_str!("../../seeds/regressions.txt");

/// Fresh seeds of each of three tests, which run side by side: together about a minute on two cores, without
/// optimisation. `make simulate` looks much further.
const FRESH: u64 = 60;
/// The rarest events happen once in a hundred runs or so.
const RARE: u64 = 120;
/// Of the kind that has a bound of its own; `make simulate SEEDS=0..999 KIND=frozen_adder` for a thousand.
const FROZEN_ADDERS: u64 = 150;
const REGION_SEEDS: u64 = 40;
const EVENT_SEEDS: u64 = 24;

fn sweep(first: u64, seeds: u64, options: Options) -> Report {
    let sweep =
        Sweep { seeds: first..=first + seeds - 1, options, threads: 1, taken_out: None, fail_fast: true };
    let report = sweep.run(|_, _| {});
    if let Some((seed, failure)) = report.failures.first_key_value() {
        let shown = &failure.trace[failure.trace.len().saturating_sub(60)..];
        panic!(
            "seed {seed}: {}\nagain: make simulate SEEDS={seed}..{seed} TRACE=1\n\n{}",
            failure.violations.join("\n"),
            shown.join("\n")
        );
    }
    report
}

#[test]
fn seeds_that_showed_something_once() {
    let seed = |line: &str| line.split('#').next().and_then(|seed| seed.trim().parse::<u64>().ok());
    for line in REGRESSIONS.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty()) {
        let seed = seed(line).unwrap_or_else(|| panic!("not a seed: {line:?}"));
        // Many are from a time in which all runs were in one region, in none was a clock set, and all engines heard each
        // other: there they are still the same.
        for several_regions in [None, Some(false)] {
            for (clock_leaps, no_wake_ups) in [(None, None), (Some(false), Some(false))] {
                sweep(seed, 1, Options { several_regions, clock_leaps, no_wake_ups, ..Options::default() });
            }
        }
    }
}

#[test]
fn fresh_seeds_one() {
    sweep(1_000_000, FRESH, Options::default());
}

#[test]
fn fresh_seeds_two() {
    sweep(2_000_000, FRESH, Options::default());
}

/// Whatever these seeds prove, they prove it about worlds in which this happened.
#[test]
fn every_rare_event_happens() {
    let report = sweep(3_000_000, RARE, Options::default());
    let never: Vec<&str> = report.never_seen().into_iter().map(RareEvent::as_str).collect();
    assert!(never.is_empty(), "never seen: {never:?}");
    let missing: Vec<_> = Kind::ALL.into_iter().filter(|kind| !report.kinds.contains_key(kind)).collect();
    assert!(missing.is_empty(), "never run: {missing:?}");
    assert!(report.on_sqlite > 0);
}

/// The work was finished or rolled back by another, no write of the woken one was accepted, no room is doubled or lost.
#[test]
fn a_worker_frozen_in_the_middle_of_an_add() {
    let options = Options { kind: Some(Kind::FrozenAdder), sqlite: Some(false), ..Options::default() };
    let report = sweep(0, FROZEN_ADDERS, options);
    assert!(report.coverage[&RareEvent::TakeOver] > FROZEN_ADDERS / 3, "{:?}", report.coverage);
    assert!(report.coverage[&RareEvent::WokenWriteRefused] > FROZEN_ADDERS / 10, "{:?}", report.coverage);
}

/// Regions are lost and come back, people close them, and every fleet becomes what it should be.
#[test]
fn runs_about_regions() {
    let report = sweep(4_000_000, REGION_SEEDS, Options { kind: Some(Kind::Regions), ..Options::default() });
    for event in
        [RareEvent::RegionLost, RareEvent::RegionBack, RareEvent::RegionCordoned, RareEvent::RegionDrained]
    {
        assert!(report.coverage[&event] > REGION_SEEDS / 4, "{event:?}: {:?}", report.coverage);
    }
}

/// Receivers go down, hang, refuse and lose answers, and everything arrives, in order.
#[test]
fn runs_about_events() {
    let report = sweep(1, EVENT_SEEDS, Options { kind: Some(Kind::Events), ..Options::default() });
    for event in [
        RareEvent::ReceiverDown,
        RareEvent::EventRetried,
        RareEvent::EventRepeated,
        RareEvent::EventDead,
        RareEvent::DeliveryTakenOver,
    ] {
        assert!(report.coverage[&event] > EVENT_SEEDS / 4, "{event:?}: {:?}", report.coverage);
    }
}

/// Also on SQLite: each read and refusal changes what an engine does next, so stores that differ in one lead to
/// runs that do.
#[test]
fn the_same_seed_gives_the_same_run_on_both_stores() {
    // Of each kind one run in one region, if that is possible, and one in several.
    for (seed, kind) in (0..).zip(Kind::ALL.into_iter().chain(Kind::ALL)) {
        let several_regions = Some(seed >= Kind::ALL.len() as u64);
        // Twice in memory: what is left behind by one run must not change the next.
        let [one, on_sqlite, again] = [false, true, false].map(|sqlite| {
            let sqlite = Some(sqlite);
            scenarios::run(seed, &Options { kind: Some(kind), sqlite, several_regions, ..Options::default() })
        });
        for other in [on_sqlite, again] {
            let difference = one.trace.iter().zip(&other.trace).find(|(one, other)| one != other);
            assert_eq!(difference, None, "seed {seed}");
            assert_eq!(one.trace.len(), other.trace.len(), "seed {seed}");
        }
        assert!(one.trace.len() > 50, "seed {seed}: something happened");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_in_another_process() {
    let hashes = || {
        let runner = Path::new(env!("CARGO_BIN_EXE_simulate"));
        let output = Command::new(runner).args(["--seeds", "0..9", "--trace-hash"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let one = hashes();
    assert_eq!(one.lines().count(), 10);
    assert_eq!(one, hashes());
}
