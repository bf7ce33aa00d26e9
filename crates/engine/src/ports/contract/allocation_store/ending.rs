//! How an allocation ends, and what becomes of a claim whose row was never written.

use maestro_core::allocation::AllocationState::{Begun, Expired, Lost, Returned};
use maestro_core::allocation::ClaimNumber;

use crate::ports::Store;
use crate::ports::store::{AllocationRecord, Change, ClaimedSince, NewAllocation, Refusal};

use super::super::fixtures::*;
use super::{claims, rooms};

pub(super) async fn an_allocation_ends_once(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![allocate(1, 1, 1)]).await;
    accept(store, vec![end_allocation(1, Begun, 20)]).await;
    for state in [Begun, Returned, Expired, Lost] {
        let over = Refusal::AllocationOver { allocation: allocation_id(1), is: Begun };
        refuse(store, vec![end_allocation(1, state, 21)], over).await;
    }
    let expected =
        AllocationRecord { state: Begun, ended_at: Some(at(20)), ..allocated(new_allocation(1, 1, 1)) };
    assert_eq!(allocation(store, 1).await, expected);
    assert_eq!(claims(store, 1).await, (1, 0));
}

pub(super) async fn every_end_comes_back(store: &dyn Store) {
    rooms(store, 4).await;
    for (number, state) in (1..).zip([Begun, Returned, Expired, Lost]) {
        let end = Change::EndAllocation {
            scheduler: arena(),
            allocation: allocation_id(number.into()),
            state,
            cause: format!("why it is {state}"),
            at: at(20),
        };
        accept(store, vec![allocate(number.into(), number, 1), end]).await;
        let found = allocation(store, number.into()).await;
        assert_eq!((found.state, found.ended_at), (state, Some(at(20))));
        assert_eq!(found.cause, format!("why it is {state}"));
    }
    assert_eq!(store.open_allocations(Some(&arena())).await.unwrap(), []);
}

pub(super) async fn what_is_not_there_cannot_end(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![allocate(1, 1, 1)]).await;
    let missing = Refusal::AllocationNotFound(allocation_id(2));
    refuse(store, vec![end_allocation(2, Begun, 20)], missing).await;
    let of_others = Change::EndAllocation {
        scheduler: bystander(),
        allocation: allocation_id(1),
        state: Begun,
        cause: String::new(),
        at: at(20),
    };
    refuse(store, vec![of_others], Refusal::AllocationNotFound(allocation_id(1))).await;
}

pub(super) async fn an_end_frees_the_slot_but_not_the_number(store: &dyn Store) {
    rooms(store, 1).await;
    let slot = |id: u128, number| {
        Change::Allocate(NewAllocation { matches_max: 2, ..new_allocation(id, 1, number) })
    };
    accept(store, vec![slot(1, 1), slot(2, 2)]).await;
    accept(store, vec![end_allocation(1, Returned, 20)]).await;
    assert_eq!(claims(store, 1).await, (2, 1));
    refuse(store, vec![slot(3, 1)], Refusal::RoomClaimed(room_id(1))).await;
    accept(store, vec![slot(3, 3)]).await;
    // In one transaction, in the order in which it is written.
    accept(store, vec![end_allocation(2, Expired, 21), slot(4, 4)]).await;
    assert_eq!(claims(store, 1).await, (4, 2));
}

pub(super) async fn a_withdrawn_allocation_gives_its_request_back(store: &dyn Store) {
    rooms(store, 2).await;
    let part =
        |id, room, index| NewAllocation { request: request("match", index), ..new_allocation(id, room, 1) };
    accept(store, vec![Change::Allocate(part(1, 1, 0)), withdraw(1, 20)]).await;
    let expected = AllocationRecord {
        request: None,
        state: Lost,
        cause: "the room was taken away".into(),
        ended_at: Some(at(20)),
        ..allocated(part(1, 1, 0))
    };
    assert_eq!(allocation(store, 1).await, expected);
    assert_eq!(claims(store, 1).await, (1, 0));
    assert_eq!(store.allocations_of_request(&arena(), "match").await.unwrap(), []);
    accept(store, vec![Change::Allocate(part(2, 2, 0))]).await;
}

/// Its room ended, or was taken away, before anybody was told of it.
pub(super) async fn a_lost_allocation_gives_its_request_back_when_it_is_withdrawn(store: &dyn Store) {
    rooms(store, 4).await;
    let part =
        |id, room, index| NewAllocation { request: request("match", index), ..new_allocation(id, room, 1) };
    accept(store, vec![Change::Allocate(part(1, 1, 0)), Change::Allocate(part(2, 2, 1))]).await;
    let taken = ClaimedSince { number: ClaimNumber(1), takes_held: true };
    accept(store, vec![end_room(1, 19), intend_stop_unless(2, 1, taken)]).await;
    let before = [allocation(store, 1).await, allocation(store, 2).await];
    accept(store, vec![withdraw(1, 20), withdraw(2, 20)]).await;
    for (number, before) in (1..).zip(before) {
        assert_eq!(before.state, Lost);
        assert_eq!(allocation(store, number).await, AllocationRecord { request: None, ..before });
    }
    assert_eq!(claims(store, 2).await, (1, 0));
    assert_eq!(store.allocations_of_request(&arena(), "match").await.unwrap(), []);
    accept(store, vec![Change::Allocate(part(3, 3, 0)), Change::Allocate(part(4, 4, 1))]).await;
}

pub(super) async fn what_is_over_or_not_there_is_not_withdrawn(store: &dyn Store) {
    rooms(store, 3).await;
    for (number, state) in (1..).zip([Begun, Returned, Expired]) {
        let new =
            NewAllocation { request: request("match", number), ..new_allocation(number.into(), number, 1) };
        accept(store, vec![Change::Allocate(new), end_allocation(number.into(), state, 19)]).await;
    }
    let before = everything(store).await;
    accept(store, (1..=4).map(|number| withdraw(number, 20)).collect()).await;
    assert_eq!(everything(store).await, before);
}

pub(super) async fn a_spent_number_gives_no_room(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![spend(1, 3, 1)]).await;
    assert_eq!(claims(store, 1).await, (3, 0));
    for number in [1, 3] {
        refuse(store, vec![allocate(1, 1, number)], Refusal::RoomClaimed(room_id(1))).await;
    }
    accept(store, vec![allocate(1, 1, 4)]).await;
}

pub(super) async fn a_number_whose_row_is_there_cannot_be_spent(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![allocate(1, 1, 1)]).await;
    let exists = || Refusal::AllocationExists(allocation_id(1));
    refuse(store, vec![spend(1, 1, 1)], exists()).await;
    // Nor if somebody claimed the room since, nor after its end.
    refuse(store, vec![spend(1, 5, 1)], exists()).await;
    accept(store, vec![end_allocation(1, Returned, 20)]).await;
    refuse(store, vec![spend(1, 1, 1)], exists()).await;
}

pub(super) async fn a_number_is_never_lowered(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![spend(1, 5, 1), spend(1, 5, 1), spend(1, 2, 2)]).await;
    assert_eq!(claims(store, 1).await, (5, 0));
    let before = everything(store).await;
    let of_others = Change::SpendClaim {
        scheduler: bystander(),
        room: room_id(1),
        number: ClaimNumber(9),
        allocation: allocation_id(3),
    };
    accept(store, vec![spend(7, 1, 1), of_others]).await;
    assert_eq!(everything(store).await, before, "there is no such room");
}
