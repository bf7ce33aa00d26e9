//! Configuration: defaults, then a YAML file, then the environment, then flags. A later source overrides an earlier one,
//! each value remembers where it came from, and all errors are reported at once.

mod file;
mod hosts;
mod keys;
mod kind;
mod reference;
mod regions;
mod server_url;
mod settings;
mod stores;

pub use maestro_core::duration;

pub use keys::{
    Api, Config, InternalApi, Key, Log, ManagementApi, OperationManager, Operations, ProcessRuntime,
    RoomManager, RoomTableServer, RoomsApi, Storage, StoreServer, Workers, keys,
};
pub use kind::{LogFormat, LogLevel, RuntimeKind};
pub use reference::reference;
pub use regions::{RegionConfig, Regions};
pub use server_url::ServerUrl;
pub use settings::{ConfigError, Flag, Loaded, Origin, ServedApis, Setting, Sources, load};
pub use stores::SharedStores;

#[cfg(test)]
mod tests;
