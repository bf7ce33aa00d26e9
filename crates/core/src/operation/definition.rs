//! What an operation is asked to do. Each definition has one executor.

use crate::room::RoomId;
use crate::scheduler::Recipe;

#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    CreateScheduler {
        recipe: Box<Recipe>,
    },
    DeleteScheduler,
    AddRooms {
        amount: u32,
    },
    RemoveRooms {
        rooms: RoomsToRemove,
        reason: RemovalReason,
    },
    HealthController,
    StorageCleanUp,
    /// Stored by a version of Maestro that knew more: shown as it is, and evicted.
    Unknown {
        name: String,
        input: serde_json::Value,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomsToRemove {
    /// Chosen when it is carried out: what serves nobody first.
    Amount(u32),
    Ids(Vec<RoomId>),
}

/// Why rooms are removed, in the words that v10 has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    ScaleDown,
    ExpiredRoom,
}

/// The name of a definition without what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionKind {
    CreateScheduler,
    DeleteScheduler,
    AddRooms,
    RemoveRooms,
    HealthController,
    StorageCleanUp,
    Unknown,
}

impl Definition {
    pub fn kind(&self) -> DefinitionKind {
        match self {
            Self::CreateScheduler { .. } => DefinitionKind::CreateScheduler,
            Self::DeleteScheduler => DefinitionKind::DeleteScheduler,
            Self::AddRooms { .. } => DefinitionKind::AddRooms,
            Self::RemoveRooms { .. } => DefinitionKind::RemoveRooms,
            Self::HealthController => DefinitionKind::HealthController,
            Self::StorageCleanUp => DefinitionKind::StorageCleanUp,
            Self::Unknown { .. } => DefinitionKind::Unknown,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            known => known.kind().name(),
        }
    }
}

impl DefinitionKind {
    pub const KNOWN: [Self; 6] = [
        Self::CreateScheduler,
        Self::DeleteScheduler,
        Self::AddRooms,
        Self::RemoveRooms,
        Self::HealthController,
        Self::StorageCleanUp,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::CreateScheduler => "create_scheduler",
            Self::DeleteScheduler => "delete_scheduler",
            Self::AddRooms => "add_rooms",
            Self::RemoveRooms => "remove_rooms",
            Self::HealthController => "health_controller",
            Self::StorageCleanUp => "storage_clean_up",
            Self::Unknown => "unknown",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|kind| kind.name() == name)
    }
}

impl RemovalReason {
    pub const ALL: [Self; 2] = [Self::ScaleDown, Self::ExpiredRoom];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ScaleDown => "scale_down",
            Self::ExpiredRoom => "expired_room",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}
