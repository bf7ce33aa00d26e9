//! The life of one engine. A simulated crash ends it between two instructions: whatever the engine still tries to do
//! then, at any port, does not happen and never returns. A frozen engine stands still at its next port, with its call
//! in its hand, and goes on with just that call when it is thawed.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all ports that one engine was given. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Life(Arc<watch::Sender<State>>);

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
        Self(Arc::new(watch::Sender::new(State { phase: Phase::Alive, freezes: 0 })))
    }

    pub fn end(&self) {
        self.0.send_modify(|state| state.phase = Phase::Dead);
    }

    /// Nothing happens to one that is dead.
    pub fn freeze(&self) {
        self.0.send_modify(|state| {
            if state.phase == Phase::Alive {
                *state = State { phase: Phase::Frozen, freezes: state.freezes + 1 };
            }
        });
    }

    pub fn thaw(&self) {
        self.0.send_modify(|state| {
            if state.phase == Phase::Frozen {
                state.phase = Phase::Alive;
            }
        });
    }

    pub fn is_frozen(&self) -> bool {
        self.0.borrow().phase == Phase::Frozen
    }

    pub fn is_over(&self) -> bool {
        self.0.borrow().phase == Phase::Dead
    }

    /// It answers, and does what it is asked to.
    pub fn is_well(&self) -> bool {
        self.0.borrow().phase == Phase::Alive
    }

    /// Who compares two of them knows whether it was frozen in between.
    pub(crate) fn freezes(&self) -> u64 {
        self.0.borrow().freezes
    }

    /// Returns at once, after a thaw, or never: a dead engine goes no further than this.
    pub async fn still_alive(&self) {
        if self.is_well() {
            return;
        }
        // The sender lives as long as this does, so there is no error to look at.
        let _ = self.0.subscribe().wait_for(|state| state.phase == Phase::Alive).await;
    }

    /// Returns when it has ended.
    pub async fn over(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.phase == Phase::Dead).await;
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
