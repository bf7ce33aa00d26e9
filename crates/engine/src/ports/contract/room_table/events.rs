//! The ring of events.

use maestro_core::stream::{Happened, KEPT_BYTES_MAX, Read, ReadFrom, ResetCause, StreamEvent, StreamId};
use maestro_core::time::Timestamp;

use super::*;

/// Large enough that some ten of them are all that a ring keeps.
const LARGE_BYTES: usize = KEPT_BYTES_MAX / 10;

fn reached(number: u32, why: &str) -> StreamEvent {
    let region = Region(format!("region-{number}").into());
    // Recent, by any clock that a table may have: nothing here is old.
    let at = Timestamp::MAX;
    StreamEvent {
        at,
        scheduler: None,
        what: Happened::RegionReached { region, reachable: true, why: why.into() },
    }
}

async fn append(table: &dyn RoomTable, numbers: impl IntoIterator<Item = u32>) {
    let events = numbers.into_iter().map(|number| reached(number, "")).collect();
    table.append(events, false).await.unwrap();
}

/// What happened, in a word each, and where to go on.
async fn read(table: &dyn RoomTable, from: ReadFrom) -> (Vec<String>, StreamId) {
    match table.read_events(from, usize::MAX).await.unwrap() {
        Read::Events { events, next } => (events.iter().map(|(_, event)| word(event)).collect(), next),
        Read::Reset { cause, .. } => panic!("reset: {cause:?}"),
    }
}

async fn reset(table: &dyn RoomTable, from: ReadFrom) -> (StreamId, ResetCause) {
    match table.read_events(from, usize::MAX).await.unwrap() {
        Read::Reset { seen, cause, .. } => (seen, cause),
        Read::Events { events, .. } => panic!("{} events", events.len()),
    }
}

fn word(event: &StreamEvent) -> String {
    match &event.what {
        Happened::RoomChanged { before, after, .. } => format!("{before}>{after}"),
        other => other.subject(),
    }
}

pub(super) async fn events_are_read_in_the_order_in_which_they_were_added(table: &dyn RoomTable) {
    append(table, [1, 2]).await;
    append(table, [3]).await;
    let (events, next) = read(table, ReadFrom::Oldest).await;
    assert_eq!(events, ["region-1", "region-2", "region-3"]);
    assert_eq!(read(table, ReadFrom::After(next)).await, (vec![], next));
    append(table, [4]).await;
    assert_eq!(read(table, ReadFrom::After(next)).await.0, ["region-4"]);
    let Read::Events { events, next } = table.read_events(ReadFrom::Oldest, 2).await.unwrap() else {
        panic!()
    };
    assert_eq!(events.len(), 2);
    assert!(events[0].0 < events[1].0 && events[1].0 == next);
    assert_eq!(read(table, ReadFrom::After(next)).await.0, ["region-3", "region-4"]);
}

pub(super) async fn a_room_that_changes_its_status_is_an_event(table: &dyn RoomTable) {
    insert(table, 2).await;
    ping(table, 1, PingStatus::Ready).await;
    ping(table, 1, PingStatus::Ready).await;
    append(table, [1]).await;
    ping(table, 1, PingStatus::Occupied).await;
    observe(table, 1, InstanceStatus::Error).await;
    ping(table, 2, PingStatus::Ready).await;
    claim(table, 1, &[2], 1).await;
    unclaim(table, operation_id(1), &[2]).await;
    let (events, _) = read(table, ReadFrom::Oldest).await;
    let expected = [
        "unready>ready",
        "region-1",
        "ready>occupied",
        "occupied>error",
        "unready>ready",
        "ready>terminating",
        "terminating>ready",
    ];
    assert_eq!(events, expected);
    let Read::Events { events, .. } = table.read_events(ReadFrom::Oldest, 1).await.unwrap() else { panic!() };
    let (_, first) = &events[0];
    assert_eq!((first.scheduler.as_ref(), first.what.subject()), (Some(&arena()), room_id(1).to_string()));
}

pub(super) async fn who_begins_is_told_from_where(table: &dyn RoomTable) {
    append(table, [1]).await;
    let (seen, cause) = reset(table, ReadFrom::Now).await;
    assert_eq!(cause, ResetCause::Begins);
    append(table, [2]).await;
    assert_eq!(read(table, ReadFrom::After(seen)).await.0, ["region-2"]);
}

pub(super) async fn what_is_too_much_is_gone_and_readers_are_told(table: &dyn RoomTable) {
    append(table, [1]).await;
    let (_, first) = read(table, ReadFrom::Oldest).await;
    let why = "x".repeat(LARGE_BYTES);
    for number in 2..=30 {
        table.append(vec![reached(number, &why)], false).await.unwrap();
    }
    let (seen, cause) = reset(table, ReadFrom::After(first)).await;
    assert_eq!(cause, ResetCause::Gone);
    assert_eq!(read(table, ReadFrom::After(seen)).await.0, Vec::<String>::new(), "it goes on from now");
    let (left, next) = read(table, ReadFrom::Oldest).await;
    assert!((5..=10).contains(&left.len()), "{} are left", left.len());
    assert_eq!((left.last().unwrap().as_str(), next), ("region-30", seen));
}

pub(super) async fn a_loss_begins_another_ring(table: &dyn RoomTable) {
    append(table, [1, 2]).await;
    let (_, before) = read(table, ReadFrom::Oldest).await;
    table.append(vec![reached(3, "")], true).await.unwrap();
    let (seen, cause) = reset(table, ReadFrom::After(before)).await;
    assert_eq!(cause, ResetCause::OtherRing);
    assert_ne!(seen.ring, before.ring);
    let (events, _) = read(table, ReadFrom::Oldest).await;
    assert_eq!(events, ["region-3"], "what was before the loss is not told as if nothing were missing");
    // Not even with numbers that the new ring has given.
    append(table, [4, 5, 6]).await;
    assert_eq!(reset(table, ReadFrom::After(before)).await.1, ResetCause::OtherRing);
}

pub(super) async fn who_waits_is_woken(table: &dyn RoomTable) {
    insert(table, 1).await;
    let (seen, _) = reset(table, ReadFrom::Now).await;
    let waiting = table.wait_for_events(seen);
    let (waited, ()) = join(waiting, ping(table, 1, PingStatus::Ready)).await;
    waited.unwrap();
    let (events, next) = read(table, ReadFrom::After(seen)).await;
    assert_eq!(events, ["unready>ready"]);
    let (waited, ()) = join(table.wait_for_events(next), append(table, [1])).await;
    waited.unwrap();
    // There is something already, or another ring.
    table.wait_for_events(next).await.unwrap();
    table.append(Vec::new(), true).await.unwrap();
    table.wait_for_events(seen).await.unwrap();
}
