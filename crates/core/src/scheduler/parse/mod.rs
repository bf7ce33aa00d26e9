//! From a draft to a recipe: the one place where what a studio wrote is judged.
//!
//! Everything wrong is found in one go, each finding with the path of its field, the value and what would be right.
//! Each function reads all of its fields before it gives up on any, hence the shape: outcomes first, `?` at the end.

mod autoscaling;
mod container;
mod document;
mod field;
mod policies;
mod ports;
mod rollout;
#[cfg(test)]
mod tests;
mod time;

use std::time::Duration;

use self::field::{Field, Findings, Refused};
use super::draft::{DurationDraft, ForwarderDraft, MatchAllocationDraft, RecipeDraft, SpecDraft};
use super::{Forwarder, MatchAllocation, MaxSurge, Recipe, RestartPolicy, SchedulerName, Spec};
use crate::room::Region;
use crate::violation::Violations;

impl Recipe {
    pub fn parse(draft: &RecipeDraft) -> Result<Self, Violations> {
        let findings = Findings::default();
        let outcome = recipe(&findings.root(), draft);
        let violations = findings.into_violations();
        match outcome {
            // Rules between fields are broken without any single field being wrong.
            Ok(recipe) if violations.is_empty() => Ok(recipe),
            Ok(_) | Err(Refused { .. }) => Err(Violations(violations)),
        }
    }
}

fn recipe(root: &Field<'_>, draft: &RecipeDraft) -> Result<Recipe, Refused> {
    let name = root.child("name").take(SchedulerName::parse(&draft.name));
    let game = root.child("game").text(&draft.game, "the name of the game that the rooms run");
    let rooms_replicas = root.child("roomsReplicas").number(draft.rooms_replicas, 0, i32::MAX);
    let max_surge = root.child("maxSurge").take(MaxSurge::parse(&draft.max_surge));
    let port_range =
        draft.port_range.map(|range| ports::port_range(&root.child("portRange"), range)).transpose();
    let spec = spec(&root.child("spec"), draft.spec.as_ref());
    ports::check_range_style(root, draft);
    let autoscaling = draft
        .autoscaling
        .as_ref()
        .map(|draft| autoscaling::autoscaling(&root.child("autoscaling"), draft))
        .transpose();
    let forwarders = root.child("forwarders").items(&draft.forwarders, forwarder);
    let match_allocation = match_allocation(&root.child("matchAllocation"), draft.match_allocation);
    let rollout_rules =
        draft.rollout.as_ref().map(|draft| rollout::rollout(&root.child("rollout"), draft)).transpose();
    let policies = policies::policies(root, draft);
    Ok(Recipe {
        name: name?,
        game: game?,
        spec: spec?,
        port_range: port_range?,
        max_surge: max_surge?,
        rooms_replicas: rooms_replicas?,
        autoscaling: autoscaling?,
        forwarders: forwarders?,
        annotations: draft.annotations.clone(),
        labels: draft.labels.clone(),
        match_allocation: match_allocation?,
        rollout_rules: rollout_rules?,
        policies: policies?,
    })
}

fn spec(field: &Field<'_>, draft: Option<&SpecDraft>) -> Result<Spec, Refused> {
    let Some(draft) = draft else {
        return Err(field.refuse("is missing; it says what a room is"));
    };
    let grace_period = grace_period(&field.child("terminationGracePeriod"), draft.termination_grace_period);
    let containers = container::containers(&field.child("containers"), &draft.containers);
    let restart_policy = restart_policy(&field.child("restartPolicy"), draft.restart_policy.as_deref());
    // Clients that always send the field send nothing in it.
    let region = draft.region.as_deref().filter(|name| !name.is_empty());
    let region = region.map(|name| field.child("region").take(Region::parse(name))).transpose();
    Ok(Spec {
        termination_grace_period: grace_period?,
        containers: containers?,
        toleration: draft.toleration.clone(),
        affinity: draft.affinity.clone(),
        restart_policy: restart_policy?,
        region: region?,
    })
}

fn grace_period(field: &Field<'_>, draft: Option<DurationDraft>) -> Result<Duration, Refused> {
    match draft {
        Some(draft) => time::above_zero(field, draft),
        None => Err(field.refuse("is missing; write how long a room may take to end, such as \"30s\"")),
    }
}

fn restart_policy(field: &Field<'_>, draft: Option<&str>) -> Result<RestartPolicy, Refused> {
    match draft {
        // Clients that always send the field send nothing in it.
        None | Some("") => Ok(RestartPolicy::Never),
        Some(text) => field.take(RestartPolicy::parse(text)),
    }
}

const FORWARDER_TIMEOUT_MS: u64 = 1000;

fn forwarder(field: &Field<'_>, draft: &ForwarderDraft) -> Result<Forwarder, Refused> {
    let name = field.child("name").text(&draft.name, "a name");
    let forwarder_type = if draft.forwarder_type == Forwarder::TYPE {
        Ok(())
    } else {
        Err(field.child("type").refuse(format!(
            "{:?} is not {}, the only type there is",
            draft.forwarder_type,
            Forwarder::TYPE
        )))
    };
    let address = field.child("address").text(&draft.address, "host:port of the receiver");
    let timeout_ms = match &draft.options {
        None => Ok(FORWARDER_TIMEOUT_MS),
        Some(options) => u64::try_from(options.timeout).ok().filter(|timeout| *timeout > 0).ok_or_else(|| {
            field.child("options.timeout").refuse(format!(
                "{} is not a time in milliseconds of at least 1; without options it is {FORWARDER_TIMEOUT_MS}",
                options.timeout
            ))
        }),
    };
    forwarder_type?;
    Ok(Forwarder {
        name: name?,
        enabled: draft.enable,
        address: address?,
        timeout_ms: timeout_ms?,
        metadata: draft.options.as_ref().map(|options| options.metadata.clone()).unwrap_or_default(),
    })
}

const MATCHES_MAX: i32 = 35;

fn match_allocation(
    field: &Field<'_>,
    draft: Option<MatchAllocationDraft>,
) -> Result<MatchAllocation, Refused> {
    let max_matches = draft.map_or(1, |draft| draft.max_matches);
    Ok(MatchAllocation { max_matches: field.child("maxMatches").number(max_matches, 1, MATCHES_MAX)? })
}
