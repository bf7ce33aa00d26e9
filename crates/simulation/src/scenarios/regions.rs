//! Fleets over several regions, which are cut off, come back, are cordoned and drained.

use maestro_engine::services::RegionOrder;

use crate::host::Span;

use super::recipes;
use super::script::{Script, Weights, Wish, a_few_nodes};

pub(super) fn script(random: &mut fastrand::Rng) -> Script {
    let schedulers = random.usize(1..=3);
    let recipe = |number| match random.u32(0..3) {
        0 => recipes::autoscaled(number, random),
        _ => recipes::fixed(number, random.u32(0..10), random),
    };
    let recipes = (1..=schedulers).map(recipe).collect();
    Script {
        nodes: a_few_nodes(random),
        recipes,
        events: random.u32(20..80),
        pause: Span::millis(0, random.u64(2_000..20_000)),
        weights: Weights { people: 5, players: 3, nature: 4, machines: 2 },
        wishes: vec![
            (1, Wish::Create),
            (3, Wish::Add),
            (3, Wish::Remove),
            (2, Wish::Minor),
            (2, Wish::Major),
            (1, Wish::Switch),
            (1, Wish::PauseRollout),
            (1, Wish::ResumeRollout),
            (1, Wish::CancelOperation),
            (1, Wish::ReleaseLock),
            (1, Wish::Delete),
            (1, Wish::OrderRegion(RegionOrder::Cordon)),
            (1, Wish::OrderRegion(RegionOrder::Drain)),
            (1, Wish::OrderRegion(RegionOrder::Uncordon)),
            (2, Wish::OrderRegion(RegionOrder::ConfirmLost)),
        ],
    }
}
