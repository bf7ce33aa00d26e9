//! Every module as a process of its own, two of each, on one PostgreSQL and one Redis.

use anyhow::ensure;
use maestro_e2e::Cluster;
use rustix::process::Signal;
use serde_json::json;

const MODULES: [&str; 5] = ["management-api", "rooms-api", "worker", "runtime-watcher", "metrics-reporter"];

#[test]
fn two_of_each_module_share_the_work_and_outlive_each_other() -> anyhow::Result<()> {
    let mut cluster = Cluster::new()?;
    for module in MODULES.into_iter().chain(MODULES) {
        cluster.start(module)?;
    }
    for (name, apis) in [
        ("management-api-1", &["management", "internal"][..]),
        ("rooms-api-1", &["rooms", "internal"]),
        ("worker-1", &["internal"]),
    ] {
        for api in ["management", "rooms", "internal"] {
            assert_eq!(cluster.serving(name)?.get(api).is_some(), apis.contains(&api), "{name}: {api}");
        }
        cluster.until("it is ready", || {
            cluster.client(name, "internal")?.get("/readyz")?.expect(200).map(drop)
        })?;
    }

    let (one, other) = ("management-api-0", "management-api-1");
    let management = cluster.client(one, "management")?;
    management.create(&cluster.recipe("arena", 3)?.json())?.expect(200)?;
    cluster.settled(other, "arena", 3)?;
    let regions = cluster.client(other, "management")?.get("/regions")?.expect(200)?.json()?;
    assert_eq!(regions["regions"][0]["reachable"], json!(true), "{regions}");

    // Whoever is asked, the other one's worker may do it.
    cluster.client(other, "management")?.add("arena", 2, "ann")?.expect(200)?;
    let rooms = cluster.settled(one, "arena", 5)?;

    let allocated = cluster.client("rooms-api-1", "rooms")?;
    let allocated = allocated.post("/scheduler/arena/rooms/allocate", "bob", "{}")?.expect(200)?.json()?;
    assert_eq!(allocated["success"], json!(true), "{allocated}");

    // The one that works on the fleet, or the other.
    cluster.kill("worker-0")?;
    let survivor = cluster.client(one, "management")?;
    survivor.add("arena", 1, "ann")?.expect(200)?;
    cluster.until("the sixth room", || {
        let running = cluster.room_processes()?;
        ensure!(running.len() == 6, "{} rooms run", running.len());
        Ok(())
    })?;
    let still_there = cluster.room_processes()?;
    for room in &rooms {
        assert!(still_there.iter().any(|process| process.room == room.id), "{} is gone", room.id);
    }
    Ok(())
}

#[test]
fn a_module_that_stops_is_not_ready_first_and_gives_its_schedulers_up() -> anyhow::Result<()> {
    let mut cluster = Cluster::new()?;
    for module in ["management-api", "rooms-api", "worker"] {
        cluster.start(module)?;
    }
    cluster
        .client("management-api-0", "management")?
        .create(&cluster.recipe("arena", 2)?.json())?
        .expect(200)?;
    cluster.settled("management-api-0", "arena", 2)?;
    let internal = cluster.client("worker-0", "internal")?;
    cluster.signal("worker-0", Signal::TERM)?;
    cluster.until("it says that it stops", || {
        let answer = internal.get("/readyz")?;
        ensure!(answer.status == 503 && answer.text.contains("is stopping"), "{answer:?}");
        Ok(())
    })?;
    cluster.start("worker")?;
    cluster.client("management-api-0", "management")?.add("arena", 1, "ann")?.expect(200)?;
    cluster.settled("management-api-0", "arena", 3)?;
    Ok(())
}
