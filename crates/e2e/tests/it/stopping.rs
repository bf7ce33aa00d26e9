//! Who stops a server is told what becomes of its rooms.

use std::fs;

use anyhow::ensure;
use maestro_e2e::{Maestro, STOP_ROOMS};
use rustix::process::Signal;

fn log_of_stopping(stop_rooms: bool) -> anyhow::Result<String> {
    let mut maestro = Maestro::new(&[])?;
    if !stop_rooms {
        maestro.unset(STOP_ROOMS);
    }
    maestro.start()?;
    maestro.fleet("arena", 2)?;
    let before = fs::read_to_string(maestro.log())?.len();
    let status = maestro.stop(Signal::INT)?;
    ensure!(status.success(), "{status}");
    let left = maestro.processes()?;
    ensure!(left.len() == if stop_rooms { 0 } else { 2 }, "{left:?}");
    Ok(fs::read_to_string(maestro.log())?.split_off(before))
}

#[test]
fn rooms_that_go_on() -> anyhow::Result<()> {
    let log = log_of_stopping(false)?;
    let said = log.lines().find(|line| line.contains("the rooms keep running"));
    assert!(
        said.is_some_and(|said| said.contains("rooms=2") && said.contains("maestro scheduler delete")),
        "{log}"
    );
    assert!(!log.contains("stopping the rooms"), "{log}");
    Ok(())
}

#[test]
fn rooms_that_end_with_it() -> anyhow::Result<()> {
    let log = log_of_stopping(true)?;
    let said = log.lines().find(|line| line.contains("stopping the rooms"));
    assert!(said.is_some_and(|said| said.contains("rooms=2")), "{log}");
    assert!(!log.contains("keep running"), "{log}");
    Ok(())
}
