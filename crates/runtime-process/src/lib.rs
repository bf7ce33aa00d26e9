//! Rooms as local processes: each container of a room is a process, leader of a process group of its own.
//!
//! The processes belong to themselves. They log to pipes whose reader does not die with Maestro, their environment says
//! whose they are,
//! and everything else about them is in the data directory, so that they live on when Maestro dies, and the next
//! Maestro on the same store finds them, watches them and learns how they end.
//!
//! | file | what it knows |
//! |---|---|
//! | `runtime` | the port: which rooms there are, who may touch which |
//! | `starting`, `adoption` | rooms that are made; rooms that run already |
//! | `room`, `watch` | one room as others see it; the task that owns its processes |
//! | `plan`, `environment`, `launch` | what to run, with which environment, and running it |
//! | `process`, `process_table`, `pidfd` | the kernel: pidfds, `/proc`, how a process ended |
//! | `scanner`, `blocking` | one look at all processes for many callers; bounded blocking work |
//! | `abandoned` | rooms of a store that is gone |
//! | `members` | which processes a handle names |
//! | `directory`, `logs`, `ports` | files of rooms, reading their logs, host ports |
//! | `leftovers`, `cgroup` | what a room leaves behind, and how it is found |
//! | `owners` | rooms of another server with a copy of the store |
//! | `ended` | how many ended rooms keep their files |
//! | `log_keeper` | the process that writes logs, and keeps them short |

mod abandoned;
mod adoption;
mod blocking;
mod cgroup;
mod directory;
mod ended;
mod environment;
mod launch;
mod leftovers;
mod log_keeper;
mod logs;
mod members;
mod owners;
mod pidfd;
mod places;
mod plan;
mod ports;
mod process;
mod process_table;
mod room;
mod runtime;
mod scanner;
mod starting;
mod watch;

pub use abandoned::{end_rooms_of_store, rooms_of_store};
pub use log_keeper::keep_logs;
pub use owners::ServerOf;
pub use runtime::{OpenError, Options, ProcessRuntime, RoomUser};
pub use scanner::ProcessScanner;
