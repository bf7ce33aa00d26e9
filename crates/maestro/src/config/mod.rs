//! Configuration: defaults, then a YAML file, then the environment, then flags. A later source overrides an earlier one,
//! each value remembers where it came from, and all errors are reported at once.

mod file;
mod hosts;
mod keys;
mod kind;
mod reference;
mod regions;
mod settings;

pub use maestro_core::duration;

pub use keys::{
    Api, Config, InternalApi, Key, Log, ManagementApi, OperationManager, Operations, ProcessRuntime,
    RoomManager, RoomsApi, Storage, Workers, keys,
};
pub use kind::{LogFormat, LogLevel, RuntimeKind};
pub use reference::reference;
pub use regions::{RegionConfig, Regions};
pub use settings::{ConfigError, Flag, Loaded, Origin, ServedApis, Setting, Sources, load};

#[cfg(test)]
mod tests;
