//! A Redis that forgets its data, or has older data, is noticed; one that forgets its scripts is not.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, ClaimNumber, Hold};
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::Version;
use maestro_core::stream::{Read, ReadFrom, ResetCause};
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{
    Claim, HoldRequest, NewRoom, Ping, PingError, RoomAddress, TableError,
};
use maestro_engine::ports::{EventRing, RoomTable};
use maestro_table_redis::{Options, RedisRoomTable};
use maestro_testkit::{RedisServer, eventually};

use crate::tables::{begin, fresh, name, open};

const ARENA: &str = "arena";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn room(number: u32, known: bool) -> NewRoom {
    NewRoom {
        scheduler: name(ARENA),
        id: id(number),
        version: Version::FIRST,
        region: Region::default_region(),
        purpose: Purpose::Fleet,
        instance: InstanceStatus::Ready,
        created_at: at(0),
        matches_max: 1,
        known,
        listened_since: at(0),
        address: Some(RoomAddress { host: "203.0.113.7".into(), ports: Arc::new([]) }),
        claim_number: ClaimNumber(0),
        holds: Vec::new(),
    }
}

pub(crate) fn id(number: u32) -> RoomId {
    RoomId::new(&format!("arena-{number:05}"))
}

async fn ping(table: &RedisRoomTable, number: u32) -> Result<RoomStatus, PingError> {
    let room = id(number);
    let pinged = table.ping(Ping::of(ARENA, room.as_str(), PingStatus::Ready), at(5)).await;
    pinged.map(|pinged| pinged.after)
}

async fn claim(table: &RedisRoomTable) -> Result<Vec<RoomId>, TableError> {
    let claim = Claim {
        scheduler: &name(ARENA),
        operation: OperationId::from_u128(1),
        candidates: &[id(1)],
        statuses: &RoomStatus::ALL,
        known_only: false,
        rooms_max: 1,
    };
    table.claim(claim).await
}

/// Nothing is told of the rooms, and nothing is done to them.
async fn assert_lost(table: &RedisRoomTable) {
    let arena = name(ARENA);
    let lost = TableError::Lost(arena.clone());
    assert_eq!(ping(table, 1).await, Err(PingError::Table(lost.clone())));
    assert_eq!(claim(table).await, Err(lost.clone()));
    let request = HoldRequest {
        scheduler: &arena,
        allocations: &[AllocationId::from_u128(1)],
        wishes: &[],
        metadata: None,
        now: at(5),
        expires_at: at(100),
        heard_since: at(0),
        draw: 0,
    };
    assert_eq!(table.hold(&[request]).await, Err(lost.clone()));
    assert_eq!(table.remove(&arena, &id(1)).await, Err(lost.clone()));
    assert_eq!(table.rooms(&arena).await, Err(lost.clone()));
    assert_eq!(table.counts(&arena).await, Err(lost.clone()));
    assert_eq!(table.room(&arena, &id(1)).await, Err(lost.clone()));
    assert_eq!(table.set_matches_max(&arena, 2).await, Err(lost.clone()));
    assert_eq!(table.holds(&arena).await, Err(lost));
}

async fn rebuild(table: &RedisRoomTable) {
    let arena = name(ARENA);
    assert_eq!(table.end_rebuild(&arena).await, Err(TableError::Lost(arena.clone())));
    assert!(table.begin_rebuild(&arena).await.unwrap());
    assert!(ping(table, 1).await.is_err(), "not all rooms are there");
    let hold = Hold::firm(AllocationId::from_u128(7), ClaimNumber(3), at(100));
    table.insert(NewRoom { holds: vec![hold], ..room(1, false) }).await.unwrap();
    table.insert(room(2, false)).await.unwrap();
    assert!(claim(table).await.is_err(), "not all rooms are there");
    table.end_rebuild(&arena).await.unwrap();
    assert_eq!(table.counts(&arena).await.unwrap().unknown, 2);
    assert_eq!(ping(table, 1).await, Ok(RoomStatus::Allocated));
    assert_eq!(table.rooms(&arena).await.unwrap().len(), 2, "and nothing of before");
}

async fn own(server: &RedisServer) -> RedisRoomTable {
    let table = open(&Options::new(&server.url())).await;
    begin(&table, &name(ARENA)).await;
    for number in 1..=3 {
        table.insert(room(number, true)).await.unwrap();
        ping(&table, number).await.unwrap();
    }
    table
}

#[tokio::test]
async fn a_flush_is_noticed() {
    let server = RedisServer::start(&[]).unwrap();
    let table = own(&server).await;
    server.command("FLUSHALL").unwrap();
    assert_lost(&table).await;
    rebuild(&table).await;
}

#[tokio::test]
async fn an_old_dump_is_noticed() {
    let mut server = RedisServer::start(&["--dbfilename", "old.rdb"]).unwrap();
    let table = own(&server).await;
    assert!(server.command("SAVE").unwrap().starts_with("+OK"));
    let Ok(Read::Events { next, .. }) = table.read_events(ReadFrom::Oldest, 100).await else { panic!() };
    server.restart().unwrap();
    // It has all that it had, and nobody can know that.
    eventually("the table is connected again", async || {
        table.end_rebuild(&name(ARENA)).await == Err(TableError::Lost(name(ARENA)))
    })
    .await;
    assert_lost(&table).await;
    let read = table.read_events(ReadFrom::After(next), 100).await.unwrap();
    assert!(matches!(read, Read::Reset { cause: ResetCause::OtherRing, .. }), "{read:?}");
    rebuild(&table).await;
}

#[tokio::test]
async fn a_promoted_replica_is_noticed() {
    let (first, second) = (RedisServer::start(&[]).unwrap(), RedisServer::start(&[]).unwrap());
    own(&first).await;
    second.command(&format!("REPLICAOF 127.0.0.1 {}", first.port())).unwrap();
    eventually("it is a copy", async || {
        second.command("INFO replication").unwrap().contains("link_status:up")
    })
    .await;
    second.command("REPLICAOF NO ONE").unwrap();
    let table = open(&Options::new(&second.url())).await;
    assert_lost(&table).await;
    rebuild(&table).await;
}

#[tokio::test]
async fn scripts_that_are_forgotten_are_nobodys_problem() {
    let server = RedisServer::start(&[]).unwrap();
    let table = own(&server).await;
    assert!(server.command("SCRIPT FLUSH").unwrap().starts_with("+OK"));
    assert_eq!(ping(&table, 1).await, Ok(RoomStatus::Ready));
    assert_eq!(claim(&table).await, Ok(vec![id(1)]));
}

/// More rooms than are removed at once, and somebody else who begins in the middle of it.
#[tokio::test]
async fn two_who_rebuild_a_large_fleet() {
    let table = fresh(&[]).await;
    let arena = name(ARENA);
    let rebuild = async || {
        assert!(table.begin_rebuild(&arena).await.unwrap());
        for number in 1..=600 {
            table.insert(room(number, false)).await.unwrap();
        }
    };
    rebuild().await;
    futures_util::future::join(rebuild(), rebuild()).await;
    table.end_rebuild(&arena).await.unwrap();
    assert!(!table.begin_rebuild(&arena).await.unwrap(), "it is not lost");
    let rooms = table.rooms(&arena).await.unwrap().len();
    assert_eq!(table.counts(&arena).await.unwrap().unknown as usize, rooms, "whatever is there is counted");
}
