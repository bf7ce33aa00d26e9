//! What an operation is asked to do. Each definition has one executor.

use std::borrow::Cow;

use crate::resize;
use crate::room::{Region, RoomId};
use crate::scheduler::{Recipe, Version};
use crate::words::words;

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
    /// What was asked for, as it was written, and what that came to for the fleet size that it was asked for. A
    /// combination that cannot be carried out is recorded, and ends the operation.
    Resize {
        asked: serde_json::Value,
        change: Result<resize::Outcome, String>,
    },
    /// One room more; `region`: in this one, whatever the policies say.
    CreateRoom {
        region: Option<Region>,
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

impl RoomsToRemove {
    /// How many, if they are still to be chosen.
    pub fn amount(&self) -> Option<u32> {
        match self {
            Self::Amount(amount) => Some(*amount),
            Self::Ids(_) => None,
        }
    }
}

/// Why rooms are removed, in the words that v10 has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    ScaleDown,
    ExpiredRoom,
    /// An older major version makes place for the active one.
    RollingUpdate,
    /// Its region is drained.
    Drain,
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
    Resize,
    CreateRoom,
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
            Self::Resize { .. } => DefinitionKind::Resize,
            Self::CreateRoom { .. } => DefinitionKind::CreateRoom,
            Self::HealthController => DefinitionKind::HealthController,
            Self::StorageCleanUp => DefinitionKind::StorageCleanUp,
            Self::Unknown { .. } => DefinitionKind::Unknown,
        }
    }

    /// How many rooms it was asked to add.
    pub fn adds(&self) -> Option<u32> {
        match self.asks() {
            Asks::ToAdd(rooms) => Some(rooms),
            Asks::ToRemove(..) | Asks::Neither => None,
        }
    }

    /// Which rooms it was asked to remove, and why.
    pub fn removes(&self) -> Option<(RoomsToRemove, RemovalReason)> {
        match self.asks() {
            Asks::ToRemove(rooms, reason) => Some((rooms.into_owned(), reason)),
            Asks::ToAdd(_) | Asks::Neither => None,
        }
    }

    fn asks(&self) -> Asks<'_> {
        match self {
            Self::AddRooms { amount } => Asks::ToAdd(*amount),
            Self::CreateRoom { .. } => Asks::ToAdd(1),
            Self::Resize { change: Ok(resize::Outcome::Create(rooms)), .. } => Asks::ToAdd(narrowed(*rooms)),
            Self::Resize { change: Ok(resize::Outcome::Delete(rooms)), .. } => {
                let rooms = RoomsToRemove::Amount(narrowed(*rooms));
                Asks::ToRemove(Cow::Owned(rooms), RemovalReason::ScaleDown)
            }
            Self::RemoveRooms { rooms, reason } => Asks::ToRemove(Cow::Borrowed(rooms), *reason),
            Self::Resize { change: Err(_), .. }
            | Self::CreateScheduler { .. }
            | Self::DeleteScheduler
            | Self::CreateVersion { .. }
            | Self::SwitchVersion(_)
            | Self::HealthController
            | Self::StorageCleanUp
            | Self::Unknown { .. } => Asks::Neither,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            known => known.kind().name(),
        }
    }
}

/// What becomes of rooms.
enum Asks<'a> {
    ToAdd(u32),
    ToRemove(Cow<'a, RoomsToRemove>, RemovalReason),
    Neither,
}

impl DefinitionKind {
    pub const KNOWN: [Self; 10] = [
        Self::CreateScheduler,
        Self::DeleteScheduler,
        Self::CreateVersion,
        Self::SwitchVersion,
        Self::AddRooms,
        Self::RemoveRooms,
        Self::Resize,
        Self::CreateRoom,
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
            Self::Resize => "resize",
            Self::CreateRoom => "create_room",
            Self::HealthController => "health_controller",
            Self::StorageCleanUp => "storage_clean_up",
            Self::Unknown => "unknown",
        }
    }

    /// Others may be carried out while it waits for a runtime that does not answer. Nothing may before a scheduler is
    /// made, and nothing is to be while it is taken away.
    pub fn makes_way(self) -> bool {
        match self {
            Self::CreateVersion
            | Self::SwitchVersion
            | Self::AddRooms
            | Self::RemoveRooms
            | Self::Resize
            | Self::CreateRoom
            | Self::HealthController
            | Self::StorageCleanUp => true,
            Self::CreateScheduler | Self::DeleteScheduler | Self::Unknown => false,
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|kind| kind.name() == name)
    }
}

words!(RemovalReason {
    ScaleDown = "scale_down",
    ExpiredRoom = "expired_room",
    RollingUpdate = "rolling_update_replace",
    Drain = "region_drain",
    ValidationFinished = "new_version_validation_finished",
});

/// More rooms than anybody can count are not asked for: that is refused before.
fn narrowed(rooms: u64) -> u32 {
    u32::try_from(rooms).unwrap_or(u32::MAX)
}
