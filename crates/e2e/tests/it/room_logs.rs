//! Rooms that write without end fill no disk, whoever is alive to look at them.

use std::path::Path;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, STOP_ROOMS};

const LIMIT: u64 = 64 << 10;

/// The length of all logs of a room, and what the newest of them ends with.
fn logs(directory: &Path) -> anyhow::Result<(u64, String)> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains(".log") {
            // Its name may have changed since.
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    let newest = std::fs::read_to_string(directory.join("room.log")).unwrap_or_default();
    Ok((bytes, newest.lines().last().unwrap_or_default().to_owned()))
}

/// Waits until the room has written more, again and again; there is never more than it may have.
fn goes_on_within_its_limit(maestro: &Maestro, directory: &Path) -> anyhow::Result<()> {
    let mut seen = String::new();
    for _ in 0..20 {
        seen = maestro.until("the room to write on", || {
            let (bytes, newest) = logs(directory)?;
            assert!(bytes <= LIMIT, "{bytes} bytes");
            ensure!(newest != seen && !newest.is_empty(), "it stands still");
            Ok(newest)
        })?;
    }
    Ok(())
}

#[test]
fn a_room_that_writes_without_end_is_bounded_also_while_maestro_is_dead() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[("ADAPTERS_RUNTIME_PROCESS_LOGLIMITBYTES", &LIMIT.to_string())])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    let endless = "i=0; while :; do i=$((i+1)); echo \"line $i\"; done";
    let recipe = maestro.recipe("arena", 1)?.with_command(&["/bin/sh", "-c", endless]);
    maestro.api().create(&recipe.json())?.expect(200)?;
    let process = maestro.until("a room", || maestro.processes()?.pop().context("there is none"))?;
    let directory = maestro.data_dir().join("rooms/arena").join(&process.room);
    goes_on_within_its_limit(&maestro, &directory)?;

    maestro.kill()?;
    goes_on_within_its_limit(&maestro, &directory)?;
    maestro.start()?;
    goes_on_within_its_limit(&maestro, &directory)?;
    let same = maestro.processes()?.iter().any(|other| other.pid == process.pid);
    assert!(same, "the room did not survive");
    // Its files are changed all the time: who reads them at the wrong moment reads again.
    maestro.until("the last lines to be shown", || {
        let shown = maestro.cli(&["room", "logs", "arena", &process.room, "--tail", "5"])?;
        let text = String::from_utf8(shown.stdout)?;
        let lines = text.lines().filter(|line| line.starts_with("line ")).count();
        ensure!(lines == 5, "{lines} lines: {text} {}", String::from_utf8_lossy(&shown.stderr));
        Ok(())
    })
}
