//! What the contract does not say: batches, deadlines, many rooms, and how much memory they take.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use maestro_core::operation::OperationId;
use maestro_core::room::{PingStatus, RoomId, RoomStatus};
use maestro_core::stream::{Happened, Read, ReadFrom};
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{Claim, Ping, PingError};
use maestro_engine::ports::{EventRing, RoomTable};
use maestro_table_redis::{Options, RedisRoomTable};
use maestro_testkit::{RedisServer, eventually};
use rustix::process::Signal;

use crate::losses::{id, room};
use crate::tables::{begin, fresh, name, open, own_keys, server};

const ARENA: &str = "arena";

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

async fn insert_many(table: &RedisRoomTable, rooms: u32) {
    for part in (1..=rooms).collect::<Vec<_>>().chunks(500) {
        for inserted in join_all(part.iter().map(|number| table.insert(room(*number, true)))).await {
            inserted.unwrap();
        }
    }
}

#[tokio::test]
async fn pings_of_one_batch_are_answered_each_by_itself() {
    let table = fresh(&[ARENA]).await;
    insert_many(&table, 600).await;
    let ids: Vec<RoomId> = (1..=700).map(id).collect();
    for (round, status) in
        [PingStatus::Ready, PingStatus::Terminated, PingStatus::Ready].into_iter().enumerate()
    {
        let pings = ids.iter().map(|id| table.ping(Ping::of(ARENA, id.as_str(), status), now()));
        for (place, answer) in join_all(pings).await.into_iter().enumerate() {
            let before = [RoomStatus::Unready, RoomStatus::Ready, RoomStatus::Terminated][round];
            match answer {
                Err(PingError::UnknownRoom) => assert!(place >= 600, "room {place}"),
                Err(PingError::Refused { from, to }) => {
                    assert_eq!((round, from, to), (2, RoomStatus::Terminated, RoomStatus::Ready));
                }
                Err(PingError::Table(error)) => panic!("{error}"),
                Ok(pinged) => assert_eq!((place < 600, pinged.before), (true, before)),
            }
        }
    }
}

#[tokio::test]
async fn what_concerns_many_rooms_goes_in_parts() {
    let table = fresh(&[ARENA]).await;
    insert_many(&table, 2_500).await;
    let arena = name(ARENA);
    let candidates: Vec<RoomId> = (1..=2_500).map(id).collect();
    let claim = |rooms_max| Claim {
        scheduler: &arena,
        operation: OperationId::from_u128(1),
        candidates: &candidates,
        statuses: &[RoomStatus::Unready],
        known_only: true,
        rooms_max,
    };
    let first = table.claim(claim(1_700)).await.unwrap();
    assert_eq!(first, candidates[..1_700]);
    let (again, at_once) =
        futures_util::future::join(table.claim(claim(1_700)), table.claim(claim(1_700))).await;
    assert_eq!((again.unwrap(), at_once.unwrap()), (first.clone(), first), "what was claimed before counts");
    table.set_matches_max(&arena, 3).await.unwrap();
    let rooms = table.rooms(&arena).await.unwrap();
    assert!(rooms.iter().map(|room| &room.id).eq(&candidates));
    assert_eq!(table.counts(&arena).await.unwrap().by_status.of(RoomStatus::Terminating), 1_700);
    table.remove_scheduler(&arena).await.unwrap();
    begin(&table, &arena).await;
    assert_eq!(table.rooms(&arena).await.unwrap(), []);
}

/// Longer than any answer, shorter than anybody's patience.
const DEADLINE: Duration = Duration::from_millis(500);

/// On a machine that is busy with other things.
const GENEROUS: Duration = Duration::from_secs(30);

