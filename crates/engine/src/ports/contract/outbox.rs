//! The suite of queued events.

use std::collections::BTreeMap;
use std::future::Future;

use maestro_core::event::{Message, MessageRoom, PlayerChange};
use maestro_core::room::PingStatus;
use maestro_core::scheduler::SchedulerName;

use crate::ports::Store;
use crate::ports::store::{
    Change, EventFilter, EventPageRequest, IfEnded, LastAddress, NewEvent, OrphanedQueue, QueuedEvent,
    Refusal,
};

use super::fixtures::*;
use super::{StoreUnderTest, run_cases};

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    run_cases!(
        "outbox",
        fresh,
        [
            an_event_comes_back_as_it_was_queued,
            events_of_a_room_are_due_in_order_and_rooms_side_by_side,
            rooms_that_are_due_at_once_come_in_the_order_of_their_heads,
            what_follows_a_head_waits_for_it,
            a_head_that_failed_holds_up_its_room_and_no_other,
            a_queue_is_full_when_it_is_and_what_must_be_queued_is,
            an_end_is_queued_once,
            nothing_is_queued_behind_an_end_that_was_to_be_refused,
            dead_letters_are_kept_the_newest_ones,
            a_dead_head_lets_the_next_one_through,
            what_is_replayed_comes_last_and_begins_anew,
            dead_letters_are_forgotten_by_their_age,
            what_is_not_there_is_passed_over,
            events_are_listed_by_what_is_asked_for,
            queues_go_with_their_scheduler_except_events_that_wait,
            orphaned_queues_have_one_owner_at_a_time,
            a_new_scheduler_of_the_same_name_has_queues_of_its_own,
        ]
    );
}

async fn due(store: &dyn Store, seconds: i64) -> Vec<u128> {
    due_of(store, seconds, 100, 100).await
}

async fn due_of(store: &dyn Store, seconds: i64, rooms_max: usize, events_max: usize) -> Vec<u128> {
    let queue = event_queue(store).await.id;
    let events = store.due_events(queue, at(seconds), rooms_max, events_max).await.unwrap();
    numbers(&events)
}

fn numbers(events: &[QueuedEvent]) -> Vec<u128> {
    let number = |event: &QueuedEvent| {
        let found = (0..1000).find(|number| event.id == event_id(*number));
        found.expect("an event of this suite")
    };
    events.iter().map(number).collect()
}

fn only_dead(dead: bool) -> EventFilter {
    EventFilter { dead: Some(dead), ..EventFilter::default() }
}

async fn an_event_comes_back_as_it_was_queued(store: &dyn Store) {
    open(store).await;
    let room = MessageRoom {
        port: 65_535,
        metadata: BTreeMap::from([("a".into(), "".into())]),
        ..MessageRoom::default()
    };
    let messages = [
        Message::Resync { room: room.clone(), status: PingStatus::Occupied },
        Message::Status { room: room.clone(), status: PingStatus::Terminated },
        message(3),
        Message::PlayerEvent {
            room,
            player_id: "p\n1".into(),
            change: PlayerChange::Left,
            metadata: BTreeMap::from([("level".into(), "1e+06".into())]),
        },
    ];
    for (number, message) in (1..).zip(messages.clone()) {
        let new = NewEvent { message, ..new_event(number, 1) };
        accept(store, vec![Change::QueueEvent(Box::new(new))]).await;
    }
    let found = all_events(store, EventFilter::default()).await;
    for ((number, message), event) in (1..).zip(messages).zip(found) {
        let expected = QueuedEvent {
            id: event_id(number),
            forwarder: MATCHMAKER.into(),
            room: room_id(1),
            message,
            attempts: 0,
            next_at: at(number as i64),
            last_error: String::new(),
            queued_at: at(number as i64),
            dead_at: None,
        };
        assert_eq!(event, expected);
    }
    let queue = event_queue(store).await;
    assert_eq!((queue.waiting, queue.dead, queue.forwarder.as_str()), (4, 0, MATCHMAKER));
    assert_eq!((queue.oldest_at, queue.next_at), (Some(at(1)), Some(at(1))));
}

