//! By how many rooms a resize changes a fleet: `{"id","inputs":{…},"current","cluster":{…}}` asks,
//! `{"id","status","reason","creation_count","deletion_count"}` answers.

use std::borrow::Cow;

use maestro_core::resize::{Cluster, Draft, Max, Number, Request, Resized, Strictness, resize};
use maestro_core::violation::Violation;
use serde::Serialize;

use super::Fields;

/// Senlin's setting, where a case does not say.
const MAX_NODES_PER_CLUSTER: i64 = 1000;

#[derive(Debug, Default, Serialize)]
pub struct ResizeAnswer {
    status: &'static str,
    reason: String,
    creation_count: Option<u64>,
    deletion_count: Option<u64>,
}

pub fn answer(fields: &Fields<'_>) -> Option<ResizeAnswer> {
    let (request, cluster) = (request(fields), cluster(fields));
    Some(match resize(&request?, &cluster?) {
        Err(invalid) => {
            ResizeAnswer { status: "ERROR", reason: invalid.to_string(), ..ResizeAnswer::default() }
        }
        Ok(Resized::Create(rooms)) => {
            ResizeAnswer { status: "OK", creation_count: Some(rooms), ..ResizeAnswer::default() }
        }
        Ok(Resized::Delete(rooms)) => {
            ResizeAnswer { status: "OK", deletion_count: Some(rooms), ..ResizeAnswer::default() }
        }
    })
}

fn request(fields: &Fields<'_>) -> Option<Request> {
    let inputs = fields.object("inputs")?;
    let whole = |name| inputs.whole(name, i64::MIN..=i64::MAX);
    let draft = Draft {
        adjustment_type: inputs.text("adjustment_type").map(Cow::into_owned),
        number: inputs.parsed("number", Number::parse),
        min_step: whole("min_step"),
        min_size: whole("min_size"),
        max_size: whole("max_size"),
    };
    let strict = inputs.flag("strict");
    // Not there at all is false, as it is to Senlin's parser; null is neither.
    let is_there = inputs.names().any(|name| name == "strict");
    let strictness = if is_there { Strictness::from(strict) } else { Strictness::BestEffort };
    let draft = inputs.unless_refused(draft)?;
    let violations = match Request::parse(&draft, strictness) {
        Ok(request) => return Some(request),
        Err(violations) => violations,
    };
    for Violation { field, reason } in violations {
        inputs.refuse::<()>(&field, reason);
    }
    None
}

fn cluster(fields: &Fields<'_>) -> Option<Cluster> {
    let cluster = fields.object("cluster")?;
    let size = |name| cluster.whole(name, 0..=u64::MAX).unwrap_or(0);
    let max = |name, default| {
        let size = cluster.whole(name, i64::MIN..=i64::MAX).unwrap_or(default);
        cluster.check(name, Max::parse(size))
    };
    let current = fields.whole("current", 0..=u64::MAX);
    let (min_size, desired_capacity) = (size("min_size"), size("desired_capacity"));
    let (max_size, nodes_max) = (max("max_size", -1), max("max_nodes_per_cluster", MAX_NODES_PER_CLUSTER));
    Some(Cluster { current, min_size, max_size: max_size?, desired_capacity, nodes_max: nodes_max? })
}
