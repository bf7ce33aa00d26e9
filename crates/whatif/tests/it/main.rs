//! The what-if tools from the outside: documents and lines in, tables and answers out.

#![allow(clippy::unwrap_used, reason = "the lint's exemption covers test functions, not what they call")]

mod autoscaling;
mod bad_input;
mod placement;
mod resize;
mod rollout_tables;
mod scenarios;
mod walks;

use std::path::Path;

use maestro_whatif::{Draft, Report, simulate};

/// What a document in a file of its own comes to, or why it does not.
fn simulated(document: &str) -> Result<Report, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("simulation.yaml");
    std::fs::write(&path, document).unwrap();
    run(&path).map_err(|error| error.replace(&format!("{}/", directory.path().display()), ""))
}

fn run(path: &Path) -> Result<Report, String> {
    let parsed = Draft::read(path).and_then(Draft::parse);
    let scenario = parsed.map_err(|error| error.to_string())?.scenario;
    simulate(&scenario).map_err(|error| error.to_string())
}

/// A document with a recipe and whatever else is given; lines that are indented belong to the recipe.
fn document(rest: &str) -> String {
    format!(
        "scheduler:
  name: arena
  game: example
  maxSurge: 25%
  portRange: {{ start: 20000, end: 29999 }}
  spec:
    terminationGracePeriod: 30s
    containers:
      - name: room
        image: room:1
        imagePullPolicy: IfNotPresent
        requests: {{ memory: 16Mi, cpu: 10m }}
        limits: {{ memory: 64Mi, cpu: 100m }}
        ports: [{{ name: game, protocol: tcp, port: 7777 }}]
{rest}"
    )
}

/// Half of the rooms must be ready, and whatever else is given.
fn half_ready(rest: &str) -> String {
    let scaling = "  autoscaling: { enabled: true, min: 1, max: -1, policy: { type: roomOccupancy, parameters: { roomOccupancy: { readyTarget: 0.5 } } } }";
    document(&format!("{scaling}\n{rest}"))
}
