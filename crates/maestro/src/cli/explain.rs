//! Why operations are where they are: `maestro operation explain`, and `list --stuck`.

use jiff::Timestamp;

use super::age;
use super::client::Client;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::json::Json;
use super::list::{self, WatchOptions};
use super::output::{fields, plain};
use super::resource::Resource;
use super::sheet::Sheet;

pub(super) fn explain(context: &Context, scheduler: &str, operation: &str) -> Result<(), Failure> {
    let resource = Resource::new(&["schedulers", scheduler, "operations", operation, "explain"]);
    let answer = context.client()?.get(&resource, "next")?;
    context.show(&answer, explanation)
}

/// Of one scheduler, or of all.
pub(super) fn list_stuck(
    context: &Context,
    scheduler: Option<&str>,
    options: &WatchOptions,
) -> Result<(), Failure> {
    let ask = |client: &Client| {
        let operations = match scheduler {
            Some(scheduler) => stuck(client, scheduler)?,
            None => stuck_anywhere(client)?,
        };
        Ok(Json::object([("operations", Json::Array(operations))]))
    };
    list::show(context, options, ask, stuck_sheet).map(drop)
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

fn stuck_sheet(answer: &Json) -> Sheet {
    let now = Timestamp::now();
    let row = |operation: &Json| {
        vec![
            operation.get("schedulerName").cell(),
            operation.get("id").cell(),
            operation.get("definitionName").cell(),
            operation.get("status").cell(),
            age::cell(operation.get("since"), now),
            operation.get("waitingFor").cell(),
            operation.get("stuckBecause").cell(),
        ]
    };
    let header = ["SCHEDULER", "ID", "OPERATION", "STATUS", "SINCE", "WAITING FOR", "STUCK BECAUSE"];
    Sheet::new(&header, answer.get("operations").items().iter().map(row))
}

fn explanation(answer: &Json) -> String {
    let stuck = match answer.get("stuckBecause").as_str() {
        Some(why) => format!("yes: {why}"),
        None => "no".to_owned(),
    };
    let head = fields([
        ("Id", answer.get("id").cell()),
        ("Operation", answer.get("definitionName").cell()),
        ("Scheduler", answer.get("schedulerName").cell()),
        ("Status", answer.get("status").cell()),
        ("Since", answer.get("since").cell()),
        ("Waiting for", answer.get("waitingFor").cell()),
        ("Last event", answer.get("lastEvent").cell()),
        ("Owner", claim(answer.get("owner"))),
        ("Lease", claim(answer.get("lease"))),
        ("Stuck", stuck),
    ]);
    let next: Vec<String> = answer.get("next").items().iter().map(expectation).collect();
    match next.is_empty() {
        true => head,
        false => format!("{head}\n\nNEXT\n{}", next.join("\n")),
    }
}

fn claim(claim: &Json) -> String {
    let [worker, until, token] = ["worker", "until", "fencingToken"].map(|key| claim.get(key).cell());
    match claim.get("hasRunOut") {
        Json::Bool(true) => format!("{worker}, ran out at {until} (token {token})"),
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
