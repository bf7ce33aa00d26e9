//! What a script learns from the command line: exit codes and last lines, against the real server.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Output, Stdio};

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Recipe};

/// Of a room of a version whose rollout is to be seen while it goes on.
const SLOW_MS: u32 = 3_000;

/// More than any rollout here takes on a busy machine.
const TIMEOUT: &str = "5m";

const BROKEN: [&str; 3] = ["/bin/sh", "-c", "echo cannot load the map; exit 3"];
/// Never pings, and ends when it is told to.
const SILENT: [&str; 2] = ["/bin/sleep", "3600"];

fn script(maestro: &Maestro, arguments: &[&str], recipe: &Recipe) -> anyhow::Result<Output> {
    let file = maestro.home().join("arena.json");
    std::fs::write(&file, recipe.json().to_string())?;
    let file = file.to_string_lossy();
    maestro.cli(&[arguments, &["-f", &file]].concat())
}

fn apply(maestro: &Maestro, recipe: &Recipe) -> anyhow::Result<String> {
    let output = script(maestro, &["scheduler", "apply", "-o", "json"], recipe)?;
    ensure!(output.status.success(), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(answer["operationId"].as_str().context("no operation")?.to_owned())
}

/// Its exit code and the last line that it prints.
fn watched(maestro: &Maestro, more: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let watch = ["rollout", "status", "arena", "--watch", "--timeout", TIMEOUT];
    let output = maestro.cli(&[&watch[..], more].concat())?;
    let said = String::from_utf8(output.stdout)?;
    Ok((output.status.code(), said.lines().last().unwrap_or_default().to_owned()))
}

/// A watch that has seen the version which it follows.
struct Watch {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Watch {
    fn begun(maestro: &Maestro, version: &str) -> anyhow::Result<Self> {
        let watch = ["rollout", "status", "arena", "--watch", "--timeout", TIMEOUT];
        let mut child = maestro.cli_command(&watch)?.stdout(Stdio::piped()).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut line = String::new();
        while !line.contains(version) {
            line.clear();
            ensure!(stdout.read_line(&mut line)? > 0, "it ended before it told of {version}");
        }
        Ok(Self { child, stdout })
    }

    fn end(mut self) -> anyhow::Result<(Option<i32>, String)> {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said)?;
        let status = self.child.wait()?;
        Ok((status.code(), said.lines().last().unwrap_or_default().to_owned()))
    }
}

/// Applies a version whose rollout does not go on by itself.
fn paused_rollout(maestro: &Maestro, recipe: &Recipe) -> anyhow::Result<()> {
    apply(maestro, recipe)?;
    maestro.until("the rollout to be paused", || {
        let output = maestro.cli(&["rollout", "pause", "arena"])?;
        ensure!(output.status.success(), "{output:?}");
        Ok(())
    })
}

#[test]
fn a_script_that_applies_and_watches_learns_what_became_of_the_version() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", 4)?;
    maestro.fleet("arena", 4)?;
    assert_eq!(watched(&maestro, &[])?, (Some(0), "done: v1.0.0 is deployed with 4 rooms".to_owned()));

    // Good.
    apply(&maestro, &recipe.clone().with("ROOM_START_DELAY_MS", 1))?;
    assert_eq!(watched(&maestro, &[])?, (Some(0), "done: v2.0.0 is deployed with 4 rooms".to_owned()));

    // Broken.
    apply(&maestro, &recipe.clone().with_command(&BROKEN))?;
    let (code, line) = watched(&maestro, &[])?;
    assert_eq!(code, Some(1), "{line}");
    for part in [
        "failed: v3.0.0: ",
        "attempt 3 of 3 failed: room arena-",
        "exited with code 3",
        "cannot load the map",
    ] {
        assert!(line.contains(part), "{part} is not in: {line}");
    }
    assert_eq!(watched(&maestro, &["--version", "v2.0.0"])?.0, Some(0), "the one before is still deployed");

    // Superseded.
    let slow = recipe.clone().with("ROOM_START_DELAY_MS", SLOW_MS);
    paused_rollout(&maestro, &slow)?;
    let watch = Watch::begun(&maestro, "v4.0.0")?;
    apply(&maestro, &recipe.with("ROOM_START_DELAY_MS", 2))?;
    let (code, line) = watch.end()?;
    assert_eq!(code, Some(1), "{line}");
    assert!(line.starts_with("superseded: v4.0.0: ") && line.contains("v5.0.0"), "{line}");
    assert_eq!(watched(&maestro, &[])?, (Some(0), "done: v5.0.0 is deployed with 4 rooms".to_owned()));
    assert_eq!(watched(&maestro, &["--version", "v4.0.0"])?.0, Some(1));

    // Canceled while rooms are replaced.
    paused_rollout(&maestro, &slow)?;
    let watch = Watch::begun(&maestro, "v6.0.0")?;
    let canceled = maestro.cli(&["rollout", "cancel", "arena"])?;
    assert!(canceled.status.success(), "{canceled:?}");
    let (code, line) = watch.end()?;
    assert_eq!(code, Some(1), "{line}");
    assert!(line.starts_with("canceled: v6.0.0: "), "{line}");
    Ok(())
}

