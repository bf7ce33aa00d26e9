//! What a receiver gets: v10's messages, as values.

use std::collections::BTreeMap;

use crate::room::PingStatus;
use crate::words::words;

words! {
    /// What happened to a player, as rooms write it.
    pub enum PlayerChange {
        Joined = "playerJoin",
        Left = "playerLeft",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What a room said of itself by a ping.
    Resync {
        room: MessageRoom,
        status: PingStatus,
    },
    /// What a room said by a status request, or that it is gone.
    Status {
        room: MessageRoom,
        status: PingStatus,
    },
    RoomEvent {
        room: MessageRoom,
        event_type: String,
    },
    PlayerEvent {
        room: MessageRoom,
        player_id: String,
        change: PlayerChange,
        metadata: BTreeMap<String, String>,
    },
}

/// The room of a message. Of a player event, only game and id are filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageRoom {
    pub game: String,
    pub id: String,
    pub host: String,
    pub port: u16,
    pub metadata: BTreeMap<String, String>,
    /// Only of resyncs and statuses.
    pub room_type: String,
}

impl Message {
    /// The method of `eventforwarder.GRPCForwarder` that takes it.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Resync { .. } => "SendRoomResync",
            Self::Status { .. } => "SendRoomStatus",
            Self::RoomEvent { .. } => "SendRoomEvent",
            Self::PlayerEvent { .. } => "SendPlayerEvent",
        }
    }

    pub fn room(&self) -> &MessageRoom {
        match self {
            Self::Resync { room, .. }
            | Self::Status { room, .. }
            | Self::RoomEvent { room, .. }
            | Self::PlayerEvent { room, .. } => room,
        }
    }

    /// Nothing that the room said before may follow it.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Status { status: PingStatus::Terminated, .. })
    }

    /// In a word, for people.
    pub fn what(&self) -> &str {
        match self {
            Self::Resync { status, .. } | Self::Status { status, .. } => status.as_str(),
            Self::RoomEvent { event_type, .. } => event_type,
            Self::PlayerEvent { change, .. } => change.as_str(),
        }
    }
}
