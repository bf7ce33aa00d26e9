//! From sources to settings: which text each key has, and where that text came from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use maestro_core::room::Region;

use super::file::{self, FileSettings};
use super::keys::{Config, KEYS, Key};
use super::regions;

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
    /// Whose key it is, if it is a region's.
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
    let (file_name, from_file) = read_file(sources)?;
    let FileSettings { values: mut file_values, regions: file_regions, mut warnings, mut violations } =
        from_file;
    let environment = environment(sources);

    let mut layers = Layers { environment: &environment, flags: &sources.flags, warnings: &mut warnings };
    let mut settings: Vec<Setting> = KEYS
        .iter()
        .map(|key| {
            let from_file = file_values.remove(key.path).map(|value| {
                let origin = Origin::File { name: file_name.clone(), line: value.line };
                (value.text, origin)
            });
            layers.setting(key, from_file)
        })
        .collect();
    match sources.served_apis {
        ServedApis::Both => warnings.extend(api_port_warning(&settings)),
        ServedApis::Management => take_api_port(&mut settings, "managementApi.port"),
        ServedApis::Rooms => take_api_port(&mut settings, "roomsApi.port"),
        ServedApis::Neither => {}
    }

    settings.extend(regions::settings(&file_name, file_regions, &environment, &mut warnings));

    for setting in &settings {
        if let Err(reason) = setting.key.check(&setting.text) {
            let Setting { text, origin, .. } = setting;
            violations.push(format!("{}: {text} ({origin}): {reason}", setting.path()));
        }
    }
    let data_dir = text_of(&settings, "dataDir").to_owned();
    let regions = match regions::read(&settings, Path::new(&data_dir)) {
        Ok(regions) => regions,
        Err(conflicts) => {
            // A value that is wrong in itself is named above already.
            if violations.is_empty() {
                violations.extend(conflicts);
            }
            return Err(ConfigError { violations });
        }
    };
    let config = match Config::read(|path| text_of(&settings, path), regions) {
        Ok(config) if violations.is_empty() => config,
        Ok(_) => return Err(ConfigError { violations }),
        Err(reason) => {
            // Every key was checked above, so this adds nothing unless the table contradicts itself.
            if violations.is_empty() {
                violations.push(reason);
            }
            return Err(ConfigError { violations });
        }
    };
    Ok(Loaded { config, settings, warnings })
}

fn read_file(sources: &Sources) -> Result<(String, FileSettings), ConfigError> {
    let Some(path) = &sources.file else {
        return Ok((String::new(), FileSettings::default()));
    };
    let name = path.display().to_string();
    let refuse = |reason: String| ConfigError { violations: vec![format!("{name}: {reason}")] };

    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    // The limit holds for what is read, not for what the file system says: a device has no length.
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| refuse(format!("cannot be read: {error}")))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(refuse(format!("is larger than {FILE_BYTES_MAX} bytes; is this the right file?")));
    }
    let settings = file::read(&name, &text);
    Ok((name, settings))
}

/// Variables by name; one that is set to nothing counts as unset, as in v10.
fn environment(sources: &Sources) -> BTreeMap<String, String> {
    let text = |value: &OsString| value.to_string_lossy().into_owned();
    let variables = sources.environment.iter().map(|(name, value)| (text(name), text(value)));
    variables.filter(|(_, value)| !value.is_empty()).collect()
}

/// What may stand above the file.
struct Layers<'a> {
    environment: &'a BTreeMap<String, String>,
    flags: &'a [Flag],
    warnings: &'a mut Vec<String>,
}

impl Layers<'_> {
    /// The topmost text of a key: flag, environment, file, default.
    fn setting(&mut self, key: &'static Key, from_file: Option<(String, Origin)>) -> Setting {
        let from_flag = self.flags.iter().find(|flag| flag.key == key.path);
        let from_flag = from_flag.map(|flag| (flag.value.clone(), Origin::Flag { name: flag.name }));
        let (text, origin) = from_flag
            .or_else(|| self.variable(key))
            .or(from_file)
            .unwrap_or_else(|| (key.default.to_owned(), Origin::Default));
        Setting { region: None, key, text, origin }
    }

    fn variable(&mut self, key: &'static Key) -> Option<(String, Origin)> {
        let mut set = key.spellings().map(Key::variable).filter(|name| self.environment.contains_key(name));
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
    let Some(api_port) = given_api_port(settings).cloned() else {
        return;
    };
    let own = settings.iter_mut().find(|setting| setting.region.is_none() && setting.key.path == own_path);
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
    let setting =
        settings.iter().find(|setting| setting.region.is_none() && setting.key.path == "api.port")?;
    let is_port = setting.key.check(&setting.text).is_ok();
    (setting.origin != Origin::Default && is_port).then_some(setting)
}

fn text_of<'a>(settings: &'a [Setting], path: &str) -> &'a str {
    let setting = settings.iter().find(|setting| setting.region.is_none() && setting.key.path == path);
    setting.map_or("", |setting| setting.text.as_str())
}
