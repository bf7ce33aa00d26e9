//! Maestro killed at each of its writes, in every operation there is.
//!
//! A scenario goes through all operations. Its first runs log which writes it makes; then it runs once for each of
//! them, against a server that dies before, or after, the commit of that write. Whoever speaks to a server that dies
//! starts it again, looks whether what was asked for is there, and asks again if it is not.

mod scenario;
mod story;

use std::collections::VecDeque;
use std::mem;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use parking_lot::{Mutex, MutexGuard};

use scenario::Write;

/// Servers that run at the same time. They wait more than they work.
const SIDE_BY_SIDE: usize = 6;

/// The servers of one scenario fail at these, one after the other; then comes one that fails nowhere.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    failpoints: Vec<String>,
}

#[test]
fn a_kill_at_any_write_loses_nothing() -> anyhow::Result<()> {
    let started = Instant::now();
    let writes = writes_of_most_runs()?;
    let mut cases: VecDeque<Case> = kills_at_each(&writes).collect();
    cases.extend(kills_at_renewals());
    cases.extend(kills_while_recovering(&writes));
    let number = cases.len();
    let survived = run_side_by_side(cases)?;
    println!("{} writes, {number} runs, {:.0} s", writes.len(), started.elapsed().as_secs_f64());
    // Runs differ a little, so some do not come as far as their write; if many do not, the sweep shows nothing.
    ensure!(survived.len() * 10 <= number, "never killed were those {survived:#?}");
    Ok(())
}

/// Runs differ a little, a busy machine does more at once: so they are logged side by side, as they are killed, and the
/// shortest log has no more writes than the runs that are killed come to.
fn writes_of_most_runs() -> anyhow::Result<Vec<Write>> {
    let logs = thread::scope(|scope| {
        let runs: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(scenario::log_writes)).collect();
        let joined =
            runs.into_iter().map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<anyhow::Result<Vec<_>>>()
    })?;
    let shortest = logs.into_iter().min_by_key(Vec::len);
    shortest.context("no run was logged")
}

fn kills_at_each(writes: &[Write]) -> impl Iterator<Item = Case> {
    (1..).zip(writes).flat_map(|(number, Write { stage, label })| {
        ["before", "after"].map(|moment| Case {
            name: format!("{moment} write {number} of {stage}: {label}"),
            failpoints: vec![format!("kill:{number}:{moment}")],
        })
    })
}

/// They come by the clock and have no number.
fn kills_at_renewals() -> impl Iterator<Item = Case> {
    ["before", "after"].into_iter().map(|moment| Case {
        name: format!("{moment} the first renewal"),
        failpoints: vec![format!("kill:renew:{moment}")],
    })
}

/// Killed in the middle of a stage, then again at one of the first writes of the next start: ownership, the
/// take-over, and the first steps that go on.
fn kills_while_recovering(writes: &[Write]) -> impl Iterator<Item = Case> {
    let stages = writes.chunk_by(|one, other| one.stage == other.stage);
    let middles = stages.scan(0, |first, stage| {
        let middle = *first + stage.len() / 2 + 1;
        *first += stage.len();
        Some((middle, stage[0].stage))
    });
    middles.flat_map(|(middle, stage)| {
        (1..=4).map(move |write| Case {
            name: format!("in the middle of {stage}, and at write {write} of the next start"),
            failpoints: vec![format!("kill:{middle}:after"), format!("kill:{write}:after")],
        })
    })
}

/// The cases whose servers did not all die. Stops at the first that goes wrong.
fn run_side_by_side(cases: VecDeque<Case>) -> anyhow::Result<Vec<String>> {
    let cases = Mutex::new(cases);
    let survived = Mutex::new(Vec::new());
    // Not in the loop's own line: there the lock would be held until the case is over.
    let next = || lock(&cases).pop_front();
    let work = || {
        while let Some(case) = next() {
            let run = scenario::run(&case.failpoints).with_context(|| format!("killed {}", case.name));
            // The others need not go on when one has failed.
            let deaths = run.inspect_err(|_| lock(&cases).clear())?;
            if deaths < case.failpoints.len() {
                lock(&survived).push(case.name);
            }
        }
        anyhow::Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(mem::take(&mut *lock(&survived)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
