//! Chance from a seed. Each draw depends on its number alone, so that a room fails or not whatever else happens.

use crate::scenario::Share;

/// Whether the `number`-th draw falls into the share.
pub(crate) fn falls_into(share: Share, seed: u64, number: u32) -> bool {
    let drawn = mix(mix(seed) ^ u64::from(number)) % u64::from(Share::WHOLE);
    drawn < u64::from(share.millionths)
}

/// SplitMix64: results are printed and compared, so the mix must never change, which a library's may.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_as_many_as_asked_for() {
        for (millionths, low, high) in [(0, 0, 0), (250_000, 2400, 2600), (Share::WHOLE, 10_000, 10_000)] {
            for seed in [0, 1, u64::MAX] {
                let share = Share { millionths };
                let drawn = (0..10_000).filter(|number| falls_into(share, seed, *number)).count();
                assert!((low..=high).contains(&drawn), "{drawn} of 10000 at {millionths}");
            }
        }
    }
}
