//! What people have said about regions.

use maestro_engine::ports::store::{Refusal, RegionRecord};

use super::state::State;

impl State {
    pub(super) fn regions(&self) -> Vec<RegionRecord> {
        self.regions.iter().map(|(_, record)| record.clone()).collect()
    }

    pub(super) fn set_region(
        &mut self,
        from: Option<&RegionRecord>,
        to: RegionRecord,
    ) -> Result<(), Refusal> {
        if self.regions.get(&to.name) != from {
            return Err(Refusal::RegionChanged(to.name));
        }
        self.regions.put(to.name.clone(), to);
        Ok(())
    }
}
