//! New versions on a live fleet: tried first, then rolled out room by room, also when Maestro dies on the way.

mod autoscaling;
mod bad_input;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_e2e::{Client, Maestro, Operation, Room, checks};
use serde_json::json;

const ROOM_VALIDATION_TIMEOUT: &str = "SERVICES_ROOMMANAGER_ROOMVALIDATIONTIMEOUTMILLIS";
/// Long enough to be seen before it is ready.
const SLOW_MS: u32 = 400;
const NEVER_MS: u32 = 3_600_000;
/// Of a match that does not end by itself.
const WHOLE_TEST: Duration = Duration::from_secs(3_600);

/// What was seen of a fleet while a version was rolled out over it.
#[derive(Debug, Default)]
struct Seen {
    observations: usize,
    /// Rooms that were ready, or that players were in.
    in_service_min: Option<usize>,
    /// How many rooms were of the new version.
    new_rooms: BTreeSet<usize>,
    /// Old rooms that nobody was in, when the first that players were in was asked to go.
    idle_then: Option<usize>,
}

#[test]
fn a_rollout_never_leaves_fewer_ready_rooms_than_wanted() -> anyhow::Result<()> {
    roll_out_over(6, 0)
}

#[test]
fn a_rollout_comes_to_the_rooms_that_players_are_in_last() -> anyhow::Result<()> {
    roll_out_over(6, 2)
}

fn roll_out_over(size: usize, occupied: usize) -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", u32::try_from(size)?)?;
    let before = maestro.fleet("arena", recipe.rooms)?;
    for room in &before[..occupied] {
        ensure!(room.join(WHOLE_TEST)?, "{} has no place", room.id);
    }
    maestro.until("the players to be known", || {
        let rooms = fleet(maestro.api())?;
        let known = rooms.iter().filter(|room| room.status == "occupied").count();
        ensure!(known == occupied, "{known} rooms are occupied");
        Ok(())
    })?;

    let mut changed = recipe.with("ROOM_START_DELAY_MS", SLOW_MS).json();
    // No cycle of a test is a scheduled one, and rooms with players would wait for that.
    changed["rollout"] = json!({"occupiedInterval": "0s"});
    let over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let sampler = scope.spawn(|| watch(maestro.api(), occupied, &over));
        let rolled_out = maestro
            .api()
            .new_version("arena", &changed)
            .and_then(|answer| answer.expect(200))
            .and_then(|_| maestro.until("the rollout", || rolled_out(&maestro, "v2.0.0", size)));
        // Whatever came of it: the scope ends when the sampler does.
        over.store(true, Ordering::Relaxed);
        let seen = sampler.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        rolled_out.map(|_| seen)
    })?;
    println!("{seen:?}");
    assert!(seen.in_service_min >= Some(size), "{seen:?}");
    assert_eq!(seen.idle_then, (occupied > 0).then_some(0), "{seen:?}");
    // It has looked while it mattered: a surge of a quarter of six is one room at a time.
    assert!(seen.new_rooms.is_superset(&BTreeSet::from([0, 1, size / 2, size])), "{seen:?}");
    let old: BTreeSet<u32> = before.iter().flat_map(|room| room.pids.clone()).collect();
    assert!(maestro.processes()?.iter().all(|process| !old.contains(&process.pid)), "an old room runs on");
    Ok(())
}

/// Looks at the fleet as often as it can.
fn watch(client: &Client, occupied: usize, over: &AtomicBool) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    loop {
        let is_last = over.load(Ordering::Relaxed);
        let fleet = fleet(client)?;
        let with_status = |status: &'static str| fleet.iter().filter(move |room| room.status == status);
        let in_service = with_status("ready").count() + with_status("occupied").count();
        seen.observations += 1;
        seen.in_service_min = Some(seen.in_service_min.map_or(in_service, |least| least.min(in_service)));
        seen.new_rooms.insert(fleet.iter().filter(|room| room.version == "v2.0.0").count());
        if with_status("occupied").count() < occupied && seen.idle_then.is_none() {
            seen.idle_then = Some(with_status("ready").filter(|room| room.version == "v1.0.0").count());
        }
        if is_last {
            return Ok(seen);
        }
    }
}

#[test]
fn a_version_goes_on_when_maestro_dies_while_its_validation_room_starts() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    let changed = maestro.recipe("arena", 2)?.with("ROOM_START_DELAY_MS", 3 * SLOW_MS);
    let version = maestro.api().new_version("arena", &changed.json())?.expect(200)?.operation_id()?;
    maestro.until("a validation room", || validation_room(&maestro))?;
    maestro.kill()?;
    maestro.start()?;
    maestro.until("the rollout", || rolled_out(&maestro, "v2.0.0", 2))?;
    let version = maestro.api().operation("arena", &version)?;
    assert_eq!(version.status, "finished", "{}", version.story());
    Ok(())
}

