use crate::lock::{Holder, Lock, LockKind, Locks, Waiter};
use crate::operation::{DefinitionKind, OperationId, Token};
use crate::rollout::{LockChange, RemovalOutlook, Removals, RolloutRecord, RolloutState};
use crate::scheduler::{SizeBaseline, Version};
use crate::time::Timestamp;

const V2: Version = Version { major: 2, minor: 0, patch: 0 };
const OF_ROLLOUT: Holder = Holder::Rollout(V2);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn removal(number: u128) -> Holder {
    Holder::Operation { kind: DefinitionKind::RemoveRooms, id: OperationId::from_u128(number) }
}

fn rollout(state: RolloutState) -> RolloutRecord {
    RolloutRecord {
        state,
        to: V2,
        from: Version::FIRST,
        since: at(0),
        fleet_size: SizeBaseline { before: 4, after: 4 },
        occupied_at: None,
        note: String::new(),
    }
}

fn locks(held: &[(LockKind, Holder)], waiting: &[Holder]) -> Locks {
    let lock = |&(kind, holder): &(LockKind, Holder)| Lock {
        kind,
        holder,
        reason: "because".into(),
        token: Token(7),
        acquired_at: at(0),
        expires_at: None,
    };
    let place =
        |&holder: &Holder| Waiter { kind: LockKind::Downscaling, holder, since: at(0), until: at(99) };
    Locks { held: held.iter().map(lock).collect(), waiters: waiting.iter().map(place).collect() }
}

fn in_words(change: &LockChange) -> String {
    let short = |holder: Holder| match holder.operation() {
        Some(id) => format!("removal {}", id.to_string().trim_start_matches(['0', '-'])),
        None => holder.to_string(),
    };
    match change {
        LockChange::Take { kind, taker, .. } => format!("{} takes {kind}", short(taker.holder)),
        LockChange::Release { kind, holder } => format!("{} releases {kind}", short(*holder)),
        LockChange::Await { kind, holder } => format!("{} awaits {kind}", short(*holder)),
        LockChange::StopAwaiting { kind, holder } => format!("{} leaves the line of {kind}", short(*holder)),
    }
}

/// A cycle that plans removals 1 and 2, or none, and how it says beforehand what it would do.
#[track_caller]
fn check(
    state: Option<RolloutState>,
    locks: &Locks,
    planned: u128,
    begun: u128,
    changes: &[&str],
    outlook: (bool, bool),
) {
    let rollout = state.map(rollout);
    let mut removals = Removals::new(rollout.as_ref(), locks, at(10));
    let (settles_lock, removes) = outlook;
    assert_eq!(removals.outlook(planned > 0), RemovalOutlook { settles_lock, removes });
    let began = (1..=planned).filter(|number| removals.begin(removal(*number), "too many").is_ok()).count();
    assert_eq!(began as u128, begun);
    let settled = removals.settle();
    let told: Vec<String> = settled.changes.iter().map(in_words).collect();
    assert_eq!(told, changes);
}

#[test]
fn removals_without_a_rollout_go_one_at_a_time() {
    use LockKind::Downscaling;
    let taken = locks(&[(Downscaling, removal(9))], &[]);
    let promised = locks(&[], &[removal(9)]);
    let waited_for = locks(&[(Downscaling, removal(9))], &[Holder::HealthController]);
    let left_over = locks(&[], &[Holder::HealthController]);
    let takes = "removal 1 takes downscaling";
    let awaits = "the health controller awaits downscaling";
    let leaves = "the health controller leaves the line of downscaling";
    for state in [None, Some(RolloutState::Paused), Some(RolloutState::Halted)] {
        check(state, &Locks::default(), 0, 0, &[], (false, false));
        check(state, &Locks::default(), 1, 1, &[takes], (false, true));
        check(state, &Locks::default(), 2, 1, &[takes, awaits], (false, true));
        check(state, &taken, 1, 0, &[awaits], (false, true));
        check(state, &promised, 1, 0, &[awaits], (false, true));
        check(state, &taken, 0, 0, &[], (false, false));
        // It has its place: a cycle would only find that again.
        check(state, &waited_for, 1, 0, &[awaits], (false, false));
        check(state, &waited_for, 0, 0, &[leaves], (true, false));
        check(state, &left_over, 1, 1, &[takes, leaves], (false, true));
    }
}

#[test]
fn removals_of_a_rollout_use_its_lock() {
    use LockKind::{Config, Downscaling};
    let has_both = locks(&[(Config, OF_ROLLOUT), (Downscaling, OF_ROLLOUT)], &[]);
    let has_config = locks(&[(Config, OF_ROLLOUT)], &[]);
    let has_removals = locks(&[(Downscaling, OF_ROLLOUT)], &[]);
    let has_to_wait = locks(&[(Config, OF_ROLLOUT), (Downscaling, removal(9))], &[Holder::HealthController]);
    let (config, downscaling) = ("rollout v2.0.0 takes config", "rollout v2.0.0 takes downscaling");
    let waits = ["rollout v2.0.0 awaits downscaling", "the health controller leaves the line of downscaling"];
    for state in [RolloutState::Rolling, RolloutState::RollingBack].map(Some) {
        check(state, &has_both, 2, 2, &[], (false, true));
        check(state, &has_both, 0, 0, &[], (false, false));
        check(state, &has_config, 0, 0, &[downscaling], (true, false));
        check(state, &has_removals, 2, 2, &[config], (false, true));
        check(state, &has_to_wait, 1, 0, &waits, (false, true));
    }
}
