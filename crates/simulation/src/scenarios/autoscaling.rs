//! Fleets that follow their players.

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish, a_few_nodes};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let schedulers = random.usize(1..=2);
    Script {
        nodes: a_few_nodes(random),
        recipes: (1..=schedulers).map(|number| recipes::autoscaled(number, random)).collect(),
        events: random.u32(20..80),
        pause: Span::millis(0, random.u64(500..10_000)),
        weights: Weights { people: 1, players: 8, nature: 2, machines: 2 },
        wishes: vec![(2, Wish::Add), (2, Wish::Remove), (1, Wish::Major), (1, Wish::CancelOperation)],
    }
}
