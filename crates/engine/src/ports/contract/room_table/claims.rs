//! Rooms taken out of service for an operation.

use super::*;

pub(super) async fn a_claim_takes_candidates_in_their_order_up_to_its_number(table: &dyn RoomTable) {
    insert_ready(table, 5).await;
    assert_eq!(claim(table, 1, &[4, 2, 9, 5, 1], 3).await, ids(&[4, 2, 5]));
    for (number, expected) in [(1, None), (2, Some(1)), (3, None), (4, Some(1)), (5, Some(1))] {
        let room = room(table, number).await;
        assert_eq!(room.claimed_by, expected.map(operation_id), "room {number}");
        let is_out = room.status == RoomStatus::Terminating && room.instance == InstanceStatus::Terminating;
        assert_eq!(is_out, expected.is_some(), "room {number}");
    }
    assert_eq!(claim(table, 2, &[1, 3], 0).await, []);
    assert_eq!(counts(table).await.by_status.of(RoomStatus::Ready), 2);
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn a_claim_takes_only_what_is_in_its_statuses_now(table: &dyn RoomTable) {
    insert_ready(table, 3).await;
    insert(table, 5).await;
    ping(table, 2, PingStatus::Occupied).await;
    observe(table, 5, InstanceStatus::Error).await;
    let all = [1, 2, 3, 4, 5];
    assert_eq!(claim(table, 1, &all, 9).await, ids(&[1, 3]));
    let others = [RoomStatus::Unready, RoomStatus::Error];
    assert_eq!(claim_in(table, 2, &all, &others, 9).await, ids(&[4, 5]));
    assert_eq!(status(table, 5).await, RoomStatus::Terminating, "one in error is on its way out too");
    assert_eq!(claim_in(table, 3, &all, &[RoomStatus::Occupied], 9).await, ids(&[2]));
}

pub(super) async fn a_claim_of_known_rooms_leaves_unknown_ones(table: &dyn RoomTable) {
    for number in [1, 2] {
        let inserted = NewRoom { known: number == 2, ..new_room(number) };
        table.insert(inserted).await.unwrap();
    }
    let claim = |known_only| {
        let scheduler = arena();
        async move {
            let claim = Claim {
                scheduler: &scheduler,
                operation: operation_id(1),
                candidates: &ids(&[1, 2]),
                statuses: &[RoomStatus::Unready],
                known_only,
                rooms_max: 9,
            };
            table.claim(claim).await.unwrap()
        }
    };
    assert_eq!(claim(true).await, ids(&[2]));
    assert_eq!(claim(false).await, ids(&[1, 2]));
    assert_eq!(counts(table).await.unknown, 1, "a claim is no ping");
}

pub(super) async fn a_repeated_claim_returns_the_same_rooms(table: &dyn RoomTable) {
    insert_ready(table, 5).await;
    let first = claim(table, 1, &[1, 2, 3, 4, 5], 2).await;
    for _ in 0..3 {
        assert_eq!(claim(table, 1, &[1, 2, 3, 4, 5], 2).await, first);
    }
    assert_eq!(counts(table).await.by_status.of(RoomStatus::Ready), 3);
}

pub(super) async fn what_was_claimed_before_counts_first(table: &dyn RoomTable) {
    insert_ready(table, 4).await;
    ping(table, 1, PingStatus::Occupied).await;
    assert_eq!(claim(table, 1, &[1, 2, 3, 4], 2).await, ids(&[2, 3]));
    ping(table, 1, PingStatus::Ready).await;
    assert_eq!(claim(table, 1, &[1, 2, 3, 4], 2).await, ids(&[2, 3]));
    assert_eq!(status(table, 1).await, RoomStatus::Ready, "two were asked for");
    assert_eq!(claim(table, 1, &[1, 2, 3, 4], 3).await, ids(&[1, 2, 3]));
}

pub(super) async fn a_claimed_room_is_not_claimed_by_another(table: &dyn RoomTable) {
    insert_ready(table, 2).await;
    claim(table, 1, &[1], 9).await;
    let any = [RoomStatus::Ready, RoomStatus::Terminating];
    assert_eq!(claim_in(table, 2, &[1, 2], &any, 9).await, ids(&[2]));
    assert_eq!(room(table, 1).await.claimed_by, Some(operation_id(1)));
}

pub(super) async fn claims_at_once_share_no_room(table: &dyn RoomTable) {
    insert_ready(table, 100).await;
    let candidates: Vec<u32> = (1..=100).collect();
    let candidates = &candidates;
    let claims = (1..=8).map(|operation| async move {
        // Twice each, as after a lost answer.
        let first = claim(table, operation, candidates, 20);
        let again = claim(table, operation, candidates, 20);
        let (first, again) = join(first, again).await;
        assert_eq!(first, again, "what operation {operation} claimed");
        first
    });
    let mut claimed = join_all(claims).await.concat();
    assert_eq!(claimed.len(), 100, "all that could be claimed");
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), 100, "each once");
}