async fn events_of_a_room_are_due_in_order_and_rooms_side_by_side(store: &dyn Store) {
    open(store).await;
    accept(store, vec![queue_event(1, 1), queue_event(2, 2), queue_event(3, 1), queue_event(4, 3)]).await;
    assert_eq!(due(store, 0).await, [0_u128; 0]);
    assert_eq!(due(store, 10).await, [1, 3, 2, 4]);
    assert_eq!(due_of(store, 10, 2, 100).await, [1, 3, 2], "two rooms");
    assert_eq!(due_of(store, 10, 100, 1).await, [1, 2, 4], "one of each");
    assert_eq!(due(store, 2).await, [1, 3, 2], "what follows a head is part of it");
}

async fn rooms_that_are_due_at_once_come_in_the_order_of_their_heads(store: &dyn Store) {
    open(store).await;
    accept(store, vec![queue_event(1, 9), queue_event(2, 1), queue_event(3, 5), queue_event(4, 2)]).await;
    let queue = event_queue(store).await.id;
    accept(store, (1..=4).map(|number| failed(queue, number, 20)).collect()).await;
    assert_eq!(due(store, 20).await, [1, 2, 3, 4]);
}

async fn what_follows_a_head_waits_for_it(store: &dyn Store) {
    open(store).await;
    accept(store, (1..=4).map(|number| queue_event(number, 1)).collect()).await;
    let queue = event_queue(store).await.id;
    accept(store, vec![delivered(queue, &[1, 2], 20)]).await;
    assert_eq!(due(store, 19).await, [0_u128; 0]);
    assert_eq!(due(store, 20).await, [3, 4]);
    // One from the middle does not make the head due sooner.
    accept(store, vec![failed(queue, 3, 50)]).await;
    accept(store, vec![delivered(queue, &[4], 30)]).await;
    assert_eq!(event_queue(store).await.next_at, Some(at(50)));
    accept(store, vec![delivered(queue, &[3], 60)]).await;
    assert_eq!(store.event_queues(&arena()).await.unwrap(), []);
}

async fn a_head_that_failed_holds_up_its_room_and_no_other(store: &dyn Store) {
    open(store).await;
    accept(store, vec![queue_event(1, 1), queue_event(2, 1), queue_event(3, 2)]).await;
    let queue = event_queue(store).await.id;
    for next_at in [20, 30] {
        accept(store, vec![failed(queue, 1, next_at)]).await;
        assert_eq!(due(store, next_at - 1).await, [3]);
    }
    assert_eq!(due(store, 30).await, [3, 1, 2]);
    let event = all_events(store, EventFilter::default()).await.remove(0);
    assert_eq!((event.attempts, event.last_error.as_str(), event.next_at), (2, "Unavailable: down", at(30)));
    assert_eq!(event_queue(store).await.oldest_at, Some(at(1)));
}

async fn a_queue_is_full_when_it_is_and_what_must_be_queued_is(store: &dyn Store) {
    open(store).await;
    let limited = |number, forwarder: &str| {
        let forwarder = forwarder.to_owned();
        let new = NewEvent { waiting_max: Some(2), forwarder, ..new_event(number, 1) };
        vec![Change::QueueEvent(Box::new(new))]
    };
    let full = || Refusal::EventQueueFull { scheduler: arena(), forwarder: MATCHMAKER.into(), max: 2 };
    accept(store, limited(1, MATCHMAKER)).await;
    accept(store, limited(2, MATCHMAKER)).await;
    refuse(store, limited(3, MATCHMAKER), full()).await;
    accept(store, limited(4, "other")).await;
    // For all of them or for none.
    let both = [limited(5, "other"), limited(6, MATCHMAKER)].concat();
    refuse(store, both, full()).await;
    accept(store, vec![queue_event(7, 1)]).await;
    refuse(store, limited(8, MATCHMAKER), full()).await;
    let queues = store.event_queues(&arena()).await.unwrap();
    assert_eq!(queues.iter().map(|queue| queue.waiting).collect::<Vec<_>>(), [3, 1]);
    // Dead ones do not count.
    accept(store, vec![dead(queues[0].id, &[1, 2], 10, 20)]).await;
    accept(store, limited(9, MATCHMAKER)).await;
    let nobody = name("nobody");
    let new = NewEvent { scheduler: nobody.clone(), ..new_event(10, 1) };
    refuse(store, vec![Change::QueueEvent(Box::new(new))], Refusal::SchedulerNotFound(nobody)).await;
}

