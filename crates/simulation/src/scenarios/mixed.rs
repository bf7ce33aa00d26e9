//! Everything at once.

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish, a_few_nodes};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let schedulers = random.usize(1..=4);
    let recipe = |number| match random.bool() {
        true => recipes::fixed(number, random.u32(0..8), random),
        false => recipes::autoscaled(number, random),
    };
    let recipes = (1..=schedulers).map(recipe).collect();
    Script {
        nodes: a_few_nodes(random),
        recipes,
        events: random.u32(20..100),
        pause: Span::millis(0, random.u64(500..12_000)),
        weights: Weights { people: 5, players: 4, nature: 3, machines: 3 },
        wishes: vec![
            (1, Wish::Create),
            (4, Wish::Add),
            (3, Wish::Remove),
            (2, Wish::Minor),
            (4, Wish::Major),
            (2, Wish::Switch),
            (1, Wish::PauseRollout),
            (2, Wish::ResumeRollout),
            (1, Wish::CancelRollout),
            (2, Wish::CancelOperation),
            (2, Wish::ReleaseLock),
            (1, Wish::Delete),
        ],
    }
}