pub(super) async fn a_claimed_room_pings_and_stays_terminating(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    claim(table, 1, &[1], 1).await;
    let pinged = try_ping(table, 1, PingStatus::Occupied, 2).await.unwrap();
    assert_eq!((pinged.before, pinged.after), (RoomStatus::Terminating, RoomStatus::Terminating));
    let room = room(table, 1).await;
    assert_eq!((room.ping, room.matches), (PingStatus::Occupied, 2));
    assert_eq!(room.claimed_by, Some(operation_id(1)));
}

pub(super) async fn an_observation_does_not_bring_back_a_claimed_room(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    claim(table, 1, &[1], 1).await;
    for instance in
        [InstanceStatus::Ready, InstanceStatus::Pending, InstanceStatus::Unknown, InstanceStatus::Terminating]
    {
        assert_eq!(observe(table, 1, instance).await, None, "{instance:?}");
        assert_eq!(room(table, 1).await.instance, InstanceStatus::Terminating);
    }
    let failed = StatusChange { before: RoomStatus::Terminating, after: RoomStatus::Error };
    assert_eq!(observe(table, 1, InstanceStatus::Error).await, Some(failed));
    assert_eq!(room(table, 1).await.claimed_by, Some(operation_id(1)));
    assert_eq!(counts(table).await, recounted(table).await);
}

pub(super) async fn an_unclaimed_room_is_what_ping_and_instance_say(table: &dyn RoomTable) {
    insert_ready(table, 3).await;
    insert(table, 4).await;
    let before = room(table, 1).await;
    claim_in(table, 1, &[1, 2, 3, 4], &[RoomStatus::Ready, RoomStatus::Unready], 9).await;
    // Much happens meanwhile.
    ping(table, 2, PingStatus::Occupied).await;
    observe(table, 3, InstanceStatus::Terminating).await;
    ping(table, 4, PingStatus::Ready).await;
    for _ in 0..2 {
        unclaim(table, operation_id(1), &[1, 2, 3, 4, 9]).await;
        assert_eq!(room(table, 1).await, before);
        for (number, expected) in
            [(2, RoomStatus::Occupied), (3, RoomStatus::Terminating), (4, RoomStatus::Ready)]
        {
            let room = room(table, number).await;
            assert_eq!((room.status, room.claimed_by), (expected, None), "room {number}");
        }
    }
    assert!(room(table, 4).await.was_ready);
    assert_eq!(counts(table).await, recounted(table).await);
    assert_eq!(claim(table, 2, &[1, 2, 3, 4], 9).await, ids(&[1, 4]));
}

pub(super) async fn only_who_claimed_a_room_gives_it_back(table: &dyn RoomTable) {
    insert_ready(table, 2).await;
    claim(table, 1, &[1, 2], 2).await;
    unclaim(table, operation_id(2), &[1, 2]).await;
    unclaim(table, operation_id(1), &[2]).await;
    assert_eq!(status(table, 1).await, RoomStatus::Terminating);
    assert_eq!(status(table, 2).await, RoomStatus::Ready, "only what was named");
}
