//! Maestro killed at its writes, one after the other, in every operation there is.
//!
//! A scenario goes through all operations. Its first run logs which writes it makes; then it runs once for each of
//! them, against a server that dies before, or after, the commit of that write. Whoever speaks to a server that dies
//! starts it again, looks whether what was asked for is there, and asks again if it is not.
//!
//! `make test` takes of each stage of the scenario the first and the last write of each kind. All of them:
//! `MAESTRO_E2E_SWEEP=all cargo test -p maestro-e2e sweep`.

mod scenario;
mod story;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};

use scenario::Write;

/// Servers that run at the same time. They wait more than they work.
const SIDE_BY_SIDE: usize = 6;

/// Runs the servers of a scenario one after the other, each with the failpoint of its turn, then without any.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    failpoints: Vec<String>,
}

#[test]
fn a_kill_at_any_write_loses_nothing() -> anyhow::Result<()> {
    let started = Instant::now();
    let writes = scenario::log_writes()?;
    let chosen = match std::env::var("MAESTRO_E2E_SWEEP").as_deref() {
        Ok("all") => (0..writes.len()).collect(),
        _ => first_and_last_of_each_kind(&writes),
    };
    let mut cases = VecDeque::new();
    for index in chosen {
        let Write { stage, label } = &writes[index];
        for moment in ["before", "after"] {
            cases.push_back(Case {
                name: format!("{moment} write {} of {stage}: {label}", index + 1),
                failpoints: vec![format!("kill:{}:{moment}", index + 1)],
            });
        }
    }
    cases.extend(kills_while_recovering());
    let number = cases.len();
    let died = run_side_by_side(cases)?;
    println!(
        "{} writes, {number} runs, {died} kills, {:.0} s",
        writes.len(),
        started.elapsed().as_secs_f64()
    );
    // Runs differ a little, so some do not come as far as their write; if many do not, the sweep shows nothing.
    ensure!(died * 10 >= number * 9, "only {died} of {number} were killed");
    Ok(())
}

/// Killed in the middle of its work, then again at one of the first writes of the next start.
fn kills_while_recovering() -> impl Iterator<Item = Case> {
    // Somewhere in add_rooms.
    const FIRST_KILL: &str = "kill:9:after";
    // Ownership, the take-over, and the first steps that go on.
    (1..=4).map(|write| {
        let second = format!("kill:{write}:after");
        Case {
            name: format!("{FIRST_KILL}, then {second}"),
            failpoints: vec![FIRST_KILL.to_owned(), second],
        }
    })
}

/// Indexes, in order.
fn first_and_last_of_each_kind(writes: &[Write]) -> Vec<usize> {
    let mut kinds: BTreeMap<&Write, (usize, usize)> = BTreeMap::new();
    for (index, write) in writes.iter().enumerate() {
        kinds.entry(write).or_insert((index, index)).1 = index;
    }
    let mut chosen: Vec<usize> = kinds
        .into_values()
        .flat_map(|(first, last)| [first, last])
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// How many servers died at their failpoint. Stops at the first case that goes wrong.
fn run_side_by_side(cases: VecDeque<Case>) -> anyhow::Result<usize> {
    let cases = Mutex::new(cases);
    let next = || {
        cases
            .lock()
            .map(|mut cases| cases.pop_front())
            .unwrap_or_default()
    };
    let work = || {
        let mut died = 0;
        while let Some(case) = next() {
            let run = scenario::run(&case.failpoints).with_context(|| format!("killed {}", case.name));
            match run {
                Ok(deaths) => died += deaths,
                Err(error) => {
                    if let Ok(mut cases) = cases.lock() {
                        cases.clear();
                    }
                    return Err(error);
                }
            }
        }
        Ok(died)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        let mut died = 0;
        for worker in workers {
            died += match worker.join() {
                Ok(outcome) => outcome?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
        }
        Ok(died)
    })
}
