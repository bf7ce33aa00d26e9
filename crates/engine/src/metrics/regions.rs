//! Metrics of regions: which can be reached, how often that changed, and which rooms are where.

use maestro_core::region::Region;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::ports::room_table::FleetCounts;
use crate::ports::store::SchedulerRecord;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RegionLabels {
    region: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabels {
    region: String,
    to: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoomLabels {
    game: String,
    scheduler: String,
    region: String,
    status: &'static str,
}

#[derive(Default)]
pub(crate) struct RegionMetrics {
    reachable: Family<RegionLabels, Gauge>,
    changes: Family<ChangeLabels, Counter>,
    rooms: Family<RoomLabels, Gauge>,
    silent: Family<RegionLabels, Gauge>,
}

impl RegionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "maestro_region_reachable",
            "Whether a region can be reached: 1 or 0",
            self.reachable.clone(),
        );
        registry.register(
            "maestro_region_changes",
            "How often a region became reachable or unreachable",
            self.changes.clone(),
        );
        registry.register("maestro_region_rooms", "Rooms by region and status", self.rooms.clone());
        registry.register(
            "maestro_region_silent_rooms",
            "Rooms that stopped pinging together and are not taken for dead",
            self.silent.clone(),
        );
    }

    pub(crate) fn reachable(&self, region: &Region, is_reachable: bool) {
        let labels = RegionLabels { region: region.to_string() };
        self.reachable.get_or_create(&labels).set(is_reachable.into());
    }

    pub(crate) fn changed(&self, region: &Region, to: &'static str) {
        self.changes.get_or_create(&ChangeLabels { region: region.to_string(), to }).inc();
    }

    pub(crate) fn silent(&self, region: &Region, rooms: usize) {
        let labels = RegionLabels { region: region.to_string() };
        self.silent.get_or_create(&labels).set(i64::try_from(rooms).unwrap_or(i64::MAX));
    }

    /// What was there is there no more, unless it is shown again.
    pub(super) fn clear(&self) {
        self.rooms.clear();
    }

    pub(super) fn show(&self, scheduler: &SchedulerRecord, counts: &FleetCounts) {
        for (region, by_status) in &counts.by_region {
            for (status, rooms) in by_status.iter().filter(|(_, rooms)| *rooms > 0) {
                let labels = RoomLabels {
                    game: scheduler.recipe.game.clone(),
                    scheduler: scheduler.name.to_string(),
                    region: region.to_string(),
                    status: status.as_str(),
                };
                self.rooms.get_or_create(&labels).set(rooms.into());
            }
        }
    }
}
