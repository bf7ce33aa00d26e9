//! What a table says that has lost what it knew, and how it gets it back.

use maestro_core::allocation::{AllocationRules, HoldEnd, HoldStage};
use maestro_core::time::Millis;

use crate::ports::room_table::{HoldAnswer, HoldKey};

use super::holds::{allocation, firm, key, request};
use super::*;

/// What is answered to calls about the arena that say something of its rooms or change them.
async fn answers(table: &dyn RoomTable) -> Vec<Result<(), TableError>> {
    let (scheduler, room, ids) = (arena(), room_id(1), [allocation(1)]);
    let claim = Claim {
        scheduler: &scheduler,
        operation: operation_id(1),
        candidates: std::slice::from_ref(&room),
        statuses: &RoomStatus::ALL,
        known_only: false,
        rooms_max: 1,
    };
    vec![
        table.observe(&scheduler, &room, InstanceStatus::Terminating).await.map(drop),
        table.set_address(&scheduler, &room, address()).await,
        table.claim(claim).await.map(drop),
        table.unclaim(&scheduler, operation_id(1), std::slice::from_ref(&room)).await,
        table.hold(&[request(&ids, &[])]).await.map(drop),
        table.mark(&key(1, 4), HoldEnd::Returned).await.map(drop),
        table.restore(&scheduler, &room, firm(2, 5)).await,
        table.holds_of(&scheduler, &room).await.map(drop),
        table.holds(&scheduler).await.map(drop),
        table.allocation_rules(&scheduler).await.map(drop),
        table.report_waiting(&scheduler, "a", 1, at(1)).await,
        table.waiting(&scheduler, at(1)).await.map(drop),
        table.remove(&scheduler, &room).await.map(drop),
        table.set_matches_max(&scheduler, 3).await,
        table.room(&scheduler, &room).await.map(drop),
        table.rooms(&scheduler).await.map(drop),
        table.counts(&scheduler).await.map(drop),
    ]
}

async fn check_lost(table: &dyn RoomTable) {
    let lost = || TableError::Lost(arena());
    for (place, answer) in answers(table).await.into_iter().enumerate() {
        assert_eq!(answer, Err(lost()), "call {place}");
    }
    assert_eq!(try_ping(table, 1, PingStatus::Ready, 0).await, Err(lost().into()));
    // Calls about several schedulers pass it over.
    assert_eq!(table.confirm(&[key(1, 4)]).await.unwrap(), [None]);
    table.release(&[key(1, 4)]).await.unwrap();
    let due = table.due_holds(at(9_999), Millis(0), 9).await.unwrap();
    assert!(due.iter().all(|due| due.key.scheduler != arena()), "{due:?}");
}

/// One that matchmakers could get, with a hold that is due.
fn held_room() -> NewRoom {
    NewRoom { matches_max: 4, claim_number: ClaimNumber(4), holds: vec![firm(1, 4)], ..new_room(1) }
}

pub(super) async fn a_table_without_a_mark_says_that_it_is_lost(table: &dyn RoomTable) {
    check_lost(table).await;
    // Rooms alone do not make it whole.
    table.insert(held_room()).await.unwrap();
    check_lost(table).await;
    assert!(table.begin_rebuild(&arena()).await.unwrap());
    check_lost(table).await;
    table.insert(held_room()).await.unwrap();
    table.set_allocation_rules(&arena(), AllocationRules::default()).await.unwrap();
    check_lost(table).await;
}

pub(super) async fn what_was_put_in_counts_from_the_mark_on(table: &dyn RoomTable) {
    let rules = AllocationRules { version_of_new_rooms: Some(Version::FIRST), ..AllocationRules::default() };
    assert!(table.begin_rebuild(&arena()).await.unwrap());
    table.insert(held_room()).await.unwrap();
    table.set_allocation_rules(&arena(), rules.clone()).await.unwrap();
    table.end_rebuild(&arena()).await.unwrap();
    table.end_rebuild(&arena()).await.unwrap();
    assert_eq!(table.allocation_rules(&arena()).await.unwrap(), rules);
    assert_eq!(counts(table).await, recounted(table).await);
    assert_eq!(counts(table).await.holds, 1);
    ping(table, 1, PingStatus::Ready).await;
    assert_eq!(table.due_holds(at(9_999), Millis(0), 9).await.unwrap().len(), 1);
    assert_eq!(table.confirm(&[key(1, 4)]).await.unwrap(), [Some(HoldStage::Firm)]);
    assert!(answers(table).await.iter().all(Result::is_ok));
}

pub(super) async fn a_fleet_without_rooms_is_not_lost(table: &dyn RoomTable) {
    rebuild(table, &arena(), []).await;
    assert_eq!(counts(table).await, FleetCounts::default());
    assert_eq!(table.rooms(&arena()).await.unwrap(), []);
    assert_eq!(try_ping(table, 1, PingStatus::Ready, 0).await, Err(PingError::UnknownRoom));
    insert_ready(table, 1).await;
    table.remove(&arena(), &room_id(1)).await.unwrap();
    assert_eq!(table.rooms(&arena()).await.unwrap(), [], "nor when its last room is gone");
}

