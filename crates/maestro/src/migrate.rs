//! `maestro migrate`: the schema of the shared store. A server changes it never, so that old and new ones can run side by side.

use anyhow::{Context as _, bail};
use clap::Args;
use maestro_store_postgres::migrate;

use crate::cli::ConfigOptions;
use crate::config::ServedApis;
use crate::start::postgres_options;

#[derive(Debug, Clone, Args)]
pub struct MigrateOptions {
    #[command(flatten)]
    pub config: ConfigOptions,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(options: &MigrateOptions) -> anyhow::Result<()> {
    let loaded = options.config.load(ServedApis::Both, Vec::new())?;
    let Some(servers) = loaded.config.shared_stores() else {
        bail!(
            "store.postgres.url is not set; the embedded store is brought up to date by the server that opens it"
        );
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the runtime")?;
    let migrations = runtime.block_on(migrate(&postgres_options(servers), options.dry_run))?;
    for migration in &migrations {
        println!("{} {migration}", if options.dry_run { "would apply" } else { "applied" });
    }
    println!(
        "{}",
        match (migrations.is_empty(), options.dry_run) {
            (true, _) => "the database is up to date",
            (false, false) => "database migration completed",
            (false, true) => "nothing was changed",
        }
    );
    Ok(())
}
