//! How allocations are found and forgotten.

use maestro_core::allocation::AllocationState::{self, Begun, Held, Lost, Returned};
use maestro_core::operation::OperationStatus;

use crate::ports::Store;
use crate::ports::store::{
    AllocationPageRequest, AllocationRecord, Change, ForgetAllocations, NewAllocation, NewRoomRecord,
};

use super::super::fixtures::*;
use super::rooms;

fn numbers(rows: &[AllocationRecord]) -> Vec<u128> {
    rows.iter().map(|row| u128::from_be_bytes(*row.id.as_bytes())).collect()
}

async fn listed(store: &dyn Store) -> Vec<u128> {
    let page = store.allocations(&arena(), all_allocations()).await.unwrap();
    assert_eq!(page.total as usize, page.allocations.len());
    numbers(&page.allocations)
}

/// A room of the bystander, and an allocation of it.
fn elsewhere(room: u32, id: u128) -> [Change; 2] {
    let of_others = NewRoomRecord { scheduler: bystander(), ..new_room(room, 40000 + room as u16) };
    let allocation = NewAllocation { scheduler: bystander(), ..new_allocation(id, room, 1) };
    [Change::IntendRoom(of_others), Change::Allocate(allocation)]
}

pub(super) async fn open_allocations_are_ordered_by_room_and_number(store: &dyn Store) {
    rooms(store, 3).await;
    let slot = |id: u128, room, number| {
        Change::Allocate(NewAllocation { matches_max: 9, ..new_allocation(id, room, number) })
    };
    accept(store, vec![slot(8, 2, 1), slot(5, 2, 2), slot(7, 1, 3), slot(1, 2, 11), slot(3, 3, 1)]).await;
    accept(store, vec![end_allocation(3, Begun, 20)]).await;
    accept(store, elsewhere(9, 6).into()).await;
    let open = store.open_allocations(Some(&arena())).await.unwrap();
    assert_eq!(numbers(&open), [7, 8, 5, 1]);
    assert_eq!(open[0], allocation(store, 7).await);
    assert_eq!(numbers(&store.open_allocations(Some(&bystander())).await.unwrap()), [6]);
    assert_eq!(numbers(&store.open_allocations(None).await.unwrap()), [7, 8, 5, 1, 6]);
    assert_eq!(store.open_allocations(Some(&name("gone"))).await.unwrap(), []);
}

pub(super) async fn allocations_of_a_request_are_ordered_by_index(store: &dyn Store) {
    rooms(store, 4).await;
    let part = |id, room, name, index| {
        Change::Allocate(NewAllocation { request: request(name, index), ..new_allocation(id, room, 1) })
    };
    accept(store, vec![part(1, 1, "a", 10), part(2, 2, "a", 2), part(3, 3, "b", 0), allocate(4, 4, 1)]).await;
    accept(store, vec![end_allocation(1, Begun, 20)]).await;
    let of = async |scheduler, id| store.allocations_of_request(&scheduler, id).await.unwrap();
    let found = of(arena(), "a").await;
    assert_eq!(numbers(&found), [2, 1], "open or not");
    assert_eq!(found[0], allocation(store, 2).await);
    assert_eq!(numbers(&of(arena(), "b").await), [3]);
    assert_eq!(of(arena(), "c").await, []);
    assert_eq!(of(bystander(), "a").await, []);
}

pub(super) async fn pages_are_newest_first(store: &dyn Store) {
    rooms(store, 5).await;
    for (room, id) in (1..).zip([3, 1, 5, 2, 4]) {
        accept(store, vec![allocate(id, room, 1)]).await;
    }
    accept(store, elsewhere(9, 6).into()).await;
    let page = async |page, page_size| {
        let request = AllocationPageRequest { page, page_size, ..all_allocations() };
        let page = store.allocations(&arena(), request).await.unwrap();
        (page.total, numbers(&page.allocations))
    };
    assert_eq!(page(1, 2).await, (5, vec![5, 4]));
    assert_eq!(page(2, 2).await, (5, vec![3, 2]));
    assert_eq!(page(3, 2).await, (5, vec![1]));
    assert_eq!(page(4, 2).await, (5, vec![]));
    assert_eq!(page(u32::MAX, u32::MAX).await, (5, vec![]));
    let all = store.allocations(&arena(), all_allocations()).await.unwrap();
    assert_eq!(all.allocations[0], allocation(store, 5).await);
    assert_eq!(store.allocations(&name("gone"), all_allocations()).await.unwrap().total, 0);
}

