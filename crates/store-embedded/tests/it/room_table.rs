//! The room table under many hands, and its counters against a recount.

use std::sync::Arc;

use futures_util::future::join_all;
use maestro_core::allocation::ClaimNumber;
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::ports::RoomTable;
use maestro_engine::ports::room_table::{Claim, FleetCounts, NewRoom, Ping, TableError};
use maestro_store_embedded::MemoryRoomTable;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

fn arena() -> SchedulerName {
    SchedulerName::parse("arena").unwrap()
}

fn room_id(number: u32) -> RoomId {
    RoomId::new(&format!("arena-{number:05}"))
}

/// So few that changes meet, so many that some rooms share a shard.
const ROOMS: u32 = 24;
const OPERATIONS: u128 = 3;

const STATUSES: [RoomStatus; 4] =
    [RoomStatus::Pending, RoomStatus::Unready, RoomStatus::Ready, RoomStatus::Error];

#[derive(Debug, Clone)]
enum Step {
    Insert { room: u32, major: u32, validation: bool, instance: InstanceStatus, known: bool },
    Ping { room: u32, status: PingStatus, matches: u32 },
    Observe { room: u32, instance: InstanceStatus },
    Claim { operation: u128, rooms: Vec<u32>, known_only: bool, rooms_max: usize },
    Unclaim { operation: u128, rooms: Vec<u32> },
    Remove { room: u32 },
    SetMatchesMax(u32),
    RemoveScheduler,
}

fn instances() -> impl Strategy<Value = InstanceStatus> {
    prop::sample::select(InstanceStatus::ALL.to_vec())
}

fn steps() -> impl Strategy<Value = Step> {
    let room = 0..ROOMS;
    let rooms = prop::collection::vec(0..ROOMS, 0..8);
    let word = prop::sample::select(PingStatus::SAID.to_vec());
    prop_oneof![
        6 => (room.clone(), 1..4_u32, any::<bool>(), instances(), any::<bool>()).prop_map(
            |(room, major, validation, instance, known)| Step::Insert { room, major, validation, instance, known }
        ),
        8 => (room.clone(), word, 0..5_u32)
            .prop_map(|(room, status, matches)| Step::Ping { room, status, matches }),
        6 => (room.clone(), instances()).prop_map(|(room, instance)| Step::Observe { room, instance }),
        4 => (0..OPERATIONS, rooms.clone(), any::<bool>(), 0..5_usize).prop_map(
            |(operation, rooms, known_only, rooms_max)| Step::Claim { operation, rooms, known_only, rooms_max }
        ),
        3 => (0..OPERATIONS, rooms).prop_map(|(operation, rooms)| Step::Unclaim { operation, rooms }),
        2 => room.prop_map(|room| Step::Remove { room }),
        1 => (1..4_u32).prop_map(Step::SetMatchesMax),
        1 => Just(Step::RemoveScheduler),
    ]
}

async fn take(table: &MemoryRoomTable, step: &Step) {
    let ids = |rooms: &[u32]| rooms.iter().map(|room| room_id(*room)).collect::<Vec<_>>();
    match step {
        Step::Insert { room, major, validation, instance, known } => {
            let new = NewRoom {
                scheduler: arena(),
                id: room_id(*room),
                version: Version { major: *major, minor: 0, patch: 0 },
                region: Region::default_region(),
                purpose: if *validation { Purpose::Validation } else { Purpose::Fleet },
                instance: *instance,
                created_at: Timestamp::UNIX_EPOCH,
                matches_max: 1,
                known: *known,
                listened_since: Timestamp::UNIX_EPOCH,
                address: None,
                claim_number: ClaimNumber(0),
                holds: Vec::new(),
            };
            table.insert(new).await.unwrap();
        }
        Step::Ping { room, status, matches } => {
            let id = room_id(*room);
            let ping = Ping { matches: *matches, ..Ping::of("arena", id.as_str(), *status) };
            // Of rooms that are not there, and impossible ones: refusals must not be counted either.
            let _ = table.ping(ping, Timestamp::UNIX_EPOCH).await;
        }
        Step::Observe { room, instance } => {
            unless_lost(table.observe(&arena(), &room_id(*room), *instance).await);
        }
        Step::Claim { operation, rooms, known_only, rooms_max } => {
            let claim = Claim {
                scheduler: &arena(),
                operation: OperationId::from_u128(*operation),
                candidates: &ids(rooms),
                statuses: &STATUSES,
                known_only: *known_only,
                rooms_max: *rooms_max,
            };
            unless_lost(table.claim(claim).await);
        }
        Step::Unclaim { operation, rooms } => {
            let operation = OperationId::from_u128(*operation);
            unless_lost(table.unclaim(&arena(), operation, &ids(rooms)).await);
        }
        Step::Remove { room } => unless_lost(table.remove(&arena(), &room_id(*room)).await),
        Step::SetMatchesMax(matches_max) => {
            unless_lost(table.set_matches_max(&arena(), *matches_max).await);
        }
        Step::RemoveScheduler => {
            table.remove_scheduler(&arena()).await.unwrap();
            rebuild(table).await;
        }
    }
}

