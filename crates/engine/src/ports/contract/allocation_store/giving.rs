//! Who gets a room.

use futures_util::future::join_all;
use maestro_core::allocation::AllocationState;
use maestro_core::room::{Purpose, Region};
use maestro_core::scheduler::Version;

use crate::ports::Store;
use crate::ports::room_table::RoomAddress;
use crate::ports::store::{
    AllocatedPlace, AllocationRecord, Change, NewAllocation, NewRoomRecord, Refusal, SchedulerState,
    Transaction,
};

use super::super::fixtures::*;
use super::{claims, rooms};

pub(super) async fn an_allocation_comes_back_as_it_was_made(store: &dyn Store) {
    rooms(store, 2).await;
    let plain = new_allocation(1, 1, 1);
    let full = NewAllocation {
        request: request("match-7", 3),
        created_at: at(11),
        expires_at: at(71),
        metadata: metadata(r#"{"map":"dust","players":["ann","bob"]}"#),
        ..new_allocation(2, 2, 9)
    };
    accept(store, vec![Change::Allocate(plain.clone()), Change::Allocate(full.clone())]).await;
    assert_eq!(allocation(store, 1).await, allocated(plain));
    assert_eq!(allocation(store, 2).await, allocated(full));
    assert_eq!((claims(store, 1).await, claims(store, 2).await), ((1, 1), (9, 1)));
    assert_eq!(store.allocation(&arena(), allocation_id(3)).await.unwrap(), None);
    assert_eq!(store.allocation(&bystander(), allocation_id(1)).await.unwrap(), None);
}

pub(super) async fn an_allocation_says_where_its_room_is(store: &dyn Store) {
    open(store).await;
    let (version, region) = (Version { major: 3, minor: 1, patch: 0 }, Region("eu".into()));
    let new = NewRoomRecord { version, region: region.clone(), ..new_room(1, 40001) };
    let ports = new.ports.clone();
    accept(store, vec![Change::IntendRoom(new), allocate(1, 1, 1)]).await;
    assert_eq!(allocation(store, 1).await.place, None, "nobody knows yet where it runs");
    let handle = handle(5);
    let address = RoomAddress { host: handle.host.as_str().into(), ports: ports.into() };
    accept(store, vec![Change::RoomStarted { scheduler: arena(), room: room_id(1), handle }]).await;
    let place = Some(AllocatedPlace { version, region, address });
    assert_eq!(allocation(store, 1).await.place, place);
    assert_eq!(store.open_allocations(Some(&arena())).await.unwrap()[0].place, place);
    assert_eq!(store.allocations(&arena(), all_allocations()).await.unwrap().allocations[0].place, place);
    accept(store, vec![end_room(1, 12)]).await;
    assert_eq!(allocation(store, 1).await.place, place, "it is still known where it was");
}

pub(super) async fn a_scheduler_that_is_not_there_gives_no_rooms(store: &dyn Store) {
    rooms(store, 1).await;
    let astray = NewAllocation { scheduler: name("gone"), ..new_allocation(1, 1, 1) };
    refuse(store, vec![Change::Allocate(astray)], Refusal::SchedulerNotFound(name("gone"))).await;
}

pub(super) async fn a_scheduler_being_deleted_gives_no_rooms(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![set_state(0, SchedulerState::Deleting)]).await;
    refuse(store, vec![allocate(1, 1, 1)], Refusal::SchedulerBeingDeleted(arena())).await;
}

pub(super) async fn only_live_rooms_of_the_fleet_are_given(store: &dyn Store) {
    rooms(store, 2).await;
    let validation = NewRoomRecord { purpose: Purpose::Validation, ..new_room(3, 40003) };
    accept(store, vec![Change::IntendRoom(validation), end_room(2, 4)]).await;
    for number in [2, 3, 4] {
        refuse(store, vec![allocate(1, number, 1)], Refusal::RoomNotFound(room_id(number))).await;
    }
    accept(store, vec![allocate(1, 1, 1)]).await;
}

pub(super) async fn a_room_of_another_scheduler_is_not_given(store: &dyn Store) {
    rooms(store, 1).await;
    let others = NewAllocation { scheduler: bystander(), ..new_allocation(1, 1, 1) };
    refuse(store, vec![Change::Allocate(others)], Refusal::RoomNotFound(room_id(1))).await;
}

pub(super) async fn a_number_is_spent_once(store: &dyn Store) {
    rooms(store, 1).await;
    let several =
        |id, number| Change::Allocate(NewAllocation { matches_max: 5, ..new_allocation(id, 1, number) });
    refuse(store, vec![several(1, 0)], Refusal::RoomClaimed(room_id(1))).await;
    accept(store, vec![several(1, 4)]).await;
    for number in [0, 3, 4] {
        refuse(store, vec![several(2, number)], Refusal::RoomClaimed(room_id(1))).await;
    }
    accept(store, vec![several(2, 5)]).await;
    accept(store, vec![several(3, 9)]).await;
    assert_eq!(claims(store, 1).await, (9, 3));
}

pub(super) async fn a_room_that_is_to_stop_is_not_given(store: &dyn Store) {
    rooms(store, 1).await;
    accept(store, vec![intend_stop(1, 2)]).await;
    refuse(store, vec![allocate(1, 1, 1)], Refusal::RoomClaimed(room_id(1))).await;
}

