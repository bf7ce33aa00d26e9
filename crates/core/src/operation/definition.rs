//! What an operation is asked to do. Each definition has one executor.

use crate::room::RoomId;
use crate::scheduler::{Recipe, Version};

#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    CreateScheduler {
        recipe: Box<Recipe>,
    },
    DeleteScheduler,
    CreateVersion {
        recipe: Box<Recipe>,
    },
    SwitchVersion(SwitchVersion),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchVersion {
    pub to: Version,
    /// Only from this one: a rollback that comes too late must not undo what someone decided meanwhile.
    pub only_from: Option<Version>,
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
    /// An older major version makes place for the active one.
    RollingUpdate,
    ValidationFinished,
}

/// The name of a definition without what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionKind {
    CreateScheduler,
    DeleteScheduler,
    CreateVersion,
    SwitchVersion,
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
            Self::CreateVersion { .. } => DefinitionKind::CreateVersion,
            Self::SwitchVersion(_) => DefinitionKind::SwitchVersion,
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
    pub const KNOWN: [Self; 8] = [
        Self::CreateScheduler,
        Self::DeleteScheduler,
        Self::CreateVersion,
        Self::SwitchVersion,
        Self::AddRooms,
        Self::RemoveRooms,
        Self::HealthController,
        Self::StorageCleanUp,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::CreateScheduler => "create_scheduler",
            Self::DeleteScheduler => "delete_scheduler",
            Self::CreateVersion => "create_new_scheduler_version",
            Self::SwitchVersion => "switch_active_version",
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
    pub const ALL: [Self; 4] =
        [Self::ScaleDown, Self::ExpiredRoom, Self::RollingUpdate, Self::ValidationFinished];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ScaleDown => "scale_down",
            Self::ExpiredRoom => "expired_room",
            Self::RollingUpdate => "rolling_update_replace",
            Self::ValidationFinished => "new_version_validation_finished",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}
