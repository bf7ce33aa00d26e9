//! What would Maestro do? The planners of the core, asked from a file instead of by a server: [`cases`] answers single
//! questions line by line, [`simulate`] carries plans out on paper, cycle after cycle.

pub mod cases;
mod draw;
mod fleet;
mod report;
mod rollout;
pub mod scenario;
mod simulation;

pub use report::{Report, RolloutReport, RolloutState, Row, Summary};
pub use scenario::{Draft, Scenario};
pub use simulation::{TooLarge, simulate};
