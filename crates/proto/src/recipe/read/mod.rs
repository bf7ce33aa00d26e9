//! From the wire to a recipe. Only this module decides whether what a studio wrote is a valid recipe.
//!
//! It finds all errors at once; each has the path of its field, the value, and what would be right. Each function
//! therefore reads all of its fields before it returns an error: results first, `?` at the end.

mod autoscaling;
mod container;
mod field;
mod policies;
mod ports;
mod rollout;
mod time;

use std::time::Duration;

use maestro_core::room::Region;
use maestro_core::scheduler::{
    Delivery, Forwarder, MatchAllocation, MaxSurge, Recipe, RestartPolicy, SchedulerName, Spec,
};
use maestro_core::violation::Violations;

use self::field::{Field, Findings, Refused};
use crate::protobuf;
use crate::v1::{self, CreateSchedulerRequest};

impl TryFrom<&CreateSchedulerRequest> for Recipe {
    type Error = Violations;

    fn try_from(wire: &CreateSchedulerRequest) -> Result<Self, Violations> {
        let findings = Findings::default();
        let outcome = recipe(&findings.root(), wire);
        let violations = findings.into_violations();
        match outcome {
            // Rules between fields are broken without any single field being wrong.
            Ok(recipe) if violations.is_empty() => Ok(recipe),
            Ok(_) | Err(Refused { .. }) => Err(Violations(violations)),
        }
    }
}

fn recipe(root: &Field<'_>, wire: &CreateSchedulerRequest) -> Result<Recipe, Refused> {
    let name = root.child("name").take(SchedulerName::parse(&wire.name));
    let game = root.child("game").text(&wire.game, "the name of the game that the rooms run");
    let rooms_replicas = root.child("roomsReplicas").number(wire.rooms_replicas, 0, i32::MAX);
    let max_surge = root.child("maxSurge").take(MaxSurge::parse(&wire.max_surge));
    let port_range = root.optional("portRange", wire.port_range.as_ref(), ports::port_range);
    let spec = spec(&root.child("spec"), wire.spec.as_ref());
    ports::check_range_style(root, wire);
    let autoscaling = root.optional("autoscaling", wire.autoscaling.as_ref(), autoscaling::autoscaling);
    let forwarders = root.child("forwarders").items(&wire.forwarders, forwarder);
    check_queues(root, &wire.forwarders);
    let match_allocation = match_allocation(&root.child("matchAllocation"), wire.match_allocation);
    let rollout_rules = root.optional("rollout", wire.rollout.as_ref(), rollout::rollout);
    let policies = policies::policies(root, wire);
    Ok(Recipe {
        name: name?,
        game: game?,
        spec: spec?,
        port_range: port_range?,
        max_surge: max_surge?,
        rooms_replicas: rooms_replicas?,
        autoscaling: autoscaling?,
        forwarders: forwarders?,
        annotations: wire.annotations.clone(),
        labels: wire.labels.clone(),
        match_allocation: match_allocation?,
        rollout_rules: rollout_rules?,
        policies: policies?,
    })
}

fn spec(field: &Field<'_>, wire: Option<&v1::Spec>) -> Result<Spec, Refused> {
    let Some(wire) = wire else {
        return Err(field.refuse("is missing; it says what a room is"));
    };
    let grace_period = grace_period(&field.child("terminationGracePeriod"), wire.termination_grace_period);
    let containers = container::containers(&field.child("containers"), &wire.containers);
    // Clients that always send these fields send nothing in them.
    let given = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
    let restart_policy =
        field.optional("restartPolicy", given(&wire.restart_policy), |field, text| field.choose(&text));
    let region =
        field.optional("region", given(&wire.region), |field, name| field.take(Region::parse(&name)));
    Ok(Spec {
        termination_grace_period: grace_period?,
        containers: containers?,
        toleration: wire.toleration.clone(),
        affinity: wire.affinity.clone(),
        restart_policy: restart_policy?.unwrap_or(RestartPolicy::Never),
        region: region?,
    })
}

fn grace_period(field: &Field<'_>, wire: Option<protobuf::Duration>) -> Result<Duration, Refused> {
    match wire {
        Some(wire) => time::above_zero(field, wire),
        None => Err(field.refuse("is missing; write how long a room may take to end, such as \"30s\"")),
    }
}

const FORWARDER_TIMEOUT_MS: u64 = 1000;

fn forwarder(field: &Field<'_>, wire: &v1::Forwarder) -> Result<Forwarder, Refused> {
    let name = field.child("name").text(&wire.name, "a name");
    let known_type = if wire.r#type == Forwarder::TYPE {
        Ok(())
    } else {
        let reason = format!("{:?} is not {}, the only type there is", wire.r#type, Forwarder::TYPE);
        Err(field.child("type").refuse(reason))
    };
    let address = field.child("address").text(&wire.address, "host:port of the receiver");
    let timeout_ms = match &wire.options {
        None => Ok(FORWARDER_TIMEOUT_MS),
        Some(options) => u64::try_from(options.timeout).ok().filter(|timeout| *timeout > 0).ok_or_else(|| {
            field.child("options.timeout").refuse(format!(
                "{} is not a time in milliseconds of at least 1; without options it is {FORWARDER_TIMEOUT_MS}",
                options.timeout
            ))
        }),
    };
    known_type?;
    let delivery = wire.options.as_ref().and_then(|options| options.delivery.as_ref());
    let delivery = field.child("options").optional(
        "delivery",
        delivery.filter(|word| !word.is_empty()),
        |field, word| field.choose(word),
    );
    let metadata = wire.options.as_ref().and_then(|options| options.metadata.clone());
    Ok(Forwarder {
        name: name?,
        enabled: wire.enable,
        address: address?,
        timeout_ms: timeout_ms?,
        delivery: delivery?.unwrap_or(Delivery::Direct),
        metadata: metadata.unwrap_or_default().into(),
    })
}

/// A queue belongs to a name. (v10 accepts the same name twice, so only those with a queue are asked for one of their own.)
fn check_queues(root: &Field<'_>, forwarders: &[v1::Forwarder]) {
    let is_queued = |forwarder: &v1::Forwarder| {
        let options = forwarder.options.as_ref();
        options.and_then(|options| options.delivery.as_deref()) == Some(Delivery::Queued.as_str())
    };
    let list = root.child("forwarders");
    for (index, forwarder) in forwarders.iter().enumerate() {
        let same =
            |other: &&(usize, &v1::Forwarder)| other.1.name == forwarder.name && !forwarder.name.is_empty();
        let before: Vec<_> = forwarders[..index].iter().enumerate().collect();
        if let Some((first, other)) = before.iter().find(same)
            && (is_queued(forwarder) || is_queued(other))
        {
            list.item(index).child("name").refuse(format!(
                "{:?} is taken by {}; a forwarder with a queue needs a name of its own",
                forwarder.name,
                list.item(*first)
            ));
        }
    }
}

const MATCHES_MAX: i32 = 35;

fn match_allocation(
    field: &Field<'_>,
    wire: Option<v1::MatchAllocation>,
) -> Result<MatchAllocation, Refused> {
    let max_matches = wire.map_or(1, |wire| wire.max_matches);
    Ok(MatchAllocation { max_matches: field.child("maxMatches").number(max_matches, 1, MATCHES_MAX)? })
}
