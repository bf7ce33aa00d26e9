//! A data directory of an earlier build opens, and its rooms are kept. `testdata/data-directory` says how it was made.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Operation, Room, Version, binaries, copy_all};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

const RECORDED: &str = "data-directory/0.1.0";
const SCHEDULERS: [&str; 3] = ["arena", "lobby", "raid"];

/// Long ago, by the time somebody runs this; they must not be cleaned up meanwhile.
const KEEP: &[(&str, &str)] =
    &[("OPERATIONS_RETENTION_FINAL", "87600h"), ("OPERATIONS_RETENTION_ROOMS", "87600h")];

/// What the earlier build answered just before it was killed.
fn recorded(scheduler: &str, what: &str) -> anyhow::Result<Value> {
    let path = maestro_testkit::path(RECORDED).join(format!("answers/{scheduler}-{what}.json"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut answer: Value = serde_json::from_str(&text)?;
    Ok(answer[what].take())
}

fn recorded_rooms(scheduler: &str) -> anyhow::Result<Vec<Room>> {
    Ok(serde_json::from_value(recorded(scheduler, "rooms")?)?)
}

/// One of the recorded rooms goes on running, as it would have on the machine that was upgraded: a process with the room's
/// marks, under the name that the registry has for it.
fn keep_running(maestro: &Maestro, store: &Connection, store_id: &str, room: &Room) -> anyhow::Result<Child> {
    let scheduler = room.id.rsplit_once('-').context("an id with its scheduler")?.0;
    let port = room.ports.first().context("a room without ports")?.port;
    let child = Command::new(binaries::example_room()?)
        .env_clear()
        .env("MAESTRO_SCHEDULER_NAME", scheduler)
        .env("MAESTRO_ROOM_ID", &room.id)
        .env("MAESTRO_CONTAINER_NAME", "room")
        .env("MAESTRO_REGION", &room.region)
        .env("MAESTRO_STORE_ID", store_id)
        .env("MAESTRO_ROOMS_API_URL", format!("http://127.0.0.1:{}", maestro.api_ports()[1]))
        .env("MAESTRO_HOST_PORT_GAME", port.to_string())
        .env("ROOM_START_DELAY_MS", "0")
        .env("ROOM_PING_INTERVAL_MS", "200")
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (pid, start_time) = (child.id(), start_time(child.id())?);
    let handle = json!({
        "detail": [{"container": "room", "pid": pid, "startTime": start_time}],
        "host": "127.0.0.1",
        "pids": [pid],
    });
    let rows =
        store.execute("UPDATE rooms SET handle = ?1 WHERE id = ?2", params![handle.to_string(), room.id])?;
    ensure!(rows == 1, "the registry has no room {}", room.id);
    Ok(child)
}

/// Field 22 of `proc_pid_stat(5)`, in clock ticks since the machine started.
fn start_time(pid: u32) -> anyhow::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = stat.rsplit_once(')').context("no name in stat")?.1;
    Ok(rest.split_ascii_whitespace().nth(19).context("too few fields in stat")?.parse()?)
}

#[test]
fn an_earlier_one_opens_and_its_rooms_are_kept() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(KEEP)?;
    copy_all(&maestro_testkit::path(RECORDED).join("data"), &maestro.data_dir())?;
    let store = Connection::open(maestro.data_dir().join("maestro.db"))?;
    // Rooms are found by this id: the same test of another checkout must not find ours.
    let store_id = format!("data-directory-{}", std::process::id());
    store.execute("UPDATE store SET id = ?1", [&store_id])?;
    let (arena, raid) = (recorded_rooms("arena")?, recorded_rooms("raid")?);
    let old = raid.iter().find(|room| room.version == "v1.0.0").context("no room of the old version")?;
    let kept = [&arena[0], old];
    let mut running = Vec::new();
    for room in kept {
        running.push(keep_running(&maestro, &store, &store_id, room)?);
    }
    store.close().map_err(|(_, error)| error)?;

    maestro.start()?;
    for (room, process) in kept.into_iter().zip(&running) {
        maestro.until("a room that went on running to be adopted", || {
            is_adopted(&maestro, room, process.id())
        })?;
    }
    for (scheduler, size) in [("arena", 4), ("lobby", 2)] {
        maestro.until("rooms that are gone to be replaced", || has_ready(&maestro, scheduler, size))?;
    }
    for scheduler in SCHEDULERS {
        same_versions(&maestro, scheduler)?;
        same_operations(&maestro, scheduler)?;
        gone_rooms_are_ended(&maestro, scheduler, &kept)?;
    }

    let rollout = maestro.api().get("/schedulers/raid/rollout")?.expect(200)?.json()?;
    assert_eq!((&rollout["state"], &rollout["active"]), (&json!("paused"), &json!("v2.0.0")), "{rollout}");
    maestro.api().post("/schedulers/raid/rollout/resume", "e2e", "{}")?.expect(200)?;
    maestro.until("the rollout that was paused to end", || {
        let rooms = maestro.api().rooms("raid")?;
        ensure!(rooms.len() == 3 && rooms.iter().all(|room| room.version == "v2.0.0"), "{rooms:?}");
        Ok(())
    })?;
    for room in kept {
        let scheduler = room.id.rsplit_once('-').map_or("", |(scheduler, _)| scheduler);
        let shown = maestro.api().room(scheduler, &room.id)?.context("a room that was kept is not known")?;
        ensure!(shown.ended.is_none() == (scheduler == "arena"), "{shown:?}");
    }
    drop(maestro);
    for mut process in running {
        process.wait()?;
    }
    Ok(())
}

