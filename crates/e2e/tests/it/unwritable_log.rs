//! A log that cannot be written must not stop a fleet: its reader is gone, its pipe is full, its disk is full.

use std::fs::{File, OpenOptions};
use std::io::{PipeReader, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use anyhow::ensure;
use maestro_e2e::{Maestro, checks, send_signal};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::Signal;

#[test]
fn nobody_reads_the_log_any_more() -> anyhow::Result<()> {
    let (reader, writer) = pipe()?;
    drop(reader);
    live_with_log(OwnedFd::from(writer).into(), true)
}

#[test]
fn the_pipe_of_the_log_is_full() -> anyhow::Result<()> {
    // The reader is there and does not read.
    let (_reader, writer) = full_pipe()?;
    live_with_log(writer.into(), false)
}

#[test]
fn the_disk_of_the_log_is_full() -> anyhow::Result<()> {
    let full: File = OpenOptions::new().write(true).open("/dev/full")?;
    live_with_log(full.into(), true)
}

/// The first life of a fleet: created, a room killed and replaced, made larger, deleted, and a server that ends.
fn live_with_log(log: Stdio, loses_lines_at_once: bool) -> anyhow::Result<()> {
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
    if loses_lines_at_once {
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

/// Filled without blocking; whoever writes to it next waits.
fn full_pipe() -> anyhow::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = pipe()?;
    let flags = fcntl_getfl(&writer)?;
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    while rustix::io::write(writer.as_fd(), b"x").map_or_else(|error| error != Errno::AGAIN, |_| true) {}
    fcntl_setfl(&writer, flags)?;
    Ok((reader, writer.into()))
}
