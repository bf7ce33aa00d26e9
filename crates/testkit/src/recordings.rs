//! Reads `testdata/`. A file that is missing or damaged is a failed test, so these functions panic and name it.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The root of the repository.
pub fn repository() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest)
}

/// Where a file or folder of `testdata/` is.
pub fn path(name: &str) -> PathBuf {
    repository().join("testdata").join(name)
}

/// A recording as it is written: one JSON object per line.
pub fn recorded_text(name: &str) -> String {
    read(&path("recorded").join(name))
}

/// The lines of a recording.
pub fn recorded(name: &str) -> Vec<Value> {
    let parse = |(index, line)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: line {}: {error}", index + 1))
    };
    recorded_text(name).lines().enumerate().map(parse).collect()
}

/// A rollout of the specification, loop by loop: `downscale` or `upscale`. A row is ready, occupied, available, new,
/// desired, desiredReady, toSurge, toBeDeleted.
pub fn rollout_table(name: &str) -> Vec<[u32; 8]> {
    let file = format!("rollouts/{name}.csv");
    let row = |line: &str| {
        let numbers: Option<Vec<u32>> = line.split(',').skip(1).map(|number| number.parse().ok()).collect();
        let row = numbers.and_then(|numbers| numbers.try_into().ok());
        row.unwrap_or_else(|| panic!("{file}: not a row: {line}"))
    };
    read(&path(&file)).lines().skip(1).map(row).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
