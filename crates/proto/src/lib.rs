//! What Maestro says and hears: the messages of `proto/`, their JSON, and how recipes become core types and back.
//!
//! Clients of v10 read this JSON with strict parsers, so its form is part of the contract.
//!
//! - [`v1`] has the messages and methods, generated from `proto/` at build time: those of v10 from its package `api.v1`,
//!   ours from `maestro.api.v1`. [`rpc`] has what methods and requests have in common.
//! - [`json`] reads and writes messages as JSON; [`query`] reads them from the parameters of a URL.
//! - [`recipe`] turns a message into a valid [`Recipe`](maestro_core::scheduler::Recipe), or names every error in it, and
//!   writes one back. It also has the form in which recipes are stored, patched, and shown as an operation's input.
//! - [`decimals`] keeps numbers such as `0.1` exact, which a binary float would not.
//! - [`document`] reads the files that people write.
//!
//! The rules for single values are in `maestro-core`. Paths, statuses and headers are the business of `maestro-api`.
//!
//! # Example
//!
//! ```
//! use maestro_core::scheduler::Recipe;
//! use maestro_proto::json::decode;
//! use maestro_proto::v1::CreateSchedulerRequest;
//!
//! let json = br#"{
//!     "name": "arena", "game": "demo", "roomsReplicas": 12, "maxSurge": "25%", "colour": "red",
//!     "portRange": {"start": 20000, "end": 20999},
//!     "spec": {
//!         "terminationGracePeriod": "30s",
//!         "containers": [{"name": "room", "command": ["./room"], "ports": [{"name": "game", "protocol": "tcp", "port": 7777}]}]
//!     }
//! }"#;
//! let decoded = decode::<CreateSchedulerRequest>(json)?;
//! assert_eq!(decoded.unknown_fields, ["colour"]);
//!
//! let recipe = Recipe::try_from(&decoded.message)?;
//! assert_eq!(recipe.rooms_replicas, 12);
//!
//! // A recipe is valid, or it is none: every error is reported at once, by its field.
//! let broken = CreateSchedulerRequest { name: "Arena!".into(), max_surge: "none".into(), ..decoded.message };
//! let violations = Recipe::try_from(&broken).unwrap_err();
//! let fields: Vec<_> = violations.0.iter().map(|violation| violation.field.as_str()).collect();
//! assert_eq!(fields, ["name", "maxSurge"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod decimals;
pub mod document;
pub mod json;
pub mod query;
pub mod recipe;
pub mod rpc;
mod well_known;

#[allow(unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod messages {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

use maestro_core::nearest;
pub use messages::google::protobuf;

/// The messages and methods of both packages.
pub mod v1 {
    pub use crate::messages::api::v1::*;
    pub use crate::messages::maestro::api::v1::*;
}

/// The names of all fields that a recipe can have, at any depth.
pub const RECIPE_FIELDS: &[&str] = include!(concat!(env!("OUT_DIR"), "/recipe_fields.rs"));

/// What to say of a field that recipes do not have, by its path: with the name that was most likely meant.
pub fn unknown_recipe_field(path: &str) -> String {
    let key = path.rsplit(['.', ']']).next().unwrap_or_default();
    match nearest(key, RECIPE_FIELDS.iter().copied()) {
        Some(name) => format!("unknown field {path}; did you mean {name}?"),
        None => format!("unknown field {path}"),
    }
}

/// The compiled schema, an encoded `google.protobuf.FileDescriptorSet` with the HTTP annotations of every method.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
