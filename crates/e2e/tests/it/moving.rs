//! Schedulers on their way from one installation to another: `maestro export` here, `maestro import` there.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, checks};
use serde_json::Value;

/// What a command prints; it must end with this exit code.
fn told(maestro: &Maestro, arguments: &[&str], code: i32) -> anyhow::Result<String> {
    let output = maestro.cli(arguments)?;
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.code() == Some(code), "{arguments:?}: {:?}: {told}", output.status);
    Ok(told)
}

fn outcomes(maestro: &Maestro, arguments: &[&str]) -> anyhow::Result<Vec<String>> {
    let output = maestro.cli(&[&["import", "-o", "json"], arguments].concat())?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let schedulers = answer["schedulers"].as_array().context("a list")?;
    Ok(schedulers.iter().map(|one| format!("{} {}", one["name"], one["outcome"]).replace('"', "")).collect())
}

/// Versions with their statuses, newest first.
fn versions(maestro: &Maestro, scheduler: &str) -> anyhow::Result<Vec<(String, String)>> {
    let versions = maestro.api().versions(scheduler)?;
    Ok(versions.into_iter().map(|version| (version.version, version.status)).collect())
}

/// A fleet of two with two versions, and one of one room.
fn origin() -> anyhow::Result<Maestro> {
    let maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    let mut recipe = maestro.recipe("arena", 1)?.json();
    recipe["maxSurge"] = "50%".into();
    maestro.api().new_version("arena", &recipe)?.expect(200)?;
    maestro.until("the second version", || {
        let versions = versions(&maestro, "arena")?;
        ensure!(
            versions.iter().any(|(number, status)| number == "v1.1.0" && status == "deployed"),
            "{versions:?}"
        );
        Ok(())
    })?;
    told(&maestro, &["scheduler", "resize", "arena", "2", "--wait"], 0)?;
    maestro.fleet("lobby", 1)?;
    Ok(maestro)
}

fn export(maestro: &Maestro, file: &Path) -> anyhow::Result<Value> {
    let output = maestro.cli(&["export"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::write(file, &output.stdout)?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[test]
fn a_fleet_is_moved_with_its_versions_and_its_size() -> anyhow::Result<()> {
    let (here, there) = (origin()?, Maestro::started(&[])?);
    let file = here.home().join("fleet.json");
    let exported = export(&here, &file)?;
    let file = file.to_str().context("a path")?;

    let planned = outcomes(&there, &["-f", file, "--dry-run"])?;
    assert_eq!(planned, ["arena would be imported", "lobby would be imported"]);
    assert_eq!(there.api().fleet_infos()?.len(), 0);
    assert_eq!(outcomes(&there, &["-f", file])?, ["arena imported", "lobby imported"]);
    let rooms = there.until("the fleet", || checks::settled(&there, "arena", 2))?;
    assert!(rooms.iter().all(|room| room.version == "v1.1.0"), "{rooms:?}");
    assert_eq!(versions(&there, "arena")?, versions(&here, "arena")?);

    // Again, nothing is left to do, and what is exported there is what came.
    assert_eq!(outcomes(&there, &["-f", file])?, ["arena unchanged", "lobby unchanged"]);
    let again = export(&there, &there.home().join("again.json"))?;
    assert_eq!(without_times(again), without_times(exported));

    // The versions of before are versions like any other.
    told(&there, &["scheduler", "switch", "arena", "v1.0.0", "--wait"], 0)?;
    there.until("the old version", || {
        let versions = versions(&there, "arena")?;
        let deployed = versions.iter().any(|(number, status)| number == "v1.0.0" && status == "deployed");
        ensure!(deployed, "{versions:?}");
        Ok(())
    })
}

/// The scheduler and its active version are as old as their import.
fn without_times(mut export: Value) -> Value {
    for scheduler in export["schedulers"].as_array_mut().into_iter().flatten() {
        for version in scheduler["versions"].as_array_mut().into_iter().flatten() {
            version["createdAt"].take();
        }
    }
    export
}

#[test]
fn what_is_there_with_other_content_is_refused_before_anything_is_changed() -> anyhow::Result<()> {
    let (here, there) = (origin()?, Maestro::started(&[])?);
    there.fleet("lobby", 2)?;
    let file = here.home().join("fleet.json");
    export(&here, &file)?;
    let file = file.to_str().context("a path")?;

    let refused = told(&there, &["import", "-f", file], 4)?;
    assert!(refused.contains("1 of 2 schedulers"), "{refused}");
    assert_eq!(there.api().fleet_infos()?.len(), 1);

    assert_eq!(outcomes(&there, &["-f", file, "--overwrite"])?, ["arena imported", "lobby overwritten"]);
    there.until("the lobby to have one room", || checks::settled(&there, "lobby", 1))?;
    assert_eq!(outcomes(&there, &["-f", file, "--overwrite"])?, ["arena unchanged", "lobby unchanged"]);
    Ok(())
}

#[test]
fn a_cordon_is_moved_before_rooms_are_started() -> anyhow::Result<()> {
    let (here, there) = (origin()?, Maestro::started(&[])?);
    told(&here, &["region", "cordon", "default", "--reason", "new machines"], 0)?;
    let file = here.home().join("fleet.json");
    export(&here, &file)?;
    let file = file.to_str().context("a path")?;
    outcomes(&there, &["-f", file])?;
    let regions = told(&there, &["region", "list"], 0)?;
    assert!(regions.contains("cordoned") && regions.contains("new machines"), "{regions}");
    there.until("the arena to be there", || {
        ensure!(there.api().fleet_infos()?.len() == 2, "not yet");
        Ok(())
    })?;
    assert_eq!(there.api().rooms("arena")?.len(), 0);
    Ok(())
}
