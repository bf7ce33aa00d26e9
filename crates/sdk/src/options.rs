//! What a game may want to differ from the defaults.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// From one ping to the next while nothing changes, give or take a fifth.
    pub ping_interval: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long dropping the handle may wait for the last ping.
    pub farewell_timeout: Duration,
    /// If set, the game must call [`Handle::alive`](crate::Handle::alive) at least this often. Pings come from a thread
    /// of the SDK, so that without this a game that hangs would go on looking healthy; with it, pings fall silent and
    /// Maestro replaces the room.
    pub alive_within: Option<Duration>,
    /// Whether SIGTERM is the SDK's to handle. If not, the game calls [`Handle::terminating`](crate::Handle::terminating).
    pub handle_sigterm: bool,
    /// Decides the jitter. By default it follows from the room's id, so that rooms differ.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ping_interval: Duration::from_secs(10),
            request_timeout: Duration::from_secs(2),
            farewell_timeout: Duration::from_secs(2),
            alive_within: None,
            handle_sigterm: true,
            seed: None,
        }
    }
}
