//! A room that has been started: what the game calls.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::allocation::Allocation;
use crate::environment::Room;
use crate::http::RoomsApi;
use crate::options::Options;
use crate::pace::Pace;
use crate::ping::{LastPing, Status};
use crate::shared::Shared;
use crate::sigterm::Watcher;
use crate::state::State;

/// Reports for the room until it is dropped, which says `terminated`. A program that leaves by
/// [`std::process::exit`] drops it first.
///
/// No method blocks for longer than it takes to copy a few values, except [`Handle::wait_terminate`], which says so.
pub struct Handle {
    room: Room,
    shared: Arc<Shared>,
    farewell_timeout: Duration,
    /// Held for its drop, which gives SIGTERM back.
    _sigterm: Option<Watcher>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("cannot start the thread that pings")]
    Thread(#[source] io::Error),
    #[error("cannot handle SIGTERM")]
    Sigterm(#[source] io::Error),
}

impl Room {
    /// Starts to report. Nothing is sent before the game says that it is ready.
    pub fn start(self, options: Options) -> Result<Handle, StartError> {
        let seed = options.seed.unwrap_or_else(|| seed_of(self.id()));
        let pace = Pace::new(options.ping_interval, seed);
        let shared = Arc::new(Shared::new(State::new(pace, options.alive_within, Instant::now())));

        let sigterm = options.handle_sigterm.then(|| watch_sigterm(&shared)).transpose()?;
        let api = RoomsApi::new(&self, options.ping_interval);
        let farewell_timeout = options.farewell_timeout;
        let pinging = Arc::clone(&shared);
        thread::Builder::new()
            .name("maestro-ping".to_owned())
            .spawn(move || pinging.run(&api, &options))
            .map_err(StartError::Thread)?;
        Ok(Handle { room: self, shared, farewell_timeout, _sigterm: sigterm })
    }
}

impl Handle {
    /// Players may come: the room holds no match.
    pub fn ready(&self) {
        self.shared.change(|state| state.report(Instant::now(), Status::Ready, 0));
    }

    /// The room holds this many matches. None at all is [`Handle::ready`].
    pub fn occupied(&self, matches: u32) {
        self.shared.change(|state| state.report(Instant::now(), Status::of_matches(matches), matches));
    }

    /// The match of an allocation has begun, and the room holds this many matches now, this one included. Said at once, and
    /// repeated until Maestro has heard it. Rooms that hold one match may as well say [`Handle::occupied`]; of rooms that
    /// hold several, Maestro would not know whose match has begun.
    pub fn begun(&self, allocation: impl Into<String>, matches: u32) {
        let allocation = allocation.into();
        self.shared.change(|state| state.begin(Instant::now(), allocation, matches));
    }

    /// Calls `callback` once for each allocation, from the SDK's thread that pings, and for those that have come already at
    /// once. A callback that blocks holds up the pings. Another callback replaces this one.
    pub fn on_allocated(&self, callback: impl FnMut(Allocation) + Send + 'static) {
        self.shared.on_allocated(Box::new(callback));
    }

    /// The allocations whose matches have not begun, as the latest answer to a ping has them.
    pub fn allocations(&self) -> Vec<Allocation> {
        self.shared.read(|state| state.allocations.expected().to_vec())
    }

    /// The room is about to end, by its own decision. From here on it reports nothing else.
    pub fn terminating(&self) {
        self.shared.change(|state| state.terminating(Instant::now()));
    }

    /// Goes with every ping from the next one on; it does not cause one.
    pub fn set_metadata(&self, key: impl Into<String>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        self.shared.change_quietly(|state| {
            state.set_metadata(key, value);
            false
        });
    }

    /// The game is not stuck. Called from its main loop, it feeds [`Options::alive_within`].
    pub fn alive(&self) {
        self.shared.change_quietly(|state| state.alive(Instant::now()));
    }

    /// What the room reports at present; none while it starts.
    pub fn status(&self) -> Option<Status> {
        self.shared.read(|state| state.status)
    }

    /// How the latest ping went, if any has come to an end.
    pub fn last_ping(&self) -> Option<LastPing> {
        self.shared.read(|state| state.last_ping.clone())
    }

    /// Whether SIGTERM has come. Maestro has been told; the game ends its matches and returns.
    pub fn terminate_requested(&self) -> bool {
        self.shared.read(|state| state.terminate_requested)
    }

    /// Blocks until SIGTERM comes or the time is up, and tells whether it has come.
    pub fn wait_terminate(&self, timeout: Duration) -> bool {
        self.shared.wait_terminate(timeout)
    }

    /// Calls `callback` once when SIGTERM comes, from a thread of the SDK and not from the signal handler; at once if
    /// it has come already. For games that wait for something else than the SDK: a socket, a channel.
    pub fn on_terminate(&self, callback: impl FnOnce() + Send + 'static) {
        self.shared.on_terminate(Box::new(callback));
    }

    pub fn room(&self) -> &Room {
        &self.room
    }
}

impl Drop for Handle {
    /// Waits for the last ping, but no longer than [`Options::farewell_timeout`]: the process may be short of time.
    fn drop(&mut self) {
        self.shared.change(State::close);
        self.shared.wait_finished(self.farewell_timeout);
    }
}

fn watch_sigterm(shared: &Arc<Shared>) -> Result<Watcher, StartError> {
    let shared = Arc::clone(shared);
    Watcher::start(move || shared.request_terminate(Instant::now())).map_err(StartError::Sigterm)
}

/// FNV-1a: all that is asked of it is that rooms differ.
fn seed_of(room_id: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    room_id.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}
