//! Allocations: rooms handed to matchmakers.
//!
//! Each allocation is a durable row, and a *hold* in the room table for as long as it is open. Rooms that hold several
//! matches are handed out by slot, one allocation for each.
//!
//! An allocation and a removal first claim the room in the room table. Each claim takes the room's next
//! [`ClaimNumber`], and the registry keeps the last number that was spent. So a row that was decided on a claim that
//! somebody else has superseded, while the table was lost say, is refused.

mod hold;
mod request;
mod waiting;
mod wish;

use crate::uuid_id::uuid_id;
use crate::words::words;

pub use hold::{Hold, HoldEnd, HoldStage, Holds, MatchReport, PROVISIONAL_FOR};
pub use request::{
    AllocationRequest, COUNT_MAX, METADATA_MAX_BYTES, REQUEST_ID_MAX_BYTES, TTL_MAX, TTL_MIN, WAIT_MAX,
    WISHES_MAX,
};
pub use waiting::{WaitingDemand, WaitingParts};
pub use wish::{AllocationRules, CANDIDATES_MAX, Wish, fits_new_room, overlap};

uuid_id!(
    /// Ordered by the time it was made (UUID version 7).
    AllocationId
);

/// The number of a claim of a room. Later claims of the same room have greater numbers; 0 was never given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClaimNumber(pub u64);

impl ClaimNumber {
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

words! {
    /// What became of an allocation.
    pub enum AllocationState {
        /// The room waits for its match.
        Held = "held",
        /// The match has begun.
        Begun = "begun",
        /// The matchmaker gave it back.
        Returned = "returned",
        /// No match had begun when its time was over.
        Expired = "expired",
        /// The room ended, or was taken away, before a match began.
        Lost = "lost",
    }
}

impl AllocationState {
    pub fn is_open(self) -> bool {
        self == Self::Held
    }
}

impl From<HoldEnd> for AllocationState {
    fn from(end: HoldEnd) -> Self {
        match end {
            HoldEnd::Begun => Self::Begun,
            HoldEnd::Returned => Self::Returned,
            HoldEnd::Expired => Self::Expired,
        }
    }
}