#[tokio::test]
async fn nothing_waits_for_a_server_that_stands_still() {
    let server = RedisServer::start(&[]).unwrap();
    let table = open(&Options { deadline: DEADLINE, ..Options::new(&server.url()) }).await;
    let arena = name(ARENA);
    begin(&table, &arena).await;
    table.insert(room(1, true)).await.unwrap();
    server.signal(Signal::STOP).unwrap();
    let started = Instant::now();
    // A few rounds: connections are made again meanwhile.
    for _ in 0..3 {
        let id = id(1);
        let (pinged, counted, read) = futures_util::future::join3(
            table.ping(Ping::of(ARENA, id.as_str(), PingStatus::Ready), now()),
            table.counts(&arena),
            table.read_events(ReadFrom::Now, 1),
        )
        .await;
        let error = counted.unwrap_err().to_string();
        assert!(error.contains("has not answered within"), "{error}");
        assert!(pinged.is_err() && read.is_err());
    }
    assert!(started.elapsed() < GENEROUS, "{:?}", started.elapsed());
    server.signal(Signal::CONT).unwrap();
    eventually("it answers again", async || table.counts(&arena).await.is_ok()).await;
}

/// A process that is killed between a change and the ring loses no event.
#[tokio::test]
async fn what_a_process_did_not_tell_is_told_by_another() {
    let options = own_keys(server());
    let (first, second) = (open(&options).await, open(&options).await);
    begin(&first, &name(ARENA)).await;
    insert_many(&first, 2).await;
    let ping = async |table: &RedisRoomTable, number, status| {
        let room = id(number);
        table.ping(Ping::of(ARENA, room.as_str(), status), now()).await.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let dying = options.clone();
    runtime.spawn(async move {
        let table = open(&dying).await;
        let room = id(1);
        table.ping(Ping::of(ARENA, room.as_str(), PingStatus::Ready), now()).await.unwrap();
    });
    eventually("it has pinged", async || {
        let room = first.room(&name(ARENA), &id(1)).await.unwrap();
        room.unwrap().status == RoomStatus::Ready
    })
    .await;
    runtime.shutdown_background();
    // From several processes at once, too.
    let pings = (0..20).map(|number| {
        let (table, status) = match number % 2 {
            0 => (&first, PingStatus::Occupied),
            _ => (&second, PingStatus::Ready),
        };
        ping(table, 2, status)
    });
    join_all(pings).await;
    ping(&first, 2, PingStatus::Terminating).await;
    let Read::Events { events, .. } = first.read_events(ReadFrom::Oldest, 1000).await.unwrap() else {
        panic!()
    };
    let changes = events.into_iter().map(|(_, event)| match &event.what {
        Happened::RoomChanged { room, before, after } => (room.clone(), *before, *after),
        other => panic!("{other:?}"),
    });
    let (of_first, of_second): (Vec<_>, Vec<_>) = changes.partition(|(room, _, _)| *room == id(1));
    assert_eq!(of_first, [(id(1), RoomStatus::Unready, RoomStatus::Ready)]);
    assert_eq!(of_second.first().map(|change| change.1), Some(RoomStatus::Unready));
    assert!(
        of_second.windows(2).all(|pair| pair[0].2 == pair[1].1),
        "each once, in their order: {of_second:?}"
    );
    assert_eq!(of_second.last().map(|change| change.2), Some(RoomStatus::Terminating));
}

/// Figure of the room table: what a room takes in Redis.
const BYTES_PER_ROOM_MAX: u64 = 1024;

#[tokio::test]
async fn a_room_takes_less_than_a_kibibyte() {
    let server = RedisServer::start(&[]).unwrap();
    let table = open(&Options::new(&server.url())).await;
    begin(&table, &name(ARENA)).await;
    let used = || {
        let info = server.command("INFO memory").unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = used();
    let rooms = 5_000;
    insert_many(&table, rooms).await;
    let ids: Vec<RoomId> = (1..=rooms).map(id).collect();
    for part in ids.chunks(500) {
        let metadata = Some(r#"{"mode":"duel","map":"ruins","players":12,"level":3}"#);
        let ping = |id| {
            table.ping(
                Ping { metadata, sent_at: Some(1_800_000_000), ..Ping::of(ARENA, id, PingStatus::Ready) },
                now(),
            )
        };
        join_all(part.iter().map(|id| ping(id.as_str()))).await;
    }
    let per_room = used().saturating_sub(before) / u64::from(rooms);
    println!("{per_room} bytes per room");
    assert!(per_room < BYTES_PER_ROOM_MAX, "{per_room} bytes");
}
