//! Rust types from the schema in `proto/`, without a protobuf compiler installed, and with the JSON that v10 speaks.
//!
//! The JSON comes from serde's own derive, steered field by field from the schema: proto3's JSON mapping as
//! grpc-gateway configures it. (pbjson, the usual generator, leaves out messages that are not set where v10 writes
//! null, and refuses null where v10 reads it as not set.)

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

type Error = Box<dyn std::error::Error>;

const PACKAGE: &str = "maestro.api.v1";
const RECIPE: &str = "maestro.api.v1.CreateSchedulerRequest";
const RECIPE_AGAIN: &str = "maestro.api.v1.NewSchedulerVersionRequest";
/// Fields from this number up are not in v10, whose clients refuse what they do not know: they are never written when
/// they are not set.
const FIRST_OWN_FIELD: u32 = 100;
const FILES: [&str; 8] = [
    "maestro/api/v1/recipe.proto",
    "maestro/api/v1/schedulers.proto",
    "maestro/api/v1/operations.proto",
    "maestro/api/v1/rooms.proto",
    "maestro/api/v1/fleet.proto",
    "maestro/api/v1/rollouts.proto",
    "maestro/api/v1/locks.proto",
    "maestro/api/v1/regions.proto",
];

/// Its JSON has decimals where the message has floats, and is written by hand.
const DECIMALS: &str = "maestro.api.v1.RoomOccupancy";
const DECIMALS_JSON: &str = "crate::decimals::RoomOccupancyJson";

/// Texts that YAML takes for numbers if they are written as people write them, `cpu: 1`.
const QUANTITIES: [&str; 4] = [
    "maestro.api.v1.CreateSchedulerRequest.max_surge",
    "maestro.api.v1.Scheduler.max_surge",
    "maestro.api.v1.ContainerResources.memory",
    "maestro.api.v1.ContainerResources.cpu",
];
/// Texts of which YAML takes some for whole numbers, or for true and false.
const TEXTS: [&str; 1] = ["maestro.api.v1.ContainerEnvironment.value"];
const TEXT_LISTS: [&str; 1] = ["maestro.api.v1.Container.command"];
const TEXT_MAPS: [&str; 2] = ["annotations", "labels"];

fn main() -> Result<(), Error> {
    let schema = Path::new("../../proto");
    println!("cargo:rerun-if-changed={}", schema.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);

    let mut compiler = protox::Compiler::new([schema])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    // Encoded by protox: prost's own types would lose the HTTP annotations.
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;

    let mut config = prost_build::Config::new();
    // Field for field the same: submitting a recipe anew reads no differently.
    config.extern_path(format!(".{RECIPE_AGAIN}"), "crate::v1::CreateSchedulerRequest");
    // Local well-known types, so that they can have the JSON form they need.
    config.compile_well_known_types().btree_map(["."]).include_file("messages.rs");
    let pool = compiler.descriptor_pool();
    // Wrappers are the value in them.
    for wrapper in [".google.protobuf.StringValue", ".google.protobuf.UInt64Value"] {
        config.type_attribute(wrapper, "#[derive(serde::Serialize, serde::Deserialize)]");
        config.type_attribute(wrapper, "#[serde(transparent)]");
    }
    let number = r#"#[serde(deserialize_with = "crate::json::number")]"#;
    config.field_attribute(".google.protobuf.UInt64Value.value", number);
    for message in pool.all_messages().filter(|message| message.package_name() == PACKAGE) {
        describe_message(&mut config, &message);
    }

    fs::write(out.join("recipe_fields.rs"), recipe_fields(&pool)?)?;

    // Annotations are read from the descriptors, never from code.
    let mut files = compiler.file_descriptor_set();
    let is_wanted =
        |name: &str| !name.starts_with("google/api/") && name != "google/protobuf/descriptor.proto";
    files.file.retain(|file| is_wanted(file.name()));
    config.compile_fds(files)?;
    Ok(())
}

