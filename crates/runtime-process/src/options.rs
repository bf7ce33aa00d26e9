//! What the runtime of a host is told when it is opened.

use std::ffi::OsString;
use std::path::PathBuf;

use maestro_core::hash::{BASIS, fnv1a};
use maestro_core::room::Region;
use maestro_engine::Tasks;

use crate::owners::ServerOf;
use crate::scanner::ProcessScanner;

/// What the runtime of a host needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// `rooms/` is in it. No two regions share one.
    pub directory: PathBuf,
    /// The data directory: `secrets/` is in it, for all regions.
    pub data_directory: PathBuf,
    /// Rooms that carry this id and the region's name are ours, all others are none of our business.
    pub store_id: String,
    pub region: Region,
    /// Where players reach rooms, as it is announced to them.
    pub host: String,
    /// Where rooms reach Maestro.
    pub rooms_api_url: String,
    /// The most that the logs of one container may take.
    pub log_limit_bytes: u64,
    /// The most that all logs of one scheduler may take together, including those of ended rooms.
    pub scheduler_log_limit_bytes: u64,
    /// How many rooms may run here at once.
    pub rooms_max: u32,
    /// How many rooms that have ended keep their files, per scheduler.
    pub ended_rooms_max: usize,
    /// How a process is started that calls [`crate::keep_logs`].
    pub log_keeper: Vec<OsString>,
    /// Supervises the tasks that watch rooms.
    pub tasks: Tasks,
    /// Where rooms have directories of their own, to run in. `None`: in `directory`.
    pub rooms_directory: Option<PathBuf>,
    /// `None`: rooms run as Maestro's own user.
    pub user: Option<RoomUser>,
    /// How to find out whether a server runs on a data directory, since two may have copies of one store.
    pub server_of: ServerOf,
    /// Where relative commands are looked for.
    pub working_directory: PathBuf,
    /// Regions of one server have one together.
    pub scanner: ProcessScanner,
}

/// Whom rooms run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomUser {
    pub name: String,
    pub user_id: u32,
    pub group_id: u32,
}

impl Options {
    /// A name for what this server alone has outside its data directory: a copy of its store has the same id.
    pub(crate) fn own_name(&self) -> String {
        let path = self.data_directory.as_os_str().as_encoded_bytes();
        let hash = fnv1a(BASIS, path.iter().copied());
        format!("{}-{hash:016x}", self.store_id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;

    /// A region that has all of its files in one directory.
    pub(crate) fn options(directory: &Path) -> Options {
        Options {
            directory: directory.into(),
            data_directory: directory.into(),
            store_id: "s1".into(),
            region: Region::default_region(),
            host: "192.0.2.1".into(),
            rooms_api_url: "http://127.0.0.1:8070".into(),
            log_limit_bytes: 1 << 20,
            scheduler_log_limit_bytes: 1 << 30,
            rooms_max: 10,
            ended_rooms_max: 10,
            log_keeper: Vec::new(),
            tasks: Tasks::default(),
            rooms_directory: None,
            user: None,
            server_of: |_directory| None,
            working_directory: directory.into(),
            scanner: ProcessScanner::new(None),
        }
    }
}
