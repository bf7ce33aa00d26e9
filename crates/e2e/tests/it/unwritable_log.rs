//! A log that cannot be written must not stop a fleet: its reader is gone, its pipe is full, its disk is full.

use anyhow::ensure;
use maestro_e2e::{BrokenLog, Maestro, checks, send_signal};
use rustix::process::Signal;

#[test]
fn nobody_reads_the_log_any_more() -> anyhow::Result<()> {
    live_with_log(BrokenLog::ReaderGone)
}

#[test]
fn the_pipe_of_the_log_is_full() -> anyhow::Result<()> {
    live_with_log(BrokenLog::PipeFull)
}

#[test]
fn the_disk_of_the_log_is_full() -> anyhow::Result<()> {
    live_with_log(BrokenLog::DiskFull)
}

/// The first life of a fleet: created, a room killed and replaced, made larger, deleted, and a server that ends.
fn live_with_log(broken: BrokenLog) -> anyhow::Result<()> {
    let (log, _reader) = broken.open()?;
    let mut maestro = Maestro::new(&[("LOG_LEVEL", "debug")])?;
    maestro.launch_with_log(log)?;
    maestro.await_serving()?;
    let rooms = maestro.fleet("arena", 3)?;
    send_signal(rooms[0].pids[0], Signal::KILL)?;
    maestro.until("the replacement", || {
        let now = checks::settled(&maestro, "arena", 3)?;
        ensure!(now.iter().all(|room| room.id != rooms[0].id), "it is still listed");
        Ok(())
    })?;
    maestro.api().add("arena", 2, "ada")?.expect(200)?;
    maestro.until("the larger fleet", || checks::settled(&maestro, "arena", 5))?;
    // What waits for a full pipe is dropped only when the queue is full, too.
    if broken != BrokenLog::PipeFull {
        let metrics = maestro.internal().get("/metrics")?.expect(200)?.text;
        let dropped = metrics.lines().find_map(|line| line.strip_prefix("maestro_log_lines_dropped_total "));
        ensure!(dropped.is_some_and(|dropped| dropped != "0"), "nothing was counted:\n{metrics}");
    }
    maestro.api().delete("/schedulers/arena")?.expect(200)?;
    maestro.until("the end of the fleet", || maestro.api().get("/schedulers/arena")?.expect(404))?;
    let status = maestro.stop(Signal::TERM)?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}
