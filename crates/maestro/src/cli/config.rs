//! `maestro config …`: the configuration a server started here and now would have.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{At, Column, Context, Failure, Json, print, table, warn};
use crate::config::{ConfigError, Flag, Loaded, ServedApis, Setting, Sources, load, reference};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show each value in effect and where it came from
    #[command(after_help = examples![
        "maestro config show",
        "maestro config show -c maestro.yaml -o yaml",
        "MAESTRO_LOG_LEVEL=debug maestro config show",
    ])]
    Show(ConfigOptions),

    /// Print the reference of all keys, as Markdown
    #[command(after_help = examples!["maestro config reference > docs/configuration.md"])]
    Reference,
}

/// Where the configuration comes from, beside the environment.
#[derive(Debug, Clone, Args)]
pub struct ConfigOptions {
    /// Configuration file, YAML
    #[arg(short = 'c', long = "config-path", visible_alias = "config", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Directory of the embedded store; overrides the setting dataDir
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

impl ConfigOptions {
    /// Reads the configuration for a process that serves these APIs; further flags win over all else.
    pub fn load(&self, served_apis: ServedApis, mut flags: Vec<Flag>) -> Result<Loaded, ConfigError> {
        flags.extend(self.data_dir.as_ref().map(|directory| Flag {
            name: "--data-dir",
            key: "dataDir",
            value: directory.to_string_lossy().into_owned(),
        }));
        load(&Sources {
            file: self.file.clone(),
            environment: std::env::vars_os().collect(),
            flags,
            served_apis,
        })
    }
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Show(options) => {
            let loaded = options.load(ServedApis::Both, Vec::new());
            let loaded = loaded.map_err(|error| Failure::invalid(error.to_string()))?;
            for warning in &loaded.warnings {
                warn(warning);
            }
            let settings = loaded.settings.iter().map(setting_json).collect();
            let answer = Json::object([("settings", Json::Array(settings))]);
            context.show(&answer, |answer| table(answer.get("settings"), SETTINGS))
        }
        Command::Reference => print(&reference()),
    }
}

pub(super) fn setting_json(setting: &Setting) -> Json {
    let Setting { key, text, origin, region: _ } = setting;
    Json::object([
        ("key", Json::from(setting.path().as_str())),
        // Checked when it was loaded.
        ("value", key.check(text).map_or(Json::Null, Json::from)),
        ("source", Json::from(origin.word())),
        ("from", Json::from(origin.to_string().as_str())),
    ])
}

const SETTINGS: &[Column] = &[("KEY", At("key")), ("VALUE", At("value")), ("FROM", At("from"))];
