//! `maestro support-bundle`: everything that a bug report needs, in one file. The bundle names what could not be collected.
//! A server that does not answer is a reason to make a bundle, not a reason to fail.

mod bundle;
mod local;
mod secrets;
mod server;

use std::path::PathBuf;

use clap::Args;

use super::{Client, ConfigOptions, Context, Failure, note, version, warn};
use crate::config::{Loaded, ServedApis};

use bundle::Bundle;

#[derive(Debug, Clone, Args)]
pub(super) struct BundleOptions {
    /// File to write, a compressed tar; it must not exist [default: maestro-support-TIME.tar.gz]
    #[arg(value_name = "FILE")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigOptions,
    /// The server's internal API, for health and metrics [default: as configured]
    #[arg(long, value_name = "URL")]
    internal_url: Option<String>,
    /// Only these schedulers; can be repeated [default: all, up to 100]
    #[arg(long, value_name = "NAME")]
    scheduler: Vec<String>,
    /// Log file of the server, the end of which is included; can be repeated
    #[arg(long, value_name = "FILE")]
    server_log: Vec<PathBuf>,
    /// Leave out the logs of rooms
    #[arg(long)]
    no_room_logs: bool,
}

pub(super) fn run(context: &Context, options: &BundleOptions) -> Result<(), Failure> {
    let mut bundle = Bundle::default();
    bundle.add_json("version.json", &version::version());
    bundle.add_json("system.json", &local::system());
    let loaded = options.config.load(ServedApis::Both, Vec::new());
    match &loaded {
        Ok(loaded) => bundle.add_json("configuration.json", &local::configuration(loaded)),
        Err(error) => bundle.miss("configuration.json", &error.to_string()),
    }
    for log in &options.server_log {
        local::server_log(&mut bundle, log);
    }
    let reached = context
        .client()
        .and_then(|client| server::collect(&mut bundle, &client, &options.scheduler, !options.no_room_logs));
    if let Err(failure) = &reached {
        bundle.miss("server", &failure.message);
    }
    internal(context, options, loaded.as_ref().ok(), &mut bundle);
    if let Ok(loaded) = &loaded {
        let room_logs = reached.is_err() && !options.no_room_logs;
        local::data_directory(&mut bundle, &loaded.config.storage.data_dir, room_logs);
    }

    let file = options.bundle.clone().unwrap_or_else(bundle::default_file);
    let manifest = bundle.write(&file)?;
    for missing in manifest.get("missing").items() {
        warn(&format!("not included: {}: {}", missing.get("file").cell(), missing.get("why").cell()));
    }
    note(
        "values of environment variables and secrets are hidden; check the logs of rooms before you share the bundle",
    );
    context.show(&manifest, |manifest| {
        let files = manifest.get("files").items().len();
        format!("wrote {files} files to {}", file.display())
    })
}

fn internal(context: &Context, options: &BundleOptions, loaded: Option<&Loaded>, bundle: &mut Bundle) {
    let configured = loaded.map(|loaded| {
        let api = &loaded.config.internal_api;
        let host = if api.host == "0.0.0.0" { "127.0.0.1" } else { &api.host };
        format!("http://{host}:{}", api.port)
    });
    let Some(url) = options.internal_url.clone().or(configured) else {
        bundle.miss("internal", "the address of the internal API is not known; give --internal-url");
        return;
    };
    match Client::new(&url, context.request_timeout) {
        Ok(client) => server::collect_internal(bundle, &client),
        Err(failure) => bundle.miss("internal", &failure.message),
    }
}
