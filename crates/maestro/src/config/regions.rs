//! Regions: a map of names in the file, each with settings of its own. If none is configured, there is one, `default`, whose
//! files are in the data directory itself.
//!
//! For what a region leaves unset, `adapters.runtime.process.*` applies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use maestro_core::room::Region;

use super::keys::{Key, section};
use super::kind::{DIRECTORY, HOST, HTTP_URL, Reads, RuntimeKind, SWITCH, bytes, count};
use super::settings::{Setting, text_of};

/// Settings by region, as they are read.
pub type Regions = BTreeMap<Region, RegionConfig>;

pub(super) const SECTION: &str = "regions";
pub(super) const VARIABLE_PREFIX: &str = "MAESTRO_REGIONS_";

section! {
    /// One region; `None` is as for all.
    RegionConfig {
        "runtime", runtime: RuntimeKind as RuntimeKind::KIND, "process",
            "What its rooms are: processes on this machine.";
        "directory", directory: Option<PathBuf> as DIRECTORY, "",
            "Where the files of its rooms are. If unset, `regions/<name>` in the data directory, and for `default` the data directory itself.";
        "host", host: Option<String> as HOST, "",
            "Address announced to players.";
        "logLimitBytes", log_limit_bytes: Option<u64> as bytes::<4096>(), "",
            "Maximum size of the kept output of a room, per container.";
        "roomsMax", rooms_max: Option<u32> as count::<1, 1_000_000>(), "",
            "Maximum number of its rooms.";
        "stopRoomsOnShutdown", stop_rooms_on_shutdown: Option<bool> as SWITCH, "",
            "Whether its rooms end with Maestro.";
        "roomsApiUrl", rooms_api_url: Option<String> as HTTP_URL, "",
            "`MAESTRO_ROOMS_API_URL` of its rooms.";
    }
}

impl RegionConfig {
    pub fn directory(&self, region: &Region, data_dir: &Path) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.clone(),
            None if region.as_str() == Region::DEFAULT => data_dir.to_owned(),
            None => data_dir.join("regions").join(region.as_str()),
        }
    }
}

/// Regions from settings that were checked; those that cannot stand beside each other are refused.
pub(super) fn read(
    names: &BTreeSet<Region>,
    settings: &[Setting],
    data_dir: &Path,
) -> Result<Regions, Vec<String>> {
    let read =
        |name: &Region| Ok((name.clone(), RegionConfig::read(|path| text_of(settings, Some(name), path))?));
    let mut regions: Regions =
        names.iter().map(read).collect::<Result<_, String>>().map_err(|reason| vec![reason])?;
    let violations = conflicts(&regions, data_dir);
    if !violations.is_empty() {
        return Err(violations);
    }
    if regions.is_empty() {
        let only = RegionConfig::read(default_of).map_err(|reason| vec![reason])?;
        regions.insert(Region::default_region(), only);
    }
    Ok(regions)
}

fn default_of(path: &str) -> &'static str {
    RegionConfig::KEYS.iter().find(|key| key.path == path).map_or("", |key| key.default)
}

fn conflicts(regions: &Regions, data_dir: &Path) -> Vec<String> {
    let mut violations = Vec::new();
    let mut by_variable: BTreeMap<String, &Region> = BTreeMap::new();
    let mut by_directory: BTreeMap<PathBuf, &Region> = BTreeMap::new();
    for (name, region) in regions {
        if let Some(other) = by_variable.insert(Key::variable(name.as_str()), name) {
            violations.push(format!(
                "regions.{name}: is too similar to {other}: names must differ by more than case, `-`, `_` and `.`"
            ));
        }
        let directory = region.directory(name, data_dir);
        if let Some(other) = by_directory.insert(directory.clone(), name) {
            violations.push(format!(
                "regions.{name}.directory: {} is also the directory of region {other}; each region needs its own",
                directory.display()
            ));
        }
    }
    violations
}
