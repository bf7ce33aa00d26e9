//! Where 2^54 rooms go in 100 regions: the planner looks at regions, never at rooms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use maestro_core::placement::{RegionFact, Standing, grow, shrink};

use crate::Effort;
use crate::figure::Figure;
use crate::statistics::median;

const REGIONS: u32 = 100;
const ROOMS: u64 = 1 << 54;

pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Figure>> {
    let empty = regions(0);
    let full = regions(ROOMS / u64::from(REGIONS));
    // A plan that takes seconds would be seen in any case; one that takes microseconds is told beside a small one.
    let few = microseconds(effort, || grow(&empty, 1_000).is_ok());
    let growing = microseconds(effort, || grow(&empty, ROOMS).is_ok());
    let removing = microseconds(effort, || shrink(&full, ROOMS / 2).is_ok());
    Ok(vec![
        Figure::new("placement.grow", growing, "µs").compared("the plan of 1000 rooms", growing / few),
        Figure::new("placement.shrink", removing, "µs").compared("the plan of 1000 rooms", removing / few),
    ])
}

/// Of different weights, and every third with a cap that is in the way.
fn regions(counted: u64) -> Vec<RegionFact> {
    let region = |index: u32| RegionFact {
        weight: (index * 7919 % 1000 + 1).into(),
        cap: index.is_multiple_of(3).then_some(ROOMS / 200),
        rooms: Standing { counted, ..Standing::default() },
    };
    (0..REGIONS).map(region).collect()
}

fn microseconds(effort: Effort, plan: impl Fn() -> bool) -> f64 {
    let repeat_for = effort.pick(Duration::from_millis(500), Duration::from_millis(5));
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.is_empty() || begin.elapsed() < repeat_for {
        let begin = Instant::now();
        black_box(plan());
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    median(times)
}
