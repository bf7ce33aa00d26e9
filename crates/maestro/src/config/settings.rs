//! From sources to settings: which text each key has, and where that text came from.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use maestro_core::room::Region;
use maestro_proto::document::read_text;

use super::file::{self, FileSettings};
use super::keys::{Config, Key, keys};
use super::regions::{self, RegionConfig};

/// Larger than any configuration: a wrong path (a log, a device) must not fill the memory.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where settings come from, beside their defaults.
#[derive(Debug, Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// Names and values; those that are not settings are ignored.
    pub environment: Vec<(OsString, OsString)>,
    pub flags: Vec<Flag>,
    pub served_apis: ServedApis,
}

/// Which APIs the process serves beside the internal one: it decides for what v10's `api.port` stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ServedApis {
    #[default]
    Both,
    Management,
    Rooms,
    Neither,
}

/// A flag of the command line that stands for a key.
#[derive(Debug, Clone)]
pub struct Flag {
    pub name: &'static str,
    pub key: &'static str,
    pub value: String,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { name: String, line: u64 },
    Environment { variable: String },
    Flag { name: &'static str },
}

impl Origin {
    /// One word for it, the same in all output formats.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File { .. } => "file",
            Self::Environment { .. } => "environment",
            Self::Flag { .. } => "flag",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name} line {line}"),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { name } => f.write_str(name),
        }
    }
}

/// The text of one key.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The region that the key belongs to, if it is one of a region.
    pub region: Option<Region>,
    pub key: &'static Key,
    pub text: String,
    pub origin: Origin,
}

impl Setting {
    /// The key as written in a file, with dots between levels.
    pub fn path(&self) -> String {
        match &self.region {
            None => self.key.path.to_owned(),
            Some(region) => format!("{}.{region}.{}", regions::SECTION, self.key.path),
        }
    }

    fn is(&self, region: Option<&Region>, path: &str) -> bool {
        self.region.as_ref() == region && self.key.path == path
    }
}

/// A configuration that is valid as a whole.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// One per key, in the reference's order; then those of each region that is named.
    pub settings: Vec<Setting>,
    /// What was accepted and does nothing, for people to see once.
    pub warnings: Vec<String>,
}

/// Everything wrong with a configuration, a line each.
#[derive(Debug, thiserror::Error)]
#[error("the configuration is not valid:\n{}", .violations.iter().map(|v| format!("  {v}")).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    pub violations: Vec<String>,
}

/// Reads all sources.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let FileSettings { values: file_values, regions: names, mut warnings, mut violations, .. } =
        read_file(sources)?;
    let environment = environment(sources);

    let flags = &sources.flags;
    let mut layers = Layers { file_values, environment: &environment, flags, warnings: &mut warnings };
    let mut settings: Vec<Setting> = keys().map(|key| layers.setting(None, key)).collect();
    for name in &names {
        settings.extend(RegionConfig::KEYS.iter().map(|key| layers.setting(Some(name), key)));
    }
    match sources.served_apis {
        ServedApis::Both => warnings.extend(api_port_warning(&settings)),
        ServedApis::Management => take_api_port(&mut settings, "managementApi.port"),
        ServedApis::Rooms => take_api_port(&mut settings, "roomsApi.port"),
        ServedApis::Neither => {}
    }
    warnings.extend(unused_variables(&environment, &settings));

    for setting in &settings {
        if let Err(reason) = setting.key.check(&setting.text) {
            let Setting { key, text, origin, .. } = setting;
            violations.push(format!("{}: {} ({origin}): {reason}", setting.path(), key.shown(text)));
        }
    }
    // What is wrong with a value in itself comes first; only then, which values do not go together.
    if !violations.is_empty() {
        return Err(ConfigError { violations });
    }
    let config = read(&names, &settings).map_err(|violations| ConfigError { violations })?;
    Ok(Loaded { config, settings, warnings })
}

/// The configuration, from settings that were checked one by one.
fn read(names: &BTreeSet<Region>, settings: &[Setting]) -> Result<Config, Vec<String>> {
    let text = |path| text_of(settings, None, path);
    let regions = regions::read(names, settings, Path::new(text("dataDir")))?;
    let config = Config::read(text, regions).map_err(|reason| vec![reason])?;
    let conflicts = config.conflicts_of_stores();
    if conflicts.is_empty() { Ok(config) } else { Err(conflicts) }
}

