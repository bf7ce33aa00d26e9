//! Schedulers that a worker leaves to others, because it does not look after all regions in which they may have rooms: a
//! region whose rooms are processes is bound to their host.

use std::collections::BTreeSet;

use maestro_core::room::Region;
use maestro_core::scheduler::{Recipe, SchedulerName};

use crate::ports::store::StoreError;
use crate::{Engine, regions};

use super::Manager;

impl Manager {
    /// Those that it works on are given up. They are read whole, which only costs where regions are on several hosts.
    pub(super) async fn leave_out_of_reach(&mut self) -> Result<(), StoreError> {
        let schedulers = self.engine.ports.store.schedulers().await?;
        let needs = |recipe: &Recipe| region_elsewhere(&self.engine, recipe);
        let out_of_reach: BTreeSet<SchedulerName> = schedulers
            .into_iter()
            .filter_map(|record| {
                let region = needs(&record.recipe)?;
                if !self.out_of_reach.contains(&record.name) {
                    tracing::info!(scheduler_name = %record.name, %region, "left to a worker on the host of its region");
                }
                Some(record.name)
            })
            .collect();
        let given_up = self.loops.iter_mut().filter(|(name, _)| out_of_reach.contains(*name));
        for (_, running) in given_up.filter(|(_, running)| !running.is_given_up) {
            running.is_given_up = true;
            running.stop.send_replace(true);
        }
        self.out_of_reach = out_of_reach;
        Ok(())
    }
}

/// The first region that rooms of this recipe may be in and that others look after.
fn region_elsewhere(engine: &Engine, recipe: &Recipe) -> Option<Region> {
    let mut elsewhere = engine.ports.regions_elsewhere.keys();
    elsewhere.find(|region| regions::may_have_rooms(recipe, region)).cloned()
}
