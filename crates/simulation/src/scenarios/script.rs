//! What a run is made of: drawn by its kind, played by the [`Stage`](super::stage::Stage).

use maestro_core::scheduler::Recipe;
use maestro_engine::Parts;
use maestro_engine::services::RegionOrder;

use crate::host::Span;

pub(super) struct Script {
    /// Machines that it begins with, and that are put back when they fail.
    pub(super) nodes: Vec<Parts>,
    /// Schedulers that it begins with.
    pub(super) recipes: Vec<Recipe>,
    pub(super) events: u32,
    /// From one event to the next.
    pub(super) pause: Span,
    pub(super) weights: Weights,
    pub(super) wishes: Vec<(u32, Wish)>,
}

/// How often who does something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    pub(super) people: u32,
    pub(super) players: u32,
    pub(super) nature: u32,
    pub(super) machines: u32,
}

/// What people can want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Create,
    Add,
    Remove,
    /// A version that leaves rooms alone.
    Minor,
    /// A version that replaces them.
    Major,
    /// To any version that there is.
    Switch,
    PauseRollout,
    ResumeRollout,
    CancelRollout,
    CancelOperation,
    /// Of whoever holds one.
    ReleaseLock,
    Delete,
    /// Of any region.
    OrderRegion(RegionOrder),
}

/// Two workers, now and then with an engine that only answers.
pub(super) fn a_few_nodes(random: &mut fastrand::Rng) -> Vec<Parts> {
    let mut nodes = vec![Parts::ALL; random.usize(1..=3)];
    if random.u32(0..3) == 0 {
        nodes.push(Parts::ROOMS_API);
    }
    nodes
}

/// One of several, by weight.
pub(super) fn choose<T: Copy>(random: &mut fastrand::Rng, choices: &[(u32, T)]) -> Option<T> {
    let total: u32 = choices.iter().map(|(weight, _)| weight).sum();
    if total == 0 {
        return None;
    }
    let mut draw = random.u32(0..total);
    for (weight, choice) in choices {
        if draw < *weight {
            return Some(*choice);
        }
        draw -= weight;
    }
    None
}
