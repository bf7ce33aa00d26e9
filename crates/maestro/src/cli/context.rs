//! What every command needs: the server, the output format, and a way to wait for the operation it started.

use std::time::Duration;

use clap::Args;

use super::watch::{reason, verdict};
use super::{Client, Failure, Format, Json, Progress, output, watch};
use crate::config::duration;

/// Where a server started without configuration listens.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// Options of all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Context {
    // Not read by the parser: it would show `--url <URL>` in the usage of every command.
    /// The server's management API [env: MAESTRO_URL] [default: http://127.0.0.1:8080]
    #[arg(long, global = true)]
    url: Option<String>,

    /// How to print results; json and yaml print the server's answer unchanged, csv is only for simulate
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub(super) output: Format,

    /// Time limit for a single request to the server
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub(super) request_timeout: Duration,
}

/// Options of all commands that start an operation.
#[derive(Debug, Args)]
pub(super) struct WaitOptions {
    /// Wait for the operation to end; the exit code tells whether it succeeded
    #[arg(long)]
    pub(super) wait: bool,
    /// How long to wait; the operation continues after that
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse, requires = "wait")]
    pub(super) timeout: Duration,
}

impl Context {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        // Set to nothing counts as unset, as with every other variable.
        let url = self.url.clone().or_else(|| std::env::var("MAESTRO_URL").ok());
        let url = url.filter(|url| !url.is_empty());
        Client::new(url.as_deref().unwrap_or(DEFAULT_URL), self.request_timeout)
    }

    pub(super) fn show(&self, answer: &Json, table: impl FnOnce(&Json) -> String) -> Result<(), Failure> {
        output::show(self.output, answer, table)
    }

    /// Follows an operation to its end, with progress on stderr.
    pub(super) fn follow(
        &self,
        scheduler: &str,
        operation: &str,
        timeout: Duration,
    ) -> Result<Json, Failure> {
        watch::follow(&self.client()?, scheduler, operation, Some(timeout), Progress::beside_result())
    }

    /// The end of every command that starts an operation: its id at once, or its outcome with `--wait`.
    pub(super) fn operation_started(
        &self,
        scheduler: &str,
        what: &str,
        answer: &Json,
        wait: &WaitOptions,
    ) -> Result<(), Failure> {
        let Some(id) = answer.get("operationId").as_str() else {
            return Err(Failure::failed("the server's answer names no operation"));
        };
        if !wait.wait {
            return self.show(answer, |_| format!("operation {id} enqueued: {what}"));
        }
        let end = self.follow(scheduler, id, wait.timeout)?;
        self.show_end(&end, |end| {
            let operation = end.get("operation");
            format!("operation {id} {}: {}", operation.get("status").cell(), reason(operation))
        })
    }

    /// Shows how an operation ended; fails if it did not finish.
    pub(super) fn show_end(&self, end: &Json, table: impl FnOnce(&Json) -> String) -> Result<(), Failure> {
        let verdict = verdict(end);
        // For people a failure is said once, on stderr; programs get the operation in both cases.
        if verdict.is_ok() || self.output != Format::Table {
            self.show(end, table)?;
        }
        verdict
    }
}
