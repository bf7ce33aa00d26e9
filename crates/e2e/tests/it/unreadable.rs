//! A stored recipe that this build cannot read.

use anyhow::ensure;
use maestro_e2e::{Maestro, checks, send_signal};
use rusqlite::Connection;
use rustix::process::Signal;

fn write_recipe(maestro: &Maestro, scheduler: &str, recipe: &str) -> anyhow::Result<String> {
    let connection = Connection::open(maestro.data_dir().join("maestro.db"))?;
    let before =
        connection
            .query_row("SELECT recipe FROM versions WHERE scheduler = ?1", [scheduler], |row| row.get(0))?;
    connection.execute("UPDATE versions SET recipe = ?2 WHERE scheduler = ?1", [scheduler, recipe])?;
    Ok(before)
}

#[test]
fn one_scheduler_that_cannot_be_read_is_left_alone_and_the_others_work() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    maestro.fleet("brawl", 1)?;
    maestro.kill()?;
    let readable = write_recipe(&maestro, "arena", r#"{"name":"arena","spec":{"from":"the future"}}"#)?;
    let of_arena = |maestro: &Maestro| -> anyhow::Result<Vec<_>> {
        let processes = maestro.processes()?.into_iter();
        Ok(processes.filter(|process| process.scheduler == "arena").collect())
    };
    let running = of_arena(&maestro)?;
    assert_eq!(running.len(), 2);
    maestro.start()?;

    // The other one is served as ever, also in what needs a new room.
    maestro.until("the other fleet", || checks::settled(&maestro, "brawl", 1))?;
    maestro.api().post("/schedulers/brawl/add-rooms", "e2e", r#"{"amount":1}"#)?.expect(200)?;
    maestro.until("the other fleet to grow", || checks::settled(&maestro, "brawl", 2))?;

    // This one is shown, with the reason, and its rooms with it.
    for path in ["/schedulers", "/schedulers/info"] {
        let listed = maestro.api().get(path)?.expect(200)?.json()?;
        let entry = listed["schedulers"].as_array().into_iter().flatten().find(|one| one["name"] == "arena");
        ensure!(entry.is_some_and(|entry| entry["state"] == "unreadable"), "{path}: {listed}");
    }
    let refused = maestro.api().get("/schedulers/arena")?.expect(409)?.message();
    assert!(refused.contains("stored recipe cannot be read"), "{refused}");
    maestro.api().delete("/schedulers/arena")?.expect(409)?;
    assert_eq!(maestro.api().rooms("arena")?.len(), 2);
    let internal = maestro.internal();
    let ready = internal.get("/readyz")?.expect(200)?.text;
    assert!(ready.contains("scheduler arena: stored recipe cannot be read"), "{ready}");
    maestro.until("its metric", || {
        let metrics = internal.get("/metrics")?.expect(200)?.text;
        ensure!(metrics.contains("maestro_scheduler_unreadable{scheduler=\"arena\"} 1"), "not there yet");
        Ok(())
    })?;

    // A room that ends is written down and not replaced, the others are not touched.
    send_signal(running[0].pid, Signal::KILL)?;
    maestro.until("its end to be seen", || {
        ensure!(maestro.api().rooms("arena")?.len() == 1, "it is still listed");
        Ok(())
    })?;
    assert_eq!(of_arena(&maestro)?, running[1..]);

    // A build that can read it goes on where the last one left off.
    maestro.kill()?;
    write_recipe(&maestro, "arena", &readable)?;
    maestro.start()?;
    maestro.until("the fleet again", || checks::settled(&maestro, "arena", 2))?;
    assert!(of_arena(&maestro)?.contains(&running[1]));
    Ok(())
}
