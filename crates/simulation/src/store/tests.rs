//! What can become of transactions that are written together.

use std::time::Duration;

use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::AllocationStore;
use tokio::time::timeout;

use super::*;
use crate::clock::VirtualClock;
use crate::faults::{Faults, PortFaults, Rate};
use crate::memory::MemoryStore;

/// Longer than anything takes.
const NEVER: Duration = Duration::from_secs(3600);

/// A store with three rooms, and how a node reaches it.
async fn store(
    faults: PortFaults,
    crash: Option<CrashPoint>,
    seed: u64,
) -> (Arc<MemoryStore>, SimulatedStore) {
    let inner = Arc::new(MemoryStore::new(Arc::new(VirtualClock::begin())));
    open(&*inner).await;
    let rooms = (1..=3_u16).map(|number| Change::IntendRoom(new_room(number.into(), 40000 + number)));
    accept(&*inner, rooms.collect()).await;
    let quiet = Surroundings::quiet(Life::new(), Trace::begin(VirtualClock::begin()));
    quiet.active_faults.set(Faults { store: faults, ..Faults::NONE });
    let store = SimulatedStore::new(inner.clone(), Surroundings { seed, ..quiet }, crash);
    (inner, store)
}

/// One for each room.
fn allocations() -> Vec<Transaction> {
    let one = |number: u32| Transaction::new("allocate", &arena(), vec![allocate(number.into(), number, 1)]);
    (1..=3).map(one).collect()
}

async fn written(inner: &MemoryStore) -> usize {
    inner.open_allocations(None).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn each_has_its_answer_if_nothing_is_wrong() {
    let (inner, store) = store(PortFaults::NONE, None, 0).await;
    let mut transactions = allocations();
    transactions.insert(1, Transaction::new("allocate", &arena(), vec![allocate(9, 1, 2)]));
    let answers = store.commit_each(transactions).await.unwrap();
    assert_eq!(answers, [Ok(()), Err(Refusal::RoomClaimed(room_id(1))), Ok(()), Ok(())]);
    assert_eq!(written(&inner).await, 3);
}

#[tokio::test(start_paused = true)]
async fn an_engine_can_die_between_any_two() {
    for (crash, expected) in [
        (CrashPoint::Before(1), 0),
        (CrashPoint::After(1), 1),
        (CrashPoint::Before(2), 1),
        (CrashPoint::After(2), 2),
        (CrashPoint::Before(3), 2),
        (CrashPoint::After(3), 3),
    ] {
        let (inner, store) = store(PortFaults::NONE, Some(crash), 0).await;
        let answer = timeout(NEVER, store.commit_each(allocations())).await;
        assert!(answer.is_err(), "{crash:?}: the dead hear nothing");
        assert_eq!(written(&inner).await, expected, "{crash:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_became_of_some_can_stay_unknown() {
    let often = Rate::of_ten_thousand(5_000);
    let (mut partly, mut all) = (false, false);
    for seed in 0..50 {
        let faults = PortFaults { fails_before: often, fails_after: often, ..PortFaults::NONE };
        let (inner, store) = store(faults, None, seed).await;
        let answer = store.commit_each(allocations()).await;
        let written = written(&inner).await;
        match answer {
            Ok(answers) => assert_eq!((answers, written), (vec![Ok(()); 3], 3)),
            Err(_) => {
                partly |= (1..3).contains(&written);
                all |= written == 3;
            }
        }
    }
    assert!(partly, "a part of them was done");
    assert!(all, "all of them were done, and an answer was lost");
}

/// They have no ids: who does not hear what became of them finds out by what is there.
#[tokio::test(start_paused = true)]
async fn writes_that_are_no_transactions_lose_their_answers_too() {
    let faults = PortFaults { fails_after: Rate::of_ten_thousand(10_000), ..PortFaults::NONE };
    let (inner, store) = store(faults, None, 0).await;
    let workforce = async || inner.workers().await.unwrap();
    let is_lost = |error: StoreError| matches!(error, StoreError::Unknown { .. });
    assert!(is_lost(store.own(&arena(), "worker-1", TTL).await.unwrap_err()));
    let [owned] = &workforce().await.ownerships[..] else { panic!("it is owned") };
    assert!(is_lost(store.renew(renewal("worker-1")).await.unwrap_err()));
    assert_eq!(workforce().await.workers.len(), 1);
    assert!(is_lost(store.disown(&arena(), owned.token).await.unwrap_err()));
    assert_eq!(workforce().await.ownerships, []);
    assert!(is_lost(store.retire("worker-1").await.unwrap_err()));
    assert_eq!(workforce().await.workers, []);
    let coverage = store.injector.around().coverage.counts();
    assert_eq!(coverage.get(&RareEvent::UnheardOwnership), Some(&1));
}
