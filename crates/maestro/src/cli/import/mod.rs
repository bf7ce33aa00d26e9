//! `maestro import`: schedulers that `maestro export` wrote. What is there already stays as it is, so that it may be
//! repeated; what is there with other content is refused, all of it before anything is changed.

mod file;
mod regions;

use std::path::PathBuf;

use clap::Args;
use maestro_core::scheduler::{Difference, RecipeChange};

use self::file::{Exported, ExportedScheduler};
use super::scheduler::recipe_of;
use super::sheet::Shows::At;
use super::{Client, Column, Context, Exit, Failure, Json, Resource, note, require, table};

#[derive(Debug, Args)]
pub(super) struct ImportOptions {
    /// What `maestro export` wrote; `-` reads stdin
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Where a scheduler is there with another recipe, submit the active one of the file as a new version
    #[arg(long)]
    overwrite: bool,
}

/// What becomes of a scheduler of the file.
enum Plan {
    Import,
    /// All that the file says of it is there.
    Unchanged,
    /// Its recipe is another one.
    Overwrite,
    /// Why it is not touched.
    Conflict(String),
}

pub(super) fn run(context: &Context, options: &ImportOptions) -> Result<(), Failure> {
    let Exported { schedulers, cordoned_regions } = file::read(&options.file)?;
    let client = context.client()?;
    let mut plans = Vec::new();
    for scheduler in &schedulers {
        plans.push((scheduler, plan(&client, scheduler, options.overwrite)?));
    }
    let conflicts = plans.iter().filter(|(_, plan)| matches!(plan, Plan::Conflict(_))).count();
    let is_done = !options.dry_run && conflicts == 0;
    if is_done {
        regions::cordon(&client, &cordoned_regions)?;
    }
    let mut outcomes = Vec::new();
    for (scheduler, plan) in &plans {
        let operation = if is_done { carry_out(&client, scheduler, plan, &outcomes)? } else { Json::Null };
        outcomes.push(outcome(scheduler, plan, is_done, operation));
    }
    let answer = Json::object([("schedulers", Json::Array(outcomes))]);
    context.show(&answer, |answer| table(answer.get("schedulers"), OUTCOMES))?;
    match conflicts {
        0 => Ok(()),
        conflicts => Err(Failure::new(
            Exit::Conflict,
            format!(
                "nothing was imported: {conflicts} of {} schedulers are there with other content; with --overwrite, the \
                 active version of the file becomes a new version",
                schedulers.len()
            ),
        )),
    }
}

const OUTCOMES: &[Column] = &[
    ("SCHEDULER", At("name")),
    ("VERSION", At("version")),
    ("OUTCOME", At("outcome")),
    ("REASON", At("reason")),
];

fn plan(client: &Client, exported: &ExportedScheduler, overwrite: bool) -> Result<Plan, Failure> {
    let name = exported.name();
    let Some((recipe, active)) = recipe_of(client, name, None)? else {
        return Ok(Plan::Import);
    };
    let change = Difference::between(&recipe, &exported.recipe).change();
    let why = match change {
        RecipeChange::None if active != exported.active => {
            format!("there, version {active} is active")
        }
        RecipeChange::None => match missing_version(client, exported)? {
            Some(version) => format!("there, it has no version {version}"),
            None => return Ok(Plan::Unchanged),
        },
        RecipeChange::Minor => format!("there, version {active} is active, which differs by a minor change"),
        RecipeChange::Major => format!("there, version {active} is active, which differs by a major change"),
    };
    Ok(match (overwrite, change) {
        (false, _) => Plan::Conflict(why),
        // Its history is another one, and cannot become this one.
        (true, RecipeChange::None) => Plan::Unchanged,
        (true, RecipeChange::Minor | RecipeChange::Major) => Plan::Overwrite,
    })
}

fn missing_version(client: &Client, exported: &ExportedScheduler) -> Result<Option<String>, Failure> {
    let resource = Resource::new(&["schedulers", exported.name().as_str(), "versions"]);
    let answer = client.get(&resource, "versions")?;
    let is_there = |version: &String| {
        answer.get("versions").items().iter().any(|there| there.get("version").as_str() == Some(version))
    };
    Ok(exported.versions().find(|version| !is_there(version)))
}

/// The operation that it began, if it did anything.
fn carry_out(
    client: &Client,
    exported: &ExportedScheduler,
    plan: &Plan,
    done: &[Json],
) -> Result<Json, Failure> {
    let name = exported.name().as_str();
    let answer = match plan {
        Plan::Import => client.post(&Resource::new(&["schedulers", name, "import"]), &exported.request()),
        Plan::Overwrite => client.post(&Resource::scheduler(name), exported.active_recipe()),
        Plan::Unchanged | Plan::Conflict(_) => return Ok(Json::Null),
    };
    let answer = answer.and_then(|answer| require(answer, "operationId")).map_err(|failure| {
        let done: Vec<String> = done.iter().map(|outcome| outcome.get("name").cell()).collect();
        if !done.is_empty() {
            note(&format!("imported before that, and left as it is by another import: {}", done.join(", ")));
        }
        Failure { message: format!("{name}: {}", failure.message), ..failure }
    })?;
    Ok(answer.get("operationId").clone())
}

fn outcome(exported: &ExportedScheduler, plan: &Plan, is_done: bool, operation: Json) -> Json {
    let (outcome, reason) = match (plan, is_done) {
        (Plan::Import, true) => ("imported", ""),
        (Plan::Import, false) => ("would be imported", ""),
        (Plan::Overwrite, true) => ("overwritten", ""),
        (Plan::Overwrite, false) => ("would be overwritten", ""),
        (Plan::Unchanged, _) => ("unchanged", ""),
        (Plan::Conflict(why), _) => ("conflict", why.as_str()),
    };
    Json::object([
        ("name", Json::from(exported.name().as_str())),
        ("version", Json::from(exported.active.to_string().as_str())),
        ("outcome", Json::from(outcome)),
        ("reason", Json::from(reason)),
        ("operationId", operation),
    ])
}
