//! Rooms for matchmakers, from the outside: by the command line, and through a server that is killed before it can answer.

mod kills;
mod withdrawn;
mod wrong;

use std::process::Output;
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, PATIENCE, Room, STOP_ROOMS, checks, send_signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};

pub(super) const ALLOCATIONS: &str = "/schedulers/arena/allocations";

/// Killed at the write of the allocation: the caller has no answer, and asks again.
#[test]
fn a_lost_answer_is_given_again() -> anyhow::Result<()> {
    for (moment, is_written) in [("before", false), ("after", true)] {
        let mut maestro = Maestro::new(&[])?;
        maestro.unset(STOP_ROOMS);
        maestro.set_failpoint(Some(&format!("kill:=allocate:{moment}")));
        maestro.start()?;
        maestro.fleet("arena", 2)?;
        let request = json!({"requestId": "cup-final", "metadata": {"map": "lava"}}).to_string();
        let lost = maestro.api().post(ALLOCATIONS, "", &request);
        ensure!(lost.is_err(), "the server answered, and should be dead: {lost:?}");
        until("the end of the server", PATIENCE, || maestro.ended()?.context("it runs"))?;

        maestro.set_failpoint(None);
        maestro.start()?;
        let before = held(&maestro)?;
        assert_eq!(before.len(), usize::from(is_written), "{moment} the write: {before:?}");
        // Rooms can be allocated again when they have pinged.
        let again = maestro.until("an answer", || ask(&maestro, &request))?;
        if let Some(before) = before.first() {
            assert_eq!(again["id"], before["id"], "the same room as before");
        }
        assert_eq!(again, maestro.until("the same answer", || ask(&maestro, &request))?);
        assert_eq!(held(&maestro)?.len(), 1, "{moment} the write");

        // The hold counts: others get the other room, and then none.
        let other = maestro.until("the other room", || ask(&maestro, "{}"))?;
        assert_ne!(other["roomId"], again["roomId"]);
        maestro.api().post(ALLOCATIONS, "", "{}")?.expect(429)?;
        let differs = json!({"requestId": "cup-final", "count": 2}).to_string();
        let refused = maestro.api().post(ALLOCATIONS, "", &differs)?.expect(409)?;
        assert!(refused.message().contains("count"), "{}", refused.text);
        // The one that was held before is shown as such when it has pinged.
        maestro.until("both rooms allocated", || {
            let rooms = maestro.api().rooms("arena")?;
            ensure!(rooms.iter().all(|room| room.status == "allocated"), "{rooms:?}");
            Ok(())
        })?;
    }
    Ok(())
}

fn ask(maestro: &Maestro, request: &str) -> anyhow::Result<Value> {
    let answer = maestro.api().post(ALLOCATIONS, "", request)?.expect(200)?;
    Ok(answer.json()?["allocations"][0].take())
}

fn held(maestro: &Maestro) -> anyhow::Result<Vec<Value>> {
    let answer = maestro.api().get(&format!("{ALLOCATIONS}?state=held"))?.expect(200)?;
    serde_json::from_value(answer.json()?["allocations"].take()).context("a list")
}

/// Between the answer and the start of the match, as `docs/matchmakers.md` says.
#[test]
fn a_room_that_dies_before_its_match_is_lost_and_replaced() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 1)?;
    let request = |id: &str| json!({"requestId": id, "waitMillis": 30_000}).to_string();
    let first = ask(&maestro, &request("first"))?;
    send_signal(rooms[0].pids[0], Signal::KILL)?;
    let path = format!("{ALLOCATIONS}/{}", first["id"].as_str().context("an id")?);
    maestro.until("the loss to be seen", || {
        let lost = maestro.api().get(&path)?.expect(200)?.json()?["allocation"].take();
        ensure!(lost["state"] == "lost" && lost["cause"].to_string().contains("signal 9"), "{lost}");
        Ok(())
    })?;
    // The old request is over, and nothing is left to be given back.
    for (method, path, body) in [("POST", ALLOCATIONS, request("first")), ("DELETE", &path, String::new())] {
        let refused = maestro.api().send(method, path, "e2e", &body)?.expect(409)?;
        assert!(refused.message().contains("lost"), "{}", refused.text);
    }
    // A new one waits for the room that takes its place.
    let second = ask(&maestro, &request("second"))?;
    assert_ne!(second["roomId"], first["roomId"]);
    maestro
        .api()
        .delete(&format!("{ALLOCATIONS}/{}", second["id"].as_str().context("an id")?))?
        .expect(204)?;
    maestro.until("one room", || checks::settled(&maestro, "arena", 1).map(drop))
}

