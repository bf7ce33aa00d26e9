//! Durable writes: how many a second, one at a time and many at once, beside what the disk can do at most.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::Store;
use maestro_engine::ports::store::{Change, Transaction};
use maestro_store_embedded::EmbeddedStore;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::figure::Figure;
use crate::registry;
use crate::statistics::median;
use crate::{Effort, fleet};

/// Writers that do not wait for each other: what a large add or many schedulers come to.
const WRITERS: u32 = 64;

const RAW: &str = "syncs of the disk";

/// What one round measured, each per second.
struct Round {
    syncs: f64,
    single: f64,
    grouped: f64,
}

pub(crate) fn measure(effort: Effort, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let rounds = effort.pick(5, 1);
    let lasting = effort.pick(Duration::from_secs(1), Duration::from_millis(20));
    let directory = tempfile::tempdir_in(directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let store = Arc::new(EmbeddedStore::open(directory.path())?);
    runtime.block_on(registry::fill(&*store, &registry::gone(WRITERS), Vec::new()))?;
    let mut measured = Vec::new();
    for _ in 0..rounds {
        measured.push(Round {
            syncs: syncs_per_second(&directory, lasting)?,
            single: runtime.block_on(commits_per_second(&store, 1, lasting))?,
            grouped: runtime.block_on(commits_per_second(&store, WRITERS, lasting))?,
        });
    }
    let of = |figure: fn(&Round) -> f64| median(measured.iter().map(figure));
    Ok(vec![
        Figure::new("store.syncs", of(|round| round.syncs), "1/s"),
        Figure::new("store.commits1", of(|round| round.single), "1/s")
            .compared(RAW, of(|round| round.single / round.syncs)),
        Figure::new("store.commits64", of(|round| round.grouped), "1/s")
            .compared(RAW, of(|round| round.grouped / round.syncs)),
    ])
}

/// As SQLite writes its log: a page at a time, over and over in a file that does not grow.
fn syncs_per_second(directory: &TempDir, lasting: Duration) -> anyhow::Result<f64> {
    const PAGE: [u8; 4096] = [0x5a; 4096];
    const PAGES: u64 = 1000;
    let file = File::create(directory.path().join("raw"))?;
    for page in 0..PAGES {
        file.write_all_at(&PAGE, page * PAGE.len() as u64)?;
    }
    file.sync_all()?;
    let mut syncs = 0;
    let begin = Instant::now();
    while begin.elapsed() < lasting {
        file.write_all_at(&PAGE, syncs % PAGES * PAGE.len() as u64)?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(syncs as f64 / begin.elapsed().as_secs_f64())
}

/// Each writer writes down that its room started, as soon as it has heard that it is written.
async fn commits_per_second(
    store: &Arc<EmbeddedStore>,
    writers: u32,
    lasting: Duration,
) -> anyhow::Result<f64> {
    let scheduler = fleet::scheduler();
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let room = fleet::room_id(&scheduler, writer);
        tasks.spawn(write(store.clone(), scheduler.clone(), room, begin + lasting));
    }
    let mut commits = 0;
    while let Some(ended) = tasks.join_next().await {
        commits += ended??;
    }
    Ok(f64::from(commits) / begin.elapsed().as_secs_f64())
}

async fn write(
    store: Arc<EmbeddedStore>,
    scheduler: SchedulerName,
    room: RoomId,
    until: Instant,
) -> anyhow::Result<u32> {
    let mut commits = 0;
    while Instant::now() < until {
        let change = Change::RoomStarted {
            scheduler: scheduler.clone(),
            room: room.clone(),
            handle: registry::handle(commits, 4711),
        };
        store.commit(Transaction::of_no_scheduler("bench", vec![change])).await?;
        commits += 1;
    }
    Ok(commits)
}
