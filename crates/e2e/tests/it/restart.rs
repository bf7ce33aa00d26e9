//! Maestro ends and begins again; rooms go on, or end with it if it was told so.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use maestro_e2e::{Maestro, PATIENCE, Room, STOP_ROOMS, checks, send_signal, until};
use rustix::process::Signal;

#[test]
fn rooms_outlive_a_clean_end_and_are_adopted() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    let before = maestro.fleet("arena", 3)?;
    for signal in [Signal::TERM, Signal::INT] {
        let asked = Instant::now();
        let status = maestro.stop(signal)?;
        println!("ended {} ms after {signal:?}", asked.elapsed().as_millis());
        assert_eq!(status.code(), Some(0), "{}", maestro.log_tail());
        assert_eq!(maestro.processes()?.len(), 3);
        maestro.start()?;
        let after = maestro.until("the fleet again", || checks::settled(&maestro, "arena", 3))?;
        assert_eq!(pids(&after), pids(&before), "the same rooms as the same processes");
    }
    an_adopted_room_is_watched(&maestro, &before[0])
}

/// Although it is nobody's child here: its end is noticed at once, and it is replaced.
fn an_adopted_room_is_watched(maestro: &Maestro, room: &Room) -> anyhow::Result<()> {
    send_signal(room.pids[0], Signal::KILL)?;
    let ended = maestro.until("its end", || {
        let room = maestro.api().room("arena", &room.id)?.context("it is not known")?;
        room.ended.context("it has not ended")
    })?;
    // How it ended, newer kernels tell.
    println!("an adopted room: {}", ended.how);
    maestro.until("the replacement", || checks::settled(maestro, "arena", 3))?;
    Ok(())
}

#[test]
fn rooms_end_with_maestro_if_it_was_told_so() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[(STOP_ROOMS, "true")])?;
    let before = maestro.fleet("arena", 3)?;
    let status = maestro.stop(Signal::INT)?;
    assert_eq!(status.code(), Some(0), "{}", maestro.log_tail());
    assert_eq!(maestro.processes()?, []);

    maestro.start()?;
    maestro.until("a new fleet", || checks::settled(&maestro, "arena", 3))?;
    for room in before {
        let ended = maestro.api().room("arena", &room.id)?.and_then(|room| room.ended);
        let how = ended.context("it is not remembered")?.how;
        assert!(how.contains("stopped by Maestro"), "{how}");
    }
    Ok(())
}

/// Unknown is not zero: a room that was not heard of since the restart may be the one that players are in.
#[test]
fn nothing_is_scaled_down_while_a_room_is_unknown() -> anyhow::Result<()> {
    const PING_TIMEOUT: Duration = Duration::from_secs(6);
    let timeout = PING_TIMEOUT.as_millis().to_string();
    let mut maestro = Maestro::new(&[("SERVICES_ROOMMANAGER_ROOMPINGTIMEOUTMILLIS", &timeout)])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    maestro.fleet("arena", 4)?;
    // A stopped process whose parent dies would be hung up by the kernel: those that were adopted have another one.
    maestro.stop(Signal::TERM)?;

    // One room falls silent, and Maestro dies when it has promised to remove two and not begun to.
    maestro.set_failpoint(Some("kill:=request resize:after"));
    maestro.start()?;
    let rooms = maestro.until("the fleet", || checks::settled(&maestro, "arena", 4))?;
    let silent = &rooms[0];
    send_signal(silent.pids[0], Signal::STOP)?;
    let answer = maestro.api().remove("arena", 2, "ada");
    assert!(answer.is_err(), "it was to die before it answered: {answer:?}");
    until("its end", PATIENCE, || maestro.ended()?.context("it runs"))?;
    assert_eq!(maestro.processes()?.len(), 4);
    maestro.set_failpoint(None);
    maestro.start()?;
    let restarted = Instant::now();

    // Another one is asked for when all others are known again.
    maestro.until("the others to be heard of", || {
        let rooms = maestro.api().rooms("arena")?;
        let ready = rooms.iter().filter(|room| room.status == "ready").count();
        ensure!(ready == 3, "{ready} are");
        Ok(())
    })?;
    maestro.api().remove("arena", 1, "bob")?.expect(200)?;
    let unknown_for = maestro.until("the silent room to be given up", || {
        let rooms = maestro.api().rooms("arena")?;
        let is_unknown = |room: &&Room| room.status != "terminating" && room.last_ping_at.is_none();
        let unknown: Vec<&Room> = rooms.iter().filter(is_unknown).collect();
        if unknown.iter().any(|room| room.id == silent.id) {
            assert_eq!(maestro.processes()?.len(), 4, "a room went while {} was unknown", silent.id);
            bail!("{} rooms are unknown", unknown.len());
        }
        Ok(restarted.elapsed())
    })?;
    assert!(unknown_for >= PING_TIMEOUT.mul_f64(0.9), "it was given up after {unknown_for:?}");
    maestro.until("the smaller fleet", || checks::settled(&maestro, "arena", 1))?;
    for user in ["ada", "bob"] {
        maestro.until("the removals to end", || {
            let removal = maestro.api().operation_of("arena", user)?;
            let removal = removal.with_context(|| format!("what {user} asked for is lost"))?;
            ensure!(removal.status == "finished", "{user}'s is {}", removal.status);
            Ok(())
        })?;
    }
    Ok(())
}

fn pids(rooms: &[Room]) -> BTreeMap<&str, &[u32]> {
    let pids = rooms.iter().map(|room| (room.id.as_str(), room.pids.as_slice()));
    pids.collect()
}
