//! `maestro start`: the server.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::cli::ConfigOptions;
use crate::config::{ConfigError, Flag, Loaded, ServedApis};

#[derive(Debug, Clone, Args)]
pub struct StartOptions {
    /// What to run in this process
    #[arg(value_enum, default_value_t = Component::All)]
    pub component: Component,
    #[command(flatten)]
    pub config: ConfigOptions,
    /// v10's choice of log format: production is json, development is text
    #[arg(short, long, value_enum, value_name = "PRESET")]
    pub log_config: Option<LogPreset>,
}

/// The parts of Maestro that can run as processes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Component {
    All,
    ManagementApi,
    RoomsApi,
    Worker,
    RuntimeWatcher,
    MetricsReporter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogPreset {
    Production,
    Development,
}

impl StartOptions {
    /// The configuration of this process: file, environment and flags.
    pub fn load_config(&self) -> Result<Loaded, ConfigError> {
        let served_apis = match self.component {
            Component::All => ServedApis::Both,
            Component::ManagementApi => ServedApis::Management,
            Component::RoomsApi => ServedApis::Rooms,
            Component::Worker | Component::RuntimeWatcher | Component::MetricsReporter => ServedApis::Neither,
        };
        let log_format = self.log_config.map(|preset| Flag {
            name: "--log-config",
            key: "log.format",
            value: match preset {
                LogPreset::Production => "json".to_owned(),
                LogPreset::Development => "text".to_owned(),
            },
        });
        self.config.load(served_apis, log_format.into_iter().collect())
    }
}

/// Runs until it is told to stop.
pub fn run(options: &StartOptions) -> anyhow::Result<ExitCode> {
    let _loaded = options.load_config()?;
    anyhow::bail!("the server is not wired into this binary yet")
}
