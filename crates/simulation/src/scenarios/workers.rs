//! Many schedulers on three workers that freeze and crash.

use maestro_engine::Parts;

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let schedulers = random.usize(3..=10);
    Script {
        nodes: vec![Parts::ALL; 3],
        recipes: (1..=schedulers).map(|number| recipes::fixed(number, random.u32(0..4), random)).collect(),
        events: random.u32(10..50),
        pause: Span::millis(0, random.u64(500..12_000)),
        weights: Weights { people: 5, players: 1, nature: 1, machines: 5 },
        wishes: vec![(4, Wish::Add), (3, Wish::Remove), (1, Wish::Major), (1, Wish::CancelOperation)],
    }
}
