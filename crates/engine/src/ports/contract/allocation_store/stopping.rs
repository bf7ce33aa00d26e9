//! What allocations mean to those who take rooms away.

use maestro_core::allocation::AllocationState::{Begun, Lost};
use maestro_core::allocation::ClaimNumber;

use crate::ports::Store;
use crate::ports::store::{AllocationRecord, Change, ClaimedSince, Intent, NewAllocation, Refusal};

use super::super::fixtures::*;
use super::{claims, rooms};

fn unless(number: u64, takes_held: bool) -> ClaimedSince {
    ClaimedSince { number: ClaimNumber(number), takes_held }
}

/// Two allocations of room 1 are open, a third one has begun; room 2 has one.
async fn held_rooms(store: &dyn Store) {
    rooms(store, 2).await;
    let slot =
        |id: u128| Change::Allocate(NewAllocation { matches_max: 3, ..new_allocation(id, 1, id as u64) });
    accept(store, vec![slot(1), slot(2), slot(3), allocate(4, 2, 1), end_allocation(1, Begun, 12)]).await;
}

async fn check_lost(store: &dyn Store, cause: &str, seconds: i64) {
    for id in [2, 3] {
        let expected = AllocationRecord {
            state: Lost,
            cause: cause.into(),
            ended_at: Some(at(seconds)),
            ..allocated(new_allocation(id, 1, id as u64))
        };
        assert_eq!(allocation(store, id).await, expected);
    }
    assert_eq!(allocation(store, 1).await.state, Begun, "what is over stays as it is");
    assert_eq!(allocation(store, 1).await.ended_at, Some(at(12)));
    assert!(allocation(store, 4).await.state.is_open(), "another room's stay");
    assert_eq!((claims(store, 1).await, claims(store, 2).await), ((3, 0), (1, 1)));
}

pub(super) async fn the_end_of_a_room_loses_its_allocations(store: &dyn Store) {
    held_rooms(store).await;
    accept(store, vec![end_room(1, 20)]).await;
    check_lost(store, &ended(20).how, 20).await;
    accept(store, vec![end_room(1, 21)]).await;
    check_lost(store, &ended(20).how, 20).await;
    refuse(store, vec![allocate(5, 1, 9)], Refusal::RoomNotFound(room_id(1))).await;
}

pub(super) async fn a_stop_intent_loses_allocations_that_it_may_take(store: &dyn Store) {
    held_rooms(store).await;
    accept(store, vec![intend_stop_unless(1, 2, unless(3, true))]).await;
    assert_eq!(room(store, 1).await.intent, Intent::Stop(stop_intent(2)));
    check_lost(store, &stop_intent(2).reason, 5).await;
    // How it ends does not matter to them any more.
    accept(store, vec![end_room(1, 20)]).await;
    check_lost(store, &stop_intent(2).reason, 5).await;
}

pub(super) async fn a_stop_intent_takes_no_held_room_that_it_may_not_take(store: &dyn Store) {
    held_rooms(store).await;
    let stop = || vec![intend_stop_unless(1, 2, unless(3, false))];
    refuse(store, stop(), Refusal::RoomClaimed(room_id(1))).await;
    accept(store, vec![end_allocation(2, Begun, 13)]).await;
    refuse(store, stop(), Refusal::RoomClaimed(room_id(1))).await;
    accept(store, vec![end_allocation(3, Begun, 13)]).await;
    accept(store, stop()).await;
}

pub(super) async fn a_stop_intent_takes_no_room_that_was_claimed_since(store: &dyn Store) {
    held_rooms(store).await;
    for number in [0, 2, 4] {
        let stop = intend_stop_unless(1, 2, unless(number, true));
        refuse(store, vec![stop], Refusal::RoomClaimed(room_id(1))).await;
    }
    // Also if nothing of the claim is left.
    accept(store, vec![spend(1, 4, 9), end_allocation(2, Begun, 13), end_allocation(3, Begun, 13)]).await;
    let stop = intend_stop_unless(1, 2, unless(3, true));
    refuse(store, vec![stop], Refusal::RoomClaimed(room_id(1))).await;
    accept(store, vec![intend_stop_unless(1, 2, unless(4, false))]).await;
    // There is nothing to be claimed of a room that is not there.
    let missing = intend_stop_unless(9, 2, unless(0, true));
    refuse(store, vec![missing], Refusal::RoomNotFound(room_id(9))).await;
}

pub(super) async fn a_second_stop_intent_changes_nothing(store: &dyn Store) {
    held_rooms(store).await;
    accept(store, vec![intend_stop_unless(1, 2, unless(3, true))]).await;
    let before = everything(store).await;
    for repeated in [unless(3, true), unless(3, false), unless(0, false), unless(9, true)] {
        accept(store, vec![intend_stop_unless(1, 2, repeated), intend_stop_unless(1, 3, repeated)]).await;
        assert_eq!(everything(store).await, before);
    }
}

pub(super) async fn a_number_may_be_spent_on_a_room_that_is_to_stop(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![intend_stop(1, 2), spend(1, 1, 1)]).await;
    assert_eq!(claims(store, 1).await, (1, 0));
    // The intent was there first: it is repeated with the number of its time.
    accept(store, vec![intend_stop(1, 2)]).await;
}
