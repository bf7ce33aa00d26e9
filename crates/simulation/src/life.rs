//! The life of one engine. A simulated crash ends it between two instructions: whatever the engine still tries to do
//! then, at any port, does not happen and never returns. A frozen engine stands still at its next port, with its call
//! in its hand, and goes on with just that call when it is thawed.

use std::pin::pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Shared by all ports that one engine was given. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Life(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// It wakes those who wait in their order, which a tokio `watch` does not.
    changed: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    phase: Phase,
    /// How often it was frozen.
    freezes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Alive,
    Frozen,
    Dead,
}

impl Default for Life {
    fn default() -> Self {
        Self::new()
    }
}

impl Life {
    pub fn new() -> Self {
        let state = Mutex::new(State { phase: Phase::Alive, freezes: 0 });
        Self(Arc::new(Inner { state, changed: Notify::new() }))
    }

    pub fn end(&self) {
        self.change(|state| state.phase = Phase::Dead);
    }

    /// Nothing happens to one that is dead.
    pub fn freeze(&self) {
        self.change(|state| {
            if state.phase == Phase::Alive {
                *state = State { phase: Phase::Frozen, freezes: state.freezes + 1 };
            }
        });
    }

    pub fn thaw(&self) {
        self.change(|state| {
            if state.phase == Phase::Frozen {
                state.phase = Phase::Alive;
            }
        });
    }

    pub fn is_frozen(&self) -> bool {
        self.state().phase == Phase::Frozen
    }

    pub fn is_over(&self) -> bool {
        self.state().phase == Phase::Dead
    }

    /// It answers, and does what it is asked to.
    pub fn is_well(&self) -> bool {
        self.state().phase == Phase::Alive
    }

    /// How often it was frozen.
    pub(crate) fn freezes(&self) -> u64 {
        self.state().freezes
    }

    /// Returns at once, after a thaw, or never: a dead engine goes no further than this.
    pub async fn still_alive(&self) {
        self.until(Phase::Alive).await;
    }

    /// Returns when it has ended.
    pub async fn over(&self) {
        self.until(Phase::Dead).await;
    }

    async fn until(&self, phase: Phase) {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // From here on no change is missed, so what is now can be looked at.
            changed.as_mut().enable();
            if self.state().phase == phase {
                return;
            }
            changed.await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock());
        self.0.changed.notify_waiters();
    }

    fn state(&self) -> State {
        *self.0.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn a_frozen_one_goes_on_when_it_is_thawed_and_a_dead_one_never() {
        let life = Life::new();
        life.still_alive().await;
        life.freeze();
        assert!(timeout(LONG, life.still_alive()).await.is_err());
        life.thaw();
        life.still_alive().await;
        life.freeze();
        life.end();
        life.thaw();
        life.freeze();
        life.over().await;
        assert!(life.is_over() && !life.is_frozen());
        assert!(timeout(LONG, life.still_alive()).await.is_err());
        assert_eq!(life.freezes(), 2);
    }
}
