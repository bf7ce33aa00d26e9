//! From the start of the process to the line that says it is serving, with the real binary.

mod running;

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::Context as _;
use maestro_engine::ports::runtime::Handle;
use maestro_store_embedded::EmbeddedStore;

use crate::figure::Figure;
use crate::process::{Process, command};
use crate::statistics::median;
use crate::{Effort, registry};

use running::RunningRooms;

/// What starting a process costs that does nothing else.
const BARE: &str = "maestro version";

pub(crate) fn measure(effort: Effort, maestro: &Path, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let rounds = effort.pick(9, 1);
    let parent = tempfile::tempdir_in(directory)?;
    let path = |name: &str| parent.path().join(name);
    let (nothing, no_rooms, rooms, running) =
        (path("nothing"), path("no-rooms"), path("rooms"), path("running"));
    fs::create_dir(&nothing)?;
    prepare(&no_rooms, 0)?;
    prepare(&rooms, effort.pick(10_000, 100))?;
    let mut figures = vec![
        figure("start.first", maestro, &nothing, rounds)?,
        figure("start.rooms0", maestro, &no_rooms, rounds)?,
        figure("start.rooms10k", maestro, &rooms, rounds)?,
    ];
    // Not before: every start looks at all processes of the host.
    let _running_rooms = prepare_running(&running, effort.pick(1_000, 10))?;
    figures.push(figure("start.running1k", maestro, &running, rounds)?);
    Ok(figures)
}

/// Starts on copies of a data directory, in turns with starts of a process that does nothing.
fn figure(bench: &str, maestro: &Path, prepared: &Path, rounds: usize) -> anyhow::Result<Figure> {
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let version = seconds_of_version(maestro)?;
        let start = seconds_to_serving(maestro, prepared)?;
        times.push(start * 1e3);
        ratios.push(start / version);
    }
    Ok(Figure::new(bench, median(times), "ms").compared(BARE, median(ratios)))
}

/// The data directory of a server that was stopped, with a scheduler and that many rooms, which have ended since.
fn prepare(directory: &Path, rooms: u32) -> anyhow::Result<()> {
    let store = EmbeddedStore::open(directory)?;
    fill(&store, &registry::gone(rooms))
}

/// The same with rooms that run as long as what is returned.
fn prepare_running(directory: &Path, rooms: u32) -> anyhow::Result<RunningRooms> {
    let store = EmbeddedStore::open(directory)?;
    let rooms = RunningRooms::start(store.store_id(), rooms)?;
    fill(&store, &rooms.handles()?)?;
    Ok(rooms)
}

fn fill(store: &EmbeddedStore, rooms: &[Handle]) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(registry::fill(store, rooms, Vec::new()))
}

fn seconds_of_version(maestro: &Path) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let output = command(maestro).arg("version").stdin(Stdio::null()).output();
    let seconds = begin.elapsed().as_secs_f64();
    let output = output.with_context(|| format!("running {}", maestro.display()))?;
    anyhow::ensure!(output.status.success(), "maestro version: {}", output.status);
    Ok(seconds)
}

/// Starts the server on a copy: as soon as it has looked around, it begins to write down which rooms have ended.
fn seconds_to_serving(maestro: &Path, prepared: &Path) -> anyhow::Result<f64> {
    let directory = tempfile::tempdir_in(prepared.parent().unwrap_or(prepared))?;
    copy_durably(prepared, directory.path())?;
    let begin = Instant::now();
    let _server = Process::start(maestro, directory.path())?;
    Ok(begin.elapsed().as_secs_f64())
}

/// To the disk: the server's first commit must not have to wait for our copy.
fn copy_durably(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        fs::copy(entry.path(), &copy)?;
        File::open(&copy)?.sync_all()?;
    }
    File::open(to)?.sync_all()?;
    Ok(())
}
