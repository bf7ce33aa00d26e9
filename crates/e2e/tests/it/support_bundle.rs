//! `maestro support-bundle`: everything that a bug report needs and nothing that is secret, also when no server answers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, ensure};
use flate2::read::GzDecoder;
use maestro_e2e::{Maestro, checks};
use rustix::process::Signal;
use serde_json::Value;

const SECRET: &str = "hunter2-in-the-environment";

/// Files by their names, without the folder that they are all in.
fn unpack(file: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(file)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.strip_prefix("maestro-support")?.display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(name, String::from_utf8_lossy(&content).into_owned());
    }
    Ok(files)
}

fn missing(files: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
    let manifest: Value = serde_json::from_str(files.get("manifest.json").context("no manifest")?)?;
    let missing = manifest["missing"].as_array().context("no list of what is missing")?;
    Ok(missing.iter().map(|one| format!("{}: {}", one["file"], one["why"])).collect())
}

fn bundle(maestro: &Maestro, name: &str) -> anyhow::Result<(Output, BTreeMap<String, String>)> {
    let log = maestro.log().display().to_string();
    let output = maestro.cli(&["support-bundle", name, "--server-log", &log])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = maestro.home().join(name);
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o7777, 0o600);
    Ok((output, unpack(&file)?))
}

#[test]
fn a_bundle_with_and_without_a_server() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    let mut recipe = maestro.recipe("arena", 2)?.json();
    let environment =
        recipe["spec"]["containers"][0]["environment"].as_array_mut().context("no environment")?;
    environment.push(serde_json::json!({"name": "DATABASE_PASSWORD", "value": SECRET}));
    maestro.api().create(&recipe)?.expect(200)?;
    let rooms = maestro.until("a fleet", || checks::settled(&maestro, "arena", 2))?;

    let (_, files) = bundle(&maestro, "served.tar.gz")?;
    assert_eq!(missing(&files)?, [""; 0]);
    let room_log = format!("schedulers/arena/logs/{}.log", rooms[0].id);
    for (name, part) in [
        ("version.json", "\"commit\""),
        ("system.json", "\"cpus\""),
        ("configuration.json", "\"dataDir\""),
        ("server-log/maestro.log", "arena"),
        ("readyz.txt", "OK"),
        ("metrics.txt", "maestro_"),
        ("schedulers.json", "\"arena\""),
        ("regions.json", "\"default\""),
        ("schedulers/arena/scheduler.json", "(hidden)"),
        ("schedulers/arena/versions.json", "v1.0.0"),
        ("schedulers/arena/operations-final.json", "add_rooms"),
        ("schedulers/arena/operations-active.json", "operations"),
        ("schedulers/arena/stuck.json", "operations"),
        ("schedulers/arena/locks.json", "downscaling"),
        ("schedulers/arena/rooms.json", &rooms[0].id),
        (&room_log, "listens on"),
        ("data-directory.txt", "maestro.db"),
    ] {
        let content = files.get(name).with_context(|| format!("no {name} in {:?}", files.keys()))?;
        assert!(content.contains(part), "{name} has no {part:?}: {content}");
    }
    for (name, content) in &files {
        assert!(!content.contains(SECRET), "{name} tells a secret");
    }

    let again = maestro.cli(&["support-bundle", "served.tar.gz"])?;
    assert_eq!(again.status.code(), Some(2), "a file that is there is not replaced");

    maestro.stop(Signal::TERM)?;
    let (output, files) = bundle(&maestro, "alone.tar.gz")?;
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(warned.contains("not included: server: cannot reach"), "{warned}");
    let missing = missing(&files)?.join("\n");
    assert!(missing.contains("\"server\"") && missing.contains("readyz.txt"), "{missing}");
    for name in ["version.json", "configuration.json", "server-log/maestro.log", "data-directory.txt"] {
        assert!(files.contains_key(name), "no {name} in {:?}", files.keys());
    }
    Ok(())
}
