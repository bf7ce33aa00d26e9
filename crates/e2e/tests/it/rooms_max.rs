//! A host holds so many rooms and no more: what cannot fit is refused, what does not fit now waits, and both say why.

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, checks};
use rustix::process::Signal;
use serde_json::json;

const ROOMS_MAX: &str = "ADAPTERS_RUNTIME_PROCESS_ROOMSMAX";
const SETTING: &str = "adapters.runtime.process.roomsMax";

/// So many rooms, in the registry and as processes, and the word and the reason that `scheduler list` has for the rest.
fn lacks_capacity(maestro: &Maestro, scheduler: &str, rooms: usize) -> anyhow::Result<String> {
    maestro.until(&format!("{rooms} rooms of {scheduler} and no more"), || {
        let ready = maestro.api().rooms(scheduler)?.iter().filter(|room| room.status == "ready").count();
        ensure!(ready == rooms, "{ready} rooms are ready");
        let listed = maestro.api().get("/schedulers?view=full")?.expect(200)?.json()?;
        let listed = listed["schedulers"].as_array().context("no list")?.clone();
        let listed = listed.iter().find(|listed| listed["name"] == scheduler).context("not listed")?;
        let problem = &listed["problem"];
        ensure!(problem["word"] == "no capacity", "its problem is {problem}");
        Ok(problem["reason"].as_str().context("no reason")?.to_owned())
    })
}

#[test]
fn a_host_holds_no_more_rooms_than_it_may() -> anyhow::Result<()> {
    let mut maestro =
        Maestro::new(&[(ROOMS_MAX, "10"), ("WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL", "1s")])?;
    maestro.start()?;
    maestro.fleet("arena", 10)?;
    maestro.stop(Signal::TERM)?;

    // A limit that was lowered since: the fleet wants 10 rooms and has 4.
    maestro.set(ROOMS_MAX, "4");
    maestro.start()?;
    let why = lacks_capacity(&maestro, "arena", 4)?;
    assert!(why.contains(&format!("default holds at most 4 rooms ({SETTING})")), "{why}");
    assert_eq!(maestro.processes()?.len(), 4);

    // Another one is told at once what can never fit, and what does not fit now when it lacks rooms.
    let recipe = |rooms: u32| anyhow::Ok(maestro.recipe("duel", rooms)?.json());
    let refused = maestro.api().create(&recipe(5)?)?.expect(400)?;
    let expected = format!("roomsReplicas: 5 rooms do not fit: default holds at most 4 ({SETTING})");
    assert!(refused.message().contains(&expected), "{}", refused.message());
    maestro.api().create(&recipe(2)?)?.expect(200)?;
    let why = lacks_capacity(&maestro, "duel", 0)?;
    assert!(why.contains("4 of them of other schedulers"), "{why}");
    let add = maestro.api().add("arena", 1, "e2e")?.expect(400)?;
    assert!(add.message().contains("11 rooms do not fit"), "{}", add.message());

    // Smaller is always possible, and what is free is used.
    let smaller = json!({"adjustment_type": "EXACT_CAPACITY", "number": 2});
    maestro.api().post("/schedulers/arena/resize", "e2e", &smaller.to_string())?.expect(200)?;
    maestro.until("two rooms of each", || {
        checks::settled(&maestro, "arena", 2)?;
        checks::settled(&maestro, "duel", 2).map(drop)
    })?;
    assert_eq!(maestro.processes()?.len(), 4);
    Ok(())
}
