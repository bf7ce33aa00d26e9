//! The durable JSON of recipes, of operations' definitions, of rooms' ports and of events, shared by all stores. Where v10 has
//! a shape for an operation's input, it is v10's.

use std::borrow::Cow;
use std::collections::BTreeMap;

use maestro_core::event::{Message, MessageRoom, PlayerChange};
use maestro_core::operation::{Definition, DefinitionKind, RemovalReason, RoomsToRemove, SwitchVersion};
use maestro_core::resize::Resized;
use maestro_core::room::{HostPort, PingStatus, Region, RoomId};
use maestro_core::scheduler::{Protocol, Recipe, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A stored document that cannot be read: written by a newer Maestro, or damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("stored {what} cannot be read: {why}")]
pub struct Unreadable {
    pub what: &'static str,
    pub why: String,
}

/// How much of a value a message shows.
const SHOWN_CHARS: usize = 80;

/// Of a column whose value nobody of this version would have written.
pub fn unknown_value(column: &'static str, value: impl std::fmt::Display) -> Unreadable {
    let value = value.to_string();
    let shown: String = value.chars().take(SHOWN_CHARS).collect();
    let cut = if shown.len() < value.len() { "…" } else { "" };
    Unreadable {
        what: column,
        why: format!("{shown}{cut} is not a value that this version of Maestro knows"),
    }
}

pub use maestro_proto::recipe::recipe_to_json;

pub fn recipe_from_json(document: &Value) -> Result<Recipe, Unreadable> {
    maestro_proto::recipe::recipe_from_json(document)
        .map_err(|error| Unreadable { what: "recipe", why: crate::with_sources(&error) })
}

pub fn definition_to_json(definition: &Definition) -> Value {
    match definition {
        Definition::CreateScheduler { recipe } | Definition::CreateVersion { recipe } => {
            json!({ "scheduler": recipe_to_json(recipe) })
        }
        Definition::SwitchVersion(SwitchVersion { to, only_from }) => match only_from {
            None => json!({ "newActiveVersion": to.to_string() }),
            Some(from) => json!({ "newActiveVersion": to.to_string(), "onlyFrom": from.to_string() }),
        },
        Definition::AddRooms { amount } => json!({ "amount": amount }),
        Definition::RemoveRooms { rooms, reason } => {
            let (amount, ids) = match rooms {
                RoomsToRemove::Amount(amount) => (u64::from(*amount), Value::Null),
                RoomsToRemove::Ids(ids) => {
                    (ids.len() as u64, ids.iter().map(|id| Value::from(id.as_str())).collect())
                }
            };
            json!({ "amount": amount, "rooms_ids": ids, "reason": reason.as_str() })
        }
        Definition::Resize { asked, change } => {
            let change = match change {
                Ok(Resized::Create(rooms)) => json!({ "create": rooms }),
                Ok(Resized::Delete(rooms)) => json!({ "delete": rooms }),
                Err(why) => json!({ "invalid": why }),
            };
            json!({ "asked": asked, "change": change })
        }
        Definition::CreateRoom { region: None } => json!({}),
        Definition::CreateRoom { region: Some(region) } => json!({ "region": region.as_str() }),
        Definition::DeleteScheduler | Definition::HealthController | Definition::StorageCleanUp => json!({}),
        Definition::Unknown { input, .. } => input.clone(),
    }
}

/// An unknown name is a definition too: it is shown, and evicted. A known one must be readable.
pub fn definition_from_json(name: &str, input: &Value) -> Result<Definition, Unreadable> {
    let wrong = |why: &str| Unreadable { what: "operation", why: format!("{name}: {why}") };
    let amount = || {
        let number = input["amount"].as_u64().and_then(|amount| u32::try_from(amount).ok());
        number.ok_or_else(|| wrong("amount is not a number"))
    };
    Ok(match DefinitionKind::parse(name) {
        Some(DefinitionKind::CreateScheduler) => {
            Definition::CreateScheduler { recipe: Box::new(recipe_from_json(&input["scheduler"])?) }
        }
        Some(DefinitionKind::DeleteScheduler) => Definition::DeleteScheduler,
        Some(DefinitionKind::CreateVersion) => {
            Definition::CreateVersion { recipe: Box::new(recipe_from_json(&input["scheduler"])?) }
        }
        Some(DefinitionKind::SwitchVersion) => {
            let version =
                |key: &str| input[key].as_str().map(Version::parse).transpose().map_err(|why| wrong(&why));
            let to = version("newActiveVersion")?.ok_or_else(|| wrong("newActiveVersion is missing"))?;
            Definition::SwitchVersion(SwitchVersion { to, only_from: version("onlyFrom")? })
        }
        Some(DefinitionKind::AddRooms) => Definition::AddRooms { amount: amount()? },
        Some(DefinitionKind::RemoveRooms) => {
            let reason = input["reason"].as_str().and_then(RemovalReason::parse);
            let rooms = match input["rooms_ids"].as_array() {
                None => RoomsToRemove::Amount(amount()?),
                Some(ids) => {
                    RoomsToRemove::Ids(ids.iter().filter_map(Value::as_str).map(RoomId::new).collect())
                }
            };
            Definition::RemoveRooms { rooms, reason: reason.ok_or_else(|| wrong("unknown reason"))? }
        }
        Some(DefinitionKind::Resize) => {
            let change = resize_from_json(&input["change"])
                .ok_or_else(|| wrong("change is neither create, delete nor invalid"))?;
            Definition::Resize { asked: input["asked"].clone(), change }
        }
        Some(DefinitionKind::CreateRoom) => {
            let region =
                input["region"].as_str().map(Region::parse).transpose().map_err(|why| wrong(&why))?;
            Definition::CreateRoom { region }
        }
        Some(DefinitionKind::HealthController) => Definition::HealthController,
        Some(DefinitionKind::StorageCleanUp) => Definition::StorageCleanUp,
        Some(DefinitionKind::Unknown) | None => {
            Definition::Unknown { name: name.to_owned(), input: input.clone() }
        }
    })
}
fn resize_from_json(change: &Value) -> Option<Result<Resized, String>> {
    let (kind, value) = change.as_object()?.iter().next()?;
    match kind.as_str() {
        "create" => Some(Ok(Resized::Create(value.as_u64()?))),
        "delete" => Some(Ok(Resized::Delete(value.as_u64()?))),
        "invalid" => Some(Err(value.as_str()?.to_owned())),
        _ => None,
    }
}

