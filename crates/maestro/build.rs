//! Which commit this is built from, for `maestro version` and bug reports.

use std::path::Path;
use std::process::Command;

/// Set by whoever builds from an archive without `.git`.
const VARIABLE: &str = "MAESTRO_BUILD_COMMIT";

/// Enough of a commit's hash to find it.
const HASH_CHARACTERS: &str = "--short=12";

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let given = std::env::var(VARIABLE).ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(commit_of_checkout).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=MAESTRO_COMMIT={commit}");
}

/// Nothing if this is not a checkout of Maestro itself, as a copy of its sources in another repository, or if there is no
/// git.
fn commit_of_checkout() -> Option<String> {
    let workspace = Path::new("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != workspace {
        return None;
    }
    // Whatever changes HEAD, be it a commit, a checkout or a rebase, writes one of these.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", HASH_CHARACTERS, "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
