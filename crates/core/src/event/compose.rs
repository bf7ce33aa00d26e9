//! From what a room says to what one forwarder's receiver gets, by v10's rules.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::room::{HostPort, PingStatus, RoomId};
use crate::scheduler::{Forwarder, SchedulerName};

use super::go_format::go_text;
use super::message::{Message, MessageRoom, PlayerChange};

/// What happened, in the room's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// It pinged.
    Resync(PingStatus),
    /// It said so by a status request.
    Status(PingStatus),
    /// It is gone, whatever it said.
    Gone,
    /// Free text.
    Room(String),
    /// As it was written; only those of [`PlayerChange`] can be forwarded.
    Player(String),
}

/// What is known of the room that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomFacts {
    pub id: RoomId,
    /// Empty if the room has no address, or not any more.
    pub host: String,
    pub ports: Vec<HostPort>,
    /// The room has ended or is unknown, so it may have no ports.
    pub is_gone: bool,
}

/// Whose event goes to whom.
#[derive(Debug, Clone, Copy)]
pub struct Addressee<'a> {
    pub scheduler: &'a SchedulerName,
    pub game: &'a str,
    pub forwarder: &'a Forwarder,
}

/// Why an event cannot be forwarded, in v10's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    #[error(
        "no room port found to forward roomEvent. Forwarder name: {forwarder:?}, Scheduler: {scheduler:?}"
    )]
    NoPort { forwarder: String, scheduler: String },
    #[error(
        "eventAttributes must contain key \"playerId\" in playerEvent events. Forwarder name: {forwarder:?}, \
         Scheduler: {scheduler:?}"
    )]
    NoPlayerId { forwarder: String, scheduler: String },
    #[error("invalid PlayerEventType. Should be \"playerLeft\" or \"playerJoin\"")]
    UnknownPlayerEvent,
}

/// The port that players connect to, where a room has several.
const CLIENT_PORT: &str = "clientPort";
const ROOM_TYPE: &str = "roomType";

impl EventKind {
    /// What v10 sets in the event's metadata, over what the room says there.
    fn attributes(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Resync(status) => vec![("eventType", "resync"), ("pingType", status.as_str())],
            Self::Status(status) => vec![("eventType", "status"), ("pingType", status.as_str())],
            Self::Gone => {
                let gone = PingStatus::Terminated.as_str();
                vec![("eventType", "status"), ("pingType", gone), ("roomEvent", gone)]
            }
            Self::Room(event) => vec![("eventType", "roomEvent"), ("roomEvent", event)],
            Self::Player(event) => vec![("eventType", event)],
        }
    }

    /// An end is news also if the room is not known any more.
    pub fn may_be_of_unknown_room(&self) -> bool {
        let is_end = |word: &str| {
            [PingStatus::Terminating, PingStatus::Terminated].iter().any(|end| end.as_str() == word)
        };
        match self {
            Self::Gone => true,
            Self::Resync(status) | Self::Status(status) => is_end(status.as_str()),
            Self::Room(event) => is_end(event),
            Self::Player(_) => false,
        }
    }

    pub fn is_of_player(&self) -> bool {
        matches!(self, Self::Player(_))
    }
}

/// The message for one forwarder. `metadata` is what the room sent with the event.
pub fn compose(
    kind: &EventKind,
    metadata: &Map<String, Value>,
    room: &RoomFacts,
    to: Addressee<'_>,
) -> Result<Message, ComposeError> {
    let mut said: BTreeMap<String, String> =
        metadata.iter().map(|(key, value)| (key.clone(), go_text(value))).collect();
    said.extend(kind.attributes().into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())));
    let configured = to.forwarder.metadata.iter().map(|(key, value)| (key.clone(), go_text(value))).collect();
    match kind {
        EventKind::Resync(status) => {
            Ok(Message::Resync { room: status_room(said, configured, room, to)?, status: *status })
        }
        EventKind::Status(status) => {
            Ok(Message::Status { room: status_room(said, configured, room, to)?, status: *status })
        }
        EventKind::Gone => Ok(Message::Status {
            room: status_room(said, configured, room, to)?,
            status: PingStatus::Terminated,
        }),
        EventKind::Room(event) => {
            let metadata = merged(with_ports(said, room), configured);
            let room = MessageRoom { metadata, ..message_room(room, to)? };
            Ok(Message::RoomEvent { room, event_type: event.clone() })
        }
        EventKind::Player(event) => player_event(event, metadata, said, room, to),
    }
}

/// Of what both say, the event's counts.
fn status_room(
    said: BTreeMap<String, String>,
    configured: BTreeMap<String, String>,
    room: &RoomFacts,
    to: Addressee<'_>,
) -> Result<MessageRoom, ComposeError> {
    let room_type = to.forwarder.metadata.get(ROOM_TYPE).and_then(Value::as_str).unwrap_or_default();
    Ok(MessageRoom {
        metadata: merged(configured, with_ports(said, room)),
        room_type: room_type.to_owned(),
        ..message_room(room, to)?
    })
}

fn player_event(
    event: &str,
    metadata: &Map<String, Value>,
    mut said: BTreeMap<String, String>,
    room: &RoomFacts,
    to: Addressee<'_>,
) -> Result<Message, ComposeError> {
    let Some(player_id) = metadata.get("playerId").and_then(Value::as_str) else {
        let (forwarder, scheduler) = names(to);
        return Err(ComposeError::NoPlayerId { forwarder, scheduler });
    };
    let change = PlayerChange::parse(event).ok_or(ComposeError::UnknownPlayerEvent)?;
    if let Some(room_type) = to.forwarder.metadata.get(ROOM_TYPE) {
        said.insert(ROOM_TYPE.to_owned(), go_text(room_type));
    }
    let room = MessageRoom { game: to.game.to_owned(), id: room.id.to_string(), ..MessageRoom::default() };
    Ok(Message::PlayerEvent { room, player_id: player_id.to_owned(), change, metadata: said })
}

/// Without metadata. A room without ports cannot be forwarded, unless it is gone.
fn message_room(room: &RoomFacts, to: Addressee<'_>) -> Result<MessageRoom, ComposeError> {
    let client_port = room.ports.iter().find(|port| port.name == CLIENT_PORT);
    let port = match client_port.or(room.ports.first()) {
        Some(port) => port.host_port,
        None if room.is_gone => 0,
        None => {
            let (forwarder, scheduler) = names(to);
            return Err(ComposeError::NoPort { forwarder, scheduler });
        }
    };
    let (game, id, host) = (to.game.to_owned(), room.id.to_string(), room.host.clone());
    Ok(MessageRoom { game, id, host, port, ..MessageRoom::default() })
}

fn names(to: Addressee<'_>) -> (String, String) {
    (to.forwarder.name.clone(), to.scheduler.to_string())
}

fn with_ports(mut said: BTreeMap<String, String>, room: &RoomFacts) -> BTreeMap<String, String> {
    let port = |port: &HostPort| {
        // In this order, and with the protocol in capitals, as v10 writes it.
        let [name, protocol] =
            [&port.name, &port.protocol.as_str().to_ascii_uppercase()].map(|text| json!(text));
        format!("{{\"name\":{name},\"port\":{},\"protocol\":{protocol}}}", port.host_port)
    };
    let ports = room.ports.iter().map(port).collect::<Vec<_>>().join(",");
    said.insert("ports".to_owned(), format!("[{ports}]"));
    said
}

fn merged(mut under: BTreeMap<String, String>, over: BTreeMap<String, String>) -> BTreeMap<String, String> {
    under.extend(over);
    under
}

#[cfg(test)]
mod tests;