pub fn room_ports_to_json(ports: &[HostPort]) -> String {
    let port = |port: &HostPort| {
        json!({
            "name": port.name,
            "protocol": port.protocol.as_str(),
            "containerPort": port.container_port,
            "hostPort": port.host_port,
        })
    };
    Value::from_iter(ports.iter().map(port)).to_string()
}

/// Read straight into what is wanted: values that can be anything cost several times as much.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredPort<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    container_port: u16,
    host_port: u16,
}

pub fn room_ports_from_json(text: &str) -> Option<Vec<HostPort>> {
    let ports: Vec<StoredPort<'_>> = serde_json::from_str(text).ok()?;
    let port = |port: StoredPort<'_>| {
        let StoredPort { name, protocol, container_port, host_port } = port;
        let protocol = Protocol::parse(&protocol)?;
        Some(HostPort { name: name.into_owned(), protocol, container_port, host_port })
    };
    ports.into_iter().map(port).collect()
}

/// An event in a queue. Receivers get what was written, also from a later Maestro.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum StoredMessage {
    Resync { room: StoredRoom, status: String },
    Status { room: StoredRoom, status: String },
    RoomEvent { room: StoredRoom, event_type: String },
    PlayerEvent { room: StoredRoom, player_id: String, change: String, metadata: BTreeMap<String, String> },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRoom {
    game: String,
    id: String,
    host: String,
    port: u16,
    metadata: BTreeMap<String, String>,
    room_type: String,
}

pub fn message_to_json(message: &Message) -> String {
    let stored = match message.clone() {
        Message::Resync { room, status } => {
            StoredMessage::Resync { room: stored_room(room), status: status.as_str().to_owned() }
        }
        Message::Status { room, status } => {
            StoredMessage::Status { room: stored_room(room), status: status.as_str().to_owned() }
        }
        Message::RoomEvent { room, event_type } => {
            StoredMessage::RoomEvent { room: stored_room(room), event_type }
        }
        Message::PlayerEvent { room, player_id, change, metadata } => StoredMessage::PlayerEvent {
            room: stored_room(room),
            player_id,
            change: change.as_str().to_owned(),
            metadata,
        },
    };
    json!(stored).to_string()
}

pub fn message_from_json(text: &str) -> Result<Message, Unreadable> {
    let wrong = |why: String| Unreadable { what: "event", why };
    let stored = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let status =
        |word: String| PingStatus::parse(&word).ok_or_else(|| wrong(format!("{word:?} is not a status")));
    Ok(match stored {
        StoredMessage::Resync { room, status: word } => {
            Message::Resync { room: message_room(room), status: status(word)? }
        }
        StoredMessage::Status { room, status: word } => {
            Message::Status { room: message_room(room), status: status(word)? }
        }
        StoredMessage::RoomEvent { room, event_type } => {
            Message::RoomEvent { room: message_room(room), event_type }
        }
        StoredMessage::PlayerEvent { room, player_id, change, metadata } => {
            let parsed = PlayerChange::parse(&change);
            let change = parsed.ok_or_else(|| wrong(format!("{change:?} is no change of a player")))?;
            Message::PlayerEvent { room: message_room(room), player_id, change, metadata }
        }
    })
}

fn stored_room(room: MessageRoom) -> StoredRoom {
    let MessageRoom { game, id, host, port, metadata, room_type } = room;
    StoredRoom { game, id, host, port, metadata, room_type }
}

fn message_room(room: StoredRoom) -> MessageRoom {
    let StoredRoom { game, id, host, port, metadata, room_type } = room;
    MessageRoom { game, id, host, port, metadata, room_type }
}
