//! Schedulers as the management API answers them: as v10 prints them, and readable as a recipe again.

use maestro_core::scheduler::{Recipe, Version};
use maestro_core::time::Timestamp;

use super::write::{match_allocation, port_range, signed};
use crate::v1::{self, CreateSchedulerRequest, Scheduler, SchedulerWithoutSpec};

/// How answers write a `downThreshold` that holds nothing back: v10's clients expect a number.
const NO_THRESHOLD: f32 = 1.0;

/// What an answer says about a scheduler beside its recipe.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub version: Version,
    /// `creating`, `in-sync`, `deleting`: as clients read it.
    pub state: &'a str,
    pub created_at: Timestamp,
    /// The current fleet size if this is the active version (people may have changed it), otherwise what the recipe
    /// says.
    pub rooms_replicas: u32,
}

/// A scheduler in full, as `GET /schedulers/{name}` answers.
pub fn scheduler(recipe: &Recipe, shown: Shown<'_>) -> Scheduler {
    let mut wire = CreateSchedulerRequest::from(recipe);
    if let Some(autoscaling) = &mut wire.autoscaling {
        show_threshold(autoscaling);
    }
    Scheduler {
        name: wire.name,
        game: wire.game,
        state: shown.state.to_owned(),
        port_range: wire.port_range,
        created_at: Some(shown.created_at.into()),
        max_surge: wire.max_surge,
        rooms_replicas: signed(shown.rooms_replicas),
        spec: wire.spec.map(|spec| v1::Spec { version: shown.version.to_string(), ..spec }),
        autoscaling: wire.autoscaling,
        forwarders: wire.forwarders,
        annotations: wire.annotations,
        labels: wire.labels,
        match_allocation: wire.match_allocation,
        rollout: wire.rollout,
        placement: wire.placement,
        deletion: wire.deletion,
    }
}

fn show_threshold(autoscaling: &mut v1::Autoscaling) {
    let parameters = autoscaling.policy.as_mut().and_then(|policy| policy.parameters.as_mut());
    if let Some(occupancy) = parameters.and_then(|parameters| parameters.room_occupancy.as_mut()) {
        occupancy.down_threshold.get_or_insert(NO_THRESHOLD);
    }
}

/// A scheduler in brief, as `GET /schedulers` lists it.
pub fn scheduler_without_spec(recipe: &Recipe, shown: Shown<'_>) -> SchedulerWithoutSpec {
    SchedulerWithoutSpec {
        name: recipe.name.to_string(),
        game: recipe.game.clone(),
        state: shown.state.to_owned(),
        version: shown.version.to_string(),
        port_range: recipe.port_range.map(port_range),
        created_at: Some(shown.created_at.into()),
        max_surge: recipe.max_surge.to_string(),
        rooms_replicas: signed(shown.rooms_replicas),
        match_allocation: Some(match_allocation(recipe.match_allocation)),
        ..SchedulerWithoutSpec::default()
    }
}