/// From the first room to the last, and what is printed when there is none.
#[test]
fn by_the_command_line() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 2)?;

    let created =
        json_of(&maestro, &["create", "arena", "--metadata", "map=lava", "--request-id", "cup-final"])?;
    let first = created["allocations"][0].clone();
    let id = first["id"].as_str().context("an id")?;
    assert_eq!((&first["state"], &first["metadata"]), (&json!("held"), &json!({"map": "lava"})));
    let got = text_of(&maestro, &["get", "arena", id], 0)?;
    for words in ["held", "cup-final", r#"{"map":"lava"}"#] {
        assert!(got.contains(words), "{words} in {got}");
    }
    let table = text_of(&maestro, &["create", "arena", "--ttl", "1m", "--region", "default"], 0)?;
    assert!(table.starts_with("ALLOCATION") && table.contains("game:"), "{table}");

    let none = text_of(&maestro, &["create", "arena", "--wait", "10ms"], 4)?;
    let expected = "error: no ready rooms available for scheduler arena: 0 ready, 2 occupied, 2 held, 2 desired; \
                    requests waiting: 0\n";
    assert_eq!(none, expected);
    assert!(text_of(&maestro, &["create", "nowhere"], 3)?.contains("nowhere"));
    assert!(text_of(&maestro, &["create", "arena", "--wait", "31s"], 2)?.contains("waitMillis"));
    assert!(text_of(&maestro, &["create", "arena", "--region", "moon"], 4)?.contains("no ready rooms"));
    assert!(text_of(&maestro, &["create", "arena", "--request-id", "cup-final"], 4)?.contains("metadata"));
    assert!(text_of(&maestro, &["get", "arena", "7"], 3)?.contains('7'));

    let room = rooms.iter().find(|room| first["roomId"] == room.id.as_str()).context("its room")?;
    ends_as_begun(&maestro, room, id)?;
    let refused = text_of(&maestro, &["return", "arena", id], 4)?;
    assert!(refused.contains("its match has begun"), "{refused}");

    let held = json_of(&maestro, &["list", "arena", "--state", "held"])?;
    let second = held["allocations"][0]["id"].as_str().context("the second")?.to_owned();
    for _ in ["once", "twice"] {
        let returned = text_of(&maestro, &["return", "arena", &second], 0)?;
        assert_eq!(returned, format!("allocation {second} returned\n"));
    }
    let paged = text_of(&maestro, &["list", "arena", "--page-size", "1"], 0)?;
    assert!(paged.contains(&second) && !paged.contains(id), "newest first: {paged}");
    assert!(paged.contains("page 1 of 2 allocations; next: --page 2"), "{paged}");
    let of_room = text_of(&maestro, &["list", "arena", "--room", &room.id], 0)?;
    assert!(of_room.contains(id) && !of_room.contains(&second), "{of_room}");
    Ok(())
}

/// Its players come; the room prints for whom it was allocated.
fn ends_as_begun(maestro: &Maestro, room: &Room, id: &str) -> anyhow::Result<()> {
    maestro.until("the room to know", || {
        let log = maestro.api().get(&format!("/schedulers/arena/rooms/{}/logs?tail=10", room.id))?;
        ensure!(log.text.contains(&format!(r#"allocated: {id} {{"map":"lava"}}"#)), "{}", log.text);
        Ok(())
    })?;
    ensure!(room.join_allocation(Duration::from_secs(60), id)?, "the room has no place");
    maestro.until("the match to begin", || {
        let listed = json_of(maestro, &["list", "arena", "--state", "begun"])?;
        ensure!(listed["allocations"][0]["id"] == id, "{listed}");
        Ok(())
    })
}

fn json_of(maestro: &Maestro, arguments: &[&str]) -> anyhow::Result<Value> {
    let output = run(maestro, &[arguments, &["-o", "json"]].concat())?;
    ensure!(output.status.success(), "{arguments:?}: {output:?}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What a command prints, to stdout first.
fn text_of(maestro: &Maestro, arguments: &[&str], code: i32) -> anyhow::Result<String> {
    let output = run(maestro, arguments)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text)?;
    ensure!(output.status.code() == Some(code), "{arguments:?}: {}: {text}", output.status);
    Ok(text)
}

fn run(maestro: &Maestro, arguments: &[&str]) -> anyhow::Result<Output> {
    maestro.cli(&[&["allocation"], arguments].concat())
}
