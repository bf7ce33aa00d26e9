//! What a room gets of the server that starts it: no environment, no open files, and a directory of its own.

use std::fs::File;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, STOP_ROOMS};
use rustix::io::{FdFlags, fcntl_setfd};

#[test]
fn a_room_inherits_neither_environment_nor_open_files() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[("SOME_PASSWORD", "hunter2")])?;
    // Whoever starts Maestro may leave a file open, as this test does.
    let left_open = maestro.home().join("left-open");
    let file = File::create(&left_open)?;
    fcntl_setfd(&file, FdFlags::empty())?;
    maestro.start()?;
    drop(file);
    let text = "env; echo in $(pwd); ls -l /proc/$$/fd; echo up; exec sleep 1000";
    let recipe = maestro.recipe("arena", 1)?.with_command(&["/bin/sh", "-c", text]);
    maestro.api().create(&recipe.json())?.expect(200)?;
    let room = maestro.until("a room", || maestro.processes()?.pop().context("there is none"))?.room;
    let told = maestro.until("what it was told", || {
        let output = maestro.cli(&["room", "logs", "arena", &room])?;
        let told = String::from_utf8(output.stdout)?;
        ensure!(told.lines().any(|line| line == "up"), "{told}");
        Ok(told)
    })?;
    assert!(!told.contains("hunter2") && !told.contains("left-open"), "{told}");
    let home = maestro.data_dir().join("homes/arena").join(&room);
    assert!(told.contains(&format!("in {}", home.display())), "{told}");
    assert!(told.contains(&format!("HOME={}", home.display())), "{told}");
    // 0, 1 and 2; the shell itself may hold its script at 10 or above.
    let descriptors = told.lines().filter(|line| line.contains(" -> ")).count();
    assert_eq!(descriptors, 3, "{told}");
    Ok(())
}

/// A daemon that forked twice is nobody's child, and was not asked to end; the room's port is free all the same.
#[test]
fn what_a_room_leaves_behind_ends_with_it() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    let daemon = "setsid sh -c 'trap \"\" TERM; sleep 1000 & echo daemon' & exec sleep 1000";
    let recipe = maestro.recipe("arena", 2)?.with_command(&["/bin/sh", "-c", daemon]).with_grace("1s");
    maestro.api().create(&recipe.json())?.expect(200)?;
    maestro.until("rooms and their daemons", || {
        let processes = maestro.processes()?;
        ensure!(processes.len() >= 4, "{processes:?}");
        Ok(())
    })?;
    maestro.kill()?;
    maestro.start()?;
    maestro.api().delete("/schedulers/arena")?.expect(200)?;
    maestro.until("everything to be gone", || {
        let processes = maestro.processes()?;
        ensure!(processes.is_empty(), "{processes:?}");
        ensure!(!maestro.data_dir().join("homes/arena").exists(), "their directories are still there");
        Ok(())
    })
}
