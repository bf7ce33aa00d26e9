//! The fleet that is measured: names, ids, ports and pings of the size that real ones have.

use maestro_core::allocation::ClaimNumber;
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, Purpose, Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{NewRoom, RoomAddress};

/// Operations add rooms by the thousand at most.
const ROOMS_PER_OPERATION: u32 = 1000;

pub(crate) fn scheduler() -> SchedulerName {
    SchedulerName::parse("battle-royale-eu").expect("a valid name")
}

/// The operation that made the `index`-th room.
pub(crate) fn operation(index: u32) -> OperationId {
    OperationId::from_u128(u128::from(index / ROOMS_PER_OPERATION))
}

pub(crate) fn room_id(scheduler: &SchedulerName, index: u32) -> RoomId {
    RoomId::derive(scheduler, operation(index), index % ROOMS_PER_OPERATION, 0)
}

/// A moment, in seconds after the one when the fleet was made.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_794_733_614 + seconds).expect("not at the end of time")
}

/// The `index`-th room as the table learns of it: up, and not heard of yet.
pub(crate) fn new_room(scheduler: &SchedulerName, region: &Region, index: u32) -> NewRoom {
    NewRoom {
        scheduler: scheduler.clone(),
        id: room_id(scheduler, index),
        version: Version::FIRST,
        region: region.clone(),
        purpose: Purpose::Fleet,
        instance: InstanceStatus::Ready,
        created_at: at(0),
        matches_max: 1,
        known: true,
        listened_since: at(0),
        address: Some(RoomAddress { host: "127.0.0.1".into(), ports: [].into() }),
        claim_number: ClaimNumber(0),
        holds: Vec::new(),
    }
}

/// What the `index`-th room says that waits for players.
pub(crate) fn ready(index: u32) -> String {
    body("ready", 0, index)
}

/// What it says when they are there.
pub(crate) fn occupied(index: u32) -> String {
    body("occupied", 1, index)
}

fn body(status: &str, matches: u32, index: u32) -> String {
    let tier = 10 + index % 90;
    format!(
        r#"{{"timestamp":1794733614,"status":"{status}","runningMatches":{matches},"metadata":{{"tier":{tier}}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_long_as_real_ones() {
        assert_eq!((ready(7).len(), occupied(7).len()), (83, 86));
    }
}
