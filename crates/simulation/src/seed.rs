//! Where draws come from: one seed for a world, and from it one for each part.

/// A seed of its own for each part, so that one draw more in one place does not shift all others.
pub(crate) fn fork(seed: u64, part: &str, number: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    for byte in part.bytes() {
        random = fastrand::Rng::with_seed(random.u64(..) ^ u64::from(byte));
    }
    fastrand::Rng::with_seed(random.u64(..) ^ number).u64(..)
}
