//! What must hold of a fleet when nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{bail, ensure};
use jiff::Timestamp;

use crate::{Maestro, Operation, Room};

/// The fleet has this size, all rooms are ready, each has one process, no process of the store belongs to none of
/// them, and no operation is stuck.
pub fn settled(maestro: &Maestro, scheduler: &str, size: usize) -> anyhow::Result<Vec<Room>> {
    let rooms = maestro.api().rooms(scheduler)?;
    ensure!(rooms.len() == size, "{} rooms instead of {size}: {}", rooms.len(), short(&rooms));
    ensure!(rooms.iter().all(|room| room.status == "ready"), "not all are ready: {}", short(&rooms));
    one_process_each(maestro, scheduler, &rooms)?;
    none_stuck(&maestro.api().operations(scheduler)?)?;
    Ok(rooms)
}

/// How many rooms are where.
pub fn by_region(rooms: &[Room]) -> BTreeMap<&str, usize> {
    let mut counted = BTreeMap::new();
    for room in rooms {
        *counted.entry(room.region.as_str()).or_default() += 1;
    }
    counted
}

/// Neither a room without its process, nor a process without its room, nor two for one.
pub fn one_process_each(maestro: &Maestro, scheduler: &str, rooms: &[Room]) -> anyhow::Result<()> {
    let listed = rooms.iter().flat_map(|room| {
        let pids = room.pids.iter();
        pids.map(|pid| (*pid, room.id.clone()))
    });
    let listed: BTreeSet<(u32, String)> = listed.collect();
    let processes = maestro.processes()?.into_iter();
    let running: BTreeSet<(u32, String)> = processes
        .filter(|process| process.scheduler == scheduler)
        .map(|process| (process.pid, process.room))
        .collect();
    ensure!(
        listed == running,
        "listed and not running: {:?}; running and not listed: {:?}",
        listed.difference(&running).collect::<Vec<_>>(),
        running.difference(&listed).collect::<Vec<_>>()
    );
    ensure!(listed.len() == rooms.len(), "{} processes of {} rooms", listed.len(), rooms.len());
    Ok(())
}

/// Every operation is final, or in progress with a lease that holds.
pub fn none_stuck(operations: &[Operation]) -> anyhow::Result<()> {
    for operation in operations.iter().filter(|operation| !operation.is_final()) {
        let (name, id) = (&operation.definition_name, &operation.id);
        match operation.lease_ttl() {
            Some(ttl) if ttl > Timestamp::now() => {}
            Some(ttl) => bail!("the lease of {name} {id} ended at {ttl}"),
            None => bail!("{name} {id} is {} and has no lease", operation.status),
        }
    }
    Ok(())
}

fn short(rooms: &[Room]) -> String {
    let rooms = rooms.iter().map(|room| format!("{} {}", room.id, room.status));
    rooms.collect::<Vec<_>>().join(", ")
}
