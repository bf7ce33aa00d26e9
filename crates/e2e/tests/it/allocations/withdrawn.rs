//! A room dies when its allocation is on disk and its matchmaker not told yet. Nobody is told of it, and the other room of
//! the same request is free again, also if the server is killed where it writes that down.

use std::fs;
use std::thread;

use anyhow::{Context, anyhow, ensure};
use maestro_e2e::{Maestro, PATIENCE, Room, STOP_ROOMS, checks, send_signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ALLOCATIONS, held};

const ROOMS: u32 = 4;
const REQUEST: &str = "cup-final";

#[test]
fn a_kill_where_rooms_are_withdrawn_leaves_none_held() -> anyhow::Result<()> {
    thread::scope(|scope| {
        let runs =
            [None, Some("before"), Some("after")].map(|moment| (moment, scope.spawn(move || killed(moment))));
        runs.into_iter().try_for_each(|(moment, run)| match run.join() {
            Ok(outcome) => outcome.with_context(|| format!("killed: {moment:?}")),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// `None`: it is not killed, and nobody has to ask again.
fn killed(moment: Option<&str>) -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    let (told, writes) = (maestro.home().join("told"), maestro.home().join("writes"));
    let kill = moment.map_or_else(String::new, |moment| format!(",kill:=withdraw allocation:{moment}"));
    maestro.set_failpoint(Some(&format!("hold:=allocate:{},log:{}{kill}", told.display(), writes.display())));
    maestro.start()?;
    let rooms = maestro.fleet("arena", ROOMS)?;
    // Whoever is killed before its write leaves a hold that has to end by itself.
    let ttl = if moment == Some("before") { 1000 } else { 600_000 };
    let request = json!({"requestId": REQUEST, "count": 2, "ttlMillis": ttl}).to_string();
    let asking = {
        let (client, request) = (maestro.api().keeping_connections(PATIENCE), request.clone());
        thread::spawn(move || client.post(ALLOCATIONS, "", &request))
    };
    let [victim, other] = maestro.until("both rows", || {
        <[Value; 2]>::try_from(held(&maestro)?).map_err(|held| anyhow!("{} are held", held.len()))
    })?;
    let room = rooms.iter().find(|room| victim["roomId"] == room.id.as_str()).context("its room")?;
    send_signal(room.pids[0], Signal::KILL)?;
    maestro.until("the room to be gone", || is_unknown(&maestro, room))?;
    // Now the allocator learns that both rows are written.
    fs::write(&told, "")?;
    let answer = asking.join().map_err(|_| anyhow!("the caller panicked"))?;
    let given = match moment {
        None => answer?,
        Some(_) => {
            ensure!(answer.is_err(), "the server answered, and should be dead: {answer:?}");
            until("the kill", PATIENCE, || {
                ensure!(maestro.revive()?, "it runs");
                Ok(())
            })?;
            maestro.until("an answer to the same request", || {
                let answer = maestro.api().post(ALLOCATIONS, "", &request)?;
                ensure!([200, 409].contains(&answer.status), "{}", answer.text);
                Ok(answer)
            })?
        }
    };
    ensure!(fs::read_to_string(&writes)?.contains(" withdraw allocation\n"), "nothing was withdrawn");
    if moment == Some("before") {
        // Nobody knows any more that it was not answered.
        ensure!(given.message().contains("which is lost"), "{}", given.text);
    } else {
        let given = given.expect(200)?.json()?["allocations"].take();
        let given: Vec<Value> = serde_json::from_value(given)?;
        ensure!(given.len() == 2 && given.iter().all(|one| one["roomId"] != room.id), "{given:?}");
        for allocation in &given {
            maestro.api().delete(&path_of(allocation)?)?.expect(204)?;
        }
    }
    let ends = [(&victim, "lost"), (&other, if moment == Some("before") { "expired" } else { "lost" })];
    maestro.until("the ends of both", || {
        ends.iter().try_for_each(|(allocation, end)| {
            let row = maestro.api().get(&path_of(allocation)?)?.expect(200)?.json()?["allocation"].take();
            ensure!(row["state"] == *end, "{row}");
            Ok(())
        })
    })?;
    // All rooms can be had.
    maestro.until("a whole fleet", || checks::settled(&maestro, "arena", ROOMS as usize).map(drop))?;
    maestro.api().post(ALLOCATIONS, "", &json!({"count": ROOMS}).to_string())?.expect(200)?;
    Ok(())
}

fn path_of(allocation: &Value) -> anyhow::Result<String> {
    Ok(format!("{ALLOCATIONS}/{}", allocation["id"].as_str().context("an id")?))
}

/// Its end is written, and then forgotten what it said of itself.
fn is_unknown(maestro: &Maestro, room: &Room) -> anyhow::Result<()> {
    let path = format!("/scheduler/arena/rooms/{}/ping", room.id);
    let answer = maestro.rooms_api().send("PUT", &path, "e2e", r#"{"status":"ready"}"#)?.expect(200)?;
    ensure!(answer.json()?["success"] == false, "it is still there");
    Ok(())
}
