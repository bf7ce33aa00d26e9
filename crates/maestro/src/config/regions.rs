//! Regions: a map of names in the file, each with settings of its own. If none is configured, there is one, `default`, whose
//! files are in the data directory itself.
//!
//! For what a region leaves unset, `adapters.runtime.process.*` applies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use maestro_core::room::Region;

use super::file::FileValue;
use super::keys::{Key, key};
use super::kind::{Bytes, Count, Directory, Host, HttpUrl, Kind, Optional, RuntimeKind, Switch};
use super::settings::{Origin, Setting};

/// Settings by region, as they are read.
pub type Regions = BTreeMap<Region, RegionConfig>;

pub(super) const SECTION: &str = "regions";
const VARIABLE_PREFIX: &str = "MAESTRO_REGIONS_";

/// One region; `None` is as for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionConfig {
    pub runtime: RuntimeKind,
    pub directory: Option<PathBuf>,
    pub host: Option<String>,
    pub log_limit_bytes: Option<u64>,
    pub rooms_max: Option<u32>,
    pub stop_rooms_on_shutdown: Option<bool>,
    pub rooms_api_url: Option<String>,
}

/// The keys of one region.
pub static REGION_KEYS: &[Key] = &[
    key!("runtime", RuntimeKind, "process", "What its rooms are: processes on this machine.", ""),
    key!(
        "directory",
        Optional<Directory>,
        "",
        "Where the files of its rooms are. If unset, `regions/<name>` in the data directory, and for `default` the data directory itself.",
        ""
    ),
    key!("host", Optional<Host>, "", "Address announced to players.", ""),
    key!(
        "logLimitBytes",
        Optional<Bytes<4096>>,
        "",
        "Maximum size of the kept output of a room, per container.",
        ""
    ),
    key!("roomsMax", Optional<Count<1, 1_000_000>>, "", "Maximum number of its rooms.", ""),
    key!("stopRoomsOnShutdown", Optional<Switch>, "", "Whether its rooms end with Maestro.", ""),
    key!("roomsApiUrl", Optional<HttpUrl>, "", "`MAESTRO_ROOMS_API_URL` of its rooms.", ""),
];

impl RegionConfig {
    fn read<'a>(text: impl Fn(&'static str) -> &'a str) -> Result<Self, String> {
        Ok(Self {
            runtime: RuntimeKind::parse(text("runtime"))?,
            directory: Optional::<Directory>::parse(text("directory"))?,
            host: Optional::<Host>::parse(text("host"))?,
            log_limit_bytes: Optional::<Bytes<4096>>::parse(text("logLimitBytes"))?,
            rooms_max: Optional::<Count<1, 1_000_000>>::parse(text("roomsMax"))?,
            stop_rooms_on_shutdown: Optional::<Switch>::parse(text("stopRoomsOnShutdown"))?,
            rooms_api_url: Optional::<HttpUrl>::parse(text("roomsApiUrl"))?,
        })
    }

    pub fn directory(&self, region: &Region, data_dir: &Path) -> PathBuf {
        match &self.directory {
            Some(directory) => directory.clone(),
            None if region.as_str() == Region::DEFAULT => data_dir.to_owned(),
            None => data_dir.join("regions").join(region.as_str()),
        }
    }
}

/// What a file says about one region, by key.
pub(super) type FileRegion = BTreeMap<&'static str, FileValue>;

/// The settings of all regions that the file names; variables stand above it. Where none is named there is nothing to
/// show.
pub(super) fn settings(
    file_name: &str,
    from_file: BTreeMap<Region, FileRegion>,
    environment: &BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Vec<Setting> {
    let mut unused: BTreeMap<&String, &String> =
        environment.iter().filter(|(name, _)| name.starts_with(VARIABLE_PREFIX)).collect();
    let mut settings = Vec::new();
    for (region, mut values) in from_file {
        for key in REGION_KEYS {
            let variable = variable(&region, key);
            let from_file = values.remove(key.path).map(|value| {
                let origin = Origin::File { name: file_name.to_owned(), line: value.line };
                (value.text, origin)
            });
            let from_environment = unused
                .remove(&variable)
                .map(|text| (text.clone(), Origin::Environment { variable: variable.clone() }));
            let (text, origin) =
                from_environment.or(from_file).unwrap_or_else(|| (key.default.to_owned(), Origin::Default));
            settings.push(Setting { region: Some(region.clone()), key, text, origin });
        }
    }
    let is_of_no_region =
        |name: &&String| format!("{name} has no effect: the file names no such region or key");
    warnings.extend(unused.keys().map(is_of_no_region));
    settings
}

/// `MAESTRO_REGIONS_US_EAST_HOST`: what cannot be part of a variable's name is an underscore.
fn variable(region: &Region, key: &Key) -> String {
    format!("{VARIABLE_PREFIX}{}_{}", in_variable(region), key.path.to_uppercase())
}

fn in_variable(region: &Region) -> String {
    region.0.replace(['-', '.'], "_").to_uppercase()
}

/// Regions from settings that were checked; those that cannot stand beside each other are refused.
pub(super) fn read(settings: &[Setting], data_dir: &Path) -> Result<Regions, Vec<String>> {
    let mut names: Vec<&Region> = settings.iter().filter_map(|setting| setting.region.as_ref()).collect();
    names.dedup();
    let mut regions = Regions::new();
    for name in names {
        let text = |path: &'static str| {
            let of_key =
                |setting: &&Setting| setting.region.as_ref() == Some(name) && setting.key.path == path;
            settings.iter().find(of_key).map_or("", |setting| setting.text.as_str())
        };
        let region = RegionConfig::read(text).map_err(|reason| vec![reason])?;
        regions.insert(name.clone(), region);
    }
    let violations = conflicts(&regions, data_dir);
    if !violations.is_empty() {
        return Err(violations);
    }
    if regions.is_empty() {
        let only = RegionConfig::read(|path| default_of(path)).map_err(|reason| vec![reason])?;
        regions.insert(Region::default_region(), only);
    }
    Ok(regions)
}

fn default_of(path: &str) -> &'static str {
    REGION_KEYS.iter().find(|key| key.path == path).map_or("", |key| key.default)
}

fn conflicts(regions: &Regions, data_dir: &Path) -> Vec<String> {
    let mut violations = Vec::new();
    let mut by_variable: BTreeMap<String, &Region> = BTreeMap::new();
    let mut by_directory: BTreeMap<PathBuf, &Region> = BTreeMap::new();
    for (name, region) in regions {
        if let Some(other) = by_variable.insert(in_variable(name), name) {
            violations.push(format!(
                "regions.{name}: is too like {other}: names must differ by more than case, `-`, `_` and `.`"
            ));
        }
        let directory = region.directory(name, data_dir);
        if let Some(other) = by_directory.insert(directory.clone(), name) {
            violations.push(format!(
                "regions.{name}.directory: {} is the directory of region {other} too; each needs its own",
                directory.display()
            ));
        }
    }
    violations
}
