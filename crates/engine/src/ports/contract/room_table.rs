//! The suite of the room table: statuses, claims, counters, and what it says when it has lost them.

mod choice;
mod claims;
mod events;
mod fleets;
mod holds;
mod lost;
mod pings;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::{join, join_all};
use maestro_core::allocation::ClaimNumber;
use maestro_core::operation::OperationId;
use maestro_core::room::{Counts, InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::{SchedulerName, Version};

use crate::ports::RoomTable;
use crate::ports::room_table::{
    Claim, FleetCounts, NewRoom, Ping, PingError, Pinged, RoomAddress, RoomView, StatusChange, TableError,
};

use super::fixtures::{arena, at, bystander, operation_id, room_id};
use super::run_cases;

/// `fresh` makes an empty table.
pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = Arc<dyn RoomTable>>,
{
    let rebuilt = || async {
        let table = fresh().await;
        rebuild(&*table, &arena(), []).await;
        rebuild(&*table, &bystander(), []).await;
        table
    };
    run_cases!(
        "room table",
        rebuilt,
        [
            fleets::a_new_fleet_has_no_rooms,
            fleets::an_inserted_room_is_known_as_it_is,
            fleets::a_known_room_is_not_inserted_again,
            pings::a_ping_changes_status_and_says_what_changed,
            pings::it_is_remembered_since_when_a_room_is_terminating,
            pings::a_ping_without_metadata_keeps_the_last,
            pings::the_status_is_composed_from_instance_and_ping,
            pings::matches_decide_where_a_room_holds_several,
            pings::an_impossible_ping_is_refused_and_nothing_of_it_kept,
            pings::a_room_that_is_not_there_cannot_ping,
            pings::an_observation_says_what_changed,
            pings::an_impossible_observation_is_left_out,
            pings::an_unknown_room_is_unknown_until_it_pings,
            pings::a_room_that_was_ready_is_remembered_as_such,
            claims::a_claim_takes_candidates_in_their_order_up_to_its_number,
            claims::a_claim_takes_only_what_is_in_its_statuses_now,
            claims::a_claim_of_known_rooms_leaves_unknown_ones,
            claims::a_repeated_claim_returns_the_same_rooms,
            claims::what_was_claimed_before_counts_first,
            claims::a_claimed_room_is_not_claimed_by_another,
            claims::claims_at_once_share_no_room,
            claims::a_claimed_room_pings_and_stays_terminating,
            claims::an_observation_does_not_bring_back_a_claimed_room,
            claims::an_unclaimed_room_is_what_ping_and_instance_say,
            claims::only_who_claimed_a_room_gives_it_back,
            holds::a_hold_takes_a_ready_room_and_says_where_it_is,
            holds::only_rooms_that_can_be_played_in_are_held,
            holds::a_room_goes_to_one_of_two_callers,
            holds::two_callers_for_the_last_room,
            holds::several_rooms_or_none,
            holds::slots_of_a_room_of_several_matches,
            choice::the_fullest_room_comes_first,
            choice::wishes_are_tried_in_their_order,
            choice::what_is_to_be_replaced_comes_last,
            choice::rooms_of_an_unreachable_region_are_not_held,
            choice::a_wish_for_metadata,
            choice::many_candidates_are_found_in_turn,
            choice::nobody_finds_what_others_of_the_call_did_not,
            choice::searches_that_take_turns_see_all_rooms,
            choice::rooms_that_fell_silent_do_not_hide_others,
            choice::a_ping_from_the_future_is_no_sign_of_life,
            holds::a_provisional_hold_becomes_firm,
            holds::a_hold_of_a_room_that_is_taken_away_is_not_confirmed,
            holds::a_marked_slot_is_free_when_it_is_released,
            holds::a_match_begins,
            holds::matches_that_begin_in_a_room_of_several,
            holds::a_hold_expires_with_a_ping,
            holds::a_ping_that_was_overtaken_is_a_sign_of_life,
            holds::every_claim_takes_the_next_number,
            holds::holds_that_are_due,
            holds::a_lost_table_gets_its_holds_back,
            holds::a_removed_room_takes_its_holds_along,
            holds::terms_are_remembered,
            holds::what_is_waited_for_is_demand,
            fleets::a_removed_room_is_returned_as_it_was_last,
            fleets::a_removed_scheduler_takes_its_rooms_along,
            fleets::rooms_are_ordered_by_id,
            fleets::the_number_of_matches_a_room_holds_may_change,
            fleets::counters_follow_every_change,
            fleets::validation_rooms_are_counted_nowhere,
            events::events_are_read_in_the_order_in_which_they_were_added,
            events::a_room_that_changes_its_status_is_an_event,
            events::who_begins_is_told_from_where,
            events::what_is_too_much_is_gone_and_readers_are_told,
            events::a_loss_begins_another_ring,
            events::who_waits_is_woken,
        ]
    );
    run_cases!(
        "room table that was lost",
        fresh,
        [
            lost::a_table_without_a_mark_says_that_it_is_lost,
            lost::what_was_put_in_counts_from_the_mark_on,
            lost::a_fleet_without_rooms_is_not_lost,
            lost::schedulers_are_lost_one_by_one,
            lost::a_rebuild_forgets_what_was_there,
            lost::a_late_rebuild_harms_nobody,
            lost::rebuilders_at_once_harm_nobody,
            lost::nothing_is_marked_that_was_not_rebuilt,
            lost::a_removed_scheduler_is_lost,
            lost::a_ping_to_a_scheduler_that_cannot_be_is_of_no_room,
        ]
    );
}

// What cases are made of.

/// As its owner does it.
async fn rebuild(
    table: &dyn RoomTable,
    scheduler: &SchedulerName,
    rooms: impl IntoIterator<Item = NewRoom, IntoIter: Send> + Send,
) {
    assert!(table.begin_rebuild(scheduler).await.unwrap(), "{scheduler} is lost");
    for room in rooms {
        table.insert(room).await.unwrap();
    }
    table.end_rebuild(scheduler).await.unwrap();
}

fn new_room(number: u32) -> NewRoom {
    NewRoom {
        scheduler: arena(),
        id: room_id(number),
        version: Version::FIRST,
        region: Region::default_region(),
        purpose: Purpose::Fleet,
        instance: InstanceStatus::Ready,
        created_at: at(0),
        matches_max: 1,
        known: true,
        listened_since: at(0),
        address: Some(address()),
        claim_number: ClaimNumber(0),
        holds: Vec::new(),
    }
}

fn address() -> RoomAddress {
    RoomAddress { host: "203.0.113.7".into(), ports: [].into() }
}

/// Rooms 1 to `count`, up and silent.
async fn insert(table: &dyn RoomTable, count: u32) {
    for number in 1..=count {
        table.insert(new_room(number)).await.unwrap();
    }
}

/// Rooms 1 to `count`, ready.
async fn insert_ready(table: &dyn RoomTable, count: u32) {
    insert(table, count).await;
    for number in 1..=count {
        ping(table, number, PingStatus::Ready).await;
    }
}

/// A ping of the arena, ready, without matches.
fn ready_ping(room: &RoomId) -> Ping<'_> {
    Ping::of("arena", room.as_str(), PingStatus::Ready)
}

