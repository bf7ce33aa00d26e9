//! Rooms as local processes: each container of a room is a process, the leader of a process group of its own.
//!
//! [`ProcessRuntime`] implements the engine's `Runtime` port for one region; [`Options`] says where its files are and what
//! its rooms are told. Regions of one server share a [`ProcessScanner`], which looks at all processes once for many callers.
//!
//! Rooms do not depend on Maestro. Their environment says whose they are, their output goes to pipes whose reader does not
//! die with Maestro, and everything else about them is in the data directory. So they keep running when Maestro dies, and
//! the next Maestro on the same store finds them, watches them and learns how they end.
//!
//! - **Logs.** A log keeper, one process per region that outlives Maestro ([`keep_logs`]), reads what rooms write and is the
//!   only writer of their log files. That is why no room can fill a disk.
//! - **Whose rooms.** A room belongs to the store whose id it carries. Even with the same id, a server leaves rooms alone
//!   that belong to the data directory of another live server ([`ServerOf`]), because two servers may have copies of one
//!   store.
//! - **What a room leaves behind** is killed before its end is reported.
//!
//! How many rooms there should be, and which, is not decided here.
//!
//! | module | what it knows |
//! |---|---|
//! | `runtime`, `options` | the port: which rooms there are, who may touch which; what it is told when it is opened |
//! | `starting`, `adoption` | rooms that are started; rooms that are already running |
//! | `room`, `watch` | one room as others see it; the task that owns its processes |
//! | `plan`, `environment`, `launch` | what to run, with which environment, and running it |
//! | `process`, `process_table`, `pidfd` | the kernel: pidfds, `/proc`, how a process ended |
//! | `scanner`, `blocking` | one look at all processes for many callers; bounded blocking work |
//! | `directory`, `logs`, `log_keeper`, `ended` | files of rooms, their logs, and how many ended rooms keep them |
//! | `ports`, `places` | free host ports; how many rooms fit |
//! | `leftovers`, `members`, `cgroup` | which processes belong to a room |
//! | `owners`, `abandoned` | rooms of another server, and of a store that is gone |
//!
//! # Example
//!
//! ```
//! use maestro_core::room::Region;
//! use maestro_engine::Tasks;
//! use maestro_engine::ports::Runtime;
//! use maestro_runtime_process::{Options, ProcessRuntime, ProcessScanner};
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
//! # runtime.block_on(async {
//! let directory = tempfile::tempdir()?;
//! let runtime = ProcessRuntime::open(Options {
//!     directory: directory.path().into(),
//!     data_directory: directory.path().into(),
//!     store_id: "example-store".into(),
//!     region: Region::default_region(),
//!     host: "127.0.0.1".into(),
//!     rooms_api_url: "http://127.0.0.1:8070".into(),
//!     log_limit_bytes: 1 << 20,
//!     scheduler_log_limit_bytes: 1 << 30,
//!     rooms_max: 100,
//!     ended_rooms_max: 100,
//!     log_keeper: vec!["maestro".into(), "room-log-keeper".into()],
//!     tasks: Tasks::default(),
//!     rooms_directory: None,
//!     user: None,
//!     server_of: |_directory| None,
//!     working_directory: directory.path().into(),
//!     scanner: ProcessScanner::new(None),
//! })
//! .await?;
//!
//! // The region answers, and no process of this machine belongs to this store.
//! assert_eq!(runtime.check().await?.capacity, Some(100));
//! assert!(runtime.list().await?.is_empty());
//! runtime.shut_down(false).await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod options;
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
pub use options::{Options, RoomUser};
pub use owners::ServerOf;
pub use runtime::{OpenError, ProcessRuntime};
pub use scanner::ProcessScanner;
