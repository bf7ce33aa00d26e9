//! Rooms come and go; lists and counters.

use maestro_core::words::Word;

use super::*;

pub(super) async fn a_new_fleet_has_no_rooms(table: &dyn RoomTable) {
    assert_eq!(table.room(&arena(), &room_id(1)).await.unwrap(), None);
    assert_eq!(table.rooms(&arena()).await.unwrap(), []);
    assert_eq!(counts(table).await, FleetCounts::default());
    assert_eq!(table.remove(&arena(), &room_id(1)).await.unwrap(), None);
    assert_eq!(observe(table, 1, InstanceStatus::Ready).await, None);
    assert_eq!(claim(table, 1, &[1], 9).await, []);
    unclaim(table, operation_id(1), &[1]).await;
    table.set_matches_max(&arena(), 3).await.unwrap();
}

pub(super) async fn an_inserted_room_is_known_as_it_is(table: &dyn RoomTable) {
    let version = Version { major: 2, minor: 1, patch: 0 };
    let inserted = NewRoom {
        version,
        region: Region("eu".into()),
        purpose: Purpose::Validation,
        instance: InstanceStatus::Pending,
        created_at: at(3),
        listened_since: at(4),
        ..new_room(1)
    };
    table.insert(inserted).await.unwrap();
    let expected = RoomView {
        id: room_id(1),
        version,
        region: Region("eu".into()),
        purpose: Purpose::Validation,
        instance: InstanceStatus::Pending,
        ping: PingStatus::Unknown,
        status: RoomStatus::Pending,
        matches: 0,
        created_at: at(3),
        last_ping_at: None,
        terminating_since: None,
        known: true,
        listened_since: at(4),
        was_ready: false,
        claimed_by: None,
        metadata: None,
        expected: 0,
    };
    assert_eq!(room(table, 1).await, expected);
    assert_eq!(table.rooms(&arena()).await.unwrap(), [expected]);
    let elsewhere = table.room(&bystander(), &room_id(1)).await.unwrap();
    assert_eq!(elsewhere, None, "it belongs to another scheduler");
}

pub(super) async fn a_known_room_is_not_inserted_again(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    let before = room(table, 1).await;
    let again = NewRoom {
        instance: InstanceStatus::Pending,
        known: false,
        listened_since: at(9),
        matches_max: 3,
        ..new_room(1)
    };
    table.insert(again).await.unwrap();
    assert_eq!(room(table, 1).await, before);
    assert_eq!(counts(table).await.by_status.of(RoomStatus::Ready), 1);
    assert_eq!(counts(table).await.unknown, 0);
}

