//! The suite of the room registry: what is wanted of a room, what was made of it, how it ended.

use std::collections::BTreeSet;
use std::future::Future;

use maestro_core::allocation::ClaimNumber;
use maestro_core::room::{EndCause, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Protocol, Version};
use serde_json::json;

use crate::ports::Store;
use crate::ports::runtime::Handle;
use crate::ports::store::{Change, Ended, EndedRoom, Intent, NewRoomRecord, Refusal, RoomCount, RoomRecord};

use super::fixtures::*;
use super::{StoreUnderTest, run_cases};

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    run_cases!(
        "room registry",
        fresh,
        [
            a_new_registry_is_empty,
            an_intended_room_comes_back_as_it_was_intended,
            a_room_needs_its_scheduler,
            a_room_id_is_given_once_also_after_the_end,
            a_started_room_has_a_handle,
            the_first_stop_intent_stays,
            an_end_is_a_fact_and_the_first_one_stays,
            every_cause_of_an_end_comes_back,
            only_the_instance_that_ended_ends_a_room,
            what_does_not_live_cannot_be_stopped,
            a_room_may_end_before_its_start_is_written,
            a_port_is_given_once_in_a_region,
            a_port_is_given_once_on_a_host,
            a_port_is_free_again_after_the_end,
            ports_in_use_are_those_of_all_live_rooms_of_a_region,
            live_rooms_are_ordered_by_id,
            rooms_that_an_operation_has_leave_are_found,
            live_rooms_of_a_fleet_are_counted_by_version_and_region,
            rooms_made_by_an_operation_are_found_ended_ones_too,
            ended_rooms_are_listed_latest_end_first,
            rooms_that_ended_long_ago_are_found_for_retention,
            ended_rooms_are_forgotten_and_live_ones_stay,
        ]
    );
}

/// Rooms 1 to `count` of the arena, on ports from 40001.
async fn intend(store: &dyn Store, count: u32) {
    open(store).await;
    let room = |number: u32| new_room(number, 40000 + number as u16);
    let intents = (1..=count).map(|number| Change::IntendRoom(room(number)));
    accept(store, intents.collect()).await;
}

fn started(number: u32, pid: u32) -> Change {
    Change::RoomStarted { scheduler: arena(), room: room_id(number), handle: handle(pid) }
}

fn ids(rooms: &[RoomRecord]) -> Vec<&str> {
    rooms.iter().map(|room| room.id.as_str()).collect()
}

async fn a_new_registry_is_empty(store: &dyn Store) {
    let region = Region::default_region();
    assert_eq!(store.room(&arena(), &room_id(1)).await.unwrap(), None);
    assert_eq!(store.live_rooms(&arena()).await.unwrap(), []);
    assert_eq!(store.all_live_rooms().await.unwrap(), []);
    assert_eq!(store.rooms_made_by(&arena(), operation_id(1)).await.unwrap(), []);
    assert_eq!(store.ended_rooms(&arena(), 10).await.unwrap(), []);
    assert_eq!(store.rooms_ended_before(&arena(), at(9), None, 10).await.unwrap(), []);
    assert!(store.ports_in_use(&region).await.unwrap().is_empty());
}

async fn an_intended_room_comes_back_as_it_was_intended(store: &dyn Store) {
    open(store).await;
    let version = Version { major: 3, minor: 14, patch: 0 };
    let port = |name: &str, protocol, host_port| HostPort {
        name: name.into(),
        protocol,
        container_port: 7777,
        host_port,
    };
    let ports = vec![
        port("game", Protocol::Udp, 40007),
        port("chat", Protocol::Tcp, 40001),
        port("voice", Protocol::Sctp, 40004),
    ];
    let intended = NewRoomRecord {
        version,
        region: Region("eu".into()),
        purpose: Purpose::Validation,
        ports: ports.clone(),
        operation: operation_id(77),
        token: token(5),
        created_at: at(3),
        ..new_room(1, 1)
    };
    accept(store, vec![Change::IntendRoom(intended)]).await;
    let expected = RoomRecord {
        id: room_id(1),
        scheduler: arena(),
        version,
        region: Region("eu".into()),
        purpose: Purpose::Validation,
        ports,
        handle: None,
        intent: Intent::Run,
        operation: operation_id(77),
        token: token(5),
        created_at: at(3),
        ended: None,
        claim_number: ClaimNumber(0),
        holds: 0,
    };
    assert_eq!(room(store, 1).await, expected);
    assert_eq!(store.room(&bystander(), &room_id(1)).await.unwrap(), None);
    assert_eq!(store.live_rooms(&arena()).await.unwrap(), [expected]);
}

