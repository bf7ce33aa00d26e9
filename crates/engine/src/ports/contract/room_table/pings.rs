//! What rooms say and what runtimes see.

use super::*;

pub(super) async fn a_ping_changes_status_and_says_what_changed(table: &dyn RoomTable) {
    insert(table, 1).await;
    for (word, before, after) in [
        (PingStatus::Ready, RoomStatus::Unready, RoomStatus::Ready),
        (PingStatus::Ready, RoomStatus::Ready, RoomStatus::Ready),
        (PingStatus::Occupied, RoomStatus::Ready, RoomStatus::Occupied),
        (PingStatus::Terminating, RoomStatus::Occupied, RoomStatus::Terminating),
        (PingStatus::Terminated, RoomStatus::Terminating, RoomStatus::Terminated),
    ] {
        let pinged = try_ping(table, 1, word, 7).await.unwrap();
        let expected =
            Pinged { before, after, heard_again: false, purpose: Purpose::Fleet, ended_holds: false };
        assert_eq!(pinged, expected, "after {word:?}");
        assert_eq!(pinged.changed(), before != after);
    }
    let room = room(table, 1).await;
    assert_eq!((room.ping, room.matches, room.last_ping_at), (PingStatus::Terminated, 7, Some(at(5))));
}

pub(super) async fn it_is_remembered_since_when_a_room_is_terminating(table: &dyn RoomTable) {
    insert(table, 1).await;
    let id = room_id(1);
    for (word, second, since) in [
        (PingStatus::Ready, 1, None),
        (PingStatus::Terminating, 2, Some(2)),
        (PingStatus::Terminating, 3, Some(2)),
        (PingStatus::Ready, 4, None),
        (PingStatus::Terminating, 5, Some(5)),
    ] {
        table.ping(Ping { status: word, ..ready_ping(&id) }, at(second)).await.unwrap();
        assert_eq!(room(table, 1).await.terminating_since, since.map(at), "second {second}");
    }
}