pub(super) async fn pages_are_filtered_by_state_and_room(store: &dyn Store) {
    rooms(store, 3).await;
    accept(store, vec![allocate(1, 1, 1), end_allocation(1, Begun, 20)]).await;
    accept(store, vec![allocate(2, 1, 2), end_allocation(2, Returned, 21)]).await;
    accept(store, vec![allocate(3, 1, 3), allocate(4, 2, 1), end_allocation(4, Begun, 22)]).await;
    accept(store, vec![allocate(5, 3, 1), end_room(3, 23)]).await;
    let check = async |state: Option<AllocationState>, room: Option<u32>, expected: &[u128]| {
        let request = AllocationPageRequest { state, room: room.map(room_id), ..all_allocations() };
        let page = store.allocations(&arena(), request).await.unwrap();
        assert_eq!(numbers(&page.allocations), expected, "{state:?} of {room:?}");
        assert_eq!(page.total as usize, expected.len(), "{state:?} of {room:?}");
    };
    check(None, None, &[5, 4, 3, 2, 1]).await;
    check(Some(Begun), None, &[4, 1]).await;
    check(Some(Held), None, &[3]).await;
    check(Some(Lost), None, &[5]).await;
    check(Some(AllocationState::Expired), None, &[]).await;
    check(None, Some(1), &[3, 2, 1]).await;
    check(None, Some(3), &[5]).await;
    check(None, Some(9), &[]).await;
    check(Some(Begun), Some(1), &[1]).await;
    check(Some(Held), Some(1), &[3]).await;
    check(Some(Held), Some(2), &[]).await;
}

/// Allocations 1 to 6 of rooms of their own: 1 is open, the others ended at 20, 30, …, 60. Those with an even number are of
/// requests.
async fn ended_allocations(store: &dyn Store) {
    rooms(store, 6).await;
    for number in 1..=6_u32 {
        let request = if number % 2 == 0 { request("match", number) } else { None };
        let new = NewAllocation { request, ..new_allocation(number.into(), number, 1) };
        accept(store, vec![Change::Allocate(new)]).await;
        if number > 1 {
            accept(store, vec![end_allocation(number.into(), Begun, 10 * i64::from(number))]).await;
        }
    }
    accept(store, elsewhere(9, 9).into()).await;
    let end_elsewhere = Change::EndAllocation {
        scheduler: bystander(),
        allocation: allocation_id(9),
        state: Begun,
        cause: String::new(),
        at: at(1),
    };
    accept(store, vec![end_elsewhere]).await;
}

/// Forgets nothing.
fn forgetting() -> ForgetAllocations {
    ForgetAllocations {
        scheduler: arena(),
        ended_before: at(0),
        requested_ended_before: at(0),
        keep_max: 100,
        allocations_max: 100,
    }
}

async fn forget(store: &dyn Store, forget: ForgetAllocations) {
    let (announced, before) = (store.allocations_to_forget(&forget).await.unwrap(), listed(store).await);
    let at_once = forget.allocations_max;
    accept(store, vec![Change::ForgetAllocations(forget)]).await;
    let forgotten = before.len() - listed(store).await.len();
    assert_eq!(forgotten, announced.min(at_once) as usize, "as many as were announced");
    let others = store.allocations(&bystander(), all_allocations()).await.unwrap();
    assert_eq!(numbers(&others.allocations), [9]);
    assert!(allocation(store, 1).await.state.is_open(), "what is open stays");
}

pub(super) async fn old_ends_are_forgotten(store: &dyn Store) {
    ended_allocations(store).await;
    forget(store, forgetting()).await;
    assert_eq!(listed(store).await, [6, 5, 4, 3, 2, 1]);
    forget(store, ForgetAllocations { ended_before: at(50), ..forgetting() }).await;
    assert_eq!(listed(store).await, [6, 5, 4, 2, 1]);
    let all = (at(99), at(99));
    forget(store, ForgetAllocations { ended_before: all.0, requested_ended_before: all.1, ..forgetting() })
        .await;
    assert_eq!(listed(store).await, [1]);
    assert_eq!(store.allocation(&arena(), allocation_id(3)).await.unwrap(), None);
}

