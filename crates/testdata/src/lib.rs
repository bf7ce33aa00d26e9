//! Reads `testdata/`, for tests; `testdata/README.md` says what is in it.
//!
//! A file that is missing or damaged is a failed test, so these functions panic and name it.
//!
//! # Example
//!
//! ```
//! let exchanges = maestro_testdata::recorded("http-v10.jsonl");
//! assert!(exchanges.iter().all(|exchange| exchange["method"].is_string()));
//! ```

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
    let path = path("recorded").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a recording.
pub fn recorded(name: &str) -> Vec<Value> {
    let parse = |(index, line)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: line {}: {error}", index + 1))
    };
    recorded_text(name).lines().enumerate().map(parse).collect()
}
