//! When in their period the timers of a scheduler fire. Many schedulers that began at the same moment, for example after a
//! restart, must not all be due at the same moment forever.

use std::time::Duration;

use crate::hash::{BASIS, fnv1a};
use crate::scheduler::SchedulerName;

/// How long after the beginning of a period it is this scheduler's turn: always the same, and for many of them evenly
/// spread. Less than the period.
pub fn offset(scheduler: &SchedulerName, period: Duration) -> Duration {
    let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    let share = (u128::from(hash(scheduler.as_str())) * u128::from(nanos)) >> 64;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

/// FNV-1a, and a last mixing so that names which differ in their last letters alone differ in the high bits.
fn hash(name: &str) -> u64 {
    let hash = fnv1a(BASIS, name.bytes());
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(10);

    fn name(text: &str) -> SchedulerName {
        SchedulerName::parse(text).unwrap()
    }

    #[test]
    fn a_name_has_one_place_in_the_period() {
        assert_eq!(offset(&name("arena"), PERIOD), offset(&name("arena"), PERIOD));
        assert!(offset(&name("arena"), PERIOD) < PERIOD);
        assert_eq!(offset(&name("arena"), Duration::ZERO), Duration::ZERO);
    }

    /// No second of ten has more than twice its share of a thousand.
    #[test]
    fn many_names_are_spread_over_the_period() {
        let mut seconds = [0; 10];
        for number in 0..1000 {
            let offset = offset(&name(&format!("battle-royale-{number:04}")), PERIOD);
            seconds[offset.as_secs() as usize] += 1;
        }
        assert!(seconds.iter().all(|count| (50..200).contains(count)), "{seconds:?}");
    }
}
