//! Recipes on their way in and out: a request becomes a draft, and a parsed recipe the message that v10 would print.

mod from_draft;
mod patch;
mod to_draft;

use maestro_core::scheduler::draft::RecipeDraft;
use maestro_core::scheduler::{Recipe, RoomOccupancy, Version};
use maestro_core::time::Timestamp;

pub use self::patch::Patch;
use crate::v1::{
    self, Autoscaling, CreateSchedulerRequest, NewSchedulerVersionRequest, Scheduler, SchedulerWithoutSpec,
};

/// What an answer says about a scheduler beside its recipe.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub version: Version,
    /// `creating`, `in-sync`, `deleting`: as clients read it.
    pub state: &'a str,
    pub created_at: Timestamp,
    /// Of the active version the fleet size as it is now, which people may have changed; of any other one what its
    /// recipe says.
    pub rooms_replicas: u32,
}

impl From<CreateSchedulerRequest> for RecipeDraft {
    fn from(request: CreateSchedulerRequest) -> Self {
        let CreateSchedulerRequest {
            name,
            game,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            rollout,
            policies,
            placement,
            deletion,
        } = request;
        Self {
            name,
            game,
            spec: spec.map(Into::into),
            port_range: port_range.map(Into::into),
            max_surge,
            rooms_replicas,
            autoscaling: autoscaling.map(Into::into),
            forwarders: forwarders.into_iter().map(Into::into).collect(),
            annotations,
            labels,
            match_allocation: match_allocation.map(Into::into),
            rollout: rollout.map(Into::into),
            policies: policies.into_iter().map(Into::into).collect(),
            placement: placement.map(Into::into),
            deletion: deletion.map(Into::into),
        }
    }
}

impl From<NewSchedulerVersionRequest> for RecipeDraft {
    fn from(request: NewSchedulerVersionRequest) -> Self {
        let NewSchedulerVersionRequest {
            name,
            game,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            rollout,
            policies,
            placement,
            deletion,
        } = request;
        CreateSchedulerRequest {
            name,
            game,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            rollout,
            policies,
            placement,
            deletion,
        }
        .into()
    }
}

/// What was read can be submitted again.
impl From<Scheduler> for RecipeDraft {
    fn from(scheduler: Scheduler) -> Self {
        let Scheduler {
            name,
            game,
            state: _,
            port_range,
            created_at: _,
            max_surge,
            rooms_replicas,
            spec,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            rollout,
            placement,
            deletion,
        } = scheduler;
        CreateSchedulerRequest {
            name,
            game,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            rollout,
            policies: Vec::new(),
            placement,
            deletion,
        }
        .into()
    }
}

impl From<RecipeDraft> for CreateSchedulerRequest {
    fn from(draft: RecipeDraft) -> Self {
        let RecipeDraft {
            name,
            game,
            spec,
            port_range,
            max_surge,
            rooms_replicas,
            autoscaling,
            forwarders,
            annotations,
            labels,
            match_allocation,
            rollout,
            policies,
            placement,
            deletion,
        } = draft;
        Self {
            name,
            game,
            spec: spec.map(Into::into),
            port_range: port_range.map(Into::into),
            max_surge,
            rooms_replicas,
            autoscaling: autoscaling.map(Into::into),
            forwarders: forwarders.into_iter().map(Into::into).collect(),
            annotations,
            labels,
            match_allocation: match_allocation.map(Into::into),
            rollout: rollout.map(Into::into),
            policies: policies.into_iter().map(Into::into).collect(),
            placement: placement.map(Into::into),
            deletion: deletion.map(Into::into),
        }
    }
}

/// A scheduler in full, as `GET /schedulers/{name}` answers.
pub fn scheduler(recipe: &Recipe, shown: Shown<'_>) -> Scheduler {
    let CreateSchedulerRequest {
        name,
        game,
        spec,
        port_range,
        max_surge,
        rooms_replicas: _,
        autoscaling,
        forwarders,
        annotations,
        labels,
        match_allocation,
        rollout,
        policies: _,
        placement,
        deletion,
    } = recipe.to_draft().into();
    let autoscaling = autoscaling.map(with_threshold);
    let spec = spec.map(|spec| v1::Spec { version: shown.version.to_string(), ..spec });
    Scheduler {
        name,
        game,
        state: shown.state.to_owned(),
        port_range,
        created_at: Some(shown.created_at.into()),
        max_surge,
        rooms_replicas: i32::try_from(shown.rooms_replicas).unwrap_or(i32::MAX),
        spec,
        autoscaling,
        forwarders,
        annotations,
        labels,
        match_allocation,
        rollout,
        placement,
        deletion,
    }
}

/// v10's answers always have a `downThreshold`: where none is set, it is one that holds nothing back.
fn with_threshold(mut autoscaling: Autoscaling) -> Autoscaling {
    let parameters = autoscaling.policy.as_mut().and_then(|policy| policy.parameters.as_mut());
    if let Some(occupancy) = parameters.and_then(|parameters| parameters.room_occupancy.as_mut()) {
        let threshold = occupancy.down_threshold_text();
        let threshold = threshold.unwrap_or_else(|| RoomOccupancy::NO_THRESHOLD.to_owned());
        *occupancy = v1::RoomOccupancy::of_decimals(occupancy.ready_target_text(), Some(threshold));
    }
    autoscaling
}

/// A scheduler in brief, as `GET /schedulers` lists it.
pub fn scheduler_without_spec(recipe: &Recipe, shown: Shown<'_>) -> SchedulerWithoutSpec {
    let Scheduler {
        name,
        game,
        state,
        port_range,
        created_at,
        max_surge,
        rooms_replicas,
        match_allocation,
        ..
    } = scheduler(recipe, shown);
    SchedulerWithoutSpec {
        name,
        game,
        state,
        version: shown.version.to_string(),
        port_range,
        created_at,
        max_surge,
        rooms_replicas,
        match_allocation,
        ..SchedulerWithoutSpec::default()
    }
}
