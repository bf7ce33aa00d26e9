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
        change: Result<resize::Resized, String>,
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

words! {
    /// Why rooms are removed, in the words that v10 has for it.
    pub enum RemovalReason {
        ScaleDown = "scale_down",
        ExpiredRoom = "expired_room",
        /// An older major version makes room for the active one.
        RollingUpdate = "rolling_update_replace",
        /// Its region is drained.
        Drain = "region_drain",
        ValidationFinished = "new_version_validation_finished",
    }

    /// The name of a definition without what is in it.
    pub enum DefinitionKind {
        CreateScheduler = "create_scheduler",
        DeleteScheduler = "delete_scheduler",
        CreateVersion = "create_new_scheduler_version",
        SwitchVersion = "switch_active_version",
        AddRooms = "add_rooms",
        RemoveRooms = "remove_rooms",
        Resize = "resize",
        CreateRoom = "create_room",
        HealthController = "health_controller",
        StorageCleanUp = "storage_clean_up",
        Unknown = "unknown",
    }
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
            Self::Resize { change: Ok(resize::Resized::Create(rooms)), .. } => Asks::ToAdd(narrowed(*rooms)),
            Self::Resize { change: Ok(resize::Resized::Delete(rooms)), .. } => {
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
            known => known.kind().as_str(),
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
    /// Those that can be asked for.
    pub const KNOWN: &[Self] = Self::ALL.split_at(Self::ALL.len() - 1).0;

    /// Other operations may run while it waits for a runtime that does not answer. None may while the scheduler is
    /// created or deleted.
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

    pub fn parse_known(name: &str) -> Option<Self> {
        Self::parse(name).filter(|kind| Self::KNOWN.contains(kind))
    }
}

/// Larger numbers were refused when the request was accepted.
fn narrowed(rooms: u64) -> u32 {
    u32::try_from(rooms).unwrap_or(u32::MAX)
}
