//! The programs under test: they lie beside the tests in cargo's target directory.
//!
//! `make test` builds them first. Who runs the tests of this crate alone gets them built here, but only if they are
//! missing or older than their sources: cargo would otherwise build half the workspace again with other features.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};

pub fn maestro() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("maestro"))
}

pub fn example_room() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("maestro-example-room"))
}

fn directory() -> anyhow::Result<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| find_or_build().map_err(|error| format!("{error:#}")));
    match built {
        Ok(directory) => Ok(directory),
        Err(error) => bail!("{error}"),
    }
}

fn find_or_build() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("finding this program")?;
    let mut directory = this.parent().context("this program is in no directory")?;
    if directory.ends_with("deps") {
        directory = directory.parent().context("deps is in no directory")?;
    }
    let programs = ["maestro", "maestro-example-room"].map(|name| directory.join(name));
    // Two test programs at once must not both find that there is something to build.
    let lock = File::create(directory.join(".maestro-e2e.lock"))?;
    lock.lock()?;
    if !programs.iter().all(|program| is_current(program)) {
        build(directory)?;
    }
    for program in &programs {
        ensure!(program.exists(), "{} was not built", program.display());
    }
    Ok(directory.to_owned())
}

fn build(directory: &Path) -> anyhow::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "-p", "maestro", "-p", "maestro-example-room"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    ensure!(
        cargo.status().context("running cargo")?.success(),
        "maestro and its example room could not be built"
    );
    Ok(())
}

/// Cargo writes beside a program, as `<program>.d`, which sources it was made of: `program: source source …`, with
/// spaces in names escaped.
fn is_current(program: &Path) -> bool {
    let Ok(built_at) = modified_at(program) else {
        return false;
    };
    let Ok(sources) = fs::read_to_string(program.with_extension("d")) else {
        return true;
    };
    let sources = sources.split_once(": ").map_or("", |(_, sources)| sources);
    let sources = sources.replace("\\ ", "\0");
    let mut sources = sources.split_ascii_whitespace().map(|source| source.replace('\0', " "));
    sources.all(|source| modified_at(Path::new(&source)).is_ok_and(|at| at <= built_at))
}

fn modified_at(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}