async fn a_room_needs_its_scheduler(store: &dyn Store) {
    open(store).await;
    let astray = NewRoomRecord { scheduler: name("gone"), ..new_room(1, 40001) };
    refuse(store, vec![Change::IntendRoom(astray)], Refusal::SchedulerNotFound(name("gone"))).await;
}

async fn a_room_id_is_given_once_also_after_the_end(store: &dyn Store) {
    intend(store, 1).await;
    let exists = || Refusal::RoomExists(room_id(1));
    let again = Change::IntendRoom(new_room(1, 40009));
    // Runtimes know rooms by their id alone, so it is one for all schedulers.
    let elsewhere = Change::IntendRoom(NewRoomRecord { scheduler: bystander(), ..new_room(1, 40009) });
    refuse(store, vec![again.clone()], exists()).await;
    refuse(store, vec![elsewhere.clone()], exists()).await;
    accept(store, vec![end_room(1, 4)]).await;
    refuse(store, vec![again], exists()).await;
    refuse(store, vec![elsewhere], exists()).await;
    let twice = Change::IntendRoom(new_room(2, 40002));
    refuse(store, vec![twice.clone(), twice], Refusal::RoomExists(room_id(2))).await;
}

async fn a_started_room_has_a_handle(store: &dyn Store) {
    intend(store, 2).await;
    accept(store, vec![started(1, 123)]).await;
    assert_eq!(room(store, 1).await.handle, Some(handle(123)));
    assert_eq!(room(store, 2).await.handle, None);
    accept(store, vec![intend_stop(1, 2), end_room(1, 9)]).await;
    let over = room(store, 1).await;
    assert_eq!(over.handle, Some(handle(123)), "kept for who asks what it was");
    assert_eq!(over.intent, Intent::Stop(stop_intent(2)));
}

async fn the_first_stop_intent_stays(store: &dyn Store) {
    intend(store, 2).await;
    accept(store, vec![intend_stop(1, 2), intend_stop(1, 3)]).await;
    accept(store, vec![intend_stop(1, 4)]).await;
    assert_eq!(room(store, 1).await.intent, Intent::Stop(stop_intent(2)));
    assert_eq!(room(store, 2).await.intent, Intent::Run);
    assert_eq!(store.live_rooms(&arena()).await.unwrap().len(), 2, "to be stopped is not to have ended");
}

async fn an_end_is_a_fact_and_the_first_one_stays(store: &dyn Store) {
    intend(store, 1).await;
    accept(store, vec![end_room(1, 4), end_room(1, 5), end_room(9, 4)]).await;
    accept(store, vec![end_room(1, 6)]).await;
    assert_eq!(room(store, 1).await.ended, Some(ended(4)));
    assert_eq!(store.live_rooms(&arena()).await.unwrap(), []);
    assert_eq!(store.all_live_rooms().await.unwrap(), []);
    assert_eq!(store.room(&arena(), &room_id(9)).await.unwrap(), None, "nothing was made");
}

async fn every_cause_of_an_end_comes_back(store: &dyn Store) {
    intend(store, 8).await;
    let causes = EndCause::ALL.into_iter().flat_map(|cause| [(cause, true), (cause, false)]);
    for (number, (cause, was_ready)) in (1..).zip(causes) {
        let ended = Ended { cause, was_ready, ..ended(4) };
        let change = end_as(number, None, ended.clone());
        accept(store, vec![change]).await;
        assert_eq!(room(store, number).await.ended, Some(ended));
    }
}

