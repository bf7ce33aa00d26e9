//! By how many rooms a resize changes a fleet: `{"id","inputs":{…},"current","cluster":{…}}` asks,
//! `{"id","status","reason","creation_count","deletion_count"}` answers.

use maestro_core::resize::{Cluster, Draft, Max, Number, Outcome, Request, Strictness, resize};
use maestro_core::violation::Violation;
use serde::Serialize;

use super::{Fields, within};

/// Senlin's setting, where a case does not say.
const MAX_NODES_PER_CLUSTER: i64 = 1000;

#[derive(Debug, Default, Serialize)]
pub struct Answer {
    status: &'static str,
    reason: String,
    creation_count: Option<u64>,
    deletion_count: Option<u64>,
}

pub fn answer(fields: &Fields<'_>) -> Result<Answer, Vec<Violation>> {
    let mut violations = Vec::new();
    let request = request(fields).map_err(|more| violations.extend(more));
    let cluster = cluster(fields).map_err(|more| violations.extend(more));
    let (Ok(request), Ok(cluster)) = (request, cluster) else {
        return Err(violations);
    };
    Ok(match resize(&request, &cluster) {
        Err(invalid) => Answer { status: "ERROR", reason: invalid.to_string(), ..Answer::default() },
        Ok(Outcome::Create(rooms)) => {
            Answer { status: "OK", creation_count: Some(rooms), ..Answer::default() }
        }
        Ok(Outcome::Delete(rooms)) => {
            Answer { status: "OK", deletion_count: Some(rooms), ..Answer::default() }
        }
    })
}

fn request(fields: &Fields<'_>) -> Result<Request, Vec<Violation>> {
    let inputs = fields.object("inputs").map_err(|violation| vec![violation])?;
    let mut violations = Vec::new();
    let mut refuse = |violation| violations.push(within("inputs", violation));
    let number = inputs.text("number").map(|text| Number::parse(&text)).transpose();
    let number = number.map_err(|reason| refuse(Violation::new("number", reason)));
    let mut whole = |name| optional_whole(&inputs, name).map_err(&mut refuse);
    let (min_step, min_size, max_size) = (whole("min_step"), whole("min_size"), whole("max_size"));
    let strict = inputs.flag("strict").map_err(&mut refuse);
    let (Ok(number), Ok(min_step), Ok(min_size), Ok(max_size), Ok(strict)) =
        (number, min_step, min_size, max_size, strict)
    else {
        return Err(violations);
    };
    // Not there at all is false, as it is to Senlin's parser; null is neither.
    let is_there = inputs.names().any(|name| name == "strict");
    let strictness = if is_there { Strictness::from(strict) } else { Strictness::BestEffort };
    let adjustment_type = inputs.text("adjustment_type").map(|text| text.into_owned());
    let draft = Draft { adjustment_type, number, min_step, min_size, max_size };
    Request::parse(&draft, strictness)
        .map_err(|violations| violations.into_iter().map(|violation| within("inputs", violation)).collect())
}

fn cluster(fields: &Fields<'_>) -> Result<Cluster, Vec<Violation>> {
    let cluster = fields.object("cluster").map_err(|violation| vec![violation])?;
    let mut violations = Vec::new();
    let current = match fields.text("current") {
        None => Ok(None),
        Some(_) => fields.whole("current", None, 0, u64::MAX).map(Some),
    };
    let current = current.map_err(|violation| violations.push(violation));
    let mut refuse = |violation| violations.push(within("cluster", violation));
    let mut size = |name| cluster.whole(name, Some(0), 0, u64::MAX).map_err(&mut refuse);
    let (min_size, desired_capacity) = (size("min_size"), size("desired_capacity"));
    let mut max = |name, default| {
        let size = cluster.whole(name, Some(default), i64::MIN, i64::MAX);
        let max = size.and_then(|size| Max::parse(size).map_err(|reason| Violation::new(name, reason)));
        max.map_err(&mut refuse)
    };
    let max_size = max("max_size", -1);
    let nodes_max = max("max_nodes_per_cluster", MAX_NODES_PER_CLUSTER);
    match (current, min_size, max_size, desired_capacity, nodes_max) {
        (Ok(current), Ok(min_size), Ok(max_size), Ok(desired_capacity), Ok(nodes_max)) => {
            Ok(Cluster { current, min_size, max_size, desired_capacity, nodes_max })
        }
        _ => Err(violations),
    }
}

fn optional_whole(fields: &Fields<'_>, name: &str) -> Result<Option<i64>, Violation> {
    match fields.text(name) {
        None => Ok(None),
        Some(_) => fields.whole(name, None, i64::MIN, i64::MAX).map(Some),
    }
}
