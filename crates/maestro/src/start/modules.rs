//! The modules of Maestro, each of which may be a process of its own: what each does, and what it needs for that.

use clap::ValueEnum;
use maestro_engine::Parts;

use crate::config::{Config, ServedApis};

/// By v10's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Module {
    All,
    ManagementApi,
    RoomsApi,
    Worker,
    RuntimeWatcher,
    MetricsReporter,
}

impl Module {
    /// As one types it.
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::ManagementApi => "management-api",
            Self::RoomsApi => "rooms-api",
            Self::Worker => "worker",
            Self::RuntimeWatcher => "runtime-watcher",
            Self::MetricsReporter => "metrics-reporter",
        }
    }

    pub(super) fn parts(self) -> Parts {
        match self {
            Self::All => Parts::ALL,
            Self::ManagementApi => Parts::MANAGEMENT_API,
            Self::RoomsApi => Parts::ROOMS_API,
            Self::Worker => Parts::WORKER,
            Self::RuntimeWatcher => Parts::RUNTIME_WATCHER,
            Self::MetricsReporter => Parts::METRICS_REPORTER,
        }
    }

    /// Beside the internal API, which all have.
    pub(super) fn served_apis(self) -> ServedApis {
        match self {
            Self::All => ServedApis::Both,
            Self::ManagementApi => ServedApis::Management,
            Self::RoomsApi => ServedApis::Rooms,
            Self::Worker | Self::RuntimeWatcher | Self::MetricsReporter => ServedApis::Neither,
        }
    }

    /// Why it cannot run with this configuration.
    pub(super) fn check(self, config: &Config) -> anyhow::Result<()> {
        if self == Self::All || config.shared_stores().is_some() {
            return Ok(());
        }
        anyhow::bail!(
            "{} runs as a process of its own only with stores that processes can share: set store.postgres.url and \
             roomTable.redis.url, or run `maestro start` for all modules in one process",
            self.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Sources, load};

    use super::*;

    #[test]
    fn modules_by_themselves_need_shared_stores() {
        let shared = [
            ("MAESTRO_STORE_POSTGRES_URL", "postgres://maestro@db/maestro"),
            ("MAESTRO_ROOMTABLE_REDIS_URL", "redis://cache"),
        ];
        let load = |variables: &[(&str, &str)]| {
            let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
            load(&Sources { environment, ..Sources::default() }).unwrap().config
        };
        let (embedded, shared) = (load(&[]), load(&shared));
        for module in Module::value_variants() {
            assert_eq!(module.check(&embedded).is_ok(), *module == Module::All, "{module:?}");
            assert!(module.check(&shared).is_ok(), "{module:?}");
            let typed = module.to_possible_value().unwrap();
            assert_eq!(typed.get_name(), module.name());
        }
    }
}