pub(super) async fn schedulers_are_lost_one_by_one(table: &dyn RoomTable) {
    rebuild(table, &bystander(), [NewRoom { scheduler: bystander(), ..held_room() }]).await;
    check_lost(table).await;
    let other = HoldKey { scheduler: bystander(), ..key(1, 4) };
    assert_eq!(table.confirm(&[key(1, 4), other.clone()]).await.unwrap(), [None, Some(HoldStage::Firm)]);
    table.release(&[key(1, 4), other]).await.unwrap();
    assert_eq!(table.holds(&bystander()).await.unwrap(), []);
}

pub(super) async fn a_rebuild_forgets_what_was_there(table: &dyn RoomTable) {
    table.insert(held_room()).await.unwrap();
    table.insert(new_room(2)).await.unwrap();
    let rules = AllocationRules { version_of_new_rooms: Some(Version::FIRST), ..AllocationRules::default() };
    table.set_allocation_rules(&arena(), rules).await.unwrap();
    let again = NewRoom { claim_number: ClaimNumber(7), ..new_room(1) };
    rebuild(table, &arena(), [again]).await;
    assert_eq!(table.rooms(&arena()).await.unwrap().len(), 1);
    assert_eq!(counts(table).await, recounted(table).await);
    assert_eq!(table.holds(&arena()).await.unwrap(), []);
    assert_eq!(table.allocation_rules(&arena()).await.unwrap(), AllocationRules::default());
    ping(table, 1, PingStatus::Ready).await;
    let ids = [allocation(3)];
    let held = table.hold(&[request(&ids, &[])]).await.unwrap();
    let HoldAnswer::Held(rooms) = &held[0] else { panic!("the room is free") };
    assert_eq!(rooms[0].number, ClaimNumber(8));
}

pub(super) async fn a_late_rebuild_harms_nobody(table: &dyn RoomTable) {
    rebuild(table, &arena(), [new_room(1)]).await;
    ping(table, 1, PingStatus::Occupied).await;
    let before = room(table, 1).await;
    assert!(!table.begin_rebuild(&arena()).await.unwrap(), "it is not lost");
    table.insert(NewRoom { known: false, ..new_room(1) }).await.unwrap();
    table.end_rebuild(&arena()).await.unwrap();
    assert_eq!(room(table, 1).await, before);
}

/// One may forget what the other has inserted. What is left may lack rooms, and knows nothing that is not so.
pub(super) async fn rebuilders_at_once_harm_nobody(table: &dyn RoomTable) {
    let rebuild = async |first: u32| {
        table.begin_rebuild(&arena()).await.unwrap();
        for number in (first..=3).chain(1..first) {
            table.insert(NewRoom { known: false, ..new_room(number) }).await.unwrap();
        }
        table.end_rebuild(&arena()).await.unwrap();
    };
    join(rebuild(1), rebuild(3)).await;
    for number in 1..=3 {
        table.insert(NewRoom { known: false, ..new_room(number) }).await.unwrap();
    }
    assert_eq!(table.rooms(&arena()).await.unwrap().len(), 3);
    assert_eq!(counts(table).await.unknown, 3);
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn nothing_is_marked_that_was_not_rebuilt(table: &dyn RoomTable) {
    let lost = Err(TableError::Lost(arena()));
    assert_eq!(table.end_rebuild(&arena()).await, lost);
    table.insert(new_room(1)).await.unwrap();
    assert_eq!(table.end_rebuild(&arena()).await, lost, "it may be of an old dump");
    assert!(table.begin_rebuild(&arena()).await.unwrap());
    table.remove_scheduler(&arena()).await.unwrap();
    assert_eq!(table.end_rebuild(&arena()).await, lost, "it was lost once more");
}

pub(super) async fn a_removed_scheduler_is_lost(table: &dyn RoomTable) {
    table.remove_scheduler(&arena()).await.unwrap();
    rebuild(table, &arena(), [held_room()]).await;
    table.remove_scheduler(&arena()).await.unwrap();
    check_lost(table).await;
    rebuild(table, &arena(), []).await;
    assert_eq!(table.rooms(&arena()).await.unwrap(), []);
    assert_eq!(table.holds(&arena()).await.unwrap(), []);
}

pub(super) async fn a_ping_to_a_scheduler_that_cannot_be_is_of_no_room(table: &dyn RoomTable) {
    let id = room_id(1);
    for name in ["", "Not a name", "-"] {
        let ping = Ping { scheduler: name, ..ready_ping(&id) };
        assert_eq!(table.ping(ping, at(5)).await, Err(PingError::UnknownRoom), "{name:?}");
    }
}
