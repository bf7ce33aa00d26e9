//! Rooms that cannot run, or do not behave: people can see which and why, and the machine is not used up.

use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Operation, checks};

/// The waits between attempts are at least these: doubling from one second.
const WAITS_AT_LEAST_MS: [i64; 2] = [900, 1_900];

#[test]
fn a_command_that_does_not_exist_is_named_and_backed_off_from() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", 2)?.with_command(&["/nowhere/no-such-program"]);
    maestro.api().create(&recipe.json())?.expect(200)?;
    let attempts = attempts_that_back_off(&maestro)?;
    for attempt in attempts {
        assert_eq!(attempt.status, "error");
        let story = maestro.api().operation("arena", &attempt.id)?.story();
        assert!(story.contains("/nowhere/no-such-program") && story.contains("never started"), "{story}");
    }
    assert_eq!(maestro.api().rooms("arena")?.len(), 0);
    Ok(())
}

#[test]
fn rooms_that_crash_at_once_are_backed_off_from() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", 2)?.with("ROOM_CRASH_AFTER_MS", 1);
    maestro.api().create(&recipe.json())?.expect(200)?;
    let attempts = attempts_that_back_off(&maestro)?;
    let last = attempts.last().context("no attempt")?;
    assert!(last.reason.contains("exited with code 3"), "{}", last.reason);
    Ok(())
}

/// Three attempts, with ever longer waits in between.
fn attempts_that_back_off(maestro: &Maestro) -> anyhow::Result<Vec<Operation>> {
    let wanted = WAITS_AT_LEAST_MS.len() + 1;
    let attempts = maestro.until("a few attempts", || {
        let mut attempts = maestro.api().operations("arena")?;
        attempts.retain(|operation| operation.definition_name == "add_rooms" && operation.is_final());
        ensure!(attempts.len() >= wanted, "{} attempts", attempts.len());
        attempts.sort_by_key(|operation| operation.created_at);
        Ok(attempts)
    })?;
    for (pair, at_least) in attempts.windows(2).zip(WAITS_AT_LEAST_MS) {
        let wait = pair[1].created_at.0.duration_since(pair[0].created_at.0).as_millis();
        assert!(wait >= i128::from(at_least), "only {wait} ms between attempts");
    }
    Ok(attempts)
}

#[test]
fn a_port_that_another_program_has_is_left_to_it() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let first = *maestro.room_ports().start();
    // Of four ports two are taken, one by TCP and one by UDP, which rooms here do not use.
    let _tcp = TcpListener::bind(("127.0.0.1", first))?;
    let _udp = UdpSocket::bind(("127.0.0.1", first + 1))?;
    let recipe = maestro.recipe("arena", 3)?.with_ports(first..=first + 3);
    maestro.api().create(&recipe.json())?.expect(200)?;
    maestro.until("the fleet", || checks::settled(&maestro, "arena", 3))?;
    let rooms = maestro.api().get("/schedulers/arena/rooms")?.json()?;
    let mut ports: Vec<_> = rooms["rooms"]
        .as_array()
        .context("no rooms")?
        .iter()
        .filter_map(|room| room["ports"][0]["port"].as_u64())
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, [1, 2, 3].map(|offset| u64::from(first) + offset));
    // None was tried in vain.
    let mut additions = maestro.api().operations("arena")?;
    additions.retain(|operation| operation.definition_name == "add_rooms");
    assert_eq!(additions.len(), 1, "{additions:?}");
    Ok(())
}

#[test]
fn a_port_range_that_is_wholly_taken_is_said_and_waited_for() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let first = *maestro.room_ports().start();
    let taken = [first, first + 1].map(|port| TcpListener::bind(("127.0.0.1", port)));
    let recipe = maestro.recipe("arena", 2)?.with_ports(first..=first + 1);
    maestro.api().create(&recipe.json())?.expect(200)?;
    let attempts = attempts_that_back_off(&maestro)?;
    let story = maestro.api().operation("arena", &attempts[0].id)?.story();
    assert_eq!(attempts[0].status, "error");
    assert!(
        story.contains("port") && story.contains(&first.to_string()),
        "the history says which ports: {story}"
    );
    drop(taken);
    maestro.until("the fleet", || checks::settled(&maestro, "arena", 2))?;
    Ok(())
}

#[test]
fn a_room_that_never_becomes_ready_expires_and_is_replaced() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[("SERVICES_ROOMMANAGER_ROOMINITIALIZATIONTIMEOUTMILLIS", "1500")])?;
    let recipe = maestro.recipe("arena", 1)?.with("ROOM_NEVER_READY", 1);
    maestro.api().create(&recipe.json())?.expect(200)?;
    expires_and_is_replaced(&maestro, "did not become ready within")
}

#[test]
fn a_room_that_stops_pinging_expires_and_is_replaced() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[("SERVICES_ROOMMANAGER_ROOMPINGTIMEOUTMILLIS", "2000")])?;
    let recipe = maestro.recipe("arena", 1)?.with("ROOM_STOP_PINGING_AFTER_MS", 500);
    maestro.api().create(&recipe.json())?.expect(200)?;
    expires_and_is_replaced(&maestro, "has not pinged for")
}

/// By nothing but its timeout: health cycles come once in an hour.
fn expires_and_is_replaced(maestro: &Maestro, why: &str) -> anyhow::Result<()> {
    let first = maestro.until("the first room", || {
        let rooms = maestro.api().rooms("arena")?;
        rooms.into_iter().next().context("no room yet")
    })?;
    let ended = maestro.until("its end", || {
        let room = maestro.api().room("arena", &first.id)?;
        room.and_then(|room| room.ended).context("it has not ended")
    })?;
    assert!(ended.how.contains("expired"), "{}", ended.how);
    maestro.until("another room", || {
        let rooms = maestro.api().rooms("arena")?;
        ensure!(rooms.iter().any(|room| room.id != first.id && !room.pids.is_empty()), "{rooms:?}");
        Ok(())
    })?;
    let operations = maestro.api().operations("arena")?;
    let removal = operations
        .iter()
        .find(|operation| operation.definition_name == "remove_rooms" && operation.reason.contains(&first.id))
        .context("no remove_rooms names the room")?;
    assert!(removal.reason.contains(why), "{}", removal.reason);
    Ok(())
}

/// Rooms that become ready and live for anything up to nine seconds: unhindered, they would be started more than a
/// hundred times a minute.
#[test]
fn rooms_that_crash_after_different_times_are_backed_off_from() -> anyhow::Result<()> {
    const OBSERVED: Duration = Duration::from_secs(45);
    // Ten to begin with, each once or twice more while the first attempts are quick, and one or two at a time after that.
    const STARTS_MAX: u32 = 40;
    let maestro = Maestro::started(&[])?;
    let recipe = maestro.recipe("arena", 10)?;
    let room = recipe.command.join(" ");
    let crash = format!("ROOM_CRASH_AFTER_MS=$(( ($$ % 10) * 1000 + 1 )) exec {room}");
    maestro.api().create(&recipe.with_command(&["/bin/sh", "-c", &crash]).json())?.expect(200)?;
    let began = Instant::now();
    let attempts = maestro.until("a while of crashes", || {
        ensure!(began.elapsed() >= OBSERVED, "too early");
        let mut operations = maestro.api().operations("arena")?;
        operations.retain(|operation| operation.definition_name == "add_rooms");
        Ok(operations)
    })?;
    let started = maestro.rooms_ever_made("arena")?;
    ensure!(started > 10, "nothing was tried again: {attempts:?}");
    ensure!(started <= STARTS_MAX, "{started} rooms started by {} operations", attempts.len());
    Ok(())
}
