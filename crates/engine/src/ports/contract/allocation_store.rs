//! The suite of allocations: who gets a room ([`giving`]), how an allocation ends ([`ending`]), what it means to those who
//! take rooms away ([`stopping`]), and how allocations are found and forgotten ([`lists`]).

mod ending;
mod giving;
mod lists;
mod stopping;

use std::future::Future;

use crate::ports::Store;
use crate::ports::store::Change;

use super::fixtures::*;
use super::{StoreUnderTest, run_cases};

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    run_cases!(
        "allocation store",
        fresh,
        [
            giving::an_allocation_comes_back_as_it_was_made,
            giving::an_allocation_says_where_its_room_is,
            giving::a_scheduler_that_is_not_there_gives_no_rooms,
            giving::a_scheduler_being_deleted_gives_no_rooms,
            giving::only_live_rooms_of_the_fleet_are_given,
            giving::a_room_of_another_scheduler_is_not_given,
            giving::a_number_is_spent_once,
            giving::a_room_that_is_to_stop_is_not_given,
            giving::a_slot_is_given_once,
            giving::a_room_of_several_matches_is_given_as_often,
            giving::an_allocation_id_is_given_once,
            giving::a_part_of_a_request_is_answered_once,
            giving::transactions_that_are_written_together_are_refused_one_by_one,
            giving::transactions_that_are_written_together_are_done_in_their_order,
            giving::of_many_callers_one_gets_the_last_slot,
            ending::an_allocation_ends_once,
            ending::every_end_comes_back,
            ending::what_is_not_there_cannot_end,
            ending::an_end_frees_the_slot_but_not_the_number,
            ending::a_withdrawn_allocation_gives_its_request_back,
            ending::a_lost_allocation_gives_its_request_back_when_it_is_withdrawn,
            ending::what_is_over_or_not_there_is_not_withdrawn,
            ending::a_spent_number_gives_no_room,
            ending::a_number_whose_row_is_there_cannot_be_spent,
            ending::a_number_is_never_lowered,
            stopping::the_end_of_a_room_loses_its_allocations,
            stopping::a_stop_intent_loses_allocations_that_it_may_take,
            stopping::a_stop_intent_takes_no_held_room_that_it_may_not_take,
            stopping::a_stop_intent_takes_no_room_that_was_claimed_since,
            stopping::a_second_stop_intent_changes_nothing,
            stopping::a_number_may_be_spent_on_a_room_that_is_to_stop,
            lists::open_allocations_are_ordered_by_room_and_number,
            lists::allocations_of_a_request_are_ordered_by_index,
            lists::pages_are_newest_first,
            lists::pages_are_filtered_by_state_and_room,
            lists::old_ends_are_forgotten,
            lists::those_of_requests_are_kept_longer,
            lists::no_more_ends_are_kept_than_asked_for,
            lists::so_many_are_forgotten_at_once_the_earliest_ends_first,
            lists::allocations_outlive_their_room_and_go_with_their_scheduler,
        ]
    );
}

/// Rooms 1 to `count` of the arena, on ports from 40001.
async fn rooms(store: &dyn Store, count: u32) {
    open(store).await;
    let room = |number: u32| new_room(number, 40000 + number as u16);
    accept(store, (1..=count).map(|number| Change::IntendRoom(room(number))).collect()).await;
}

/// The last number that was spent on a room, and how many of its allocations are open.
async fn claims(store: &dyn Store, number: u32) -> (u64, u32) {
    let row = room(store, number).await;
    (row.claim_number.0, row.holds)
}
