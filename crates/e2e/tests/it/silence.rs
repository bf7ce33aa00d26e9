//! Rooms that run and are not heard: one alone is taken for dead, many at once are not.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Room, checks, send_signal};
use rustix::process::Signal;

const ROOMS: usize = 8;
/// Twenty times as long as the rooms' interval between two pings.
const PING_TIMEOUT_MS: &str = "4000";

fn cli(maestro: &Maestro, arguments: &[&str]) -> anyhow::Result<String> {
    let output = maestro.cli(arguments)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn signal(rooms: &[Room], signal: Signal) -> anyhow::Result<()> {
    rooms.iter().flat_map(|room| &room.pids).try_for_each(|pid| send_signal(*pid, signal))
}

fn pids(rooms: &[Room]) -> BTreeSet<u32> {
    rooms.iter().flat_map(|room| room.pids.iter().copied()).collect()
}

fn running(maestro: &Maestro) -> anyhow::Result<BTreeSet<u32>> {
    Ok(maestro.processes()?.into_iter().map(|process| process.pid).collect())
}

/// The rooms of the fleet, as soon as so many are ready beside those that are silent.
fn beside(maestro: &Maestro, silent: &[Room]) -> anyhow::Result<Vec<Room>> {
    maestro.until("others beside the silent ones", || {
        let rooms = maestro.api().rooms("arena")?;
        let is_silent = |room: &Room| silent.iter().any(|silent| silent.id == room.id);
        let (there, others): (Vec<_>, Vec<_>) = rooms.into_iter().partition(is_silent);
        ensure!(there.len() == silent.len(), "only {} of the silent ones are there", there.len());
        let ready = others.iter().filter(|room| room.status == "ready").count();
        ensure!(ready == ROOMS && others.len() == ROOMS, "{ready} of {} others are ready", others.len());
        Ok(others)
    })
}

#[test]
fn one_that_hangs_is_replaced_and_many_at_once_are_not_taken_for_dead() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[("SERVICES_ROOMMANAGER_ROOMPINGTIMEOUTMILLIS", PING_TIMEOUT_MS)])?;
    let rooms = maestro.fleet("arena", u32::try_from(ROOMS)?)?;
    let refused = maestro.cli(&["region", "confirm-lost", "default"])?;
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");

    signal(&rooms[..1], Signal::STOP)?;
    let rooms = maestro.until("the one that hangs to be replaced", || {
        let now = checks::settled(&maestro, "arena", ROOMS)?;
        ensure!(now.iter().all(|room| room.id != rooms[0].id), "it is there");
        Ok(now)
    })?;

    let (silent, well) = rooms.split_at(ROOMS - 2);
    signal(silent, Signal::STOP)?;
    let fleet = beside(&maestro, silent)?;
    let (alive, hung) = (running(&maestro)?, pids(silent));
    assert!(hung.is_subset(&alive), "{hung:?} in {alive:?}");
    assert!(well.iter().all(|room| fleet.iter().any(|other| other.id == room.id)), "who pings stays");
    let listed = cli(&maestro, &["region", "list"])?;
    assert!(listed.contains("6 rooms stopped pinging together"), "{listed}");
    let shown = cli(&maestro, &["room", "get", "arena", &silent[0].id])?;
    assert!(
        shown.contains("ready (silent)") && shown.contains("maestro region confirm-lost default"),
        "{shown}"
    );
    let fleets = cli(&maestro, &["scheduler", "list"])?;
    assert!(fleets.contains("silent"), "{fleets}");
    let operations = maestro.api().operations("arena")?;
    let said = |text: &str| operations.iter().any(|operation| operation.reason.contains(text));
    // All at once, or one after the other if their last pings were not at the same time.
    assert!(said("that stopped pinging together): adding "), "no add says what it replaces");

    // Who is heard again is part of the fleet again, and who is too many goes.
    let (heard, lost) = silent.split_at(2);
    signal(heard, Signal::CONT)?;
    maestro.until("the surplus to go", || {
        let rooms = maestro.api().rooms("arena")?;
        ensure!(rooms.len() == ROOMS + lost.len(), "{} rooms", rooms.len());
        Ok(())
    })?;
    assert!(pids(lost).is_subset(&running(&maestro)?), "the others are still there");

    let said = cli(&maestro, &["region", "confirm-lost", "default", "--reason", "they hang"])?;
    assert_eq!(
        said,
        "region default confirmed lost: the rooms that stopped pinging together are being removed\n"
    );
    let rooms = maestro.until("the lost ones to be gone", || checks::settled(&maestro, "arena", ROOMS))?;
    assert!(pids(&rooms).is_disjoint(&pids(lost)));
    let ended = maestro.api().room("arena", &lost[0].id)?.context("it is forgotten")?.ended;
    let how = ended.context("it has not ended")?.how;
    assert!(how.contains("has not pinged for"), "{how}");
    Ok(())
}
