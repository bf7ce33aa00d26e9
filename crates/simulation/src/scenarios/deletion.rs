//! Schedulers that come and go, also while something else is asked of them.

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish, a_few_nodes};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let schedulers = random.usize(1..=3);
    Script {
        nodes: a_few_nodes(random),
        recipes: (1..=schedulers).map(|number| recipes::fixed(number, random.u32(0..6), random)).collect(),
        events: random.u32(10..50),
        pause: Span::millis(0, random.u64(500..10_000)),
        weights: Weights { people: 6, players: 1, nature: 2, machines: 2 },
        wishes: vec![
            (3, Wish::Delete),
            (4, Wish::Create),
            (2, Wish::Add),
            (1, Wish::Remove),
            (1, Wish::Major),
            (2, Wish::CancelOperation),
            (1, Wish::ReleaseLock),
        ],
    }
}