pub(super) async fn a_slot_is_given_once(store: &dyn Store) {
    rooms(store, 2).await;
    accept(store, vec![allocate(1, 1, 1)]).await;
    refuse(store, vec![allocate(2, 1, 2)], Refusal::RoomClaimed(room_id(1))).await;
    let twice = vec![allocate(2, 2, 1), allocate(3, 2, 2)];
    refuse(store, twice, Refusal::RoomClaimed(room_id(2))).await;
}

pub(super) async fn a_room_of_several_matches_is_given_as_often(store: &dyn Store) {
    rooms(store, 2).await;
    let slot =
        |id: u128| Change::Allocate(NewAllocation { matches_max: 3, ..new_allocation(id, 1, id as u64) });
    accept(store, vec![slot(1), slot(2)]).await;
    accept(store, vec![slot(3)]).await;
    refuse(store, vec![slot(4)], Refusal::RoomClaimed(room_id(1))).await;
    assert_eq!((claims(store, 1).await, claims(store, 2).await), ((3, 3), (0, 0)));
}

pub(super) async fn an_allocation_id_is_given_once(store: &dyn Store) {
    rooms(store, 2).await;
    accept(store, vec![allocate(1, 1, 1)]).await;
    refuse(store, vec![allocate(1, 2, 1)], Refusal::AllocationExists(allocation_id(1))).await;
    let requested = NewAllocation { request: request("a", 0), ..new_allocation(1, 2, 1) };
    refuse(store, vec![Change::Allocate(requested)], Refusal::AllocationExists(allocation_id(1))).await;
}

pub(super) async fn a_part_of_a_request_is_answered_once(store: &dyn Store) {
    rooms(store, 4).await;
    let part = |id, room, index| {
        Change::Allocate(NewAllocation { request: request("match-7", index), ..new_allocation(id, room, 1) })
    };
    accept(store, vec![part(1, 1, 0), part(2, 2, 1)]).await;
    let answered = || Refusal::RequestExists("match-7".into());
    refuse(store, vec![part(3, 3, 0)], answered()).await;
    // One of several is enough, and none of them is given.
    refuse(store, vec![part(3, 3, 2), part(4, 4, 1)], answered()).await;
    accept(store, vec![end_allocation(1, AllocationState::Returned, 12)]).await;
    refuse(store, vec![part(3, 3, 0)], answered()).await;
    let elsewhere = NewRoomRecord { scheduler: bystander(), id: room_id(9), ..new_room(9, 40009) };
    let of_others =
        NewAllocation { scheduler: bystander(), request: request("match-7", 0), ..new_allocation(3, 9, 1) };
    accept(store, vec![Change::IntendRoom(elsewhere), Change::Allocate(of_others)]).await;
}

fn one(change: Change) -> Transaction {
    Transaction::new("allocate", &arena(), vec![change])
}

pub(super) async fn transactions_that_are_written_together_are_refused_one_by_one(store: &dyn Store) {
    rooms(store, 3).await;
    let half = Transaction::new("allocate", &arena(), vec![allocate(4, 3, 1), allocate(5, 9, 1)]);
    let answers = store
        .commit_each(vec![
            one(allocate(1, 1, 1)),
            one(allocate(2, 1, 2)),
            half,
            one(allocate(3, 2, 1)),
            one(end_allocation(9, AllocationState::Begun, 12)),
        ])
        .await
        .unwrap();
    let expected = [
        Ok(()),
        Err(Refusal::RoomClaimed(room_id(1))),
        Err(Refusal::RoomNotFound(room_id(9))),
        Ok(()),
        Err(Refusal::AllocationNotFound(allocation_id(9))),
    ];
    assert_eq!(answers, expected);
    let open = store.open_allocations(Some(&arena())).await.unwrap();
    assert_eq!(open, [allocation(store, 1).await, allocation(store, 3).await]);
    assert_eq!(claims(store, 1).await, (1, 1));
    assert_eq!(claims(store, 3).await, (0, 0), "nothing of a refused one is done");
    assert_eq!(store.commit_each(Vec::new()).await.unwrap(), []);
}

pub(super) async fn transactions_that_are_written_together_are_done_in_their_order(store: &dyn Store) {
    rooms(store, 1).await;
    let returned = AllocationState::Returned;
    let mut transactions = Vec::new();
    // More than any group of commits would be cut to by chance.
    for number in 1..=300_u32 {
        transactions.push(one(allocate(number.into(), 1, number.into())));
        transactions.push(one(end_allocation(number.into(), returned, 12)));
    }
    let answers = store.commit_each(transactions).await.unwrap();
    assert_eq!(answers, vec![Ok(()); 600]);
    assert_eq!(claims(store, 1).await, (300, 0));
}

pub(super) async fn of_many_callers_one_gets_the_last_slot(store: &dyn Store) {
    const CALLERS: u128 = 32;
    rooms(store, 1).await;
    // Each with the number that is the next one: all of them have read the same row.
    let calls = (1..=CALLERS).map(|id| store.commit_each(vec![one(allocate(id, 1, 1))]));
    let answers: Vec<_> = join_all(calls).await.into_iter().flat_map(Result::unwrap).collect();
    let refused = Err(Refusal::RoomClaimed(room_id(1)));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == refused).count(), CALLERS as usize - 1);
    let open: Vec<AllocationRecord> = store.open_allocations(Some(&arena())).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(claims(store, 1).await, (1, 1));
}
