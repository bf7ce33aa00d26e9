//! `maestro backup` and `maestro restore`: the embedded store as one file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct BackupOptions {
    /// Data directory to copy from; a server may be running on it
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// File to write; it must not exist
    pub file: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct RestoreOptions {
    /// Data directory to make or replace; no server may be running on it
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Backup to read
    pub file: PathBuf,
}

pub fn backup(options: &BackupOptions) -> anyhow::Result<ExitCode> {
    maestro_store_embedded::backup(&options.data_dir, &options.file)?;
    println!("{} holds the store of {}", options.file.display(), options.data_dir.display());
    Ok(ExitCode::SUCCESS)
}

pub fn restore(options: &RestoreOptions) -> anyhow::Result<ExitCode> {
    let restored = maestro_store_embedded::restore(&options.data_dir, &options.file)?;
    println!("{} was restored from {}", options.data_dir.display(), options.file.display());
    if let Some(kept) = restored.kept {
        println!("what was there before is {}", kept.display());
    }
    Ok(ExitCode::SUCCESS)
}
