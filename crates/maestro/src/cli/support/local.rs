//! What this machine knows, whether a server runs or not.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::config::setting_json;
use super::bundle::{Bundle, Keep};
use super::secrets::hide;
use crate::cli::Json;
use crate::config::Loaded;

/// Bytes of the server's log that are included.
const LOG_BYTES_MAX: u64 = 4 << 20;

/// Bytes of each room's log that are included, and of how many rooms, if no server can be asked for them.
const ROOM_LOG_BYTES_MAX: u64 = 64 << 10;
const ROOM_LOGS_MAX: usize = 50;

/// Files of a data directory that are listed, rooms' included.
const FILES_MAX: usize = 2000;

pub(super) fn system() -> Json {
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| Json::from(text.to_string_lossy().as_ref());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        |key: &str| memory.lines().find_map(|line| line.strip_prefix(key)).map_or("", str::trim).to_owned();
    let cpus =
        std::thread::available_parallelism().map_or(0, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX));
    Json::object([
        ("system", text(uname.sysname())),
        ("release", text(uname.release())),
        ("machine", text(uname.machine())),
        ("cpus", Json::from(cpus)),
        ("memoryTotal", Json::from(memory("MemTotal:").as_str())),
        ("memoryAvailable", Json::from(memory("MemAvailable:").as_str())),
    ])
}

/// Each setting and where it comes from; no values of secrets.
pub(super) fn configuration(loaded: &Loaded) -> Json {
    let setting = |setting| {
        let mut shown = setting_json(setting);
        if let Json::Object(entries) = &mut shown {
            let values = entries.iter_mut().filter(|(key, _)| key == "value");
            values.for_each(|(_, value)| hide(&setting.path(), value));
        }
        shown
    };
    let warnings = loaded.warnings.iter().map(|warning| Json::from(warning.as_str())).collect();
    Json::object([
        ("settings", Json::Array(loaded.settings.iter().map(setting).collect())),
        ("warnings", Json::Array(warnings)),
    ])
}

pub(super) fn server_log(bundle: &mut Bundle, log: &Path) {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let end = tail(log, LOG_BYTES_MAX).map_err(|error| format!("{}: {error}", log.display()));
    bundle.add(&format!("server-log/{name}"), end, Keep::End);
}

/// Which files there are, how large and with which rights; never the store's content.
pub(super) fn data_directory(bundle: &mut Bundle, directory: &Path, room_logs: bool) {
    let mut files = Vec::new();
    if let Err(error) = walk(directory, &mut files) {
        bundle.miss("data-directory.txt", &format!("{}: {error}", directory.display()));
        return;
    }
    let mut listing = String::new();
    for Found { path, mode, bytes, .. } in &files {
        let shown = path.strip_prefix(directory).unwrap_or(path).display();
        listing.push_str(&format!("{mode:04o} {bytes:>12} {shown}\n"));
    }
    bundle.add("data-directory.txt", io::Result::Ok(listing.into_bytes()), Keep::Beginning);
    if room_logs {
        let is_log = |found: &Found| found.path.extension().is_some_and(|extension| extension == "log");
        let mut logs: Vec<Found> = files.into_iter().filter(is_log).collect();
        logs.sort_by_key(|log| std::cmp::Reverse(log.modified_at));
        for Found { path, .. } in logs.into_iter().take(ROOM_LOGS_MAX) {
            let shown = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
            bundle.add(&format!("data-directory/{shown}"), tail(&path, ROOM_LOG_BYTES_MAX), Keep::End);
        }
    }
}

struct Found {
    path: PathBuf,
    mode: u32,
    bytes: u64,
    modified_at: SystemTime,
}

/// Follows no symbolic links: whoever writes a recipe can make some in a room's directory.
fn walk(directory: &Path, files: &mut Vec<Found>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if files.len() >= FILES_MAX {
            return Ok(());
        }
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            walk(&entry.path(), files)?;
        } else if metadata.is_file() {
            files.push(Found {
                path: entry.path(),
                mode: metadata.permissions().mode() & 0o7777,
                bytes: metadata.len(),
                modified_at: metadata.modified()?,
            });
        }
    }
    Ok(())
}

fn tail(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}