pub(super) async fn those_of_requests_are_kept_longer(store: &dyn Store) {
    ended_allocations(store).await;
    forget(store, ForgetAllocations { requested_ended_before: at(41), ..forgetting() }).await;
    assert_eq!(listed(store).await, [6, 5, 3, 1]);
    assert_eq!(store.allocations_of_request(&arena(), "match").await.unwrap().len(), 1);
    // What was forgotten can be asked for again.
    let again = NewAllocation { request: request("match", 2), ..new_allocation(7, 2, 2) };
    accept(store, vec![Change::Allocate(again)]).await;
}

pub(super) async fn no_more_ends_are_kept_than_asked_for(store: &dyn Store) {
    ended_allocations(store).await;
    forget(store, ForgetAllocations { keep_max: 5, ..forgetting() }).await;
    assert_eq!(listed(store).await, [6, 5, 4, 3, 2, 1]);
    forget(store, ForgetAllocations { keep_max: 3, ..forgetting() }).await;
    assert_eq!(listed(store).await, [6, 5, 4, 1], "the earliest ends go, of requests or not");
    // The old ones do not count twice.
    forget(store, ForgetAllocations { ended_before: at(51), keep_max: 2, ..forgetting() }).await;
    assert_eq!(listed(store).await, [6, 4, 1]);
    forget(store, ForgetAllocations { keep_max: 0, ..forgetting() }).await;
    assert_eq!(listed(store).await, [1]);
}

pub(super) async fn so_many_are_forgotten_at_once_the_earliest_ends_first(store: &dyn Store) {
    ended_allocations(store).await;
    let two = || ForgetAllocations {
        ended_before: at(99),
        requested_ended_before: at(41),
        keep_max: 0,
        allocations_max: 2,
        ..forgetting()
    };
    let to_forget = async || store.allocations_to_forget(&two()).await.unwrap();
    forget(store, ForgetAllocations { allocations_max: 0, ..two() }).await;
    assert_eq!(listed(store).await.len(), 6);
    assert!(to_forget().await > 2);
    forget(store, two()).await;
    assert_eq!(listed(store).await, [6, 5, 4, 1]);
    forget(store, two()).await;
    assert_eq!(listed(store).await, [6, 1]);
    assert_eq!(to_forget().await, 1);
    forget(store, two()).await;
    assert_eq!(listed(store).await, [1]);
    assert_eq!(to_forget().await, 0);
    forget(store, two()).await;
    assert_eq!(listed(store).await, [1]);
}

pub(super) async fn allocations_outlive_their_room_and_go_with_their_scheduler(store: &dyn Store) {
    rooms(store, 2).await;
    let requested = NewAllocation { request: request("match", 0), ..new_allocation(1, 1, 1) };
    accept(store, vec![Change::Allocate(requested), allocate(2, 2, 1), end_allocation(2, Begun, 20)]).await;
    accept(store, elsewhere(9, 9).into()).await;
    let rooms = vec![room_id(1), room_id(2)];
    accept(store, vec![end_room(1, 30), end_room(2, 30), Change::ForgetRooms { scheduler: arena(), rooms }])
        .await;
    let lost = allocation(store, 1).await;
    assert_eq!((lost.state, lost.place), (Lost, None));
    assert_eq!(listed(store).await, [2, 1]);

    accept(store, vec![Change::Enqueue(new_operation(1)), start(1), end(1, OperationStatus::Finished)]).await;
    accept(store, vec![Change::DeleteScheduler { scheduler: arena(), keep: operation_id(1) }]).await;
    assert_eq!(listed(store).await, []);
    assert_eq!(store.allocation(&arena(), allocation_id(1)).await.unwrap(), None);
    assert_eq!(store.allocations_of_request(&arena(), "match").await.unwrap(), []);
    assert_eq!(numbers(&store.open_allocations(None).await.unwrap()), [9]);
    // Another scheduler of that name begins anew.
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena()))]).await;
    accept(store, vec![Change::IntendRoom(new_room(1, 40001))]).await;
    let again = NewAllocation { request: request("match", 0), ..new_allocation(1, 1, 1) };
    accept(store, vec![Change::Allocate(again)]).await;
}
