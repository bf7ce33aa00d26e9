//! `maestro backup` and `maestro restore`: the embedded store as one file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct BackupOptions {
    /// Data directory to copy from
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// File to write
    pub file: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct RestoreOptions {
    /// Data directory to make
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Backup to read
    pub file: PathBuf,
}

pub fn backup(_options: &BackupOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("backup is not wired into this binary yet")
}

pub fn restore(_options: &RestoreOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("restore is not wired into this binary yet")
}
