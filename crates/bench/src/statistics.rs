//! What is made of many measurements. Medians, because a neighbour's build disturbs some of them a lot.

use std::time::Duration;

/// The middle one, 0 if there is none.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Measures two things so many times, one right after the other. Which of them goes first changes from pair to pair: what
/// slowly gets better or worse favours neither.
pub(crate) fn in_turns<T>(
    pairs: usize,
    mut one: impl FnMut() -> anyhow::Result<T>,
    mut other: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<Vec<(T, T)>> {
    let pair = |index: usize| {
        if index.is_multiple_of(2) {
            Ok((one()?, other()?))
        } else {
            let other = other()?;
            Ok((one()?, other))
        }
    };
    (0..pairs).map(pair).collect()
}

/// The shortest duration that `percent` of all do not exceed; zero if there is none.
pub(crate) fn percentile(durations: &mut [Duration], percent: usize) -> Duration {
    durations.sort_unstable();
    let position = (durations.len() * percent).div_ceil(100).saturating_sub(1);
    durations.get(position).copied().unwrap_or_default()
}

/// The same in microseconds.
pub(crate) fn percentile_us(durations: &mut [Duration], percent: usize) -> f64 {
    percentile(durations, percent).as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_outlier_is_not_seen() {
        assert_eq!(median([3.0, 1000.0, 1.0]), 3.0);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn percentiles_are_measured_values() {
        let mut durations: Vec<_> = (1..=200).rev().map(Duration::from_micros).collect();
        for (percent, expected) in [(1, 2.0), (50, 100.0), (99, 198.0), (100, 200.0)] {
            assert_eq!(percentile_us(&mut durations, percent).round(), expected);
        }
        assert_eq!(percentile_us(&mut [], 50), 0.0);
    }
}
