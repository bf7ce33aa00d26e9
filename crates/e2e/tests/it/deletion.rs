//! What is deleted leaves nothing but the record of its deletion.

use anyhow::ensure;
use maestro_e2e::{Maestro, checks};

#[test]
fn a_deleted_scheduler_leaves_nothing_but_its_operation() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    for name in ["arena", "other"] {
        maestro.api().create(&maestro.recipe(name, 2)?.json())?.expect(200)?;
    }
    let rooms = maestro.until("the fleet", || checks::settled(&maestro, "arena", 2))?;
    let others = maestro.until("the other fleet", || checks::settled(&maestro, "other", 2))?;
    let logs = maestro.data_dir().join("rooms/arena");
    assert!(logs.is_dir(), "rooms write their logs to {}", logs.display());

    let deletion = maestro.api().delete("/schedulers/arena")?.expect(200)?.operation_id()?;
    maestro.until("the end of the deletion", || {
        let operation = maestro.api().operation("arena", &deletion)?;
        ensure!(operation.status == "finished", "it is {}", operation.status);
        Ok(())
    })?;

    for path in ["", "/rooms", "/versions", &format!("/rooms/{}", rooms[0].id)] {
        let answer = maestro.api().get(&format!("/schedulers/arena{path}"))?;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
    }
    let left: Vec<_> = maestro.processes()?.into_iter().collect();
    assert!(left.iter().all(|process| process.scheduler == "other"), "{left:?}");
    assert!(!logs.exists(), "logs are left in {}", logs.display());
    let operations = maestro.api().operations("arena")?;
    let ids: Vec<_> = operations.iter().map(|operation| &operation.id).collect();
    assert_eq!(ids, [&deletion]);
    assert_eq!(maestro.cli(&["scheduler", "get", "arena"])?.status.code(), Some(3));

    maestro.until("the metrics of the scheduler to go", || {
        let metrics = maestro.internal().get("/metrics")?.expect(200)?.text;
        let told = |name: &str| metrics.contains(&format!("scheduler=\"{name}\""));
        ensure!(told("other"), "nothing is told of the other one");
        ensure!(!told("arena"), "something is told of the one that is gone");
        Ok(())
    })?;

    let same = checks::settled(&maestro, "other", 2)?;
    let pids = |rooms: &[maestro_e2e::Room]| rooms.iter().map(|room| room.pids.clone()).collect::<Vec<_>>();
    assert_eq!(pids(&same), pids(&others), "the other fleet was not touched");

    // The name is free again.
    maestro.fleet("arena", 1)?;
    Ok(())
}
