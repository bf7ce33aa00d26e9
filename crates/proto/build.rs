//! Rust types from the schema in `proto/`, without a protobuf compiler installed, and with the JSON that v10 speaks.
//!
//! The JSON comes from serde's own derive, steered field by field from the schema: proto3's JSON mapping as
//! grpc-gateway configures it. (pbjson, the usual generator, leaves out messages that are not set where v10 writes
//! null, and refuses null where v10 reads it as not set.)

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost_build::{Service, ServiceGenerator};
use protox::prost_reflect::{
    DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, Value,
};

type Error = Box<dyn std::error::Error>;

/// v10's, and ours.
const PACKAGES: [&str; 2] = ["api.v1", "maestro.api.v1"];
const RECIPE: &str = "api.v1.CreateSchedulerRequest";
const RECIPE_AGAIN: &str = "api.v1.NewSchedulerVersionRequest";
/// Fields from this number up are not in v10, whose clients refuse what they do not know: they are never written when
/// they are not set.
const FIRST_OWN_FIELD: u32 = 100;
const FILES: [&str; 14] = [
    "api/v1/recipe.proto",
    "api/v1/schedulers.proto",
    "api/v1/operations.proto",
    "api/v1/rooms.proto",
    "maestro/api/v1/policies.proto",
    "maestro/api/v1/explanations.proto",
    "maestro/api/v1/fleet.proto",
    "maestro/api/v1/imports.proto",
    "maestro/api/v1/rollouts.proto",
    "maestro/api/v1/locks.proto",
    "maestro/api/v1/regions.proto",
    "maestro/api/v1/events.proto",
    "maestro/api/v1/allocations.proto",
    "maestro/api/v1/stream.proto",
];

/// Its JSON has decimals where the message has floats, and is written by hand.
const DECIMALS: &str = "api.v1.RoomOccupancy";
const DECIMALS_JSON: &str = "crate::decimals::RoomOccupancyJson";

/// Texts that YAML takes for numbers if they are written as people write them, `cpu: 1`.
const QUANTITIES: [&str; 4] = [
    "api.v1.CreateSchedulerRequest.max_surge",
    "api.v1.Scheduler.max_surge",
    "api.v1.ContainerResources.memory",
    "api.v1.ContainerResources.cpu",
];
/// Texts of which YAML takes some for whole numbers, or for true and false.
const TEXTS: [&str; 1] = ["api.v1.ContainerEnvironment.value"];
const TEXT_LISTS: [&str; 1] = ["api.v1.Container.command"];
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
    for message in pool.all_messages().filter(is_ours) {
        describe_message(&mut config, &message);
    }
    config.service_generator(Box::new(Methods));

    fs::write(out.join("recipe_fields.rs"), recipe_fields(&pool)?)?;
    fs::write(out.join("names.rs"), names_in_paths(&pool))?;

    // Annotations are read from the descriptors, never from code.
    let mut files = compiler.file_descriptor_set();
    let is_wanted =
        |name: &str| !name.starts_with("google/api/") && name != "google/protobuf/descriptor.proto";
    files.file.retain(|file| is_wanted(file.name()));
    config.compile_fds(files)?;
    Ok(())
}

fn is_ours(message: &MessageDescriptor) -> bool {
    PACKAGES.contains(&message.package_name())
}

/// Writes a type for each method, with its path and its messages.
struct Methods;

impl ServiceGenerator for Methods {
    fn generate(&mut self, service: Service, code: &mut String) {
        let Service { package, proto_name, .. } = &service;
        *code += &format!("/// `{package}.{proto_name}`\npub mod {} {{\n", snake_case(proto_name));
        for method in &service.methods {
            let path = format!("/{package}.{proto_name}/{}", method.proto_name);
            let [request, response] = [&method.input_type, &method.output_type].map(|name| from_inside(name));
            *code += &format!(
                "#[derive(Debug, Clone, Copy)]\npub struct {};\n\
                 impl crate::rpc::Method for {0} {{\n\
                 const PATH: &'static str = {path:?};\n\
                 type Request = {request};\ntype Response = {response};\n}}\n",
                method.proto_name
            );
        }
        *code += "}\n";
    }
}

/// A type as a module inside the package's own has to write it.
fn from_inside(name: &str) -> String {
    if name.starts_with("crate::") { name.to_owned() } else { format!("super::{name}") }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

/// For each request, access to the fields that its path has, in the path's order.
fn names_in_paths(pool: &DescriptorPool) -> String {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let services = pool.services().filter(|service| PACKAGES.contains(&service.package_name()));
    for method in services.flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let request = match method.input().full_name() {
            RECIPE_AGAIN => RECIPE.to_owned(),
            name => name.to_owned(),
        };
        // One request may be sent to several paths, of which some name nothing.
        let named = names.entry(request).or_default();
        let in_path = path_parameters(&method);
        if in_path.len() > named.len() {
            *named = in_path;
        }
    }
    let mut code = String::new();
    for (request, names) in names {
        let request = request.rsplit('.').next().unwrap_or_default();
        let fields: Vec<_> = names.iter().map(|name| format!("&mut self.{name}")).collect();
        code += &format!(
            "impl Named for crate::v1::{request} {{\n\
             fn names_mut(&mut self) -> Vec<&mut String> {{ vec![{}] }}\n}}\n",
            fields.join(", ")
        );
    }
    code
}

/// The fields in a method's path, in their order.
fn path_parameters(method: &MethodDescriptor) -> Vec<String> {
    let annotation = method.parent_pool().get_extension_by_name("google.api.http");
    let options = method.options();
    let rule = annotation.map(|annotation| options.get_extension(&annotation).into_owned());
    let Some(rule) = rule.as_ref().and_then(Value::as_message) else { return Vec::new() };
    let path = ["get", "put", "post", "delete", "patch"].into_iter().find_map(|verb| {
        let path = rule.has_field_by_name(verb).then(|| rule.get_field_by_name(verb)).flatten()?;
        path.as_str().map(str::to_owned)
    });
    let path = path.unwrap_or_default();
    let parameter = |segment: &str| Some(segment.strip_prefix('{')?.strip_suffix('}')?.to_owned());
    path.split('/').filter_map(parameter).collect()
}

/// The name of every field that a recipe can have, at any depth, as a list in Rust.
fn recipe_fields(pool: &DescriptorPool) -> Result<String, Error> {
    let recipe = pool.get_message_by_name(RECIPE).ok_or("there is no recipe")?;
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![recipe];
    while let Some(message) = waiting.pop() {
        if !is_ours(&message) || !seen.insert(message.full_name().to_owned()) {
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
        (Kind::Message(message), false, false) if !is_ours(&message) => None,
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