/// The name of every field that a recipe can have, at any depth, as a list in Rust.
fn recipe_fields(pool: &DescriptorPool) -> Result<String, Error> {
    let recipe = pool.get_message_by_name(RECIPE).ok_or("there is no recipe")?;
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![recipe];
    while let Some(message) = waiting.pop() {
        if message.package_name() != PACKAGE || !seen.insert(message.full_name().to_owned()) {
            continue;
        }
        let has_decimals = message.full_name() == DECIMALS;
        let shown = |field: &FieldDescriptor| !(has_decimals && field.number() >= FIRST_OWN_FIELD);
        for field in message.fields().filter(|field| !message.is_map_entry() && shown(field)) {
            names.insert(field.json_name().to_owned());
            if let Kind::Message(message) = field.kind() {
                waiting.push(message);
            }
        }
    }
    Ok(format!("&{names:?}").replace('{', "[").replace('}', "]"))
}

fn describe_message(config: &mut prost_build::Config, message: &MessageDescriptor) {
    if message.is_map_entry() {
        return;
    }
    let path = format!(".{}", message.full_name());
    config.type_attribute(&path, "#[derive(serde::Serialize, serde::Deserialize)]");
    if message.full_name() == DECIMALS {
        config.type_attribute(&path, format!("#[serde(from = {DECIMALS_JSON:?}, into = {DECIMALS_JSON:?})]"));
        return;
    }
    config.type_attribute(&path, "#[serde(default)]");
    for field in message.fields() {
        let attribute = format!("#[serde({})]", json_form(&field).join(", "));
        config.field_attribute(format!("{path}.{}", field.name()), attribute);
    }
}

/// How serde has to treat a field to speak proto3's JSON.
fn json_form(field: &FieldDescriptor) -> Vec<String> {
    let mut form = vec![format!("rename = {:?}", field.json_name())];
    if field.json_name() != field.name() {
        form.push(format!("alias = {:?}", field.name()));
    }
    let optional = field.field_descriptor_proto().proto3_optional();
    if optional {
        form.push("skip_serializing_if = \"Option::is_none\"".to_owned());
    }
    // A list cannot be marked optional.
    if field.is_list() && field.number() >= FIRST_OWN_FIELD {
        form.push("skip_serializing_if = \"Vec::is_empty\"".to_owned());
    }
    let reader = match (field.kind(), field.is_list(), field.is_map()) {
        _ if QUANTITIES.contains(&field.full_name()) => Some("quantity"),
        _ if TEXTS.contains(&field.full_name()) => Some("optional_text"),
        _ if TEXT_LISTS.contains(&field.full_name()) => Some("texts"),
        _ if TEXT_MAPS.contains(&field.name()) => Some("text_map"),
        (Kind::Message(message), false, false) if message.full_name() == "google.protobuf.Value" => {
            Some("value")
        }
        // These have a JSON of their own, which is no object of their fields.
        (Kind::Message(message), false, false) if message.package_name() != PACKAGE => None,
        (Kind::Message(_), false, false) => Some("message"),
        (Kind::Message(_), true, false) => Some("messages"),
        (Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64, false, false) if optional => {
            Some("optional_number")
        }
        (Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64, false, false) => Some("number"),
        (Kind::String | Kind::Bool, false, false) if optional => None,
        (Kind::String | Kind::Bool | Kind::Uint32, _, false) | (_, _, true) => Some("null_as_default"),
        (kind, ..) => panic!("{}: no JSON form was chosen for {kind:?}", field.full_name()),
    };
    if let Some(reader) = reader {
        form.push(format!("deserialize_with = \"crate::json::{reader}\""));
    }
    // Unsigned ones are ours alone: tokens, counted from 1, which no reader of JSON rounds.
    if field.kind() == Kind::Int64 {
        form.push("serialize_with = \"crate::json::int64_as_text\"".to_owned());
    }
    form
}
