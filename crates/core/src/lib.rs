//! The domain of Maestro, and every decision about it.
//!
//! This crate knows what a scheduler, a version, a room and an operation are, and how each decision about them is made:
//! how many rooms a fleet should have, which rooms go, where new ones go, whether a rollout continues. A decision is a
//! function from what was seen to what should happen, together with the reason.
//!
//! Everything here is pure: no async code, no clock, no randomness, no I/O, and nothing is `Serialize`. Carrying decisions
//! out is the business of `maestro-engine`; reading recipes from JSON is that of `maestro-proto`.
//!
//! # Where to find what
//!
//! | question | module |
//! |---|---|
//! | What is a recipe, and what does a change of one mean for rooms? | [`scheduler`] |
//! | What is a room doing? | [`room`], above all [`room::RoomState`] |
//! | Who gets a room, and for how long is it kept? | [`allocation`] |
//! | What is an operation, and which one is next? | [`operation`] |
//! | How many rooms should there be? | [`autoscaling`], and [`panic_scaling`] when a rush of players cannot wait |
//! | What should happen to a fleet now? | [`plan`] |
//! | What becomes of a rollout? | [`rollout`], above all [`rollout::transition`] |
//! | In which regions are rooms started, which are removed first, and how many rooms does a resize mean? | [`placement`], [`policy`], [`resize`] |
//! | What do matchmakers hear of a room, and when is it tried again? | [`event`] |
//! | What can be watched as it happens, and from where does a reader go on? | [`stream`] |
//! | Who may take a lock? | [`lock`] |
//! | When does a region count as lost? | [`region`] |
//! | Which worker works on which scheduler, and when? | [`workforce`], [`stagger`] |
//! | What time is it, whatever the clock of a host shows? | [`store_time`] |
//! | What must always hold? | [`invariant`], and [`guards`] that tests remove to see it found |
//!
//! # Example
//!
//! How many rooms does a fleet need, and why?
//!
//! ```
//! use maestro_core::autoscaling::{Demand, decide};
//! use maestro_core::scheduler::{Autoscaling, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy};
//!
//! let half = RoomOccupancy { ready_target: ReadyTarget::parse("0.5")?, down_threshold: None };
//! let autoscaling = Autoscaling {
//!     enabled: true,
//!     min: 1,
//!     max: Some(120),
//!     cooldown_seconds: 0,
//!     policy: ScalingPolicy::RoomOccupancy(half),
//!     other_parameters: OtherParameters::default(),
//!     panic: None,
//! };
//!
//! let demand = Demand { matches: 80, occupied: 80, total: 100, matches_max: 1, waiting: 0 };
//! let decision = decide(&demand, &autoscaling);
//!
//! assert_eq!(decision.desired, 120);
//! assert_eq!(decision.outcome().to_string(), "Scale Up: +20");
//! assert_eq!(decision.reason(), "80 occupied at readyTarget 0.5 → 160; max 120 → 120");
//! # Ok::<(), String>(())
//! ```

pub mod allocation;
pub mod autoscaling;
pub mod condition;
pub mod duration;
pub mod event;
pub mod guards;
pub mod hash;
pub mod invariant;
pub mod lock;
mod nearest;
pub mod operation;
pub mod panic_scaling;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod region;
pub mod resize;
pub mod rollout;
pub mod room;
pub mod scheduler;
pub mod stagger;
pub mod store_time;
pub mod stream;
pub mod text;
pub mod time;
mod uuid_id;
pub mod violation;
pub mod words;
pub mod workforce;

pub use nearest::nearest;
