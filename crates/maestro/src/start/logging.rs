//! Logs: to stderr, as text for people or JSON for machines. Stdout belongs to the line that says it is serving.
//! Neither stops the server when it cannot be written.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::thread;

use maestro_core::time::Timestamp;
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

use super::log_writer::{LogWriter, Stream};

static WRITER: OnceLock<LogWriter> = OnceLock::new();

/// Set up once per process; a second call (tests run several servers in one process) leaves the first in place.
pub(super) fn set_up(level: &str, format: LogFormat) -> io::Result<LogWriter> {
    if let Some(writer) = WRITER.get() {
        return Ok(writer.clone());
    }
    let describe_gap = match format {
        LogFormat::Json => gap_as_json,
        LogFormat::Text => gap_as_text,
    };
    let writer = LogWriter::start(Stream(io::stderr()), describe_gap)?;
    let writer = WRITER.get_or_init(|| writer);
    // What the formatter cannot format it would print to stderr, which blocks, and panics if it fails.
    let logs = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(|| writer.clone())
        .log_internal_errors(false);
    let set = match format {
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).with_target(false).try_init(),
    };
    if set.is_err() {
        tracing::debug!("logging is set up already");
    }
    // The standard one writes to stderr by itself.
    std::panic::set_hook(Box::new(log_panic));
    Ok(writer.clone())
}

/// Writes a line to stdout without waiting for its reader.
pub(super) fn print(line: String) -> io::Result<()> {
    let print = move || {
        let mut stdout = Stream(io::stdout());
        if let Err(error) = stdout.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "cannot write to stdout");
        }
    };
    thread::Builder::new().name("stdout".into()).spawn(print).map(drop)
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("without a message");
    let location = panic.location().map(ToString::to_string);
    let thread = thread::current();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(panic = message, location, thread = thread.name(), backtrace, "panicked");
}

fn gap_as_text(lines: u64) -> String {
    format!("{:.6}  WARN log lines could not be written lines={lines}\n", Timestamp::now())
}

fn gap_as_json(lines: u64) -> String {
    let timestamp = format!("{:.6}", Timestamp::now());
    let message = "log lines could not be written";
    let line =
        serde_json::json!({"timestamp": timestamp, "level": "WARN", "message": message, "lines": lines});
    format!("{line}\n")
}
