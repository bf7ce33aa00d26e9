//! How many rooms regions can hold.

use maestro_core::plan::PlaceCapacity;
use maestro_core::region::Region;
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_core::violation::{Violation, Violations};

use crate::ports::runtime::Capacity;
use crate::{Engine, Error};

impl Engine {
    /// What is left of a region for one scheduler.
    pub(super) fn place_capacity(&self, region: &Region, scheduler: &SchedulerName) -> Option<PlaceCapacity> {
        let capacity = self.ports.runtimes.get(region)?.capacity(scheduler)?;
        let Capacity { rooms, taken_by_others, setting } = capacity;
        let others = match taken_by_others {
            0 => String::new(),
            others => format!(", {others} of them of other schedulers"),
        };
        let why = format!("{region} holds at most {rooms} rooms ({setting}){others}");
        Some(PlaceCapacity { rooms: rooms.saturating_sub(taken_by_others), why })
    }

    /// What a fleet can never have, whatever others have, is refused when it is asked for.
    pub(crate) fn check_capacity(&self, recipe: &Recipe, rooms: u32) -> Result<(), Error> {
        let min = recipe.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled);
        let min = min.map_or(0, |autoscaling| autoscaling.min);
        let gets_rooms = |region: &Region| match (&recipe.spec.region, &recipe.policies.placement) {
            (Some(bound), _) => bound == region,
            (None, Some(policy)) => {
                policy.regions.iter().any(|listed| listed.name == *region && listed.weight > 0)
            }
            (None, None) => true,
        };
        let used = self.ports.runtimes.iter().filter(|(region, _)| gets_rooms(region));
        let capacities: Option<Vec<Capacity>> =
            used.map(|(_, runtime)| runtime.capacity(&recipe.name)).collect();
        let Some(capacities) = capacities.filter(|capacities| !capacities.is_empty()) else { return Ok(()) };
        let total = capacities.iter().map(|capacity| capacity.rooms).fold(0, u32::saturating_add);
        let setting = capacities[0].setting;
        let too_many = |field: &str, rooms: u32| {
            let reason = format!("{rooms} rooms are more than its regions can hold: {total} ({setting})");
            Err(Violations(vec![Violation::new(field, reason)]).into())
        };
        match (rooms, min) {
            (_, min) if min > total => too_many("autoscaling.min", min),
            (rooms, 0) if rooms > total => too_many("roomsReplicas", rooms),
            (_, _) => Ok(()),
        }
    }
}
