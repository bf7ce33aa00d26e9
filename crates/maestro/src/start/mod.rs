//! `maestro start`: the server.

mod apis;
mod descriptors;
mod log_writer;
mod logging;
mod metrics;
mod modules;
mod regions;
mod room_user;
mod server;
mod stores;
mod system;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use maestro_engine::Tasks;
use maestro_store_embedded::EmbeddedStore;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::ConfigOptions;
use crate::config::{Config, ConfigError, Flag, Loaded};

use log_writer::LogWriter;
pub use modules::Module;
use stores::Stores;
pub(crate) use stores::postgres_options;

#[derive(Debug, Clone, Args)]
pub struct StartOptions {
    /// What to run in this process; all but `all` need stores that processes can share (PostgreSQL and Redis)
    #[arg(value_enum, default_value_t = Module::All)]
    pub module: Module,
    #[command(flatten)]
    pub config: ConfigOptions,
    /// Log format, by v10's name for it: production is json, development is text
    #[arg(short, long, value_enum, value_name = "PRESET")]
    pub log_config: Option<LogPreset>,
    /// End running rooms of the store that was in the data directory, if its database is gone
    #[arg(long)]
    pub stop_unknown_rooms: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogPreset {
    Production,
    Development,
}

impl StartOptions {
    /// The configuration of this process: file, environment and flags.
    pub fn load_config(&self) -> Result<Loaded, ConfigError> {
        let log_format = self.log_config.map(|preset| Flag {
            name: "--log-config",
            key: "log.format",
            value: match preset {
                LogPreset::Production => "json".to_owned(),
                LogPreset::Development => "text".to_owned(),
            },
        });
        self.config.load(self.module.served_apis(), log_format.into_iter().collect())
    }
}

/// What still waits for a disk when everything else has ended is given so long.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// How long the end waits for the last lines of the log to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Runs until it is told to stop.
pub fn run(options: &StartOptions) -> anyhow::Result<ExitCode> {
    system::keep_descriptors_from_rooms().context("keeping open files from rooms")?;
    let Loaded { config, warnings, .. } = options.load_config()?;
    let logs = logging::set_up(config.log.level.as_str(), config.log.format).context("starting the log")?;
    let outcome = serve_until_told(options, &config, warnings, &logs);
    logs.flush(LAST_LINES);
    outcome
}

fn serve_until_told(
    options: &StartOptions,
    config: &Config,
    warnings: Vec<String>,
    logs: &LogWriter,
) -> anyhow::Result<ExitCode> {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    options.module.check(config)?;
    let descriptors_max = descriptors::raise_limit();
    let tasks = tasks()?;
    let embedded = match config.shared_stores() {
        Some(_) => None,
        None => Some(stores::open_embedded(&config.storage.data_dir, options.stop_unknown_rooms, &tasks)?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(options.module, config, embedded, descriptors_max, &tasks, logs));
    // A call to a disk that hangs must not keep the process.
    runtime.shutdown_timeout(LAST_CALLS);
    outcome
}

/// Tests have each task of a debug build crash once, so many milliseconds after it began.
const CRASH_TASKS_VARIABLE: &str = "MAESTRO_CRASH_TASKS_AFTER_MS";

fn tasks() -> anyhow::Result<Tasks> {
    let tasks = Tasks::default();
    if let Some(millis) = std::env::var_os(CRASH_TASKS_VARIABLE).filter(|_| cfg!(debug_assertions)) {
        let millis = millis.to_string_lossy().parse().context(CRASH_TASKS_VARIABLE)?;
        tasks.crash_each_after(Duration::from_millis(millis));
    }
    Ok(tasks)
}

/// What it had begun is as safe as when it is killed.
fn stopped_early(told_by: &str) -> ExitCode {
    tracing::info!(signal = told_by, "stopped before serving");
    ExitCode::SUCCESS
}

async fn serve(
    module: Module,
    config: &Config,
    embedded: Option<EmbeddedStore>,
    descriptors_max: u64,
    tasks: &Tasks,
    logs: &LogWriter,
) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let start = async {
        let stores = match (embedded, config.shared_stores()) {
            (None, Some(servers)) => Stores::connect(servers).await?,
            (Some(store), _) => Stores::embedded(store, tasks),
            (None, None) => anyhow::bail!("no store was opened"),
        };
        server::Server::start(module, config, stores, descriptors_max, tasks, logs).await
    };
    let server = tokio::select! {
        started = start => started?,
        _ = interrupt.recv() => return Ok(stopped_early("SIGINT")),
        _ = terminate.recv() => return Ok(stopped_early("SIGTERM")),
    };
    let told_by = tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    };
    tracing::info!(signal = told_by, "stopping; a second signal stops at once");
    let shut_down = async {
        server.say_what_becomes_of_rooms().await;
        server.shut_down().await;
    };
    tokio::select! {
        () = shut_down => {
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        _ = interrupt.recv() => Ok(ExitCode::FAILURE),
        _ = terminate.recv() => Ok(ExitCode::FAILURE),
    }
}