async fn an_end_is_queued_once(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), Change::IntendRoom(new_room(1, 40001))]).await;
    let end = |number| {
        let new = NewEvent { if_ended: IfEnded::Skip, ..new_event(number, 1) };
        vec![Change::QueueEvent(Box::new(new)), end_room(1, 5)]
    };
    accept(store, end(1)).await;
    accept(store, end(2)).await;
    let unknown = NewEvent { if_ended: IfEnded::Skip, ..new_event(3, 9) };
    accept(store, vec![Change::QueueEvent(Box::new(unknown))]).await;
    assert_eq!(numbers(&all_events(store, EventFilter::default()).await), [1]);
}

async fn nothing_is_queued_behind_an_end_that_was_to_be_refused(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(new_operation(1)), Change::IntendRoom(new_room(1, 40001))]).await;
    let event = |number, room| {
        let new = NewEvent { if_ended: IfEnded::Refuse, ..new_event(number, room) };
        vec![Change::QueueEvent(Box::new(new))]
    };
    accept(store, event(1, 1)).await;
    accept(store, vec![end_room(1, 5)]).await;
    refuse(store, event(2, 1), Refusal::RoomNotFound(room_id(1))).await;
    refuse(store, event(3, 9), Refusal::RoomNotFound(room_id(9))).await;
    assert_eq!(numbers(&all_events(store, EventFilter::default()).await), [1]);
}

async fn dead_letters_are_kept_the_newest_ones(store: &dyn Store) {
    open(store).await;
    accept(store, (1..=5).map(|number| queue_event(number, number as u32)).collect()).await;
    let queue = event_queue(store).await.id;
    accept(store, vec![dead(queue, &[1, 2], 3, 20)]).await;
    accept(store, vec![dead(queue, &[2, 3, 4], 3, 21)]).await;
    let letters = all_events(store, only_dead(true)).await;
    assert_eq!(numbers(&letters), [2, 3, 4]);
    assert_eq!(letters[0].dead_at, Some(at(20)), "it died once");
    assert_eq!(letters[0].last_error, "InvalidArgument: no");
    let queue = event_queue(store).await;
    assert_eq!((queue.waiting, queue.dead), (1, 3));
    assert_eq!(due(store, 100).await, [5]);
}

async fn a_dead_head_lets_the_next_one_through(store: &dyn Store) {
    open(store).await;
    accept(store, (1..=3).map(|number| queue_event(number, 1)).collect()).await;
    let queue = event_queue(store).await.id;
    accept(store, vec![failed(queue, 1, 90)]).await;
    accept(store, vec![dead(queue, &[1], 10, 20)]).await;
    assert_eq!(due(store, 19).await, [0_u128; 0]);
    assert_eq!(due(store, 20).await, [2, 3]);
    // What was delivered after all stays a letter: nobody knows better.
    accept(store, vec![delivered(queue, &[1], 30), failed(queue, 1, 90)]).await;
    assert_eq!(numbers(&all_events(store, only_dead(true)).await), [1]);
}

async fn what_is_replayed_comes_last_and_begins_anew(store: &dyn Store) {
    open(store).await;
    accept(store, (1..=3).map(|number| queue_event(number, 1)).collect()).await;
    let queue = event_queue(store).await.id;
    accept(store, vec![failed(queue, 1, 10)]).await;
    accept(store, vec![dead(queue, &[1], 10, 20)]).await;
    let replay = |numbers: &[u128], seconds| {
        let events = numbers.iter().map(|number| event_id(*number)).collect();
        vec![Change::ReplayEvents { scheduler: arena(), events, at: at(seconds) }]
    };
    // Not another scheduler's, not one that waits, and not one that is not there.
    let anothers =
        vec![Change::ReplayEvents { scheduler: bystander(), events: vec![event_id(1)], at: at(25) }];
    accept(store, anothers).await;
    accept(store, replay(&[2, 99], 25)).await;
    assert_eq!(numbers(&all_events(store, EventFilter::default()).await), [1, 2, 3]);
    accept(store, replay(&[1], 30)).await;
    let events = all_events(store, EventFilter::default()).await;
    assert_eq!(numbers(&events), [2, 3, 1]);
    let QueuedEvent { attempts, queued_at, dead_at, ref last_error, .. } = events[2];
    assert_eq!((attempts, queued_at, dead_at, last_error.as_str()), (0, at(30), None, ""));
    let queue = event_queue(store).await;
    assert_eq!((queue.waiting, queue.dead), (3, 0));
    accept(store, vec![delivered(queue.id, &[2, 3], 40)]).await;
    assert_eq!(due(store, 40).await, [1]);
}

