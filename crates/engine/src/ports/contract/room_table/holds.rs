//! Rooms claimed for matchmakers.

use std::collections::BTreeSet;

use maestro_core::allocation::{
    AllocationId, AllocationRules, ClaimNumber, Hold, HoldEnd, HoldStage, WaitingDemand, Wish,
};
use maestro_core::time::{Millis, Timestamp};

use crate::ports::room_table::{HeldRoom, HoldAnswer, HoldKey, HoldRequest};

use super::*;

const PING_TIMEOUT: Millis = Millis::from_seconds(60);

pub(super) async fn a_hold_takes_a_ready_room_and_says_where_it_is(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    let held = hold(table, &[1], &[]).await.unwrap();
    let expected = HeldRoom {
        allocation: allocation(1),
        room: room_id(1),
        number: ClaimNumber(1),
        version: Version::FIRST,
        region: Region::default_region(),
        address: address(),
        matches_max: 1,
    };
    assert_eq!(held, [expected]);
    let view = room(table, 1).await;
    assert_eq!((view.status, view.expected), (RoomStatus::Allocated, 1));
    assert_eq!(counts(table).await, recounted(table).await);
    assert_eq!(counts(table).await.holds, 1);
}

pub(super) async fn only_rooms_that_can_be_played_in_are_held(table: &dyn RoomTable) {
    let unheard_of = |number| NewRoom { known: false, ..new_room(number) };
    table.insert(unheard_of(1)).await.unwrap();
    table.insert(NewRoom { purpose: Purpose::Validation, ..new_room(2) }).await.unwrap();
    table.insert(NewRoom { address: None, ..new_room(3) }).await.unwrap();
    for number in 4..=8 {
        table.insert(new_room(number)).await.unwrap();
    }
    for number in [2, 3, 6, 7, 8] {
        ping(table, number, PingStatus::Ready).await;
    }
    ping(table, 4, PingStatus::Occupied).await;
    ping(table, 5, PingStatus::Terminating).await;
    observe(table, 6, InstanceStatus::Error).await;
    claim(table, 1, &[7], 1).await;
    // It pinged, and too long ago.
    let mut request = request(&[], &[]);
    let ids = [allocation(1)];
    request.allocations = &ids;
    request.heard_since = at(6);
    assert_eq!(table.hold(&[request]).await.unwrap(), [HoldAnswer::NotEnough]);
    ping(table, 8, PingStatus::Ready).await;
    assert_eq!(hold(table, &[1], &[]).await.map(rooms_of), Some(ids_of(&[8])), "the others cannot be");
    assert_eq!(hold(table, &[2], &[]).await, None);
    // What it lacked.
    table.set_address(&arena(), &room_id(3), address()).await.unwrap();
    assert_eq!(hold(table, &[3], &[]).await.map(rooms_of), Some(ids_of(&[3])));
}

pub(super) async fn a_room_goes_to_one_of_two_callers(table: &dyn RoomTable) {
    insert_ready(table, 20).await;
    let callers = join_all((1..=25).map(|caller| hold_alone(table, caller))).await;
    let held: Vec<RoomId> = callers.into_iter().flatten().flat_map(rooms_of).collect();
    assert_eq!(held.len(), 20);
    assert_eq!(held.iter().collect::<BTreeSet<_>>().len(), 20, "{held:?}");
}

pub(super) async fn two_callers_for_the_last_room(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    let (one, other) = join(hold_alone(table, 1), hold_alone(table, 2)).await;
    assert_eq!([one, other].iter().filter(|held| held.is_some()).count(), 1);
    // And a removal that comes too late.
    assert_eq!(claim(table, 1, &[1], 1).await, []);
}

pub(super) async fn several_rooms_or_none(table: &dyn RoomTable) {
    insert_ready(table, 3).await;
    assert_eq!(hold(table, &[1, 2, 3, 4], &[]).await, None);
    assert_eq!(counts(table).await.by_status.of(RoomStatus::Ready), 3, "nothing is kept of it");
    let held = hold(table, &[5, 6, 7], &[]).await.unwrap();
    assert_eq!(held.iter().map(|room| &room.room).collect::<BTreeSet<_>>().len(), 3);
    let allocations: Vec<_> = held.iter().map(|room| room.allocation).collect();
    assert_eq!(allocations, [5, 6, 7].map(allocation));
}

