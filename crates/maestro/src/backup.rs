//! `maestro backup` and `maestro restore`: the embedded store as one file.

use std::path::PathBuf;

use clap::Args;
use maestro_store_embedded::{BackupError, Identity, OpenError, server_of};

#[derive(Debug, Clone, Args)]
pub struct BackupOptions {
    /// Data directory to back up; a server may be using it
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// File to write; must not exist yet
    pub file: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct RestoreOptions {
    /// Data directory to create or replace; no server may be using it
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Keep the backup's store id wherever it is restored, so that running rooms of that store are adopted
    #[arg(long, conflicts_with = "new_identity")]
    pub same_identity: bool,
    /// Give the store a new id even in the data directory that the backup came from; its running rooms are left alone
    #[arg(long)]
    pub new_identity: bool,
    /// End running rooms of the store that is in the data directory now, if the backup is of another store
    #[arg(long)]
    pub stop_unknown_rooms: bool,
    /// Backup to read
    pub file: PathBuf,
}

pub fn backup(options: &BackupOptions) -> anyhow::Result<()> {
    maestro_store_embedded::backup(&options.data_dir, &options.file)?;
    println!("backed up the store of {} to {}", options.data_dir.display(), options.file.display());
    Ok(())
}

pub fn restore(options: &RestoreOptions) -> anyhow::Result<()> {
    let RestoreOptions { data_dir, same_identity, new_identity, stop_unknown_rooms, file } = options;
    let identity = match (same_identity, new_identity) {
        (true, _) => Identity::Same,
        (false, true) => Identity::New,
        (false, false) => Identity::ByDirectory,
    };
    let wanted = maestro_store_embedded::RestoreOptions {
        identity,
        rooms_of: Some(|store_id| maestro_runtime_process::rooms_of_store(store_id, server_of)),
    };
    let restore = || maestro_store_embedded::restore(data_dir, file, &wanted);
    let restored = match restore() {
        Err(BackupError::Store(OpenError::Abandoned(rooms))) if *stop_unknown_rooms => {
            maestro_runtime_process::end_rooms_of_store(&rooms.store_id, server_of)?;
            restore()
        }
        other => other,
    }?;
    println!("{} was restored from {}", data_dir.display(), file.display());
    if restored.is_same_store {
        println!("it is store {}, and adopts the running rooms of that store", restored.store_id);
    } else {
        let origin = match &restored.taken_from {
            Some(directory) => format!("the backup is of {}, which keeps its rooms", directory.display()),
            None => "the backup does not say where it was taken".to_owned(),
        };
        println!("it is a new store, {}: {origin}; use --same-identity to take its place", restored.store_id);
    }
    if let Some(kept) = restored.kept {
        println!("the previous content is in {}", kept.display());
    }
    Ok(())
}
