//! The regions of a world: each has a host of its own, with its own rooms, places and ports.

use maestro_core::room::Region;
use maestro_engine::Settings;

use crate::host::{Host, Outage, RoomOnHost};
use crate::memory::MemoryStore;

use super::World;

impl World {
    /// With a host in each of these regions.
    pub fn with_regions(seed: u64, regions: &[&str]) -> Self {
        let regions = regions.iter().map(|name| Region((*name).into())).collect();
        Self::of_regions(seed, Settings::default(), MemoryStore::on_clock, regions)
    }

    /// The host of the first region, which is the only one of most worlds.
    pub fn host(&self) -> &Host {
        &self.hosts[0]
    }

    /// One for each region, in the order in which they were named.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().map(|host| &**host)
    }

    pub fn host_of(&self, region: &Region) -> &Host {
        match self.hosts().find(|host| host.region() == region) {
            Some(host) => host,
            None => self.fail(&format!("there is no region {region}")),
        }
    }

    pub fn regions(&self) -> Vec<Region> {
        self.hosts().map(|host| host.region().clone()).collect()
    }

    pub fn has_several_regions(&self) -> bool {
        self.hosts.len() > 1
    }

    /// What really runs, in all regions, whatever anybody believes.
    pub fn rooms(&self) -> Vec<RoomOnHost> {
        self.hosts().flat_map(Host::rooms).collect()
    }

    /// No engine reaches the region any more. Its rooms live on.
    pub fn cut_off(&self, region: &Region, outage: Outage) {
        let rooms = match outage {
            Outage::Runtime => "its rooms are heard",
            Outage::Network => "so are its rooms",
            Outage::Pings => "but only the pings of its rooms are lost",
        };
        self.trace.note(format_args!("region {region} is cut off, {rooms}"));
        self.host_of(region).cut_off(outage);
    }

    pub fn reconnect(&self, region: &Region) {
        self.trace.note(format_args!("region {region} can be reached again"));
        self.host_of(region).reconnect();
    }
}