#[test]
fn a_validation_room_that_is_never_ready_does_not_outlive_a_restart_for_long() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[("SERVICES_ROOMMANAGER_ROOMVALIDATIONATTEMPTS", "1")])?;
    let before = maestro.fleet("arena", 2)?;
    let changed = maestro.recipe("arena", 2)?.with("ROOM_START_DELAY_MS", NEVER_MS);
    let version = maestro.api().new_version("arena", &changed.json())?.expect(200)?.operation_id()?;
    maestro.until("a validation room", || validation_room(&maestro))?;
    maestro.kill()?;
    // Without it the room might be waited for two minutes.
    maestro.set(ROOM_VALIDATION_TIMEOUT, "1000");
    maestro.start()?;
    let version = maestro.until("its end", || ended(&maestro, &version))?;
    assert_eq!(version.status, "error", "{}", version.story());
    assert!(version.story().contains("was not ready within 1s"), "{}", version.story());
    nothing_changed(&maestro, &before)
}

#[test]
fn a_version_whose_rooms_crash_is_refused() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let before = maestro.fleet("arena", 2)?;
    // They would be ready much later.
    let changed =
        maestro.recipe("arena", 2)?.with("ROOM_CRASH_AFTER_MS", 1).with("ROOM_START_DELAY_MS", 60_000);
    let version = maestro.api().new_version("arena", &changed.json())?.expect(200)?.operation_id()?;
    let version = maestro.until("its end", || ended(&maestro, &version))?;
    assert_eq!(version.status, "error", "{}", version.story());
    for words in ["attempt 3 of 3 failed", "exited with code 3", "was not validated"] {
        assert!(version.story().contains(words), "{words}: {}", version.story());
    }
    nothing_changed(&maestro, &before)
}

#[test]
fn a_rollout_goes_on_when_maestro_dies_in_its_middle() -> anyhow::Result<()> {
    const SIZE: usize = 4;
    let mut maestro = Maestro::started(&[])?;
    let before = maestro.fleet("arena", SIZE as u32)?;
    // Two more rooms have to start after the kill was decided on.
    let changed = maestro.recipe("arena", SIZE as u32)?.with("ROOM_START_DELAY_MS", 2 * SLOW_MS);
    maestro.api().new_version("arena", &changed.json())?.expect(200)?;
    let new_rooms = maestro.until("half a rollout", || {
        let mut rooms = fleet(maestro.api())?;
        rooms.retain(|room| room.version == "v2.0.0" && room.status == "ready");
        ensure!(rooms.len() >= SIZE / 2, "{} rooms are new", rooms.len());
        Ok(rooms)
    })?;
    maestro.kill()?;
    let is_old = |pid| before.iter().any(|room| room.pids.contains(&pid));
    assert!(maestro.processes()?.iter().any(|process| is_old(process.pid)), "it was over before the kill");
    maestro.start()?;
    let rooms = maestro.until("the rollout", || rolled_out(&maestro, "v2.0.0", SIZE))?;
    for new in new_rooms {
        let again = rooms.iter().find(|room| room.id == new.id);
        assert!(again.is_some_and(|room| room.pids == new.pids), "{} was new and is gone", new.id);
    }
    Ok(())
}

/// Without those that try a version.
fn fleet(client: &Client) -> anyhow::Result<Vec<Room>> {
    let mut rooms = client.rooms("arena")?;
    rooms.retain(|room| !room.validation);
    Ok(rooms)
}

fn validation_room(maestro: &Maestro) -> anyhow::Result<Room> {
    let rooms = maestro.api().rooms("arena")?.into_iter();
    let mut rooms = rooms.filter(|room| room.validation && !room.pids.is_empty());
    rooms.next().context("there is none that runs")
}

fn ended(maestro: &Maestro, operation: &str) -> anyhow::Result<Operation> {
    let operation = maestro.api().operation("arena", operation)?;
    ensure!(operation.is_final(), "it is {}", operation.status);
    Ok(operation)
}

/// The version is the active one, it is deployed, and so is the whole fleet; nothing else of any version runs.
fn rolled_out(maestro: &Maestro, version: &str, size: usize) -> anyhow::Result<Vec<Room>> {
    let rooms = checks::settled(maestro, "arena", size)?;
    for room in &rooms {
        ensure!(room.version == version && !room.validation, "{room:?}");
    }
    let versions = maestro.api().versions("arena")?;
    ensure!(versions.iter().all(|version| version.status == "deployed"), "{versions:?}");
    let active: Vec<&str> =
        versions.iter().filter(|known| known.is_active).map(|known| known.version.as_str()).collect();
    ensure!(active == [version], "{versions:?}");
    Ok(rooms)
}

/// There is one version, and its rooms are the same processes as before.
fn nothing_changed(maestro: &Maestro, before: &[Room]) -> anyhow::Result<()> {
    let versions = maestro.api().versions("arena")?;
    assert_eq!(versions.len(), 1, "{versions:?}");
    assert!(versions[0].is_active && versions[0].version == "v1.0.0", "{versions:?}");
    // A room that tried the version would be listed too.
    let after = maestro.until("the fleet", || checks::settled(maestro, "arena", before.len()))?;
    let processes = |rooms: &[Room]| -> BTreeSet<(String, Vec<u32>)> {
        rooms.iter().map(|room| (room.id.clone(), room.pids.clone())).collect()
    };
    assert_eq!(processes(&after), processes(before));
    Ok(())
}