#[test]
fn a_version_that_is_canceled_while_it_is_validated() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", 1)?;
    maestro.fleet("arena", 1)?;
    let operation = apply(&maestro, &recipe.clone().with_command(&SILENT))?;
    let watch = Watch::begun(&maestro, "v2.0.0")?;
    // One at a time: a conflict, not a mistake.
    let second = script(&maestro, &["scheduler", "apply"], &recipe.with("ROOM_START_DELAY_MS", 1))?;
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    // By the beginning of its id, as it is typed.
    let canceled = maestro.cli(&["operation", "cancel", "arena", &operation[..18]])?;
    assert!(canceled.status.success(), "{canceled:?}");
    let (code, line) = watch.end()?;
    assert_eq!(code, Some(1), "{line}");
    assert!(line.starts_with("canceled: v2.0.0: "), "{line}");
    assert_eq!(watched(&maestro, &["--version", "v1.0.0"])?.0, Some(0));
    Ok(())
}

#[test]
fn a_version_that_cannot_start_says_why() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    let broken = maestro.recipe("arena", 1)?.with_command(&BROKEN);
    let output = script(&maestro, &["scheduler", "apply", "--wait", "--timeout", TIMEOUT], &broken)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    let (_, failure) = said.split_once("error: ").context("no error")?;
    for part in [
        "attempt 3 of 3",
        "exited with code 3",
        "cannot load the map",
        "maestro room logs arena arena-",
        "maestro operation get arena ",
    ] {
        assert!(failure.contains(part), "{part} is not in: {failure}");
    }
    let listed = maestro.cli(&["operation", "list", "arena", "--status", "error"])?;
    let listed = String::from_utf8(listed.stdout)?;
    assert!(listed.contains("cannot load the map"), "{listed}");
    Ok(())
}

#[test]
fn a_fleet_is_waited_for() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", 3)?;
    let create = ["scheduler", "create", "--wait", "--timeout", TIMEOUT];
    let output = script(&maestro, &create, &recipe)?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stdout)?;
    assert_eq!(said, "scheduler arena v1.0.0 created (3 of 3 rooms are ready)\n");

    let broken = maestro.recipe("broken", 2)?.with_command(&BROKEN);
    let output = script(&maestro, &create, &broken)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    for part in [
        "0 of 2 rooms are ready",
        "exited with code 3",
        "  | cannot load the map",
        "maestro room logs broken broken-",
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let list = String::from_utf8(maestro.cli(&["schedulers"])?.stdout)?;
    let row = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("arena").contains(" 3/3 ") && row("arena").ends_with('-'), "{list}");
    assert!(row("broken").contains(" 0/2 ") && row("broken").contains("crashing: "), "{list}");

    // One that says nothing is waited for, and no longer than that.
    let silent = maestro.recipe("silent", 1)?.with_command(&SILENT);
    let output = script(&maestro, &["scheduler", "create", "--wait", "--timeout", "2s"], &silent)?;
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    assert!(said.contains("scheduler silent: 0 of 1 rooms are ready after"), "{said}");
    assert!(said.contains("not pinged yet: 1 room"), "{said}");
    Ok(())
}

#[test]
fn the_ports_of_a_server_are_told_apart() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let [_, rooms, internal] = maestro.api_ports().map(|port| format!("http://127.0.0.1:{port}"));
    for (url, key) in [(rooms, "roomsApi.port"), (internal, "internalApi.port")] {
        let output = maestro.cli(&["scheduler", "list", "--url", &url])?;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr)?;
        assert!(said.contains(key) && said.contains("managementApi.port"), "{said}");
    }
    Ok(())
}