async fn only_the_instance_that_ended_ends_a_room(store: &dyn Store) {
    let instance = |ticks: u32| Handle { detail: json!([{ "startedAtTicks": ticks }]), ..handle(7) };
    let end_of = |number, ticks| end_as(number, Some(instance(ticks)), ended(4));
    intend(store, 4).await;
    let handle = instance(2);
    accept(store, vec![Change::RoomStarted { scheduler: arena(), room: room_id(1), handle }]).await;
    let beside = end_room(4, 4);
    refuse(store, vec![beside, end_of(1, 1)], Refusal::OtherInstance(room_id(1))).await;
    assert_eq!(room(store, 1).await.ended, None);
    assert_eq!(room(store, 4).await.ended, None, "nothing of it was done");
    accept(store, vec![end_of(1, 2)]).await;
    assert_eq!(room(store, 1).await.ended, Some(ended(4)));
    // Nothing is left to end.
    accept(store, vec![end_of(1, 1), end_of(9, 1)]).await;
    // Its start is not written yet, so nobody can tell which instance it is.
    accept(store, vec![end_of(2, 1)]).await;
    assert_eq!(room(store, 2).await.ended, Some(ended(4)));
    // Whoever names none means any.
    accept(store, vec![started(3, 5), end_room(3, 4)]).await;
    assert_eq!(room(store, 3).await.ended, Some(ended(4)));
}

async fn what_does_not_live_cannot_be_stopped(store: &dyn Store) {
    intend(store, 1).await;
    accept(store, vec![end_room(1, 4)]).await;
    for number in [1, 2] {
        refuse(store, vec![intend_stop(number, 2)], Refusal::RoomNotFound(room_id(number))).await;
    }
}

async fn a_room_may_end_before_its_start_is_written(store: &dyn Store) {
    intend(store, 1).await;
    accept(store, vec![end_room(1, 4)]).await;
    accept(store, vec![started(1, 5)]).await;
    let written = room(store, 1).await;
    assert_eq!(written.handle, Some(handle(5)));
    assert!(written.ended.is_some());
    refuse(store, vec![started(2, 5)], Refusal::RoomNotFound(room_id(2))).await;
    accept(store, vec![Change::IntendRoom(new_room(3, 40003))]).await;
    let elsewhere = Change::RoomStarted { scheduler: bystander(), room: room_id(3), handle: handle(5) };
    refuse(store, vec![elsewhere], Refusal::RoomNotFound(room_id(3))).await;
}

async fn a_port_is_given_once_in_a_region(store: &dyn Store) {
    intend(store, 1).await;
    let taken = || Refusal::PortTaken { region: Region::default_region(), port: 40001 };
    let mut second = new_room(2, 40001);
    refuse(store, vec![Change::IntendRoom(second.clone())], taken()).await;
    second.ports[0].protocol = Protocol::Tcp;
    refuse(store, vec![Change::IntendRoom(second.clone())], taken()).await;
    let elsewhere = NewRoomRecord { scheduler: bystander(), ..second.clone() };
    refuse(store, vec![Change::IntendRoom(elsewhere)], taken()).await;
    // One of several is enough, and none of them is given.
    let mut several = new_room(2, 40002);
    several.ports.extend(new_room(2, 40001).ports);
    refuse(store, vec![Change::IntendRoom(several)], taken()).await;
    let region = Region("eu".into());
    accept(store, vec![Change::IntendRoom(NewRoomRecord { region, ..second })]).await;
}

async fn a_port_is_given_once_on_a_host(store: &dyn Store) {
    intend(store, 1).await;
    let (eu, us) = (Region("eu".into()), Region("us".into()));
    let beside = vec![us.clone(), Region::default_region()];
    let second = NewRoomRecord { region: eu.clone(), regions_beside: beside, ..new_room(2, 40001) };
    let taken = Refusal::PortTaken { region: Region::default_region(), port: 40001 };
    refuse(store, vec![Change::IntendRoom(second.clone())], taken).await;
    let elsewhere = NewRoomRecord { regions_beside: vec![us.clone()], ..second };
    accept(store, vec![Change::IntendRoom(elsewhere)]).await;
    let third = NewRoomRecord { region: us, regions_beside: vec![eu.clone()], ..new_room(3, 40001) };
    refuse(store, vec![Change::IntendRoom(third)], Refusal::PortTaken { region: eu, port: 40001 }).await;
}