fn is_adopted(maestro: &Maestro, room: &Room, pid: u32) -> anyhow::Result<()> {
    let scheduler = room.id.rsplit_once('-').map_or("", |(scheduler, _)| scheduler);
    let shown = maestro.api().room(scheduler, &room.id)?.context("it is not known")?;
    ensure!(shown.status == "ready" && shown.pids == [pid], "not process {pid}: {shown:?}");
    ensure!(shown.version == room.version, "{shown:?}");
    Ok(())
}

fn has_ready(maestro: &Maestro, scheduler: &str, size: usize) -> anyhow::Result<()> {
    let rooms = maestro.api().rooms(scheduler)?;
    let ready = rooms.iter().filter(|room| room.status == "ready").count();
    ensure!(ready == size && rooms.len() == size, "{rooms:?}");
    Ok(())
}

fn same_versions(maestro: &Maestro, scheduler: &str) -> anyhow::Result<()> {
    let mut before: Vec<Version> = serde_json::from_value(recorded(scheduler, "versions")?)?;
    before.sort_by(|one, other| one.version.cmp(&other.version));
    assert_eq!(maestro.api().versions(scheduler)?, before, "{scheduler}");
    Ok(())
}

fn same_operations(maestro: &Maestro, scheduler: &str) -> anyhow::Result<()> {
    let before: Vec<Operation> = serde_json::from_value(recorded(scheduler, "operations")?)?;
    ensure!(!before.is_empty(), "nothing was recorded of {scheduler}");
    for operation in before {
        let now = maestro.api().operation(scheduler, &operation.id)?;
        let short = |operation: &Operation| {
            let Operation { definition_name, status, created_at, .. } = operation;
            (definition_name.clone(), status.clone(), *created_at)
        };
        assert_eq!(short(&now), short(&operation), "{scheduler}: {}", operation.id);
    }
    Ok(())
}

fn gone_rooms_are_ended(maestro: &Maestro, scheduler: &str, kept: &[&Room]) -> anyhow::Result<()> {
    let gone =
        recorded_rooms(scheduler)?.into_iter().filter(|room| kept.iter().all(|kept| kept.id != room.id));
    for room in gone {
        maestro.until("a room without a process to be ended", || {
            let shown = maestro.api().room(scheduler, &room.id)?.context("it is forgotten")?;
            ensure!(shown.ended.is_some(), "{shown:?}");
            Ok(())
        })?;
    }
    Ok(())
}
