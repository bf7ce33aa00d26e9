//! What Maestro says and hears: the messages of `proto/`, their JSON, and their way to and from the domain.
//!
//! Clients of v10 read this JSON with parsers that are strict about it, so its form is part of the contract: see
//! [`json`] for how messages are read and written, [`recipe`] for recipes on their way to the core and back.

pub mod decimals;
pub mod json;
pub mod query;
pub mod recipe;
mod well_known;

#[allow(unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod messages {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

use maestro_core::nearest;
pub use messages::google::protobuf;
pub use messages::maestro::api::v1;

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
