//! The engine as one thing: ports, settings, and everything that runs on them.

use std::sync::Arc;

use maestro_core::room::Region;
use maestro_core::time::Timestamp;

use crate::ports::{Ports, Runtime};
use crate::wake::WakeUps;
use crate::{Error, Settings, Tasks};

pub struct Engine {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) wake: WakeUps,
    pub(crate) tasks: Tasks,
    /// Who this engine is in leases and histories.
    pub(crate) owner: String,
    /// Since when rooms are listened to: what was there before is unknown until it pings.
    pub(crate) listening_since: Timestamp,
}

/// An engine at work.
pub struct Running {}

impl Engine {
    pub fn new(ports: Ports, settings: Settings, owner: String, tasks: Tasks) -> Arc<Self> {
        let listening_since = ports.clock.now();
        Arc::new(Self {
            ports,
            settings,
            wake: WakeUps::default(),
            tasks,
            owner,
            listening_since,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    pub(crate) fn runtime(&self, region: &Region) -> Result<&Arc<dyn Runtime>, Error> {
        let missing = || Error::Unavailable {
            what: format!("region {region} is not configured here"),
            source: None,
        };
        self.ports.runtimes.get(region).ok_or_else(missing)
    }
}
