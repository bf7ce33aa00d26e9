//! `maestro scheduler create`

use std::time::Instant;

use clap::Args;

use crate::cli::document::{RecipeOptions, Written, read_recipe};
use crate::cli::operation::in_all_stages;
use crate::cli::{Context, Failure, Json, Resource, WaitOptions, ready_rooms, require, watch};

#[derive(Debug, Args)]
pub(in crate::cli) struct CreateOptions {
    #[command(flatten)]
    recipe: RecipeOptions,
    /// Refuse a recipe with unknown fields, before anything is changed
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    wait: WaitOptions,
}

pub(super) fn create(context: &Context, options: &CreateOptions) -> Result<(), Failure> {
    let recipe = read_recipe(&options.recipe)?;
    submit(context, &recipe, options.strict, &options.wait)
}

/// Also what `apply` does where there is nothing yet.
pub(super) fn submit(
    context: &Context,
    written: &Written,
    strict: bool,
    wait: &WaitOptions,
) -> Result<(), Failure> {
    let client = context.client()?;
    let resource = Resource::new(&["schedulers"]).query_some("strict", strict.then_some("true"));
    let answer = client.post(&resource, &written.recipe).map_err(|failure| written.refused(failure))?;
    let mut answer = require(answer, "scheduler")?;
    let mut rooms = None;
    if wait.wait {
        let started = Instant::now();
        let name = answer.get("scheduler").get("name").cell();
        let operation = match answer.get("operationId").as_str() {
            Some(id) => id.to_owned(),
            None => find_creation(context, &name)?,
        };
        let end = context.follow(&name, &operation, wait.timeout)?;
        watch::verdict(&end)?;
        rooms = Some(ready_rooms::wait(context, &name, wait.timeout.saturating_sub(started.elapsed()))?);
        answer = client.get(&Resource::scheduler(&name), "scheduler")?;
    }
    context.show(&answer, |answer| {
        let scheduler = answer.get("scheduler");
        let outcome = rooms.unwrap_or_else(|| scheduler.get("state").cell());
        let (name, version) = (scheduler.get("name").cell(), scheduler.get("spec").get("version").cell());
        format!("scheduler {name} {version} created ({outcome})")
    })
}

/// v10's answer to a creation does not name its operation; it is the newest one if a deleted scheduler had the name
/// before.
fn find_creation(context: &Context, scheduler: &str) -> Result<String, Failure> {
    let client = context.client()?;
    let resource = Resource::new(&["schedulers", scheduler, "operations"]);
    let (operations, _) =
        in_all_stages(|stage| client.get(&resource.clone().query("stage", stage), "operations"))?;
    let is_creation =
        |operation: &&Json| operation.get("definitionName").as_str() == Some("create_scheduler");
    let creations = operations.iter().filter(is_creation);
    let newest =
        creations.map(|operation| (operation.get("createdAt").cell(), operation.get("id").cell())).max();
    newest.map(|(_, id)| id).ok_or_else(|| {
        Failure::failed(format!("scheduler {scheduler} was created, but its operation is not listed"))
    })
}
