//! Regions that are cut off for a while, one or all of them, and come back.

use std::time::Duration;

use maestro_core::room::Region;
use tokio::time::Instant;

use crate::host::Outage;

use super::stage::Stage;

/// A region that will be reached again, and when.
pub(super) struct CutOff {
    region: Region,
    pub(super) until: Instant,
}

pub(super) fn strike(stage: &mut Stage) {
    let mut regions = stage.world.regions();
    let random = &mut stage.random;
    if random.u32(0..5) > 0 {
        regions = vec![regions.swap_remove(random.usize(0..regions.len()))];
    }
    let outage = match random.u32(0..3) {
        0 => Outage::Runtime,
        1 => Outage::Network,
        _ => Outage::Pings,
    };
    // From one that nobody notices to one in which rooms are silent for longer than they may be.
    let until = Instant::now() + Duration::from_millis(random.u64(10_000..600_000));
    for region in regions {
        stage.world.cut_off(&region, outage);
        stage.cut_off.retain(|other| other.region != region);
        stage.cut_off.push(CutOff { region, until });
    }
}

/// Those whose time has come are back.
pub(super) fn end_until(stage: &mut Stage, now: Instant) {
    let Stage { cut_off, world, .. } = stage;
    cut_off.retain(|CutOff { region, until }| {
        let stays = *until > now;
        if !stays {
            world.reconnect(region);
        }
        stays
    });
}

pub(super) fn end_all(stage: &mut Stage) {
    for CutOff { region, .. } in std::mem::take(&mut stage.cut_off) {
        stage.world.reconnect(&region);
    }
}
