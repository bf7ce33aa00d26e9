//! FNV-1a. What it gives is stored and compared between builds, so it must never change, which a library's may.

/// Where a hash begins.
pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

pub fn fnv1a(start: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