async fn dead_letters_are_forgotten_by_their_age(store: &dyn Store) {
    open(store).await;
    accept(store, (1..=3).map(|number| queue_event(number, number as u32)).collect()).await;
    let queue = event_queue(store).await.id;
    accept(store, vec![dead(queue, &[1], 10, 20), dead(queue, &[2], 10, 30)]).await;
    let forget = |seconds| vec![Change::ForgetDeadEvents { scheduler: arena(), before: at(seconds) }];
    accept(store, forget(30)).await;
    assert_eq!(numbers(&all_events(store, EventFilter::default()).await), [2, 3]);
    let queue = event_queue(store).await;
    assert_eq!((queue.waiting, queue.dead), (1, 1));
    accept(store, vec![delivered(queue.id, &[3], 40)]).await;
    accept(store, forget(31)).await;
    assert_eq!(store.event_queues(&arena()).await.unwrap(), []);
}

async fn what_is_not_there_is_passed_over(store: &dyn Store) {
    open(store).await;
    accept(store, vec![queue_event(1, 1), queue_event(2, 1)]).await;
    let queue = event_queue(store).await.id;
    let before = everything(store).await;
    accept(store, vec![delivered(queue, &[99], 9), failed(queue, 99, 9), dead(queue, &[99], 9, 9)]).await;
    assert_eq!(everything(store).await, before);
    accept(store, vec![delivered(queue, &[1], 9)]).await;
    let before = everything(store).await;
    accept(store, vec![delivered(queue, &[1], 50), failed(queue, 1, 50), dead(queue, &[1], 9, 50)]).await;
    assert_eq!(everything(store).await, before, "a delivery that is written twice");
}

async fn events_are_listed_by_what_is_asked_for(store: &dyn Store) {
    open(store).await;
    accept(store, (1..=6).map(|number| queue_event(number, number as u32 % 2)).collect()).await;
    let other = NewEvent { forwarder: "other".into(), ..new_event(7, 1) };
    accept(store, vec![Change::QueueEvent(Box::new(other))]).await;
    let anothers = NewEvent { scheduler: bystander(), ..new_event(8, 1) };
    accept(store, vec![Change::QueueEvent(Box::new(anothers))]).await;
    let queue = store.event_queues(&arena()).await.unwrap()[0].id;
    accept(store, vec![dead(queue, &[2, 5], 10, 20)]).await;
    let check = async |only: EventFilter, expected: &[u128]| {
        assert_eq!(numbers(&all_events(store, only.clone()).await), expected, "{only:?}");
    };
    check(EventFilter::default(), &[1, 2, 3, 4, 5, 6, 7]).await;
    check(only_dead(true), &[2, 5]).await;
    check(only_dead(false), &[1, 3, 4, 6, 7]).await;
    check(EventFilter { forwarder: Some("other".into()), ..EventFilter::default() }, &[7]).await;
    check(EventFilter { room: Some(room_id(1)), ..only_dead(true) }, &[5]).await;
    check(EventFilter { id: Some(event_id(3)), ..EventFilter::default() }, &[3]).await;
    check(EventFilter { id: Some(event_id(8)), ..EventFilter::default() }, &[]).await;
    for (page, expected) in [(1, vec![1, 2, 3]), (2, vec![4, 5, 6]), (3, vec![7]), (4, vec![])] {
        let page = EventPageRequest { page, page_size: 3 };
        let found = store.events(&arena(), &EventFilter::default(), page).await.unwrap();
        assert_eq!((found.total, numbers(&found.events)), (7, expected));
    }
}

