//! `maestro scheduler apply`: the scheduler as a file says, created or changed as needed.

use std::time::Instant;

use clap::Args;
use maestro_core::scheduler::RecipeChange;

use super::forecast::forecast;
use super::proposal::{Current, Proposal};
use super::{create, diff};
use crate::cli::document::RecipeOptions;
use crate::cli::watch::verdict;
use crate::cli::{Client, Context, Failure, Json, Resource, WaitOptions, note, require};

#[derive(Debug, Args)]
pub(in crate::cli) struct ApplyOptions {
    #[command(flatten)]
    recipe: RecipeOptions,
    /// Only show what would change, and what the next cycle would do
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Refuse a recipe with unknown fields, before anything is changed
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

pub(super) fn apply(context: &Context, options: &ApplyOptions) -> Result<(), Failure> {
    let client = context.client()?;
    let proposal = Proposal::read(&client, &options.recipe)?;
    if options.dry_run {
        return dry_run(context, &client, &proposal);
    }
    match &proposal.current {
        None => create::submit(context, &proposal.written, options.strict, &options.wait),
        Some(current) if current.difference.change() == RecipeChange::None => {
            proposal.warn_of_unknown_fields();
            context.show(&diff::answer(&proposal), diff::text)
        }
        Some(current) => submit(context, &client, &proposal, current, options),
    }
}

fn dry_run(context: &Context, client: &Client, proposal: &Proposal) -> Result<(), Failure> {
    proposal.warn_of_unknown_fields();
    let mut answer = diff::answer(proposal);
    let next = forecast(client, proposal)?.lines();
    if let Json::Object(entries) = &mut answer {
        let lines = next.iter().map(|line| Json::from(line.as_str())).collect();
        entries.push(("next".to_owned(), Json::Array(lines)));
    }
    context.show(&answer, |answer| format!("{}\n{}", diff::text(answer), next.join("\n")))
}

fn submit(
    context: &Context,
    client: &Client,
    proposal: &Proposal,
    current: &Current,
    options: &ApplyOptions,
) -> Result<(), Failure> {
    let name = proposal.name().as_str();
    let resource = Resource::scheduler(name).query_some("strict", options.strict.then_some("true"));
    let written = &proposal.written;
    let answer = client.post(&resource, &written.recipe).map_err(|failure| written.refused(failure))?;
    let answer = require(answer, "operationId")?;
    let id = answer.get("operationId").cell();
    let change = current.difference.change();
    if change == RecipeChange::Major {
        // It is submitted: that nobody can tell what becomes of players does not make it fail.
        let forecast = forecast(client, proposal).unwrap_or_default();
        forecast.players.iter().for_each(|line| note(line));
    }
    if !options.wait.wait {
        return context.show(&answer, |_| {
            let (next, change) = (current.next, diff::word(change));
            format!("operation {id} enqueued: version {next} of scheduler {name}, a {change} change")
        });
    }
    let end = follow_to_switch(context, name, &id, &options.wait)?;
    context.show_end(&end, |end| {
        let version = end.get("operation").get("input").get("newActiveVersion");
        format!("scheduler {name} {} is active", version.cell())
    })?;
    if change == RecipeChange::Major {
        note(&format!("rooms are being replaced: maestro rollout status {name} --watch"));
    }
    Ok(())
}

/// The operation that makes the version, and then the switch that it enqueued, in the time for both. Returns the end
/// of the one that did not finish, or of the switch.
fn follow_to_switch(
    context: &Context,
    scheduler: &str,
    operation: &str,
    wait: &WaitOptions,
) -> Result<Json, Failure> {
    let started = Instant::now();
    let end = context.follow(scheduler, operation, wait.timeout)?;
    if verdict(&end).is_err() {
        return Ok(end);
    }
    let history = end.get("operation").get("executionHistory").items().iter();
    let switch = history
        .filter_map(|event| event.get("event").as_str())
        .find_map(|event| event.strip_prefix("enqueued switch active version operation with id: "));
    let Some(switch) = switch else {
        let text = format!("operation {operation} finished, but its history names no switch to the version");
        return Err(Failure::failed(text));
    };
    context.follow(scheduler, switch, wait.timeout.saturating_sub(started.elapsed()))
}
