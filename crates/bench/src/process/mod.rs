//! The real server as a process of its own: started, asked over HTTP, and looked at from outside.

mod client;
mod usage;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use serde::Deserialize;

pub(crate) use client::{Answer, Client};
pub(crate) use usage::Usage;

/// A server that serves, and does not outlive its measurement.
pub(crate) struct Process {
    child: Child,
    pub(crate) management: SocketAddr,
}

/// The line that says it serves.
#[derive(Deserialize)]
struct Serving {
    management: String,
}

impl Process {
    /// Returns when it serves.
    pub(crate) fn start(maestro: &Path, directory: &Path) -> anyhow::Result<Self> {
        let mut command = command(maestro);
        command.args(["start", "--data-dir"]).arg(directory);
        for port in ["MANAGEMENTAPI", "ROOMSAPI", "INTERNALAPI"] {
            command.env(format!("MAESTRO_{port}_PORT"), "0");
        }
        // A file, not a pipe: nobody reads it unless something is wrong, and a full pipe would hold the server up.
        let log = directory.join("bench.log");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("running {}", maestro.display()))?;
        let mut process = Self { child, management: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let stdout = process.child.stdout.take().context("stdout is piped")?;
        let line = BufReader::new(stdout).lines().next().transpose()?;
        let serving = line.as_deref().and_then(|line| serde_json::from_str::<Serving>(line).ok());
        let serving = serving.with_context(|| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            format!("maestro start does not serve: {said}")
        })?;
        let address = serving.management.trim_start_matches("http://");
        process.management = address.parse().with_context(|| format!("address {address}"))?;
        Ok(process)
    }

    /// What it has used since it began.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What happens to be set where this runs must not change what is measured.
pub(crate) fn command(maestro: &Path) -> Command {
    let mut command = Command::new(maestro);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MAESTRO_") {
            command.env_remove(name);
        }
    }
    command
}