fn delete(scheduler: &SchedulerName, enabled: &[&str]) -> Vec<Change> {
    let last = |forwarder: &&str| {
        let address = format!("{forwarder}.example:9090");
        ((*forwarder).to_owned(), LastAddress { address, timeout_ms: 700 })
    };
    let addresses = enabled.iter().map(last).collect();
    vec![
        Change::OrphanEvents { scheduler: scheduler.clone(), addresses },
        Change::DeleteScheduler { scheduler: scheduler.clone(), keep: operation_id(1) },
    ]
}

async fn queues_go_with_their_scheduler_except_events_that_wait(store: &dyn Store) {
    open(store).await;
    for (number, forwarder) in [(1, MATCHMAKER), (2, MATCHMAKER), (3, "other"), (4, "empty")] {
        let new = NewEvent { forwarder: forwarder.into(), ..new_event(number, number as u32) };
        accept(store, vec![Change::QueueEvent(Box::new(new))]).await;
    }
    assert!(!store.has_orphaned_queues().await.unwrap());
    let queues = store.event_queues(&arena()).await.unwrap();
    // By forwarder: empty, matchmaker, other.
    accept(store, vec![dead(queues[0].id, &[4], 10, 20), dead(queues[1].id, &[1], 10, 20)]).await;
    accept(store, delete(&arena(), &[MATCHMAKER, "empty", "unheard"])).await;
    assert!(store.has_orphaned_queues().await.unwrap());
    assert_eq!(store.event_queues(&arena()).await.unwrap(), []);
    let orphaned = store.own_orphaned_queues("worker-1", TTL).await.unwrap();
    let expected = OrphanedQueue {
        id: queues[1].id,
        scheduler: arena(),
        forwarder: MATCHMAKER.into(),
        last: LastAddress { address: "matchmaker.example:9090".into(), timeout_ms: 700 },
        next_at: Some(at(2)),
    };
    assert_eq!(orphaned, [expected]);
    let events = store.due_events(orphaned[0].id, at(30), 10, 10).await.unwrap();
    assert_eq!(numbers(&events), [2], "dead letters go with the scheduler");
    accept(store, vec![delivered(orphaned[0].id, &[2], 40)]).await;
    assert_eq!(store.own_orphaned_queues("worker-1", TTL).await.unwrap(), []);
    assert!(!store.has_orphaned_queues().await.unwrap());
}

async fn orphaned_queues_have_one_owner_at_a_time(store: &dyn Store) {
    open(store).await;
    accept(store, vec![queue_event(1, 1)]).await;
    accept(store, delete(&arena(), &[MATCHMAKER])).await;
    let owned = async |worker: &str, ttl| store.own_orphaned_queues(worker, ttl).await.unwrap().len();
    assert_eq!(owned("worker-1", NO_TIME).await, 1);
    assert_eq!(owned("worker-1", TTL).await, 1, "renewed");
    assert_eq!(owned("worker-2", TTL).await, 0);
    assert_eq!(owned("worker-1", NO_TIME).await, 1);
    assert_eq!(owned("worker-2", TTL).await, 1, "its time is over");
    assert_eq!(owned("worker-1", TTL).await, 0);
}

async fn a_new_scheduler_of_the_same_name_has_queues_of_its_own(store: &dyn Store) {
    open(store).await;
    accept(store, vec![queue_event(1, 1)]).await;
    accept(store, delete(&arena(), &[MATCHMAKER])).await;
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena())), queue_event(2, 1)]).await;
    let queue = event_queue(store).await;
    assert_eq!(due(store, 100).await, [2]);
    let orphaned = store.own_orphaned_queues("worker-1", TTL).await.unwrap();
    assert_eq!(orphaned.len(), 1);
    assert_ne!(orphaned[0].id, queue.id);
    accept(store, delete(&arena(), &[MATCHMAKER])).await;
    assert_eq!(store.own_orphaned_queues("worker-1", TTL).await.unwrap().len(), 2);
}
