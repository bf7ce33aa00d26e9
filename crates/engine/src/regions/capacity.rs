//! How many rooms regions can hold.

use maestro_core::plan::PlaceCapacity;
use maestro_core::region::Region;
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_core::violation::{Violation, Violations};

use crate::ports::runtime::Capacity;
use crate::ports::store::SchedulerRecord;
use crate::{Engine, Result};

impl Engine {
    /// What is left of a region for one scheduler.
    pub(super) fn place_capacity(&self, region: &Region, scheduler: &SchedulerName) -> Option<PlaceCapacity> {
        let Capacity { rooms, taken_by_others, setting } = self.capacity_of(region, scheduler)?;
        let others = match taken_by_others {
            0 => String::new(),
            others => format!(", {others} of them of other schedulers"),
        };
        let why = format!("{region} holds at most {rooms} rooms ({setting}){others}");
        Some(PlaceCapacity { rooms: rooms.saturating_sub(taken_by_others), why })
    }

    /// Of a region that others look after, only what it holds in total is known.
    fn capacity_of(&self, region: &Region, scheduler: &SchedulerName) -> Option<Capacity> {
        if let Some(runtime) = self.ports.runtimes.get(region) {
            return runtime.capacity(scheduler);
        }
        let setting = self.ports.regions_elsewhere.get(region)?.capacity_setting;
        Some(Capacity { rooms: self.regions.capacity(region)?, taken_by_others: 0, setting })
    }

    /// What a fleet can never have, whatever others have, is refused when it is asked for. `before`: what it has asked for
    /// so far; a limit that was lowered since refuses nothing that asks for no more.
    pub(crate) fn check_capacity(
        &self,
        recipe: &Recipe,
        size: u32,
        before: Option<&SchedulerRecord>,
    ) -> Result {
        let (field, rooms) = least_wanted(recipe, size);
        let so_far = before.map_or(0, |record| least_wanted(&record.recipe, record.fleet_size).1);
        let regions = self.regions.names();
        let used = regions.iter().filter(|region| may_have_rooms(recipe, region));
        let (mut names, mut most, mut setting) = (Vec::new(), 0_u32, "");
        for region in used {
            let Some(capacity) = self.capacity_of(region, &recipe.name) else { return Ok(()) };
            names.push(region.as_str());
            most = most.saturating_add(capacity.rooms);
            setting = capacity.setting;
        }
        if names.is_empty() || rooms <= most.max(so_far) {
            return Ok(());
        }
        let hold = if names.len() == 1 { "holds" } else { "together hold" };
        let reason =
            format!("{rooms} rooms do not fit: {} {hold} at most {most} ({setting})", names.join(", "));
        Err(Violations(vec![Violation::new(field, reason)]).into())
    }
}

/// How many rooms a fleet wants whatever players do, and which field says so.
fn least_wanted(recipe: &Recipe, size: u32) -> (&'static str, u32) {
    match recipe.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) {
        Some(autoscaling) => ("autoscaling.min", autoscaling.min),
        None => ("roomsReplicas", size),
    }
}

/// Unless somebody asks for one there by name.
pub(crate) fn may_have_rooms(recipe: &Recipe, region: &Region) -> bool {
    match (&recipe.spec.region, &recipe.policies.placement) {
        (Some(bound), _) => bound == region,
        (None, Some(policy)) => {
            policy.regions.iter().any(|listed| listed.name == *region && listed.weight > 0)
        }
        (None, None) => true,
    }
}
