//! What must become true once nobody asks for anything any more.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use serde_json::Value;

use super::fleet::ROOMS;
use super::history::fleet_size_delta;
use crate::{Client, FleetInfo, Maestro, Operation, checks};

/// Nothing is under way, every fleet is what was made of it, and no process is anybody else's.
pub(super) fn at_rest(maestro: &Maestro) -> anyhow::Result<()> {
    let fleets = maestro.api().fleet_infos()?;
    for fleet in &fleets {
        let rests = fleet_rests(maestro, fleet);
        rests.map_err(|error| error.context(format!("of {}", fleet.name)))?;
    }
    let is_known = |scheduler: &str| fleets.iter().any(|fleet| fleet.name == scheduler);
    let orphans: Vec<_> =
        maestro.processes()?.into_iter().filter(|process| !is_known(&process.scheduler)).collect();
    ensure!(orphans.is_empty(), "rooms of no scheduler run: {orphans:?}");
    Ok(())
}

fn fleet_rests(maestro: &Maestro, fleet: &FleetInfo) -> anyhow::Result<()> {
    let (client, name) = (maestro.api(), &fleet.name);
    ensure!(fleet.state == "in-sync", "it is {}", fleet.state);
    nothing_under_way(client, name)?;
    no_rollout(client, name)?;
    let size = wanted_size(client, fleet)?;
    let rooms = checks::settled(maestro, name, size as usize)?;
    if let Some(room) = rooms.iter().find(|room| room.validation) {
        bail!("a validation room is left: {room:?}");
    }
    versions_rest(client, name)?;
    no_lock(client, name)
}

/// Cycles come and go.
fn nothing_under_way(client: &Client, name: &str) -> anyhow::Result<()> {
    let unfinished = client.unfinished(name)?;
    let Some(stuck) = unfinished.iter().find(|operation| operation.definition_name != "health_controller")
    else {
        return Ok(());
    };
    bail!("an operation is under way:\n{}", client.operation(name, &stuck.id)?.to_text())
}

/// One that was paused, or that has halted, waits for a person.
fn no_rollout(client: &Client, name: &str) -> anyhow::Result<()> {
    let rollout = client.get(&format!("/schedulers/{name}/rollout"))?.expect(200)?;
    let state = rollout.json()?["state"].take();
    if state == "paused" || state == "halted" {
        client.post(&format!("/schedulers/{name}/rollout/resume"), "chaos", "{}")?;
    }
    ensure!(state == "none", "a rollout is under way: {}", rollout.text);
    Ok(())
}

/// What people made of it: of each of their operations that finished, once. With autoscaling on and nobody there, the
/// least it may be.
fn wanted_size(client: &Client, fleet: &FleetInfo) -> anyhow::Result<u32> {
    if let Some(autoscaling) = fleet.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) {
        return Ok(autoscaling.min);
    }
    let operations = client.operations(&fleet.name)?;
    // In a list, one that moved on meanwhile may come twice.
    let finished: BTreeMap<&str, &Operation> = operations
        .iter()
        .filter(|operation| operation.status == "finished")
        .map(|operation| (operation.id.as_str(), operation))
        .collect();
    let deltas = finished.values().filter_map(|operation| fleet_size_delta(operation));
    let size = i64::from(ROOMS) + deltas.map(|(_, delta)| delta).sum::<i64>();
    ensure!(
        i64::from(fleet.rooms_replicas) == size,
        "the fleet size is {} instead of {size}, after\n{}",
        fleet.rooms_replicas,
        resizes(&operations)
    );
    Ok(fleet.rooms_replicas)
}

fn resizes(operations: &[Operation]) -> String {
    let mut resizes: Vec<&Operation> =
        operations.iter().filter(|operation| fleet_size_delta(operation).is_some()).collect();
    resizes.sort_by_key(|operation| operation.created_at);
    resizes.iter().map(|operation| operation.to_text()).collect()
}

fn versions_rest(client: &Client, name: &str) -> anyhow::Result<()> {
    let versions = client.versions(name)?;
    let unsettled =
        versions.iter().find(|version| matches!(version.status.as_str(), "validating" | "rolling"));
    ensure!(unsettled.is_none(), "nothing is rolled out or validated, but {unsettled:?}");
    let active = versions.iter().filter(|version| version.is_active).count();
    ensure!(active == 1, "{active} versions are active: {versions:?}");
    Ok(())
}

fn no_lock(client: &Client, name: &str) -> anyhow::Result<()> {
    let locks = client.get(&format!("/scheduler/{name}/locks"))?.expect(200)?.json()?;
    let held = locks.as_array().into_iter().flatten().find(|lock| lock["isLocked"] == Value::Bool(true));
    ensure!(held.is_none(), "a lock is left: {held:?}");
    Ok(())
}