fn read_file(sources: &Sources) -> Result<FileSettings, ConfigError> {
    let Some(path) = &sources.file else { return Ok(FileSettings::default()) };
    let name = path.display().to_string();
    let text = read_text(path, FILE_BYTES_MAX)
        .map_err(|error| ConfigError { violations: vec![format!("{name}: cannot be read: {error}")] })?;
    Ok(file::read(&name, &text))
}

/// Variables by name; one that is set to nothing counts as unset, as in v10.
fn environment(sources: &Sources) -> BTreeMap<String, String> {
    let text = |value: &OsString| value.to_string_lossy().into_owned();
    let variables = sources.environment.iter().map(|(name, value)| (text(name), text(value)));
    variables.filter(|(_, value)| !value.is_empty()).collect()
}

/// Variables of regions that are not there: nothing else would tell that they do nothing.
fn unused_variables(environment: &BTreeMap<String, String>, settings: &[Setting]) -> Vec<String> {
    let used: BTreeSet<String> = settings.iter().map(|setting| Key::variable(&setting.path())).collect();
    let of_regions = environment.keys().filter(|name| name.starts_with(regions::VARIABLE_PREFIX));
    let unused = of_regions.filter(|name| !used.contains(*name));
    unused.map(|name| format!("{name} has no effect: the file names no such region or key")).collect()
}

/// What stands above the defaults.
struct Layers<'a> {
    file_values: BTreeMap<(Option<Region>, &'static str), (String, Origin)>,
    environment: &'a BTreeMap<String, String>,
    flags: &'a [Flag],
    warnings: &'a mut Vec<String>,
}

impl Layers<'_> {
    /// The topmost text of a key: flag, environment, file, default.
    fn setting(&mut self, region: Option<&Region>, key: &'static Key) -> Setting {
        let region = region.cloned();
        let from_file = self.file_values.remove(&(region.clone(), key.path));
        let mut setting = Setting { region, key, text: key.default.to_owned(), origin: Origin::Default };
        let from_flag = self.flags.iter().find(|flag| flag.key == setting.path());
        let from_flag = from_flag.map(|flag| (flag.value.clone(), Origin::Flag { name: flag.name }));
        if let Some(above) = from_flag.or_else(|| self.variable(&setting)).or(from_file) {
            (setting.text, setting.origin) = above;
        }
        setting
    }

    fn variable(&mut self, setting: &Setting) -> Option<(String, Origin)> {
        let aliases = setting.key.aliases.iter().map(|alias| Key::variable(alias));
        let names = [Key::variable(&setting.path())].into_iter().chain(aliases);
        let mut set = names.filter(|name| self.environment.contains_key(name));
        let variable = set.next()?;
        if let Some(other) = set.next() {
            self.warnings.push(format!("{other} has no effect, because {variable} is set too"));
        }
        drop(set);
        let text = self.environment.get(&variable)?.clone();
        Some((text, Origin::Environment { variable }))
    }
}

/// v10 runs one API per process and calls its port `api.port`; the API's own key wins where it is set.
fn take_api_port(settings: &mut [Setting], own_path: &str) {
    let Some(api_port) = given_api_port(settings).cloned() else { return };
    let own = settings.iter_mut().find(|setting| setting.is(None, own_path));
    if let Some(own) = own.filter(|setting| setting.origin == Origin::Default) {
        own.text = api_port.text;
        own.origin = api_port.origin;
    }
}

fn api_port_warning(settings: &[Setting]) -> Option<String> {
    let origin = &given_api_port(settings)?.origin;
    Some(format!(
        "api.port has no effect where two APIs run: set managementApi.port and roomsApi.port ({origin})"
    ))
}

/// `api.port`, if someone set it, and to a port: a wrong value is reported under its own name only.
fn given_api_port(settings: &[Setting]) -> Option<&Setting> {
    let setting = settings.iter().find(|setting| setting.is(None, "api.port"))?;
    let is_port = setting.key.check(&setting.text).is_ok();
    (setting.origin != Origin::Default && is_port).then_some(setting)
}

/// The text of a setting; nothing if there is no such setting.
pub(super) fn text_of<'a>(settings: &'a [Setting], region: Option<&Region>, path: &str) -> &'a str {
    let setting = settings.iter().find(|setting| setting.is(region, path));
    setting.map_or("", |setting| setting.text.as_str())
}