async fn a_port_is_free_again_after_the_end(store: &dyn Store) {
    intend(store, 1).await;
    accept(store, vec![intend_stop(1, 2)]).await;
    let second = || vec![Change::IntendRoom(new_room(2, 40001))];
    let taken = Refusal::PortTaken { region: Region::default_region(), port: 40001 };
    refuse(store, second(), taken).await;
    // In one transaction, in the order in which it is written.
    let changes = [vec![end_room(1, 4)], second()].concat();
    accept(store, changes).await;
}

async fn ports_in_use_are_those_of_all_live_rooms_of_a_region(store: &dyn Store) {
    intend(store, 3).await;
    let elsewhere = NewRoomRecord { scheduler: bystander(), ..new_room(4, 40004) };
    let other_region = NewRoomRecord { region: Region("eu".into()), ..new_room(5, 40005) };
    let mut several = new_room(6, 40006);
    several.ports.extend(new_room(6, 40016).ports);
    accept(
        store,
        vec![
            Change::IntendRoom(elsewhere),
            Change::IntendRoom(other_region),
            Change::IntendRoom(several),
            intend_stop(2, 2),
            end_room(3, 4),
        ],
    )
    .await;
    for (region, expected) in
        [("default", [40001, 40002, 40004, 40006, 40016].as_slice()), ("eu", &[40005]), ("us", &[])]
    {
        let ports = store.ports_in_use(&Region(region.into())).await.unwrap();
        assert_eq!(ports.len(), expected.len(), "each once");
        assert_eq!(BTreeSet::from_iter(ports), expected.iter().copied().collect(), "of {region}");
    }
}

async fn live_rooms_of_a_fleet_are_counted_by_version_and_region(store: &dyn Store) {
    intend(store, 4).await;
    let (second, west) = (Version { major: 2, ..Version::FIRST }, Region::parse("west").unwrap());
    let others = [
        NewRoomRecord { version: second, ..new_room(5, 40_005) },
        NewRoomRecord { region: west.clone(), ..new_room(6, 40_006) },
        NewRoomRecord { purpose: Purpose::Validation, ..new_room(7, 40_007) },
        NewRoomRecord { scheduler: bystander(), ..new_room(8, 40_008) },
    ];
    accept(store, others.into_iter().map(Change::IntendRoom).collect()).await;
    accept(store, vec![end_room(1, 9), intend_stop(2, 7)]).await;
    let mut counts = store.room_counts(&arena()).await.unwrap();
    counts.sort_by_key(|count| (count.version, count.region.clone()));
    let home = Region::default_region();
    let mut expected = [(Version::FIRST, home.clone(), 3), (Version::FIRST, west, 1), (second, home, 1)]
        .map(|(version, region, rooms)| RoomCount { version, region, rooms });
    expected.sort_by_key(|count| (count.version, count.region.clone()));
    assert_eq!(counts, expected);
    assert_eq!(store.room_counts(&name("gone")).await.unwrap(), []);
}

