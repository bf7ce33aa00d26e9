//! A stored recipe that this build cannot read.

use anyhow::ensure;
use maestro_e2e::{Maestro, checks, send_signal};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::json;

fn write_recipe(maestro: &Maestro, scheduler: &str, recipe: &str) -> anyhow::Result<String> {
    let connection = Connection::open(maestro.data_dir().join("maestro.db"))?;
    let before =
        connection
            .query_row("SELECT recipe FROM versions WHERE scheduler = ?1", [scheduler], |row| row.get(0))?;
    connection.execute("UPDATE versions SET recipe = ?2 WHERE scheduler = ?1", [scheduler, recipe])?;
    Ok(before)
}

/// As if the server had been killed before its last cycle; returns the operation's id.
fn put_cycle_back(maestro: &Maestro, scheduler: &str) -> anyhow::Result<String> {
    let connection = Connection::open(maestro.data_dir().join("maestro.db"))?;
    let id: String = connection.query_row(
        "SELECT id FROM operations WHERE scheduler = ?1 AND definition = 'health_controller'
         ORDER BY sequence DESC LIMIT 1",
        [scheduler],
        |row| row.get(0),
    )?;
    connection.execute("UPDATE operations SET status = 'pending', ended_at = NULL WHERE id = ?1", [&id])?;
    Ok(id)
}

#[test]
fn one_scheduler_that_cannot_be_read_is_left_alone_and_the_others_work() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    maestro.fleet("brawl", 1)?;
    maestro.kill()?;
    let readable = write_recipe(&maestro, "arena", r#"{"name":"arena","spec":{"from":"the future"}}"#)?;
    let cycle = put_cycle_back(&maestro, "arena")?;
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
    let listed = maestro.api().get("/schedulers?view=full")?.expect(200)?.json()?;
    let problem = &listed["schedulers"][0]["problem"];
    let reason = problem["reason"].as_str().unwrap_or_default();
    assert_eq!(problem["word"], "unreadable", "{listed}");
    assert!(reason.starts_with("stored recipe cannot be read: "), "{reason}");
    assert!(reason.ends_with("; start the version of Maestro that wrote it"), "{reason}");
    let refused = maestro.api().get("/schedulers/arena")?.expect(409)?.message();
    assert!(refused.contains("stored recipe cannot be read"), "{refused}");
    maestro.api().delete("/schedulers/arena")?.expect(409)?;
    // What it had still to do is explained, and is no obstacle to asking what is stuck anywhere.
    let explained = format!("/schedulers/arena/operations/{cycle}/explain");
    let explained = maestro.api().get(&explained)?.expect(200)?.json()?;
    let stuck = explained["stuckBecause"].as_str().unwrap_or_default();
    assert!(stuck.starts_with("its scheduler cannot be read: stored recipe cannot be read"), "{explained}");
    let next = explained["next"][0]["what"].as_str().unwrap_or_default();
    assert!(next.contains("the version of Maestro that wrote the scheduler"), "{explained}");
    let stuck = maestro.api().get("/schedulers/arena/operations/stuck")?.expect(200)?.json()?;
    assert_eq!(stuck["operations"][0]["id"], cycle, "{stuck}");
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

/// One that is not active is that version's problem alone.
#[test]
fn a_version_that_cannot_be_read_is_shown_among_the_others() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    maestro.api().send("PATCH", "/schedulers/arena", "e2e", r#"{"maxSurge": "7"}"#)?.expect(200)?;
    let versions = |maestro: &Maestro| -> anyhow::Result<Vec<(String, String, String)>> {
        let listed = maestro.api().get("/schedulers/arena/versions?view=full")?.expect(200)?.json()?;
        let text =
            |version: &serde_json::Value, key: &str| version[key].as_str().unwrap_or_default().to_owned();
        let versions = listed["versions"].as_array().into_iter().flatten();
        let shown = |one| (text(one, "version"), text(one, "status"), text(one, "cause"));
        Ok(versions.map(shown).collect())
    };
    maestro.until("the second version", || {
        let newest = versions(&maestro)?.swap_remove(0);
        ensure!(newest.0 == "v1.1.0" && newest.1 == "deployed", "{newest:?}");
        Ok(())
    })?;
    maestro.kill()?;
    let connection = Connection::open(maestro.data_dir().join("maestro.db"))?;
    connection.execute("UPDATE versions SET recipe = '{}' WHERE version = 'v1.0.0'", [])?;
    drop(connection);
    maestro.start()?;
    maestro.until("the fleet", || checks::settled(&maestro, "arena", 1))?;

    let shown = versions(&maestro)?;
    assert_eq!((shown[0].0.as_str(), shown[0].1.as_str()), ("v1.1.0", "deployed"));
    assert_eq!((shown[1].0.as_str(), shown[1].1.as_str()), ("v1.0.0", "unreadable"));
    assert!(shown[1].2.starts_with("stored recipe cannot be read: "), "{shown:?}");
    // The others can be worked with.
    maestro.api().get("/schedulers/arena")?.expect(200)?;
    maestro.api().put("/schedulers/arena", &json!({"version": "v1.0.0"}))?.expect(409)?;
    Ok(())
}
