//! The rooms that `docs/writing-a-room.md` shows, in Python and in Go, as real rooms: what the page promises about a room
//! without the SDK holds for them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Room, STOP_ROOMS, checks};

pub(crate) fn examples() -> PathBuf {
    maestro_testkit::repository().join("examples")
}

#[test]
fn a_room_in_python() -> anyhow::Result<()> {
    let program = examples().join("room-python/room.py");
    lives_by_the_contract(&[&program.to_string_lossy()])
}

#[test]
fn a_room_in_go() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("room");
    build_go("room-go", &program)?;
    lives_by_the_contract(&[&program.to_string_lossy()])
}

/// With nothing from the network.
pub(crate) fn build_go(example: &str, program: &Path) -> anyhow::Result<()> {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(program).arg(".").current_dir(examples().join(example));
    go.envs([("GOTOOLCHAIN", "local"), ("GOPROXY", "off"), ("GOFLAGS", "-buildvcs=false")]);
    let output = go.output().context("running go: `make install-test-tools` installs it")?;
    ensure!(output.status.success(), "{go:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Ready, occupied while it is played in, not disturbed by a server that is gone for a while, and gone by itself when it is
/// asked to go.
fn lives_by_the_contract(command: &[&str]) -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    let recipe = maestro.recipe("foreign", 2)?.with_command(command).with_grace("30s");
    maestro.api().create(&recipe.json())?.expect(200)?;
    let rooms = maestro.until("two ready rooms", || checks::settled(&maestro, "foreign", 2))?;

    ensure!(rooms[0].join(Duration::from_secs(5))?, "the room has no place");
    maestro.until("the room to be occupied", || has_status(&maestro, &rooms[0].id, "occupied"))?;

    maestro.kill()?;
    maestro.start()?;
    maestro
        .until("the match to end and the room to be ready", || has_status(&maestro, &rooms[0].id, "ready"))?;
    let after = maestro.until("both to be ready", || checks::settled(&maestro, "foreign", 2))?;
    let identity = |room: &Room| (room.id.clone(), room.pids.clone());
    let (mut before, mut after): (Vec<_>, Vec<_>) =
        (rooms.iter().map(identity).collect(), after.iter().map(identity).collect());
    before.sort();
    after.sort();
    assert_eq!(before, after, "the same rooms with the same processes");

    maestro.api().delete("/schedulers/foreign")?.expect(200)?;
    maestro.until("no room to be left", || {
        let processes = maestro.processes()?;
        ensure!(processes.is_empty(), "{processes:?}");
        Ok(())
    })
}

fn has_status(maestro: &Maestro, id: &str, status: &str) -> anyhow::Result<()> {
    let room = maestro.api().room("foreign", id)?.context("there is no such room")?;
    ensure!(room.status == status, "{room:?}");
    Ok(())
}
