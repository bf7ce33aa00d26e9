//! A room that dies is replaced at once, and people can see what happened and why.

use std::time::Instant;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, checks, send_signal};
use rustix::process::Signal;

#[test]
fn a_killed_room_is_replaced_at_once_and_its_end_is_told() -> anyhow::Result<()> {
    // Health cycles come once in an hour: nothing but the death itself can bring the replacement.
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 3)?;

    let victim = &rooms[0];
    let killed = Instant::now();
    send_signal(victim.pids[0], Signal::KILL)?;
    maestro.until("a replacement", || {
        let rooms = checks::settled(&maestro, "arena", 3)?;
        ensure!(rooms.iter().all(|room| room.id != victim.id), "it is still listed");
        Ok(())
    })?;
    println!("replaced and ready after {} ms", killed.elapsed().as_millis());

    let room = maestro.cli(&["room", "get", "arena", &victim.id])?;
    let room = String::from_utf8_lossy(&room.stdout).into_owned();
    assert!(room.contains("killed by signal 9 (SIGKILL)"), "{room}");
    let operations = maestro.api().operations("arena")?;
    let replacing = operations
        .iter()
        .find(|operation| operation.definition_name == "add_rooms" && operation.reason.contains(&victim.id))
        .context("no add_rooms names the room that it replaces")?;
    let reason = format!(
        "2 of 3 rooms: adding 1; the last room to end was {}: container room was killed by signal 9 (SIGKILL)",
        victim.id
    );
    assert_eq!(replacing.reason, reason);
    let list = maestro.cli(&["operation", "list", "arena"])?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.contains(&replacing.id) && list.contains("signal 9"),
        "the list says which operation did it and why: {list}"
    );
    Ok(())
}
