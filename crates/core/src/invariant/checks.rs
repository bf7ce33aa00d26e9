//! The checks themselves: a few numbers in, what is wrong out.

use std::collections::BTreeMap;

use crate::operation::{OperationId, OperationStatus, Token};
use crate::room::{HostPort, Purpose, RoomId};
use crate::time::Timestamp;

use super::{Invariant, InvariantViolation};

fn violated(
    is_violated: bool,
    invariant: Invariant,
    what: impl FnOnce() -> String,
) -> Option<InvariantViolation> {
    is_violated.then(|| InvariantViolation::new(invariant, what()))
}

/// `executing` are the operations of one scheduler that hold its slot.
pub fn one_executing(executing: &[OperationId]) -> Option<InvariantViolation> {
    violated(executing.len() > 1, Invariant::OneExecutor, || {
        format!("{} operations execute at the same time: {executing:?}", executing.len())
    })
}

/// Staying the same is no transition; of an operation that was never seen before, nothing can be said.
pub fn legal_transition(
    operation: OperationId,
    from: Option<OperationStatus>,
    to: OperationStatus,
) -> Option<InvariantViolation> {
    use OperationStatus::*;
    const LEGAL: [(OperationStatus, OperationStatus); 6] = [
        (Pending, InProgress),
        (Pending, Evicted),
        (Pending, Canceled),
        (InProgress, Finished),
        (InProgress, Error),
        (InProgress, Canceled),
    ];
    let from = from.filter(|from| *from != to)?;
    violated(!LEGAL.contains(&(from, to)), Invariant::LegalTransitions, || {
        format!("operation {operation} was {from} and is {to}")
    })
}

/// How many rooms an operation made of those that it was to make.
pub fn rooms_made(operation: OperationId, asked: u32, made: usize) -> Option<InvariantViolation> {
    violated(made > asked as usize, Invariant::EffectOnce, || {
        format!("operation {operation} made {made} rooms and was to make {asked}")
    })
}

/// `told` is what people's operations, added up, say.
pub fn fleet_size_told(is: u32, told: i64) -> Option<InvariantViolation> {
    violated(i64::from(is) != told, Invariant::EffectOnce, || {
        format!("the fleet size is {is}, and what people asked for comes to {told}")
    })
}

/// `total` is what the fleet comes to with an addition of our own.
pub fn surge_kept(total: u64, desired: u64, surge: u64) -> Option<InvariantViolation> {
    violated(total > desired.saturating_add(surge), Invariant::SurgeBound, || {
        format!("our own additions come to {total} rooms: {desired} are desired, and {surge} more")
    })
}

/// Rooms that are taken out of service by our own wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// Ready rooms before.
    pub ready: u64,
    /// Ready ones among those taken.
    pub ready_taken: u64,
    /// How many must stand ready.
    pub ready_min: u64,
}

/// A removal that takes no ready room does not take them under the target, wherever they are.
pub fn ready_kept(removal: Removal) -> Option<InvariantViolation> {
    let Removal { ready, ready_taken, ready_min } = removal;
    let left = ready.saturating_sub(ready_taken);
    violated(ready_taken > 0 && left < ready_min, Invariant::ReadyTarget, || {
        format!("{ready_taken} of {ready} ready rooms are removed: {left} stay, {ready_min} are needed")
    })
}

/// `passed_over` are ready rooms that could have gone in place of `occupied`, which are taken.
pub fn ready_first(occupied: &[RoomId], passed_over: &[RoomId]) -> Option<InvariantViolation> {
    violated(!occupied.is_empty() && !passed_over.is_empty(), Invariant::ReadyBeforeOccupied, || {
        format!("occupied rooms {occupied:?} are removed before ready ones: {passed_over:?}")
    })
}

/// `occupied` are rooms with players that autoscaling takes.
pub fn occupied_stay(occupied: &[RoomId]) -> Option<InvariantViolation> {
    violated(!occupied.is_empty(), Invariant::OccupiedStays, || {
        format!("a scale-down takes rooms with players in them: {occupied:?}")
    })
}

/// The rooms that a plan counts.
pub fn only_fleet<'a>(
    counted: impl IntoIterator<Item = (&'a RoomId, Purpose)>,
) -> Option<InvariantViolation> {
    let stranger = counted.into_iter().find(|(_, purpose)| *purpose != Purpose::Fleet);
    stranger.map(|(room, purpose)| {
        let what = format!("room {room}, for {purpose}, is counted as part of the fleet");
        InvariantViolation::new(Invariant::ValidationNotCounted, what)
    })
}

