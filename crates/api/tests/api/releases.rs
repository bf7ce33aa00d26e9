//! Forced releases while others are at work: what was read is another thing by the time it is written.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::scheduler::Version;
use maestro_engine::ports::Store;
use maestro_engine::ports::store::{Change, RolloutState, Transaction};
use maestro_simulation::{Inspector, MemoryStore, SimulatedStore, Trace, VirtualClock};

use crate::locks::{
    arena, is_released, lock, release, removal, rollout, set_rollout, taken, with_schedulers,
};
use crate::support::{Reply, TestClock, World};

const DL: LockKind = LockKind::Downscaling;
const TTL: Option<Duration> = Some(Duration::from_secs(30));

/// The store that the engine reaches only after a while, and the one behind it.
struct Race {
    world: World,
    behind: Arc<MemoryStore>,
    trace: Trace,
}

/// As many as it takes for a write that is on its way long enough.
const SEEDS: u64 = 20;

impl Race {
    async fn new(seed: u64) -> Self {
        let behind = Arc::new(MemoryStore::new(TestClock::begin()));
        let trace = Trace::begin(VirtualClock::begin());
        let inspector = Inspector::new(trace.clone());
        let slow = SimulatedStore::watched(behind.clone(), "api", inspector, trace.clone(), seed);
        let world = with_schedulers(World::standing_on(Arc::new(slow))).await;
        Self { world, behind, trace }
    }

    /// Sends the request, and writes the changes after it has looked. `None`: it was faster.
    async fn run(&self, path: &str, changes: Vec<Change>) -> Option<Reply> {
        let meanwhile = self.behind.commit(Transaction::of_no_scheduler("meanwhile", changes));
        let (reply, written) = tokio::join!(release(&self.world, path), meanwhile);
        written.ok()?;
        self.trace.lines().iter().any(|line| line.contains("refused: force lock")).then_some(reply)
    }

    async fn turned_round(&self, holder: Holder) -> bool {
        let unfinished = self.world.engine.ports().store.unfinished(&arena()).await.unwrap();
        let operation = unfinished.iter().find(|operation| Some(operation.id) == holder.operation());
        operation.unwrap().rollback.is_some()
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_that_is_there_by_now_is_released() {
    let mut races = 0;
    for seed in 0..SEEDS {
        let race = Race::new(seed).await;
        let (first, second) = (removal(&race.world).await, removal(&race.world).await);
        race.world.write(vec![taken(DL, first, TTL)]).await;
        let handed_on =
            vec![Change::ReleaseLock { scheduler: arena(), kind: DL, holder: first }, taken(DL, second, TTL)];
        let Some(reply) = race.run("/scheduler/arena/locks/downscaling", handed_on).await else { continue };
        is_released(&reply);
        assert_eq!(lock(&race.world, DL).await["isLocked"], false);
        assert_eq!((race.turned_round(first).await, race.turned_round(second).await), (false, true));
        races += 1;
    }
    assert!(races > 0);
}

#[tokio::test(start_paused = true)]
async fn with_a_token_nothing_but_what_was_seen_is_released() {
    let mut races = 0;
    for seed in 0..SEEDS {
        let race = Race::new(seed).await;
        let (first, second) = (removal(&race.world).await, removal(&race.world).await);
        race.world.write(vec![taken(DL, first, TTL)]).await;
        let handed_on =
            vec![Change::ReleaseLock { scheduler: arena(), kind: DL, holder: first }, taken(DL, second, TTL)];
        let seen = lock(&race.world, DL).await["fencingToken"].clone();
        let path = format!("/scheduler/arena/locks/downscaling?token={seen}");
        let Some(reply) = race.run(&path, handed_on).await else { continue };
        let is = lock(&race.world, DL).await["fencingToken"].clone();
        let text = format!("the lock downscaling of scheduler arena now has the fencing token {is}");
        reply.refused(409, 10, &text);
        assert_eq!(lock(&race.world, DL).await["owner"], second.to_string());
        assert_eq!((race.turned_round(first).await, race.turned_round(second).await), (false, false));
        races += 1;
    }
    assert!(races > 0);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_done_first_is_left_alone() {
    let mut races = 0;
    for seed in 0..SEEDS {
        let race = Race::new(seed).await;
        let holder = removal(&race.world).await;
        race.world.write(vec![taken(DL, holder, TTL)]).await;
        let done = vec![Change::ReleaseLock { scheduler: arena(), kind: DL, holder }];
        let Some(reply) = race.run("/scheduler/arena/locks/downscaling", done).await else { continue };
        is_released(&reply);
        assert!(!race.turned_round(holder).await);
        races += 1;
    }
    assert!(races > 0);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_changes_meanwhile_is_paused_as_it_is_by_now() {
    let mut races = 0;
    for seed in 0..SEEDS {
        let race = Race::new(seed).await;
        let rolling = rollout(&race.world, RolloutState::Rolling, "");
        let holder = Holder::Rollout(Version::FIRST);
        let locked = taken(LockKind::Config, holder, None);
        race.world.write(vec![set_rollout(0, &rolling), locked]).await;
        let halted = rollout(&race.world, RolloutState::Halted, "v1.0.0 failed");
        let changed = vec![set_rollout(1, &halted)];
        let Some(reply) = race.run("/schedulers/arena/locks/config", changed).await else { continue };
        is_released(&reply);
        let rollout = race.world.get("/schedulers/arena/rollout").await.ok();
        let said =
            "someone to resume it: v1.0.0 failed; the lock config was released by ada@host: no reason given";
        assert_eq!(rollout["waitingFor"], said);
        races += 1;
    }
    assert!(races > 0);
}