async fn try_ping(
    table: &dyn RoomTable,
    number: u32,
    status: PingStatus,
    matches: u32,
) -> Result<Pinged, PingError> {
    let room = room_id(number);
    let ping = Ping { status, matches, ..ready_ping(&room) };
    table.ping(ping, at(5)).await
}

async fn ping(table: &dyn RoomTable, number: u32, status: PingStatus) {
    try_ping(table, number, status, 0).await.unwrap();
}

async fn observe(table: &dyn RoomTable, number: u32, instance: InstanceStatus) -> Option<StatusChange> {
    let changed = table.observe(&arena(), &room_id(number), instance).await;
    changed.unwrap()
}

async fn claim(table: &dyn RoomTable, operation: u128, candidates: &[u32], rooms_max: usize) -> Vec<RoomId> {
    claim_in(table, operation, candidates, &[RoomStatus::Ready], rooms_max).await
}

async fn claim_in(
    table: &dyn RoomTable,
    operation: u128,
    candidates: &[u32],
    statuses: &[RoomStatus],
    rooms_max: usize,
) -> Vec<RoomId> {
    let claim = Claim {
        scheduler: &arena(),
        operation: operation_id(operation),
        candidates: &ids(candidates),
        statuses,
        known_only: true,
        rooms_max,
    };
    table.claim(claim).await.unwrap()
}

async fn unclaim(table: &dyn RoomTable, operation: OperationId, rooms: &[u32]) {
    let given_back = table.unclaim(&arena(), operation, &ids(rooms)).await;
    given_back.unwrap();
}

async fn room(table: &dyn RoomTable, number: u32) -> RoomView {
    let found = table.room(&arena(), &room_id(number)).await.unwrap();
    found.expect("the room is there")
}

async fn status(table: &dyn RoomTable, number: u32) -> RoomStatus {
    room(table, number).await.status
}

async fn counts(table: &dyn RoomTable) -> FleetCounts {
    table.counts(&arena()).await.unwrap()
}

fn ids(numbers: &[u32]) -> Vec<RoomId> {
    numbers.iter().map(|number| room_id(*number)).collect()
}

/// The counters as they must be, counted by walking over the rooms.
async fn recounted(table: &dyn RoomTable) -> FleetCounts {
    let mut counts = FleetCounts::default();
    let rooms = table.rooms(&arena()).await.unwrap();
    for room in rooms.iter().filter(|room| room.purpose == Purpose::Fleet) {
        counts.by_status.add(room.status);
        counts.by_region.entry(room.region.clone()).or_default().add(room.status);
        counts.by_instance.add(room.instance);
        counts.matches += u64::from(room.matches);
        counts.holds += u64::from(room.expected);
        counts.unknown += u32::from(!room.known);
    }
    counts
}
