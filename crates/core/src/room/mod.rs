//! A room: one running game server, seen from two sides: its instance (what the runtime sees) and its ping (what
//! the game says). Its status is composed from both.

mod ending;
mod id;
mod machine;
pub mod ports;
mod status;

pub use crate::region::Region;
pub use ending::{EndCause, Ending};
pub use id::RoomId;
pub use machine::{Fill, RoomState, Sides, StatusChange, composition, transitions};
pub use ports::HostPort;
pub use status::{Counts, InstanceCounts, InstanceStatus, PingStatus, RoomStatus, StatusCounts};

use crate::words::words;

words! {
    /// What a room is for. A validation room tries out a version: it is never counted, forwarded or allocated.
    pub enum Purpose {
        Fleet = "fleet",
        Validation = "validation",
    }
}
