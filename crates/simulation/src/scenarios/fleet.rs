//! Fleets of a fixed size, and people who change it.

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish, a_few_nodes};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let schedulers = random.usize(1..=2);
    Script {
        nodes: a_few_nodes(random),
        recipes: (1..=schedulers).map(|number| recipes::fixed(number, random.u32(0..10), random)).collect(),
        events: random.u32(10..60),
        pause: Span::millis(0, random.u64(500..12_000)),
        weights: Weights { people: 5, players: 3, nature: 3, machines: 2 },
        wishes: vec![
            (4, Wish::Add),
            (3, Wish::Remove),
            (2, Wish::CancelOperation),
            (1, Wish::ReleaseLock),
            (1, Wish::Minor),
        ],
    }
}
