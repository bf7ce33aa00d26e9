//! Every task that a fleet depends on crashes once, and the server goes on by itself.

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, checks, send_signal};
use rustix::process::Signal;

/// All that is supervised from the start, by the label of its metric.
const TASKS: [&str; 10] = [
    "observer",
    "region watch",
    "worker manager",
    "metrics reporter",
    "panic watch",
    "leftovers watch",
    "management API",
    "rooms API",
    "internal API",
    "store writer",
];

#[test]
fn a_server_whose_tasks_all_crash_keeps_its_fleet() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[("CRASH_TASKS_AFTER_MS", "2000")])?;
    // The registration of the worker, which is written in any case.
    maestro.set_failpoint(Some("panic:renew"));
    maestro.start()?;
    let named = maestro.until("readyz to name the observer", || {
        let answer = maestro.internal().get("/readyz")?.expect(503)?;
        ensure!(answer.text.contains("observer of "), "{}", answer.text);
        Ok(answer.text)
    })?;
    assert!(named.starts_with("Service Unavailable\n") && named.contains("panicked"), "{named}");
    for task in TASKS {
        maestro.until("each task to have crashed", || crashed(&maestro, task))?;
    }

    // As a person would: whatever became of a request, look, and ask again.
    let recipe = maestro.recipe("arena", 3)?.json();
    maestro.until("the scheduler", || {
        let _ = maestro.api().create(&recipe);
        maestro.api().get("/schedulers/arena")?.expect(200)
    })?;
    maestro.until("the loop of the scheduler to have crashed", || crashed(&maestro, "scheduler loop"))?;
    let rooms = maestro.until("the fleet", || checks::settled(&maestro, "arena", 3))?;
    send_signal(rooms[0].pids[0], Signal::KILL)?;
    maestro.until("the replacement", || {
        let now = checks::settled(&maestro, "arena", 3)?;
        ensure!(now.iter().all(|room| room.id != rooms[0].id), "it is still listed");
        Ok(())
    })?;
    maestro.until("it to be ready again", || maestro.internal().get("/readyz")?.expect(200))?;
    let status = maestro.stop(Signal::TERM)?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

fn crashed(maestro: &Maestro, task: &str) -> anyhow::Result<()> {
    let metrics = maestro.internal().get("/metrics")?.expect(200)?.text;
    let series = format!("maestro_task_crashes_total{{task=\"{task}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
    let crashes: u64 = line.with_context(|| format!("no {series}"))?.parse()?;
    ensure!(crashes > 0, "{task} has not crashed");
    Ok(())
}
