//! The life of one engine. A simulated crash ends it between two instructions: whatever the engine still tries to do
//! then, at any port, does not happen and never returns.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all ports that one engine was given. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Life(Arc<watch::Sender<bool>>);

impl Default for Life {
    fn default() -> Self {
        Self::new()
    }
}

impl Life {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(true)))
    }

    pub fn end(&self) {
        self.0.send_replace(false);
    }

    /// Returns at once, or never: a dead engine goes no further than this.
    pub async fn still_alive(&self) {
        if !*self.0.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when it has ended.
    pub async fn over(&self) {
        // The sender lives as long as this does, so there is no error to look at.
        let _ = self.0.subscribe().wait_for(|alive| !alive).await;
    }
}
