//! Logs: to stderr, as text for people or JSON for machines. Stdout belongs to the line that says it is serving.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Set up once per process; a second call (tests run several servers in one process) leaves the first in place.
pub(super) fn set_up(level: &str, format: LogFormat) {
    let filter = EnvFilter::new(level);
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let set = match format {
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).with_target(false).try_init(),
    };
    if set.is_err() {
        tracing::debug!("logging is set up already");
    }
}