/// Another thread may have removed the scheduler a moment ago.
fn unless_lost<T>(answer: Result<T, TableError>) {
    assert!(matches!(answer, Ok(_) | Err(TableError::Lost(_))), "{:?}", answer.err());
}

async fn rebuild(table: &MemoryRoomTable) {
    if table.begin_rebuild(&arena()).await.unwrap() {
        unless_lost(table.end_rebuild(&arena()).await);
    }
}

async fn new_table() -> MemoryRoomTable {
    let table = MemoryRoomTable::new();
    rebuild(&table).await;
    table
}

/// The counters as they must be, by walking over what is there.
async fn recount(table: &MemoryRoomTable) -> FleetCounts {
    let mut counts = FleetCounts::default();
    for room in table.rooms(&arena()).await.unwrap() {
        if room.purpose == Purpose::Validation {
            continue;
        }
        counts.by_status.add(room.status);
        counts.by_region.entry(room.region.clone()).or_default().add(room.status);
        counts.by_instance.add(room.instance);
        counts.matches += u64::from(room.matches);
        counts.unknown += u32::from(!room.known);
    }
    counts
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn counters_never_drift(steps in prop::collection::vec(steps(), 1..150)) {
        block_on(async {
            let table = new_table().await;
            for step in &steps {
                take(&table, step).await;
                prop_assert_eq!(table.counts(&arena()).await.unwrap(), recount(&table).await, "after {:?}", step);
            }
            Ok(())
        })?;
    }
}

fn random_steps(seed: u8) -> Vec<Step> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let steps = prop::collection::vec(steps(), 2000).new_tree(&mut runner);
    steps.unwrap().current()
}

/// All threads at once on the same rooms; then what they left behind must add up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counters_do_not_drift_under_contention() {
    let table = Arc::new(new_table().await);
    let tasks = (0..8).map(|task| {
        let table = table.clone();
        tokio::spawn(async move {
            for step in random_steps(task) {
                take(&table, &step).await;
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    rebuild(&table).await;
    assert_eq!(table.counts(&arena()).await.unwrap(), recount(&table).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_from_many_threads_share_no_room() {
    let table = Arc::new(new_table().await);
    let rooms: Vec<RoomId> = (0..1000).map(room_id).collect();
    for room in 0..1000 {
        take(
            &table,
            &Step::Insert { room, major: 1, validation: false, instance: InstanceStatus::Ready, known: true },
        )
        .await;
    }
    let claims = (0..16_u128).map(|operation| {
        let (table, rooms) = (table.clone(), rooms.clone());
        tokio::spawn(async move {
            let claim = Claim {
                scheduler: &arena(),
                operation: OperationId::from_u128(operation),
                candidates: &rooms,
                statuses: &[RoomStatus::Unready],
                known_only: true,
                rooms_max: 100,
            };
            let first = table.claim(claim).await.unwrap();
            assert_eq!(table.claim(claim).await.unwrap(), first, "a repeated claim");
            first
        })
    });
    let mut claimed = Vec::new();
    for task in join_all(claims).await {
        claimed.extend(task.unwrap());
    }
    claimed.sort();
    assert_eq!(claimed, rooms, "each once");
}