async fn rooms_that_an_operation_has_leave_are_found(store: &dyn Store) {
    intend(store, 5).await;
    let leaving = async |operation: u128| {
        let rows = store.leaving_rooms(&arena(), operation_id(operation)).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(leaving(7).await, []);
    accept(store, vec![intend_stop(4, 7), intend_stop(2, 7), intend_stop(3, 8)]).await;
    assert_eq!(leaving(7).await, [room_id(2), room_id(4)]);
    assert_eq!(leaving(8).await, [room_id(3)]);
    assert_eq!(store.leaving_rooms(&bystander(), operation_id(7)).await.unwrap(), []);
    accept(store, vec![end_room(2, 9)]).await;
    assert_eq!(leaving(7).await, [room_id(4)]);
}

async fn live_rooms_are_ordered_by_id(store: &dyn Store) {
    open(store).await;
    for number in [5, 1, 4, 2, 3] {
        let room = new_room(number, 40000 + number as u16);
        accept(store, vec![Change::IntendRoom(room)]).await;
    }
    let elsewhere =
        NewRoomRecord { scheduler: bystander(), id: RoomId::new("bystander-1"), ..new_room(1, 40009) };
    accept(store, vec![Change::IntendRoom(elsewhere), end_room(4, 1)]).await;
    let live = store.live_rooms(&arena()).await.unwrap();
    assert_eq!(ids(&live), ["arena-00001", "arena-00002", "arena-00003", "arena-00005"]);
    let all = store.all_live_rooms().await.unwrap();
    let all: BTreeSet<_> = ids(&all).into_iter().collect();
    let mut expected: BTreeSet<_> = ids(&live).into_iter().collect();
    expected.insert("bystander-1");
    assert_eq!(all, expected);
}

async fn rooms_made_by_an_operation_are_found_ended_ones_too(store: &dyn Store) {
    intend(store, 3).await;
    let others = NewRoomRecord { operation: operation_id(2), ..new_room(4, 40004) };
    accept(store, vec![Change::IntendRoom(others), intend_stop(2, 2), end_room(1, 4)]).await;
    let made = store.rooms_made_by(&arena(), operation_id(1)).await.unwrap();
    assert_eq!(ids(&made), ["arena-00001", "arena-00002", "arena-00003"]);
    assert_eq!(made[0], room(store, 1).await);
    let made = store.rooms_made_by(&bystander(), operation_id(1)).await.unwrap();
    assert_eq!(made, []);
}

async fn ended_rooms_are_listed_latest_end_first(store: &dyn Store) {
    intend(store, 5).await;
    let ends = [(1, 10), (2, 30), (4, 20), (5, 40)].map(|(number, seconds)| end_room(number, seconds));
    accept(store, ends.into()).await;
    let listed = store.ended_rooms(&arena(), 3).await.unwrap();
    assert_eq!(ids(&listed), ["arena-00005", "arena-00002", "arena-00004"]);
    assert_eq!(listed[0], room(store, 5).await);
    assert_eq!(store.ended_rooms(&arena(), 100).await.unwrap().len(), 4);
    assert_eq!(store.ended_rooms(&arena(), 0).await.unwrap(), []);
    assert_eq!(store.ended_rooms(&bystander(), 100).await.unwrap(), []);
}

async fn rooms_that_ended_long_ago_are_found_for_retention(store: &dyn Store) {
    intend(store, 5).await;
    let ends = [(1, 10), (2, 30), (4, 20), (5, 40)].map(|(number, seconds)| end_room(number, seconds));
    accept(store, ends.into()).await;
    let page = async |before, after: Option<&EndedRoom>, rooms_max| {
        store.rooms_ended_before(&arena(), at(before), after, rooms_max).await.unwrap()
    };
    let ids = |rooms: &[EndedRoom]| rooms.iter().map(|room| room.id.clone()).collect::<Vec<_>>();
    let old = page(30, None, 10).await;
    assert_eq!(ids(&old), [room_id(1), room_id(4)]);
    let row = room(store, 1).await;
    assert_eq!(old[0], EndedRoom { at: at(10), id: row.id, region: row.region });
    let first = page(99, None, 3).await;
    assert_eq!(ids(&first), [room_id(1), room_id(4), room_id(2)]);
    assert_eq!(ids(&page(99, first.last(), 3).await), [room_id(5)], "those after the page before");
    assert_eq!(store.rooms_ended_before(&bystander(), at(99), None, 3).await.unwrap(), []);
}

async fn ended_rooms_are_forgotten_and_live_ones_stay(store: &dyn Store) {
    intend(store, 3).await;
    let forget = Change::ForgetRooms { scheduler: arena(), rooms: vec![room_id(1), room_id(2), room_id(9)] };
    accept(store, vec![end_room(1, 4), end_room(3, 4), forget]).await;
    assert_eq!(store.room(&arena(), &room_id(1)).await.unwrap(), None);
    assert_eq!(room(store, 2).await.ended, None, "it lives");
    assert_eq!(room(store, 3).await.ended, Some(ended(4)), "it was not named");
    assert_eq!(ids(&store.ended_rooms(&arena(), 10).await.unwrap()), ["arena-00003"]);
    let made = store.rooms_made_by(&arena(), operation_id(1)).await.unwrap();
    assert_eq!(ids(&made), ["arena-00002", "arena-00003"]);
    accept(store, vec![Change::IntendRoom(new_room(1, 40001))]).await;
}
