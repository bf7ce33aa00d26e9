//! Why operations are where they are: `maestro operation explain`, and `list --stuck`.

use super::{
    Age, At, Client, Column, Context, Exit, Failure, Json, Resource, Text, WatchOptions, fields, list, plain,
};

pub(super) fn explain(context: &Context, scheduler: &str, operation: &str) -> Result<(), Failure> {
    let resource = Resource::new(&["schedulers", scheduler, "operations", operation, "explain"]);
    let answer = context.client()?.get(&resource, "next")?;
    context.show(&answer, explanation)
}

/// Lists the stuck operations of one scheduler, or of all.
pub(super) fn list_stuck(
    context: &Context,
    scheduler: Option<&str>,
    options: &WatchOptions,
) -> Result<(), Failure> {
    let ask = |client: &Client| {
        let operations =
            scheduler.map_or_else(|| stuck_anywhere(client), |scheduler| stuck(client, scheduler))?;
        Ok(Json::object([("operations", Json::Array(operations))]))
    };
    list::show(context, options, ask, ("operations", STUCK)).map(drop)
}

fn stuck(client: &Client, scheduler: &str) -> Result<Vec<Json>, Failure> {
    let resource = Resource::new(&["schedulers", scheduler, "operations", "stuck"]);
    Ok(client.get(&resource, "operations")?.get("operations").items().to_vec())
}

fn stuck_anywhere(client: &Client) -> Result<Vec<Json>, Failure> {
    let schedulers = client.get(&Resource::new(&["schedulers"]), "schedulers")?;
    let mut operations = Vec::new();
    for scheduler in schedulers.get("schedulers").items() {
        match stuck(client, &scheduler.get("name").cell()) {
            Ok(found) => operations.extend(found),
            // Deleted since it was listed.
            Err(failure) if failure.exit == Exit::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(operations)
}

const STUCK: &[Column] = &[
    ("SCHEDULER", At("schedulerName")),
    ("ID", At("id")),
    ("OPERATION", At("definitionName")),
    ("STATUS", At("status")),
    ("SINCE", Age("since")),
    ("WAITING FOR", At("waitingFor")),
    ("STUCK BECAUSE", At("stuckBecause")),
];

const EXPLANATION: &[Column] = &[
    ("Id", At("id")),
    ("Operation", At("definitionName")),
    ("Scheduler", At("schedulerName")),
    ("Status", At("status")),
    ("Since", At("since")),
    ("Waiting for", At("waitingFor")),
    ("Last event", At("lastEvent")),
    ("Owner", Text(|operation| claim(operation.get("owner")))),
    ("Lease", Text(|operation| claim(operation.get("lease")))),
    ("Stuck", Text(stuck_because)),
];

fn explanation(answer: &Json) -> String {
    let head = fields(answer, EXPLANATION);
    let next: Vec<String> = answer.get("next").items().iter().map(expectation).collect();
    match next.is_empty() {
        true => head,
        false => format!("{head}\n\nNEXT\n{}", next.join("\n")),
    }
}

fn stuck_because(operation: &Json) -> String {
    match operation.get("stuckBecause").as_str() {
        Some(why) => format!("yes: {why}"),
        None => "no".to_owned(),
    }
}

fn claim(claim: &Json) -> String {
    let [worker, until, token] = ["worker", "until", "fencingToken"].map(|key| claim.get(key).cell());
    match claim.get("hasRunOut") {
        Json::Bool(true) => format!("{worker}, expired at {until} (token {token})"),
        Json::Bool(false) => format!("{worker}, until {until} (token {token})"),
        _ => "-".to_owned(),
    }
}

fn expectation(expectation: &Json) -> String {
    let what = plain(&expectation.get("what").cell());
    match expectation.get("at").as_str() {
        Some(at) => format!("{}  {what}", plain(at)),
        None => what,
    }
}