pub(super) async fn slots_of_a_room_of_several_matches(table: &dyn RoomTable) {
    table.insert(NewRoom { matches_max: 4, ..new_room(1) }).await.unwrap();
    try_ping(table, 1, PingStatus::Ready, 1).await.unwrap();
    assert_eq!(hold(table, &[1, 2, 3, 4], &[]).await, None);
    let held = hold(table, &[1, 2, 3], &[]).await.unwrap();
    assert_eq!(held.iter().map(|room| room.number.0).collect::<Vec<_>>(), [4, 5, 6], "each its own");
    assert_eq!(status(table, 1).await, RoomStatus::Active);
    assert_eq!(hold(table, &[5], &[]).await, None);
    table.release(&[key(1, 6)]).await.unwrap();
    assert!(hold(table, &[6], &[]).await.is_some());
    // Fewer matches than expected leave no less than nothing.
    table.set_matches_max(&arena(), 2).await.unwrap();
    assert_eq!(hold(table, &[7], &[]).await, None);
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn a_provisional_hold_becomes_firm(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    hold(table, &[1], &[]).await.unwrap();
    let stage = HoldStage::Provisional { since: at(5) };
    assert_eq!(table.holds_of(&arena(), &room_id(1)).await.unwrap()[0].stage, stage);
    let confirmed = table.confirm(&[key(1, 1), key(1, 2), key(9, 1)]).await.unwrap();
    assert_eq!(confirmed, [Some(HoldStage::Firm), None, None]);
    assert_eq!(table.confirm(&[key(1, 1)]).await.unwrap(), [Some(HoldStage::Firm)], "once more");
    let expected = Hold { metadata: Some("{}".into()), ..firm(1, 1) };
    assert_eq!(table.holds_of(&arena(), &room_id(1)).await.unwrap(), [expected]);
    assert_eq!(table.holds_of(&arena(), &room_id(9)).await.unwrap(), []);
}

pub(super) async fn a_hold_of_a_room_that_is_taken_away_is_not_confirmed(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    hold(table, &[1], &[]).await.unwrap();
    assert_eq!(claim_in(table, 1, &[1], &RoomStatus::ALL, 1).await, ids_of(&[1]));
    assert_eq!(table.confirm(&[key(1, 1)]).await.unwrap(), [None]);
    unclaim(table, operation_id(1), &[1]).await;
    assert_eq!(table.confirm(&[key(1, 1)]).await.unwrap(), [Some(HoldStage::Firm)], "it stays after all");
}

pub(super) async fn a_marked_slot_is_free_when_it_is_released(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    hold(table, &[1], &[]).await.unwrap();
    table.confirm(&[key(1, 1)]).await.unwrap();
    assert_eq!(table.mark(&key(1, 1), HoldEnd::Returned).await.unwrap(), Some(HoldEnd::Returned));
    assert_eq!(table.mark(&key(1, 1), HoldEnd::Expired).await.unwrap(), Some(HoldEnd::Returned));
    assert_eq!(table.mark(&key(1, 7), HoldEnd::Expired).await.unwrap(), None);
    assert_eq!(hold(table, &[2], &[]).await, None);
    let marked = Some(HoldStage::Marked(HoldEnd::Returned));
    assert_eq!(table.confirm(&[key(1, 1)]).await.unwrap(), [marked]);
    table.release(&[key(1, 1), key(1, 7), key(9, 1)]).await.unwrap();
    assert_eq!(status(table, 1).await, RoomStatus::Ready);
    assert!(hold(table, &[2], &[]).await.is_some());
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn a_match_begins(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    hold(table, &[1], &[]).await.unwrap();
    let pinged = try_ping(table, 1, PingStatus::Ready, 0).await.unwrap();
    assert!(!pinged.ended_holds);
    table.confirm(&[key(1, 1)]).await.unwrap();
    let pinged = try_ping(table, 1, PingStatus::Occupied, 1).await.unwrap();
    assert_eq!((pinged.after, pinged.ended_holds), (RoomStatus::Occupied, true));
    assert_eq!(stages(table, 1).await, [HoldStage::Marked(HoldEnd::Begun)]);
    assert_eq!(room(table, 1).await.expected, 0, "it is not expected any more");
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn matches_that_begin_in_a_room_of_several(table: &dyn RoomTable) {
    table.insert(NewRoom { matches_max: 4, ..new_room(1) }).await.unwrap();
    ping(table, 1, PingStatus::Ready).await;
    hold(table, &[1, 2, 3], &[]).await.unwrap();
    table.confirm(&[key(1, 1), key(1, 2), key(1, 3)]).await.unwrap();
    let said = room_id(1);
    let named = [allocation(3)];
    table.ping(Ping { matches: 1, begun: &named, ..ready_ping(&said) }, at(5)).await.unwrap();
    let begun = HoldStage::Marked(HoldEnd::Begun);
    assert_eq!(stages(table, 1).await, [HoldStage::Firm, HoldStage::Firm, begun]);
    try_ping(table, 1, PingStatus::Ready, 2).await.unwrap();
    assert_eq!(stages(table, 1).await, [begun, HoldStage::Firm, begun]);
    assert_eq!(room(table, 1).await.expected, 1);
}

pub(super) async fn a_hold_expires_with_a_ping(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    hold(table, &[1], &[]).await.unwrap();
    table.confirm(&[key(1, 1)]).await.unwrap();
    let said = room_id(1);
    assert!(!table.ping(ready_ping(&said), at(99)).await.unwrap().ended_holds);
    assert!(table.ping(ready_ping(&said), at(100)).await.unwrap().ended_holds);
    assert_eq!(stages(table, 1).await, [HoldStage::Marked(HoldEnd::Expired)]);
}

pub(super) async fn a_ping_that_was_overtaken_is_a_sign_of_life(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    let said = room_id(1);
    let sent = |at, status| Ping { sent_at: Some(at), late_max: 60, status, ..ready_ping(&said) };
    table.ping(sent(100, PingStatus::Occupied), at(5)).await.unwrap();
    let late = table.ping(sent(99, PingStatus::Ready), at(6)).await.unwrap();
    assert_eq!((late.before, late.after), (RoomStatus::Occupied, RoomStatus::Occupied));
    assert_eq!(room(table, 1).await.last_ping_at, Some(at(6)));
    table.ping(sent(100, PingStatus::Ready), at(7)).await.unwrap();
    assert_eq!(status(table, 1).await, RoomStatus::Ready, "the same second is not earlier");
    table.ping(sent(40, PingStatus::Occupied), at(8)).await.unwrap();
    assert_eq!(status(table, 1).await, RoomStatus::Occupied, "its clock was set back");
}

pub(super) async fn every_claim_takes_the_next_number(table: &dyn RoomTable) {
    table.insert(NewRoom { claim_number: ClaimNumber(7), ..new_room(1) }).await.unwrap();
    ping(table, 1, PingStatus::Ready).await;
    let number = |held: Option<Vec<HeldRoom>>| held.unwrap()[0].number;
    assert_eq!(number(hold(table, &[1], &[]).await), ClaimNumber(8));
    table.release(&[key(1, 8)]).await.unwrap();
    claim(table, 1, &[1], 1).await;
    unclaim(table, operation_id(1), &[1]).await;
    assert_eq!(number(hold(table, &[2], &[]).await), ClaimNumber(10));
}

pub(super) async fn holds_that_are_due(table: &dyn RoomTable) {
    insert_ready(table, 3).await;
    for caller in 1..=3 {
        hold(table, &[caller], &[]).await.unwrap();
    }
    let due = async |now: i64| {
        let due = table.due_holds(at(now), PING_TIMEOUT, 10).await.unwrap();
        due.into_iter().map(|due| due.key).collect::<Vec<_>>()
    };
    assert_eq!(due(14).await, []);
    assert_eq!(due(15).await, [key(1, 1), key(2, 1), key(3, 1)], "their rows may never have been written");
    table.confirm(&[key(1, 1), key(2, 1), key(3, 1)]).await.unwrap();
    assert_eq!(due(15).await, []);
    table.mark(&key(2, 1), HoldEnd::Returned).await.unwrap();
    assert_eq!(due(15).await, [key(2, 1)]);
    assert_eq!(due(159).await, [key(2, 1)], "a ping may still end the others");
    assert_eq!(due(160).await, [key(2, 1), key(1, 1), key(3, 1)]);
    assert_eq!(table.due_holds(at(160), PING_TIMEOUT, 1).await.unwrap().len(), 1);
    table.release(&[key(2, 1)]).await.unwrap();
    assert_eq!(due(160).await, [key(1, 1), key(3, 1)]);
    assert_eq!(table.holds(&arena()).await.unwrap().len(), 2);
    assert_eq!(table.holds(&bystander()).await.unwrap(), []);
}

pub(super) async fn a_lost_table_gets_its_holds_back(table: &dyn RoomTable) {
    let holds = vec![firm(1, 4)];
    table.insert(NewRoom { known: false, claim_number: ClaimNumber(5), holds, ..new_room(1) }).await.unwrap();
    table.restore(&arena(), &room_id(1), firm(1, 4)).await.unwrap();
    assert_eq!(stages(table, 1).await, [HoldStage::Firm], "once");
    ping(table, 1, PingStatus::Ready).await;
    assert_eq!(status(table, 1).await, RoomStatus::Allocated);
    assert_eq!(hold(table, &[2], &[]).await, None);
    table.release(&[key(1, 4)]).await.unwrap();
    assert_eq!(hold(table, &[2], &[]).await.unwrap()[0].number, ClaimNumber(6));
    table.restore(&arena(), &room_id(9), firm(1, 4)).await.unwrap();
    assert_eq!(table.room(&arena(), &room_id(9)).await.unwrap(), None);
}

pub(super) async fn a_removed_room_takes_its_holds_along(table: &dyn RoomTable) {
    insert_ready(table, 2).await;
    hold(table, &[1, 2], &[]).await.unwrap();
    table.remove(&arena(), &room_id(1)).await.unwrap();
    assert_eq!(table.due_holds(at(99), PING_TIMEOUT, 9).await.unwrap().len(), 1);
    table.remove_scheduler(&arena()).await.unwrap();
    assert_eq!(table.due_holds(at(99), PING_TIMEOUT, 9).await.unwrap(), []);
    rebuild(table, &arena(), []).await;
    assert_eq!(table.holds(&arena()).await.unwrap(), []);
    assert_eq!(hold(table, &[3], &[]).await, None);
}

pub(super) async fn terms_are_remembered(table: &dyn RoomTable) {
    assert_eq!(table.allocation_rules(&arena()).await.unwrap(), AllocationRules::default());
    let rules = AllocationRules {
        version_of_new_rooms: Some(Version::FIRST),
        growing_regions: Some(vec![Region("eu".into())]),
        ..AllocationRules::default()
    };
    table.set_allocation_rules(&arena(), rules.clone()).await.unwrap();
    assert_eq!(table.allocation_rules(&arena()).await.unwrap(), rules);
    assert_eq!(table.allocation_rules(&bystander()).await.unwrap(), AllocationRules::default());
}

/// The numbers are those of [`WaitingDemand`].
pub(super) async fn what_is_waited_for_is_demand(table: &dyn RoomTable) {
    let mut expected = WaitingDemand::default();
    for (process, slots, now) in [("a", 3, 0), ("b", 4, 1), ("a", 0, 2), ("b", 1, 3), ("a", 1, 200)] {
        expected.report(process, slots, at(now));
        table.report_waiting(&arena(), process, slots, at(now)).await.unwrap();
        assert_eq!(table.waiting(&arena(), at(now)).await.unwrap(), expected.highest(at(now)), "at {now}");
    }
    assert_eq!(table.waiting(&arena(), at(900)).await.unwrap(), 0);
    assert_eq!(table.waiting(&bystander(), at(1)).await.unwrap(), 0);
}

// What cases are made of.

pub(super) fn allocation(number: u128) -> AllocationId {
    AllocationId::from_u128(number)
}

pub(super) fn firm(number: u128, claim: u64) -> Hold {
    Hold::firm(allocation(number), ClaimNumber(claim), at(100))
}

pub(super) fn key(room: u32, number: u64) -> HoldKey {
    HoldKey { scheduler: arena(), room: room_id(room), number: ClaimNumber(number) }
}

fn scheduler() -> &'static SchedulerName {
    static ARENA: std::sync::LazyLock<SchedulerName> = std::sync::LazyLock::new(arena);
    &ARENA
}

/// At 5 seconds, of rooms that have pinged then, for 95 seconds.
pub(super) fn request<'a>(allocations: &'a [AllocationId], wishes: &'a [Wish]) -> HoldRequest<'a> {
    static METADATA: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| "{}".into());
    let (now, expires_at): (Timestamp, Timestamp) = (at(5), at(100));
    let metadata = Some(&*METADATA);
    HoldRequest {
        scheduler: scheduler(),
        allocations,
        wishes,
        metadata,
        now,
        expires_at,
        heard_since: at(5),
        draw: 7,
    }
}

pub(super) async fn hold(
    table: &dyn RoomTable,
    allocations: &[u128],
    wishes: &[Wish],
) -> Option<Vec<HeldRoom>> {
    let allocations: Vec<_> = allocations.iter().map(|number| allocation(*number)).collect();
    let answers = table.hold(&[request(&allocations, wishes)]).await.unwrap();
    match answers.into_iter().next() {
        Some(HoldAnswer::Held(rooms)) => Some(rooms),
        Some(HoldAnswer::NotEnough) => None,
        None => panic!("a request was not answered"),
    }
}

async fn hold_alone(table: &dyn RoomTable, caller: u128) -> Option<Vec<HeldRoom>> {
    hold(table, &[caller], &[]).await
}

async fn stages(table: &dyn RoomTable, number: u32) -> Vec<HoldStage> {
    table.holds_of(&arena(), &room_id(number)).await.unwrap().into_iter().map(|hold| hold.stage).collect()
}

pub(super) fn rooms_of(held: Vec<HeldRoom>) -> Vec<RoomId> {
    held.into_iter().map(|held| held.room).collect()
}

pub(super) fn ids_of(numbers: &[u32]) -> Vec<RoomId> {
    ids(numbers)
}
