//! What a matchmaker may ask for.

use std::sync::Arc;

use crate::hash::{BASIS, fnv1a};
use crate::time::Millis;

use super::Wish;

/// Rooms, or slots, of one request.
pub const COUNT_MAX: u32 = 100;
pub const WISHES_MAX: usize = 16;
pub const WAIT_MAX: Millis = Millis::from_seconds(30);
pub const TTL_MIN: Millis = Millis::from_seconds(1);
pub const TTL_MAX: Millis = Millis::from_seconds(3600);
pub const METADATA_MAX_BYTES: usize = 4096;
pub const REQUEST_ID_MAX_BYTES: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Chosen by the caller: the same request again gives the same rooms.
    pub request_id: Option<Arc<str>>,
    /// All or none.
    pub count: u32,
    /// Tried in their order; none accepts every room.
    pub wishes: Vec<Wish>,
    /// How long to wait for rooms that become free; 0: not at all.
    pub wait: Millis,
    /// How long a room is held; `None`: as long as this installation holds rooms.
    pub ttl: Option<Millis>,
    /// What the room is told: a JSON object.
    pub metadata: Option<Arc<str>>,
}

impl Default for AllocationRequest {
    /// v10's: one room, at once, any.
    fn default() -> Self {
        Self { request_id: None, count: 1, wishes: Vec::new(), wait: Millis(0), ttl: None, metadata: None }
    }
}

impl AllocationRequest {
    /// All that must be the same for a request to be the same, which is everything but how long the caller waits: each
    /// field with a hash of its value, enough to say what differs between two requests of one id.
    pub fn digest(&self) -> [(&'static str, u64); 4] {
        let Self { request_id: _, count, wishes, wait: _, ttl, metadata } = self;
        let hash = |text: String| fnv1a(BASIS, text.into_bytes());
        [
            ("count", hash(count.to_string())),
            ("wishes", hash(wishes.iter().map(Wish::canonical).collect())),
            ("ttlMillis", hash(ttl.map_or_else(String::new, |ttl| ttl.0.to_string()))),
            ("metadata", hash(metadata.as_deref().unwrap_or_default().to_owned())),
        ]
    }
}
