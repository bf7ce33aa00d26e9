//! The programs under test: they lie beside the tests in cargo's target directory.
//!
//! `make test` builds them first. Who runs the tests of this crate alone gets them built here, but only if they are
//! missing, older than their sources, or without failpoints: cargo would otherwise build half the workspace again with
//! other features.
//!
//! Beside them, in `target/shipped`, are the programs as people install them: with the default features.

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

/// Where the programs lie that people install: built with the default features, without anything that only tests need.
pub fn shipped() -> anyhow::Result<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| find_or_build_shipped().map_err(|error| format!("{error:#}")));
    match built {
        Ok(directory) => Ok(directory),
        Err(error) => bail!("{error}"),
    }
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
    let directory = own_directory()?;
    let programs = ["maestro", "maestro-example-room"].map(|name| directory.join(name));
    // Two test programs at once must not both find that there is something to build.
    let lock = File::create(directory.join(".maestro-e2e.lock"))?;
    lock.lock()?;
    if !programs.iter().all(|program| is_current(program)) || !has_failpoints(&programs[0]) {
        let mut cargo = cargo_build(&["maestro", "maestro-example-room"]);
        cargo.args(["--features", "maestro/failpoints"]);
        if directory.ends_with("release") {
            cargo.arg("--release");
        }
        run(cargo)?;
    }
    for program in &programs {
        ensure!(program.exists(), "{} was not built", program.display());
    }
    Ok(directory)
}

/// `make test` builds them where everything else is built and puts a copy aside, which costs little. Here they are built
/// in a directory of their own, because others may be running the programs that cargo would replace.
fn find_or_build_shipped() -> anyhow::Result<PathBuf> {
    let target = own_directory()?.parent().context("the target directory is in no directory")?.to_owned();
    let names = ["maestro", "maestro-example-room", "maestro-demo"];
    let copied = target.join("shipped");
    if names.iter().all(|name| is_current(&copied.join(name))) {
        return Ok(copied);
    }
    let apart = target.join("shipped-apart");
    fs::create_dir_all(&apart)?;
    let lock = File::create(apart.join(".maestro-e2e.lock"))?;
    lock.lock()?;
    let mut cargo = cargo_build(&names);
    cargo.arg("--target-dir").arg(&apart);
    run(cargo)?;
    Ok(apart.join("debug"))
}

fn own_directory() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("finding this program")?;
    let directory = this.parent().context("this program is in no directory")?;
    if directory.ends_with("deps") {
        return Ok(directory.parent().context("deps is in no directory")?.to_owned());
    }
    Ok(directory.to_owned())
}

fn cargo_build(packages: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo
}

fn run(mut cargo: Command) -> anyhow::Result<()> {
    let status = cargo.status().context("running cargo")?;
    ensure!(status.success(), "{cargo:?} failed: {status}");
    Ok(())
}

/// A program that `make run` or `make install` has built in the same place has none.
fn has_failpoints(maestro: &Path) -> bool {
    let version = Command::new(maestro).args(["version", "-o", "json"]).output();
    version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("\"failpoints\""))
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
    let sources = sources.split_ascii_whitespace().map(|source| source.replace('\0', " "));
    // A commit changes what `maestro version` says, and nothing that is worth a build.
    let mut sources =
        sources.filter(|source| !Path::new(source).components().any(|part| part.as_os_str() == ".git"));
    sources.all(|source| modified_at(Path::new(&source)).is_ok_and(|at| at <= built_at))
}

fn modified_at(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}
