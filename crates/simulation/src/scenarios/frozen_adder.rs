//! A worker that is frozen in the middle of an add_rooms for longer than it owns its scheduler, and thawed when another
//! one has taken over: nothing that it still writes is accepted, and no room is doubled or lost.

use std::time::Duration;

use maestro_core::operation::{Definition, Operation};
use maestro_engine::Parts;
use tokio::time::{Instant, sleep};

use crate::host::{Host, HostFaults, Span};
use crate::world::NodeNumber;

use super::stage::Stage;
use super::{people, placing, quiesce, recipes};

/// How long it may take until someone works on the add_rooms.
const BEGINS_WITHIN: Duration = Duration::from_secs(120);
const CHECK_INTERVAL: Duration = Duration::from_millis(3);

pub(super) async fn play(stage: &mut Stage, random: &mut fastrand::Rng) {
    if random.bool() {
        stage.world.hosts().for_each(Host::let_all_see);
    }
    for _ in 0..random.usize(2..=3) {
        stage.start_node(Parts::ALL).await;
    }
    let recipe = recipes::fixed(1, random.u32(0..6), random);
    let recipe = placing::place(recipe, &stage.world.regions(), &mut stage.random_of_regions());
    let scheduler = recipe.name.clone();
    people::create(stage, recipe);
    stage.pass_time(Span::millis(10_000, 20_000)).await;
    // Each start takes a while, so that there is a middle to be frozen in.
    let latency = Span::millis(0, random.u64(1..400));
    stage
        .world
        .hosts()
        .for_each(|host| host.set_host_faults(HostFaults { latency, ..HostFaults::default() }));
    let amount = random.u32(2..20);
    people::add_rooms(stage, scheduler.as_str(), amount);
    let Some((node, operation)) = begun(stage, amount).await else {
        stage.restless = Some("nobody began the add_rooms".into());
        return;
    };
    stage.pass_time(Span::millis(0, random.u64(1..1_000))).await;
    let frozen_for = Duration::from_millis(random.u64(10_500..40_000));
    stage.freeze(node, frozen_for);
    stage.pass_time(Span::exactly(frozen_for)).await;
    stage.pass_time(Span::millis(0, 20_000)).await;
    quiesce::quiesce(stage).await;
    quiesce::come_to_rest(stage).await;
    check(stage, node, &operation, amount).await;
}

/// Who works on it, as soon as someone does.
async fn begun(stage: &Stage, amount: u32) -> Option<(NodeNumber, Operation)> {
    let began = Instant::now();
    while began.elapsed() < BEGINS_WITHIN {
        for scheduler in stage.world.store().schedulers().await.ok()? {
            let unfinished = stage.world.store().unfinished(&scheduler.name).await.ok()?;
            let is_it = |operation: &Operation| {
                operation.origin.is_person() && operation.definition == Definition::AddRooms { amount }
            };
            let found =
                unfinished.into_iter().find(|operation| is_it(operation) && operation.lease.is_some());
            if let Some(operation) = found {
                let owner = operation.lease.as_ref().map(|lease| lease.owner.clone())?;
                let number = owner.strip_prefix("engine-")?.parse().ok()?;
                return Some((number, operation));
            }
        }
        sleep(CHECK_INTERVAL).await;
    }
    None
}

async fn check(stage: &mut Stage, node: NodeNumber, operation: &Operation, amount: u32) {
    let store = stage.world.store();
    let scheduler = &operation.scheduler;
    let made = store.rooms_made_by(scheduler, operation.id).await.map_or(0, |rows| rows.len());
    let ended = store.operation(scheduler, operation.id).await.ok().flatten();
    let why = match ended {
        None => Some("the add_rooms is gone".into()),
        Some(ended) if !ended.status.is_final() => Some(format!("the add_rooms is {}", ended.status)),
        Some(_) if made > amount as usize => Some(format!("{made} rooms were made, {amount} were wanted")),
        Some(_) => accepted_after_thaw(&stage.world.trace().lines(), node),
    };
    if let (Some(why), None) = (why, &stage.restless) {
        stage.restless = Some(why);
    }
}

/// A write that the thawed node made as the owner that it was, in the trace's words.
fn accepted_after_thaw(trace: &[String], node: NodeNumber) -> Option<String> {
    let thawed = format!("engine-{node} is thawed");
    let owns = format!("engine-{node} store: owns");
    let wrote = format!("engine-{node} store: ");
    const AS_OWNER: [&str; 11] = [
        "step",
        "end operation",
        "start operation",
        "take over",
        "enqueue own",
        "roll back",
        "wake operation",
        "wait for an answer",
        "take lock",
        "leave order",
        "no action",
    ];
    let after = trace.iter().skip_while(|line| !line.contains(&thawed));
    let mut until_owner = after.take_while(|line| !line.contains(&owns));
    let accepted = until_owner.find(|line| {
        let written = line.split_once(&wrote).map(|(_, what)| what);
        written.is_some_and(|what| AS_OWNER.iter().any(|label| what.starts_with(&format!("{label} of"))))
    })?;
    // Nobody had taken over: then it never was another's.
    let taken = trace.iter().any(|line| line.contains(" store: owns ") && !line.contains(&owns));
    taken.then(|| format!("a write of the woken worker was accepted: {accepted}"))
}

#[cfg(test)]
mod tests {
    use maestro_engine::ports::contract::fixtures::{self, operation_id};
    use maestro_engine::ports::store::{Change, OperationUpdate, Transaction};

    use super::*;
    use crate::clock::VirtualClock;
    use crate::trace::Trace;

    /// The trace's words are what is looked for: whoever changes them sees it here.
    #[test]
    fn a_write_of_the_woken_worker_is_found_in_the_trace() {
        let trace = Trace::begin(VirtualClock::begin());
        let changes = vec![
            Change::Enqueue(fixtures::new_operation(1)),
            Change::UpdateOperation(OperationUpdate::of(operation_id(1))),
        ];
        let step = Transaction::of_no_scheduler("step", changes);
        trace.note("engine-1 store: owns arena by token 1");
        trace.note("engine-2 store: owns arena by token 2");
        trace.note("engine-1 is thawed");
        for fate in ["refused", "lost on its way"] {
            trace.note(format_args!("engine-1 store: {fate}: {}", trace.headline(&step)));
        }
        assert_eq!(accepted_after_thaw(&trace.lines(), 1), None);
        trace.note(format_args!("engine-1 store: {}", trace.told(&step)));
        assert!(accepted_after_thaw(&trace.lines(), 1).is_some(), "{:#?}", trace.lines());
    }
}
