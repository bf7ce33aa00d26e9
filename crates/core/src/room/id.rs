//! The id of a room. It is computed from the operation that asks for the room, so that a step done twice asks for
//! the same room twice and makes one.

use std::sync::Arc;

use crate::hash::{BASIS, fnv1a};
use crate::operation::OperationId;
use crate::scheduler::SchedulerName;
use crate::text::shared_text;

/// Cheap to clone. At most 63 characters: on Kubernetes it is a pod's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomId(Arc<str>);

/// Letters and digits that spell no words and are not mistaken for one another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const HASH_LENGTH: usize = 10;
const LENGTH_MAX: usize = 63;

impl RoomId {
    /// The id of the `index`-th room of an operation. `attempt` is incremented if the id is taken by another room.
    pub fn derive(scheduler: &SchedulerName, operation: OperationId, index: u32, attempt: u32) -> Self {
        let numbers = index.to_be_bytes().into_iter().chain(attempt.to_be_bytes());
        let hash = fnv1a(BASIS, operation.as_bytes().iter().copied().chain(numbers));
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rest = mixed ^ (mixed >> 29);
        let name = scheduler.as_str();
        let mut text = String::with_capacity(LENGTH_MAX);
        text.push_str(&name[..name.len().min(LENGTH_MAX - HASH_LENGTH - 1)]);
        text.push('-');
        for _ in 0..HASH_LENGTH {
            text.push(char::from(ALPHABET[(rest % 27) as usize]));
            rest /= 27;
        }
        Self(text.into())
    }

    /// An id that came from outside. Whether there is such a room is for the stores to say.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
}

shared_text!(RoomId);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn name(text: &str) -> SchedulerName {
        SchedulerName::parse(text).unwrap()
    }

    #[test]
    fn the_same_question_gives_the_same_id() {
        let operation = OperationId::from_u128(7);
        let id = RoomId::derive(&name("arena"), operation, 3, 0);
        assert_eq!(id, RoomId::derive(&name("arena"), operation, 3, 0));
        assert_eq!(id.as_str(), "arena-9b4cbswcfj", "ids are stored: this value must never change");
    }

    #[test]
    fn a_long_name_leaves_room_for_the_hash() {
        let id = RoomId::derive(&name(&"a".repeat(63)), OperationId::from_u128(1), 0, 0);
        assert_eq!(id.as_str().len(), LENGTH_MAX);
    }

    #[test]
    fn a_hundred_thousand_rooms_do_not_collide() {
        let arena = name("arena");
        let ids: BTreeSet<_> = (0..100_u128)
            .flat_map(|operation| (0..1000).map(move |index| (operation, index)))
            .map(|(operation, index)| RoomId::derive(&arena, OperationId::from_u128(operation), index, 0))
            .collect();
        assert_eq!(ids.len(), 100_000);
    }
}
