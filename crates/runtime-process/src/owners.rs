//! Which server the rooms in the process table belong to. A store can be copied, and then two servers have one id: a room
//! belongs to the data directory that started it as long as a server runs there. The other server leaves it alone and logs
//! whose it is. If no server runs there, whoever has the store's id takes its rooms over.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use maestro_core::room::RoomId;
use maestro_engine::ports::runtime::Result;

use crate::blocking::BlockingWork;
use crate::options::Options;
use crate::process_table::{Mark, Marked, Snapshot};
use crate::room::lock;
use crate::runtime::Shared;

/// Rooms of others that were mentioned. Mentioning one again does no harm.
const REPORTED_MAX: usize = 10_000;

/// The process that runs a server on a data directory, if there is one. Blocking.
pub type ServerOf = fn(&Path) -> Option<u32>;

/// What the process table shows of this region's rooms, without those that belong to another server.
pub(crate) struct Ours {
    snapshot: Arc<Snapshot>,
    mark: Mark,
    foreign: HashMap<PathBuf, u32>,
}

impl Ours {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Marked> {
        self.snapshot.of(&self.mark).iter().filter(|process| self.owner(process).is_none())
    }

    fn owner(&self, process: &Marked) -> Option<(&Path, u32)> {
        let (directory, pid) = self.foreign.get_key_value(process.data_directory.as_ref()?)?;
        Some((directory, *pid))
    }

    fn report(&self, reported: &Reported) {
        if self.foreign.is_empty() {
            return;
        }
        let mut reported = lock(reported);
        if reported.len() > REPORTED_MAX {
            reported.clear();
        }
        for process in self.snapshot.of(&self.mark) {
            if let Some((directory, pid)) = self.owner(process)
                && reported.insert(process.room.clone())
            {
                tracing::warn!(
                    "room {} belongs to the server with pid {pid} on data directory {}; it is left alone",
                    process.room,
                    directory.display()
                );
            }
        }
    }
}

/// Rooms that were mentioned.
pub(crate) type Reported = Mutex<HashSet<RoomId>>;

/// Looks at the process table.
pub(crate) async fn scan(options: &Options, blocking: &BlockingWork, reported: &Reported) -> Result<Ours> {
    let snapshot = options.scanner.scan().await?;
    let mark = Mark { store_id: options.store_id.clone(), region: options.region.clone() };
    let elsewhere = |process: &Marked| {
        process.data_directory.clone().filter(|directory| *directory != options.data_directory)
    };
    let others: HashSet<PathBuf> = snapshot.of(&mark).iter().filter_map(elsewhere).collect();
    let foreign = if others.is_empty() {
        HashMap::new()
    } else {
        let (own, server_of) = (options.data_directory.clone(), options.server_of);
        let me = std::process::id();
        let is_foreign = move |directory: PathBuf| {
            let pid = server_of(&directory).filter(|pid| *pid != me && !is_same(&directory, &own))?;
            Some((directory, pid))
        };
        blocking.run(move || others.into_iter().filter_map(is_foreign).collect()).await
    };
    let ours = Ours { snapshot, mark, foreign };
    ours.report(reported);
    Ok(ours)
}

/// A directory may have several names.
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| path.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}

impl Shared {
    pub(crate) async fn scan(&self) -> Result<Ours> {
        scan(&self.options, &self.blocking, &self.reported).await
    }
}
