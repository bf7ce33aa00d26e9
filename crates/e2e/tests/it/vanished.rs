//! A store that vanishes under a running server.

use std::fs;

use anyhow::ensure;
use maestro_e2e::{Maestro, checks, send_signal};
use rustix::process::Signal;

#[test]
fn a_store_that_vanishes_is_noticed_and_no_room_is_touched() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    let running = maestro.processes()?;
    let away = maestro.home().join("away");
    fs::create_dir(&away)?;
    let files = ["maestro.db", "maestro.db-wal", "maestro.db-shm"];
    for name in files {
        fs::rename(maestro.data_dir().join(name), away.join(name))?;
    }
    maestro.until("it to be noticed", || {
        let ready = maestro.internal().get("/readyz")?;
        ensure!(ready.status == 503 && ready.text.contains("maestro.db was deleted or moved"), "{ready:?}");
        Ok(())
    })?;
    let log = fs::read_to_string(maestro.log())?;
    assert!(log.contains("the store's files are gone"), "{log}");

    // What is asked for is refused, and what happens meanwhile is not acted upon.
    maestro.api().post("/schedulers/arena/add-rooms", "e2e", r#"{"amount":1}"#)?.expect(503)?;
    send_signal(running[0].pid, Signal::KILL)?;
    maestro.until("the room to end", || {
        ensure!(maestro.processes()?.len() == 1, "it is there");
        Ok(())
    })?;
    maestro.internal().get("/readyz")?.expect(503)?;
    assert_eq!(maestro.processes()?, running[1..]);

    // A server that is started in its place does not begin anew while they run.
    maestro.kill()?;
    let refused = maestro.start_command()?.output()?;
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert_eq!(maestro.processes()?, running[1..]);

    // Back in its place it goes on.
    for name in files {
        fs::rename(away.join(name), maestro.data_dir().join(name))?;
    }
    maestro.start()?;
    maestro.until("the fleet again", || checks::settled(&maestro, "arena", 2))?;
    assert!(maestro.processes()?.contains(&running[1]));
    Ok(())
}
