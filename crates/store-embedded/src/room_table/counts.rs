//! Counters of a part of a fleet, kept with every change of its rooms.

use maestro_core::room::Region;
use maestro_engine::ports::room_table::FleetCounts;

use super::room::CountedRoom;

pub(super) fn add(counts: &mut FleetCounts, room: &CountedRoom, region: &Region) {
    let FleetCounts { by_status, by_region, by_instance, matches, holds, unknown } = counts;
    by_status.add(room.status);
    match by_region.get_mut(region) {
        Some(of_region) => of_region.add(room.status),
        None => by_region.entry(region.clone()).or_default().add(room.status),
    }
    by_instance.add(room.instance);
    *matches += u64::from(room.matches);
    *holds += u64::from(room.expected);
    *unknown += u32::from(!room.known);
}

pub(super) fn remove(counts: &mut FleetCounts, room: &CountedRoom, region: &Region) {
    let FleetCounts { by_status, by_region, by_instance, matches, holds, unknown } = counts;
    by_status.remove(room.status);
    if let Some(of_region) = by_region.get_mut(region) {
        of_region.remove(room.status);
        // A region without rooms is not listed: whoever recounts the rooms finds the same.
        if of_region.is_empty() {
            by_region.remove(region);
        }
    }
    by_instance.remove(room.instance);
    *matches -= u64::from(room.matches);
    *holds -= u64::from(room.expected);
    *unknown -= u32::from(!room.known);
}

/// Adds the counters of another part of the same fleet.
pub(super) fn merge(total: &mut FleetCounts, part: &FleetCounts) {
    let FleetCounts { by_status, by_region, by_instance, matches, holds, unknown } = part;
    total.by_status += by_status;
    for (region, of_region) in by_region {
        *total.by_region.entry(region.clone()).or_default() += of_region;
    }
    total.by_instance += by_instance;
    total.matches += matches;
    total.holds += holds;
    total.unknown += unknown;
}
