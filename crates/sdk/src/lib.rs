//! What a game room links to.
//!
//! A room tells Maestro what it is doing: that it is ready for players, that it holds matches, that it is about to
//! end. The SDK says so from a thread of its own: at once when something changes and again every few seconds, through
//! outages of the rooms API, without ever blocking the game. It needs no async runtime and works beside any.
//!
//! ```no_run
//! use std::time::Duration;
//! use maestro_sdk::{Options, Room};
//!
//! # fn listen(_port: u16) -> std::io::Result<()> { Ok(()) }
//! # fn finish_matches() {}
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let room = Room::from_env()?;
//!     listen(room.host_port("game")?)?;
//!
//!     let handle = room.start(Options::default())?;
//!     handle.ready();
//!
//!     // A match begins: matchmakers hear of it at once.
//!     handle.occupied(1);
//!
//!     // SIGTERM: the SDK has already said `terminating`; the room finishes what it has and ends.
//!     while !handle.wait_terminate(Duration::from_secs(60)) {}
//!     finish_matches();
//!     Ok(()) // dropping the handle says `terminated`
//! }
//! ```
//!
//! # What is promised
//! - Until [`Handle::ready`] or [`Handle::occupied`] nothing is sent: Maestro shows the room as `unready`.
//! - One request at a time. What changes meanwhile is sent next, as it then is; a status in between may be skipped.
//! - A ping that fails or is refused is repeated with exponential back-off; [`Handle::last_ping`] tells how it went.
//! - The intervals of different rooms drift apart ([`Options::seed`]), so that a fleet does not ping in step.
//! - The room hears of each allocation once, with the answer to the first ping after it ([`Handle::on_allocated`]). Servers
//!   that know no allocations tell of none.
//! - From SIGTERM or [`Handle::terminating`] on, the status stays `terminating` whatever the game reports.

mod allocation;
mod environment;
mod handle;
mod http;
mod options;
mod pace;
mod ping;
mod shared;
mod sigterm;
mod state;
#[cfg(feature = "testing")]
pub mod testing;

pub use allocation::Allocation;
pub use environment::{EnvironmentError, Room};
pub use handle::{Handle, StartError};
pub use options::Options;
pub use ping::{Answer, LastPing, Status};
/// A value of the room's metadata.
pub use serde_json::Value;