pub(super) async fn a_removed_room_is_returned_as_it_was_last(table: &dyn RoomTable) {
    insert_ready(table, 2).await;
    claim(table, 1, &[1], 1).await;
    let last = room(table, 1).await;
    let elsewhere = table.remove(&bystander(), &room_id(1)).await.unwrap();
    assert_eq!(elsewhere, None, "it belongs to another scheduler");
    assert_eq!(table.remove(&arena(), &room_id(1)).await.unwrap(), Some(last));
    assert_eq!(table.remove(&arena(), &room_id(1)).await.unwrap(), None);
    let late = try_ping(table, 1, PingStatus::Ready, 0).await;
    assert_eq!(late, Err(PingError::UnknownRoom), "a late ping brings nothing back");
    assert_eq!(observe(table, 1, InstanceStatus::Ready).await, None);
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn a_removed_scheduler_takes_its_rooms_along(table: &dyn RoomTable) {
    insert_ready(table, 3).await;
    let other = NewRoom { scheduler: bystander(), ..new_room(7) };
    table.insert(other).await.unwrap();
    for _ in 0..2 {
        table.remove_scheduler(&arena()).await.unwrap();
    }
    rebuild(table, &arena(), []).await;
    assert_eq!(table.rooms(&arena()).await.unwrap(), []);
    assert_eq!(counts(table).await, FleetCounts::default());
    assert_eq!(table.rooms(&bystander()).await.unwrap().len(), 1);
}

pub(super) async fn rooms_are_ordered_by_id(table: &dyn RoomTable) {
    let numbers = (0..200).map(|index| index * 37 % 200);
    for number in numbers {
        table.insert(new_room(number)).await.unwrap();
    }
    let rooms = table.rooms(&arena()).await.unwrap();
    let listed: Vec<_> = rooms.iter().map(|room| room.id.clone()).collect();
    assert_eq!(listed, (0..200).map(room_id).collect::<Vec<_>>());
}

pub(super) async fn the_number_of_matches_a_room_holds_may_change(table: &dyn RoomTable) {
    insert(table, 2).await;
    try_ping(table, 1, PingStatus::Occupied, 2).await.unwrap();
    ping(table, 2, PingStatus::Ready).await;
    let other = NewRoom { scheduler: bystander(), ..new_room(3) };
    table.insert(other).await.unwrap();
    for (matches_max, expected) in [
        (3, RoomStatus::Active),
        (2, RoomStatus::Occupied),
        (1, RoomStatus::Occupied),
        (4, RoomStatus::Active),
    ] {
        table.set_matches_max(&arena(), matches_max).await.unwrap();
        assert_eq!(status(table, 1).await, expected, "of {matches_max}");
        assert_eq!(status(table, 2).await, RoomStatus::Ready);
        assert_eq!(counts(table).await, recounted(table).await);
    }
    try_ping(table, 2, PingStatus::Ready, 4).await.unwrap();
    assert_eq!(status(table, 2).await, RoomStatus::Occupied, "from now on");
}

pub(super) async fn counters_follow_every_change(table: &dyn RoomTable) {
    insert_ready(table, 2).await;
    let eu = Region("eu".into());
    let newer =
        NewRoom { region: eu.clone(), instance: InstanceStatus::Pending, known: false, ..new_room(3) };
    table.insert(newer).await.unwrap();
    try_ping(table, 2, PingStatus::Occupied, 5).await.unwrap();

    fn counted<T: Word, const N: usize>(statuses: &[T]) -> Counts<T, N> {
        let mut counts = Counts::default();
        statuses.iter().for_each(|status| counts.add(*status));
        counts
    }
    let (of, of_instances) = (counted, counted);
    let expected = FleetCounts {
        by_status: of(&[RoomStatus::Ready, RoomStatus::Occupied, RoomStatus::Pending]),
        by_region: BTreeMap::from([
            (Region::default_region(), of(&[RoomStatus::Ready, RoomStatus::Occupied])),
            (eu, of(&[RoomStatus::Pending])),
        ]),
        by_instance: of_instances(&[InstanceStatus::Pending, InstanceStatus::Ready, InstanceStatus::Ready]),
        matches: 5,
        holds: 0,
        unknown: 1,
    };
    assert_eq!(counts(table).await, expected);
    assert_eq!(table.counts(&bystander()).await.unwrap(), FleetCounts::default());

    table.remove(&arena(), &room_id(3)).await.unwrap();
    table.remove(&arena(), &room_id(2)).await.unwrap();
    let expected = FleetCounts {
        by_status: of(&[RoomStatus::Ready]),
        by_region: BTreeMap::from([(Region::default_region(), of(&[RoomStatus::Ready]))]),
        by_instance: of_instances(&[InstanceStatus::Ready]),
        ..FleetCounts::default()
    };
    assert_eq!(counts(table).await, expected, "a region without rooms is not listed");

    // So many that however a table divides them, some are beside each other.
    insert_ready(table, 300).await;
    for number in (1..=300).step_by(2) {
        table.remove(&arena(), &room_id(number)).await.unwrap();
    }
    assert_eq!(counts(table).await.by_status.of(RoomStatus::Ready), 150);
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn validation_rooms_are_counted_nowhere(table: &dyn RoomTable) {
    let validation = NewRoom { purpose: Purpose::Validation, known: false, ..new_room(1) };
    table.insert(validation).await.unwrap();
    let pinged = try_ping(table, 1, PingStatus::Occupied, 3).await.unwrap();
    assert_eq!((pinged.after, pinged.purpose), (RoomStatus::Occupied, Purpose::Validation));
    assert_eq!(counts(table).await, FleetCounts::default());
    claim_in(table, 1, &[1], &[RoomStatus::Occupied], 1).await;
    assert_eq!(status(table, 1).await, RoomStatus::Terminating);
    assert_eq!(counts(table).await, FleetCounts::default());
    table.remove(&arena(), &room_id(1)).await.unwrap();
    assert_eq!(counts(table).await, FleetCounts::default());
}
