//! Schedulers that have nothing to do: what a server costs that looks after many of them, and what its start costs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use maestro_store_embedded::EmbeddedStore;
use tempfile::TempDir;

use crate::Effort;
use crate::bystander::Bystander;
use crate::figure::Figure;
use crate::process::Process;
use crate::registry;

/// Its first cycles have come and gone, and those who were all due at the start too.
const SETTLES_IN: Duration = Duration::from_secs(20);

pub(crate) fn measure(effort: Effort, maestro: &Path, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let schedulers = effort.pick(1000, 20);
    let data = prepare(directory, schedulers)?;
    let server = Process::start(maestro, data.path())?;
    std::thread::sleep(effort.pick(SETTLES_IN, Duration::from_secs(1)));
    let (before, begin) = (server.usage()?, Instant::now());
    let p99 = ask_for(server.management, effort.pick(Duration::from_secs(60), Duration::from_secs(2)))?;
    let (used, minutes) = (server.usage()?.since(before), begin.elapsed().as_secs_f64() / 60.0);
    let share = used.cpu.as_secs_f64() / (minutes * 60.0) * 100.0;
    let megabytes = used.written_bytes as f64 / 1e6 / minutes;
    Ok(vec![
        Figure::new("idle.cpu", share, "% of a core"),
        Figure::new("idle.written", megabytes, "MB/min"),
        Figure::new("idle.get.p99", p99.as_secs_f64() * 1e3, "ms"),
    ])
}

/// From the start of the process until everything has been looked at at least once.
pub(crate) fn measure_restart(
    effort: Effort,
    maestro: &Path,
    directory: &Path,
) -> anyhow::Result<Vec<Figure>> {
    let schedulers = effort.pick(500, 20);
    let data = prepare(directory, schedulers)?;
    let begin = Instant::now();
    let server = Process::start(maestro, data.path())?;
    let until = effort.pick(Duration::from_secs(30), Duration::from_secs(2));
    let p99 = ask_for(server.management, until.saturating_sub(begin.elapsed()))?;
    let used = server.usage()?;
    Ok(vec![
        Figure::new("restart.cpu", used.cpu.as_secs_f64(), "s"),
        Figure::new("restart.written", used.written_bytes as f64 / 1e6, "MB"),
        Figure::new("restart.get.p99", p99.as_secs_f64() * 1e3, "ms"),
    ])
}

fn prepare(directory: &Path, schedulers: u32) -> anyhow::Result<TempDir> {
    let data = tempfile::tempdir_in(directory)?;
    let store = EmbeddedStore::open(data.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(registry::fill_idle(&store, schedulers))?;
    Ok(data)
}

/// Someone who looks at a scheduler now and then: how long 99 % of the answers take at most.
fn ask_for(server: SocketAddr, lasting: Duration) -> anyhow::Result<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = format!("/schedulers/{}", registry::idle_scheduler(0));
    runtime.block_on(async {
        let bystander = Bystander::begin(server, path);
        tokio::time::sleep(lasting).await;
        bystander.p99().await
    })
}