pub(super) async fn a_ping_without_metadata_keeps_the_last(table: &dyn RoomTable) {
    insert(table, 1).await;
    for (given, kept) in [
        (None, None),
        (Some(r#"{"map":"dust"}"#), Some(r#"{"map":"dust"}"#)),
        (None, Some(r#"{"map":"dust"}"#)),
        (Some("{}"), Some("{}")),
    ] {
        let id = room_id(1);
        let ping = Ping { metadata: given, ..ready_ping(&id) };
        table.ping(ping, at(5)).await.unwrap();
        assert_eq!(room(table, 1).await.metadata.as_deref(), kept);
    }
}

pub(super) async fn the_status_is_composed_from_instance_and_ping(table: &dyn RoomTable) {
    use InstanceStatus::{Error, Pending, Ready, Terminating, Unknown};
    let words = [PingStatus::Ready, PingStatus::Occupied, PingStatus::Terminating, PingStatus::Terminated];
    let mut number = 0;
    for instance in [Unknown, Pending, Ready, Terminating, Error] {
        for word in words {
            number += 1;
            let inserted = NewRoom { instance, ..new_room(number) };
            table.insert(inserted).await.unwrap();
            ping(table, number, word).await;
            let expected = match (instance, word) {
                (Error, _) => RoomStatus::Error,
                (_, PingStatus::Terminated) => RoomStatus::Terminated,
                (_, PingStatus::Terminating) | (Terminating, _) => RoomStatus::Terminating,
                (Ready, PingStatus::Ready) => RoomStatus::Ready,
                (Ready, _) => RoomStatus::Occupied,
                (Unknown | Pending, _) => RoomStatus::Pending,
            };
            assert_eq!(status(table, number).await, expected, "{word:?} in {instance:?}");
        }
    }
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn matches_decide_where_a_room_holds_several(table: &dyn RoomTable) {
    let inserted = NewRoom { matches_max: 3, ..new_room(1) };
    table.insert(inserted).await.unwrap();
    for (matches, expected) in
        [(0, RoomStatus::Ready), (1, RoomStatus::Active), (3, RoomStatus::Occupied), (2, RoomStatus::Active)]
    {
        let pinged = try_ping(table, 1, PingStatus::Occupied, matches).await.unwrap();
        assert_eq!(pinged.after, expected, "with {matches} of 3");
        assert_eq!(counts(table).await.matches, u64::from(matches));
    }
}

pub(super) async fn an_impossible_ping_is_refused_and_nothing_of_it_kept(table: &dyn RoomTable) {
    insert(table, 1).await;
    ping(table, 1, PingStatus::Terminated).await;
    let before = room(table, 1).await;
    let id = room_id(1);
    let again = Ping { matches: 4, metadata: Some("{}"), ..ready_ping(&id) };
    let refused = PingError::Refused { from: RoomStatus::Terminated, to: RoomStatus::Ready };
    assert_eq!(table.ping(again, at(99)).await, Err(refused));
    assert_eq!(room(table, 1).await, before);
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn a_room_that_is_not_there_cannot_ping(table: &dyn RoomTable) {
    insert(table, 1).await;
    for (scheduler, number) in [("arena", 2), ("bystander", 1), ("", 1)] {
        let id = room_id(number);
        let ping = Ping { scheduler, ..ready_ping(&id) };
        assert_eq!(table.ping(ping, at(5)).await, Err(PingError::UnknownRoom));
    }
    assert_eq!(table.rooms(&arena()).await.unwrap().len(), 1);
}

pub(super) async fn an_observation_says_what_changed(table: &dyn RoomTable) {
    let inserted = NewRoom { instance: InstanceStatus::Unknown, ..new_room(1) };
    table.insert(inserted).await.unwrap();
    for (instance, expected) in [
        (InstanceStatus::Pending, None),
        (InstanceStatus::Ready, Some((RoomStatus::Pending, RoomStatus::Unready))),
        (InstanceStatus::Ready, None),
        (InstanceStatus::Terminating, Some((RoomStatus::Unready, RoomStatus::Terminating))),
        (InstanceStatus::Error, Some((RoomStatus::Terminating, RoomStatus::Error))),
    ] {
        let expected = expected.map(|(before, after)| StatusChange { before, after });
        assert_eq!(observe(table, 1, instance).await, expected, "{instance:?}");
        assert_eq!(room(table, 1).await.instance, instance);
        assert_eq!(counts(table).await, recounted(table).await);
    }
}

pub(super) async fn an_impossible_observation_is_left_out(table: &dyn RoomTable) {
    insert_ready(table, 2).await;
    ping(table, 2, PingStatus::Terminated).await;
    for (number, instance) in [(1, InstanceStatus::Pending), (2, InstanceStatus::Error)] {
        let before = room(table, number).await;
        assert_eq!(observe(table, number, instance).await, None);
        assert_eq!(room(table, number).await, before);
    }
}

pub(super) async fn an_unknown_room_is_unknown_until_it_pings(table: &dyn RoomTable) {
    let unknown = NewRoom { known: false, ..new_room(1) };
    table.insert(unknown).await.unwrap();
    insert(table, 2).await;
    assert!(!room(table, 1).await.known);
    observe(table, 1, InstanceStatus::Terminating).await;
    observe(table, 1, InstanceStatus::Ready).await;
    assert!(!room(table, 1).await.known, "nobody has heard of it yet");
    assert_eq!(counts(table).await.unknown, 1);
    assert_eq!(counts(table).await.by_status.of(RoomStatus::Unready), 2, "unknown is not zero");

    let pinged = try_ping(table, 1, PingStatus::Ready, 0).await.unwrap();
    assert!(pinged.heard_again && pinged.changed());
    assert!(room(table, 1).await.known);
    assert_eq!(counts(table).await.unknown, 0);
    let pinged = try_ping(table, 1, PingStatus::Ready, 0).await.unwrap();
    assert!(!pinged.heard_again && !pinged.changed());
}

pub(super) async fn a_room_that_was_ready_is_remembered_as_such(table: &dyn RoomTable) {
    insert(table, 2).await;
    assert!(!room(table, 1).await.was_ready);
    ping(table, 1, PingStatus::Ready).await;
    ping(table, 2, PingStatus::Occupied).await;
    for number in [1, 2] {
        assert!(room(table, number).await.was_ready);
        observe(table, number, InstanceStatus::Error).await;
        assert!(room(table, number).await.was_ready, "it stays so");
    }
}
