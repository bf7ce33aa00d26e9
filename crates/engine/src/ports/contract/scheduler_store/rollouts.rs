//! The rollout of a scheduler, and when its fleet last became smaller.

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{RolloutState, SchedulerRecord};

pub(super) async fn a_rollout_comes_back_as_it_was_set(store: &dyn Store) {
    open(store).await;
    let before = scheduler(store, &arena()).await;
    assert_eq!(before.rollout, None);
    for (read, state) in (0..).zip(RolloutState::ALL) {
        let to = Some(rollout(state));
        accept(store, vec![set_rollout(read, to.clone())]).await;
        let expected = SchedulerRecord { rollout: to, revision: read + 1, ..before.clone() };
        assert_eq!(scheduler(store, &arena()).await, expected, "and nothing else");
        assert!(store.schedulers().await.unwrap().contains(&expected));
    }
    assert_eq!(scheduler(store, &bystander()).await.rollout, None);
    accept(store, vec![set_rollout(4, None)]).await;
    assert_eq!(scheduler(store, &arena()).await, SchedulerRecord { revision: 5, ..before });
}

pub(super) async fn the_last_shrinking_is_remembered(store: &dyn Store) {
    open(store).await;
    let before = scheduler(store, &arena()).await;
    // Clocks jump back; what was written last counts.
    for (read, seconds) in (0..).zip([5, 9, 2]) {
        accept(store, vec![set_last_shrunk(read, seconds)]).await;
        let last_shrunk_at = Some(at(seconds));
        let expected = SchedulerRecord { last_shrunk_at, revision: read + 1, ..before.clone() };
        assert_eq!(scheduler(store, &arena()).await, expected, "and nothing else");
    }
    assert_eq!(scheduler(store, &bystander()).await.last_shrunk_at, None);
}
