//! Several regions on one machine: each has its own rooms, and what is said about it stays said.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use maestro_e2e::checks::by_region;
use maestro_e2e::{Maestro, Room, STOP_ROOMS, checks};
use rustix::process::Signal;
use serde_json::Value;

const TWO: &str = "regions: {eu-west: {host: 127.0.0.2}, us-east: {}}";

fn pids(rooms: &[Room]) -> BTreeSet<u32> {
    rooms.iter().flat_map(|room| room.pids.iter().copied()).collect()
}

fn region(maestro: &Maestro, name: &str) -> anyhow::Result<Value> {
    let listed = maestro.api().get("/regions")?.expect(200)?.json()?;
    let regions = listed["regions"].as_array().context("no list of regions")?;
    regions.iter().find(|region| region["name"] == name).cloned().context("no such region")
}

fn cli(maestro: &Maestro, arguments: &[&str]) -> anyhow::Result<String> {
    let output = maestro.cli(arguments)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Starts, and is refused with this.
fn refused(maestro: &Maestro) -> anyhow::Result<String> {
    let output = maestro.start_command()?.output()?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    Ok(String::from_utf8(output.stderr)?)
}

#[test]
fn two_regions_on_one_machine() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.set_file(TWO)?;
    maestro.start()?;
    let first = maestro.fleet("arena", 4)?;
    assert_eq!(by_region(&first), BTreeMap::from([("eu-west", 2), ("us-east", 2)]));

    let said = cli(&maestro, &["region", "cordon", "eu-west", "--reason", "slow network"])?;
    assert_eq!(said, "region eu-west cordoned\n");
    maestro.api().add("arena", 2, "ann")?.expect(200)?;
    let rooms = maestro.until("rooms in one alone", || checks::settled(&maestro, "arena", 6))?;
    assert_eq!(by_region(&rooms), BTreeMap::from([("eu-west", 2), ("us-east", 4)]));
    let ports: BTreeSet<u16> =
        rooms.iter().flat_map(|room| room.ports.iter().map(|port| port.port)).collect();
    assert_eq!(ports.len(), 6, "no port twice on one machine");
    for process in maestro.processes()? {
        let room = rooms.iter().find(|room| room.id == process.room).context("nobody knows it")?;
        assert_eq!(process.region, room.region);
        let files = maestro.data_dir().join("regions").join(&room.region).join("rooms/arena").join(&room.id);
        assert!(files.is_dir(), "{}", files.display());
    }

    // What was said, and whose rooms are whose, outlives a crash.
    maestro.kill()?;
    maestro.start()?;
    let again = maestro.until("the rooms again", || checks::settled(&maestro, "arena", 6))?;
    assert_eq!((pids(&again), by_region(&again)), (pids(&rooms), by_region(&rooms)));
    let eu = region(&maestro, "eu-west")?;
    assert_eq!((&eu["cordoned"], &eu["rooms"]["ready"]), (&true.into(), &2.into()));
    let reason = eu["reason"].as_str().context("no reason")?;
    assert!(reason.ends_with(": slow network"), "{reason}");
    let listed = cli(&maestro, &["region", "list"])?;
    assert!(listed.contains("eu-west  yes        cordoned"), "{listed}");
    cli(&maestro, &["region", "uncordon", "eu-west"])?;
    assert_eq!(region(&maestro, "eu-west")?["cordoned"], false);

    a_region_with_rooms_cannot_be_removed(&mut maestro)?;
    maestro.api().delete("/schedulers/arena")?.expect(200)?;
    maestro.until("all rooms to be gone", || {
        ensure!(maestro.processes()?.is_empty(), "they are there");
        Ok(())
    })
}

fn a_region_with_rooms_cannot_be_removed(maestro: &mut Maestro) -> anyhow::Result<()> {
    maestro.stop(Signal::TERM)?;
    maestro.set_file("regions: {us-east: {}}")?;
    let said = refused(maestro)?;
    let expected = "region eu-west is not configured and still has 2 rooms: add it back, drain it \
                    (`maestro region drain eu-west`), then remove it";
    assert!(said.contains(expected), "{said}");
    assert_eq!(maestro.processes()?.len(), 6, "nothing was touched");
    maestro.set_file(TWO)?;
    maestro.start()
}

/// What began without regions goes on as the region `default`, from the same directory.
#[test]
fn a_data_directory_without_regions_gets_some() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    let before = maestro.fleet("arena", 2)?;
    assert!(maestro.data_dir().join("rooms/arena").is_dir());
    maestro.stop(Signal::TERM)?;
    maestro.set_file(TWO)?;
    let said = refused(&maestro)?;
    assert!(said.contains("region default is not configured and still has 2 rooms"), "{said}");
    maestro.set_file("regions: {default: {}, us-east: {}}")?;
    maestro.start()?;
    let after = maestro.until("the rooms again", || checks::settled(&maestro, "arena", 2))?;
    assert_eq!(pids(&after), pids(&before));
    maestro.set(STOP_ROOMS, "true");
    maestro.stop(Signal::TERM)?;
    maestro.start()?;
    maestro.stop(Signal::TERM)?;
    assert_eq!(maestro.processes()?, []);
    Ok(())
}
