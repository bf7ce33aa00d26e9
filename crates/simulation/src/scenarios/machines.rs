//! Machines: they crash, come back, freeze, thaw, and are shut down by who looks after them.

use std::time::Duration;

use maestro_engine::Parts;

use super::script::Script;
use super::stage::Stage;

pub(super) async fn something_happens(stage: &mut Stage, script: &Script) {
    let nodes = stage.world.nodes();
    if nodes.len() < script.nodes.len() && (nodes.is_empty() || stage.random.bool()) {
        let parts = missing(stage, script);
        stage.start_node(parts).await;
        return;
    }
    let node = nodes[stage.random.usize(0..nodes.len())];
    match stage.random.u32(0..6) {
        0 | 1 => stage.world.crash_node(node).await,
        2 => stop(stage, node).await,
        _ if stage.frozen.iter().any(|freeze| freeze.node == node) => stage.thaw_all(),
        _ => {
            // From a hiccup to several times the time that an ownership lasts.
            let time = Duration::from_millis(stage.random.u64(200..45_000));
            stage.freeze(node, time);
        }
    }
}

/// By seconds or by minutes, forward or back.
pub(super) fn tell_the_time(stage: &mut Stage) {
    let Some(random) = &mut stage.clock_leaps else { return };
    if random.u32(0..15) > 0 {
        return;
    }
    let most = [2_000, 30_000, 600_000][random.usize(0..3)];
    let millis = random.i64(-most..=most);
    stage.world.leap_clock(millis);
}

/// A frozen machine cannot be shut down: it is thawed first.
async fn stop(stage: &mut Stage, node: u64) {
    stage.frozen.retain(|freeze| freeze.node != node);
    stage.world.thaw(node);
    stage.world.stop_node(node).await;
}

/// Workers first: without one nothing happens.
fn missing(stage: &Stage, script: &Script) -> Parts {
    let wanted = script.nodes.iter().filter(|parts| **parts == Parts::ALL).count();
    match stage.world.workers().len() < wanted {
        true => Parts::ALL,
        false => Parts::ROOMS_API,
    }
}
