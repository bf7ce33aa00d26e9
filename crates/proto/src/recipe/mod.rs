//! Recipes between the wire and the core. There are two shapes: the messages of `recipe.proto`, which clients, files,
//! patches and stored documents share, and the core's [`Recipe`], which is valid.
//!
//! ```text
//! JSON, YAML ─► CreateSchedulerRequest ── read ──► Recipe ── answer ──► Scheduler ─► JSON
//!                  ▲              ▲                │
//!              document           └──── write ─────┘
//! ```
//!
//! `document` is the message's JSON, which stores keep. `patch` merges changes into it, and `input` makes of it what
//! operations show to clients of v10.

mod answer;
mod document;
mod input;
mod patch;
mod read;
#[cfg(test)]
mod tests;
mod write;

#[cfg(doc)]
use maestro_core::scheduler::Recipe;

pub use self::answer::{Shown, scheduler, scheduler_without_spec};
pub use self::document::{DocumentError, recipe_from_json, recipe_to_json};
pub use self::input::go_cased_scheduler;
pub use self::patch::Patch;
pub use self::write::signed;
