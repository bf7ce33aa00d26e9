//! New versions, good and bad, and people who change their minds about them.

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish, a_few_nodes};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let recipe = match random.bool() {
        true => recipes::fixed(1, random.u32(1..10), random),
        false => recipes::autoscaled(1, random),
    };
    Script {
        nodes: a_few_nodes(random),
        recipes: vec![recipe],
        events: random.u32(10..50),
        // A rollout without trouble takes seconds: some people must be quick to meet one.
        pause: Span::millis(0, random.u64(200..25_000)),
        weights: Weights { people: 5, players: 3, nature: 2, machines: 2 },
        wishes: vec![
            (6, Wish::Major),
            (2, Wish::Minor),
            (3, Wish::Switch),
            (3, Wish::PauseRollout),
            (3, Wish::ResumeRollout),
            (2, Wish::CancelRollout),
            (1, Wish::CancelOperation),
            (1, Wish::ReleaseLock),
            (1, Wish::Add),
            (1, Wish::Remove),
        ],
    }
}