/// The ports of the live rooms of one region.
pub fn ports_once<'a>(
    rooms: impl IntoIterator<Item = (&'a RoomId, &'a [HostPort])>,
) -> Option<InvariantViolation> {
    let mut given: BTreeMap<u16, &RoomId> = BTreeMap::new();
    for (room, ports) in rooms {
        for port in ports {
            if let Some(other) = given.insert(port.host_port, room) {
                let what = format!("rooms {other} and {room} both have port {}", port.host_port);
                return Some(InvariantViolation::new(Invariant::PortOnce, what));
            }
        }
    }
    None
}

/// `before` is what the last other owner had.
pub fn token_grew(before: Option<Token>, now: Token) -> Option<InvariantViolation> {
    before.filter(|before| now <= *before).map(|before| {
        let what = format!("a new owner has token {}, and the last one had {}", now.0, before.0);
        InvariantViolation::new(Invariant::TokensGrow, what)
    })
}

/// Who owned a scheduler, and until when, before another got it at `now`; all by the store's clock.
pub fn renewed_stays(before: Option<(&str, Timestamp)>, now: Timestamp) -> Option<InvariantViolation> {
    before.filter(|(_, until)| now < *until).map(|(owner, until)| {
        let what = format!("it was taken at {now} from {owner}, whose it was until {until}");
        InvariantViolation::new(Invariant::RenewedStays, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Protocol;

    fn id(number: u128) -> OperationId {
        OperationId::from_u128(number)
    }

    fn room(number: u32) -> RoomId {
        RoomId::new(&format!("arena-{number}"))
    }

    fn check(found: Option<InvariantViolation>, expected: Option<Invariant>) {
        assert_eq!(found.map(|found| found.invariant), expected);
    }

    #[test]
    fn the_slot() {
        check(one_executing(&[]), None);
        check(one_executing(&[id(1)]), None);
        check(one_executing(&[id(1), id(2)]), Some(Invariant::OneExecutor));
    }

    #[test]
    fn transitions_agree_with_the_state_machine() {
        for from in OperationStatus::ALL {
            check(legal_transition(id(1), None, from), None);
            for to in OperationStatus::ALL.into_iter().filter(|to| *to != from) {
                let expected = from.become_(to).is_err().then_some(Invariant::LegalTransitions);
                check(legal_transition(id(1), Some(from), to), expected);
            }
            check(legal_transition(id(1), Some(from), from), None);
        }
    }

    #[test]
    fn effects() {
        check(rooms_made(id(1), 3, 3), None);
        check(rooms_made(id(1), 3, 4), Some(Invariant::EffectOnce));
        check(fleet_size_told(3, 3), None);
        check(fleet_size_told(3, 2), Some(Invariant::EffectOnce));
    }

    #[test]
    fn numbers_of_rooms() {
        for (total, desired, surge, expected) in
            [(12, 10, 2, None), (13, 10, 2, Some(Invariant::SurgeBound)), (0, 0, 0, None)]
        {
            check(surge_kept(total, desired, surge), expected);
        }
        for (ready, ready_taken, ready_min, expected) in [
            (5, 2, 3, None),
            (5, 3, 3, Some(Invariant::ReadyTarget)),
            // They were missing before.
            (2, 0, 3, None),
            (2, 1, 3, Some(Invariant::ReadyTarget)),
        ] {
            check(ready_kept(Removal { ready, ready_taken, ready_min }), expected);
        }
    }

    #[test]
    fn players() {
        check(ready_first(&[], &[room(1)]), None);
        check(ready_first(&[room(1)], &[]), None);
        check(ready_first(&[room(1)], &[room(2)]), Some(Invariant::ReadyBeforeOccupied));
        check(occupied_stay(&[]), None);
        check(occupied_stay(&[room(1)]), Some(Invariant::OccupiedStays));
    }

    #[test]
    fn what_is_counted() {
        check(only_fleet([(&room(1), Purpose::Fleet)]), None);
        let expected = Some(Invariant::ValidationNotCounted);
        check(only_fleet([(&room(1), Purpose::Fleet), (&room(2), Purpose::Validation)]), expected);
    }

    #[test]
    fn ports_and_tokens() {
        let port = |host_port| {
            [HostPort { name: "game".into(), protocol: Protocol::Udp, container_port: 7777, host_port }]
        };
        let (one, other) = (port(40000), port(40001));
        check(ports_once([(&room(1), &one[..]), (&room(2), &other[..])]), None);
        check(ports_once([(&room(1), &one[..]), (&room(2), &one[..])]), Some(Invariant::PortOnce));
        check(token_grew(None, Token(1)), None);
        check(token_grew(Some(Token(1)), Token(2)), None);
        check(token_grew(Some(Token(2)), Token(2)), Some(Invariant::TokensGrow));
        let at = |second| Timestamp::from_second(second).unwrap();
        check(renewed_stays(None, at(5)), None);
        check(renewed_stays(Some(("worker-1", at(5))), at(5)), None);
        check(renewed_stays(Some(("worker-1", at(5))), at(4)), Some(Invariant::RenewedStays));
    }
}
