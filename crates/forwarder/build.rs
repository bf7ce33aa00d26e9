//! The client of v10's forwarder service, and with the feature `receiver` its server, without a protobuf compiler.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Path::new("../../proto");
    println!("cargo:rerun-if-changed={}", schema.join("eventforwarder").display());
    let files = protox::compile(["eventforwarder/forwarder.proto"], [schema])?;
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    let has_receiver = std::env::var_os("CARGO_FEATURE_RECEIVER").is_some();
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(has_receiver)
        .compile_fds_with_config(files, config)?;
    Ok(())
}
