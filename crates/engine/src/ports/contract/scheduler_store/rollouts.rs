//! The rollout of a scheduler, and when its fleet last became smaller.

use maestro_core::scheduler::SizeBaseline;
use maestro_core::time::Timestamp;

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Refusal, RolloutRecord, RolloutState, SchedulerRecord};

fn changed() -> Refusal {
    Refusal::RolloutChanged { scheduler: arena() }
}

pub(super) async fn a_rollout_comes_back_as_it_was_set(store: &dyn Store) {
    open(store).await;
    let before = scheduler(store, &arena()).await;
    assert_eq!(before.rollout, None);
    let mut is = None;
    for state in RolloutState::ALL {
        let to = Some(rollout(state));
        accept(store, vec![set_rollout(is, to.clone())]).await;
        let expected = SchedulerRecord { rollout: to.clone(), ..before.clone() };
        assert_eq!(scheduler(store, &arena()).await, expected, "and nothing else");
        assert!(store.schedulers().await.unwrap().contains(&expected));
        is = to;
    }
    assert_eq!(scheduler(store, &bystander()).await.rollout, None);
    accept(store, vec![set_rollout(is, None)]).await;
    assert_eq!(scheduler(store, &arena()).await, before);
}

pub(super) async fn a_rollout_is_changed_only_from_what_it_is(store: &dyn Store) {
    open(store).await;
    let is = rollout(RolloutState::Rolling);
    accept(store, vec![set_rollout(None, Some(is.clone()))]).await;
    let others = [
        None,
        Some(rollout(RolloutState::Paused)),
        Some(RolloutRecord { to: version(2, 1), ..is.clone() }),
        Some(RolloutRecord { from: version(1, 1), ..is.clone() }),
        Some(RolloutRecord { since: at(7), ..is.clone() }),
        Some(RolloutRecord { fleet_size: SizeBaseline { before: 8, after: 9 }, ..is.clone() }),
        Some(RolloutRecord { fleet_size: SizeBaseline { before: 7, after: 8 }, ..is.clone() }),
        Some(RolloutRecord { occupied_at: Some(at(8)), ..is.clone() }),
        Some(RolloutRecord { note: String::new(), ..is.clone() }),
    ];
    for from in others {
        for to in [None, Some(rollout(RolloutState::Halted)), Some(is.clone())] {
            refuse(store, vec![set_rollout(from.clone(), to)], changed()).await;
        }
    }
    accept(store, vec![set_rollout(Some(is.clone()), Some(is.clone()))]).await;
    assert_eq!(scheduler(store, &arena()).await.rollout, Some(is));
}

pub(super) async fn a_rollout_begins_only_where_there_is_none(store: &dyn Store) {
    open(store).await;
    let begun = rollout(RolloutState::Rolling);
    for to in [None, Some(begun.clone())] {
        refuse(store, vec![set_rollout(Some(begun.clone()), to)], changed()).await;
    }
    accept(store, vec![set_rollout(None, None)]).await;
    assert_eq!(scheduler(store, &arena()).await.rollout, None);
    accept(store, vec![set_rollout(None, Some(begun.clone()))]).await;
    accept(store, vec![set_rollout(Some(begun.clone()), None)]).await;
    refuse(store, vec![set_rollout(Some(begun), None)], changed()).await;
}

pub(super) async fn a_rollout_is_known_by_what_was_written_and_by_what_was_read(store: &dyn Store) {
    open(store).await;
    let written = RolloutRecord {
        since: Timestamp::from_nanosecond(at(6).as_nanosecond() + 123_456_789).unwrap(),
        occupied_at: Some(Timestamp::from_nanosecond(at(8).as_nanosecond() + 123_456_789).unwrap()),
        ..rollout(RolloutState::Rolling)
    };
    accept(store, vec![set_rollout(None, Some(written.clone()))]).await;
    let read = scheduler(store, &arena()).await.rollout;
    accept(store, vec![set_rollout(read, Some(written.clone()))]).await;
    accept(store, vec![set_rollout(Some(written), None)]).await;
}

pub(super) async fn the_last_shrinking_is_remembered(store: &dyn Store) {
    open(store).await;
    let before = scheduler(store, &arena()).await;
    // Clocks jump back; what was written last counts.
    for seconds in [5, 9, 2] {
        accept(store, vec![set_last_shrunk(seconds)]).await;
        let expected = SchedulerRecord { last_shrunk_at: Some(at(seconds)), ..before.clone() };
        assert_eq!(scheduler(store, &arena()).await, expected, "and nothing else");
    }
    assert_eq!(scheduler(store, &bystander()).await.last_shrunk_at, None);
}
