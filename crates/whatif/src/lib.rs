//! What would Maestro do? The planner of `maestro-core`, asked from a file instead of by a server.
//!
//! - [`simulate`] runs a fleet through many health cycles on paper. A [`Scenario`] says which recipe, which rooms and which
//!   demand; a [`Report`] has one [`Row`] per cycle and a [`Summary`]. A scenario is read as a [`Draft`], so that options
//!   of a command line can override the file.
//! - [`cases`] answers single questions about autoscaling, placement and resizes, one line of JSON each.
//!
//! There are no rooms, no operations and no clock here; `maestro-simulation` is the world that has them. `docs/simulate.md`
//! describes the commands that this crate implements.
//!
//! # Example
//!
//! ```
//! use maestro_whatif::{Draft, simulate};
//!
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("scenario.yaml");
//! std::fs::write(&file, r#"
//! scheduler:
//!   name: arena
//!   game: demo
//!   maxSurge: 25%
//!   portRange: {start: 20000, end: 29999}
//!   autoscaling:
//!     enabled: true
//!     min: 1
//!     max: -1
//!     policy: {type: roomOccupancy, parameters: {roomOccupancy: {readyTarget: 0.5}}}
//!   spec:
//!     terminationGracePeriod: 30s
//!     containers: [{name: room, command: [room], ports: [{name: game, protocol: tcp, port: 7777}]}]
//! rooms: {ready: 5, occupied: 20}
//! "#)?;
//!
//! let scenario = Draft::read(&file)?.parse()?.scenario;
//! let report = simulate(&scenario)?;
//!
//! // 20 occupied rooms at a ready target of one half: 40 rooms, 15 more than there are.
//! assert_eq!((report.rows[0].desired, report.rows[0].to_surge), (40, 15));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cases;
mod draw;
mod fields;
mod fleet;
mod report;
mod rollout;
pub mod scenario;
mod simulation;

pub use report::{Report, RolloutOutcome, RolloutReport, Row, Summary};
pub use scenario::{Draft, Scenario};
pub use simulation::{TooLarge, simulate};
