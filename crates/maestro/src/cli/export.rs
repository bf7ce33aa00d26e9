//! `maestro export`: schedulers as `maestro import` reads them, on this installation or another.
//!
//! It asks a server, whatever store that has. Rooms, operations, allocations and events stay where they are.

use clap::Args;

use super::document::without_state;
use super::{Client, Context, Failure, Json, Resource, note};

/// Says what a file is, and how it is to be read.
pub(super) const FORMAT_KEY: &str = "maestroExport";
pub(super) const FORMAT: u32 = 1;

#[derive(Debug, Args)]
pub(super) struct ExportOptions {
    /// Only these schedulers [default: all]
    #[arg(value_name = "SCHEDULER")]
    schedulers: Vec<String>,
}

pub(super) fn run(context: &Context, options: &ExportOptions) -> Result<(), Failure> {
    let client = context.client()?;
    let names = match options.schedulers.as_slice() {
        [] => all_names(&client)?,
        named => named.to_vec(),
    };
    let schedulers: Vec<Json> =
        names.iter().map(|name| scheduler(&client, name)).collect::<Result<_, _>>()?;
    let export = Json::object([
        (FORMAT_KEY, Json::from(FORMAT)),
        ("cordonedRegions", Json::Array(cordoned(&client)?)),
        ("schedulers", Json::Array(schedulers)),
    ]);
    // For people, too, it is a file.
    context.show(&export, |export| serde_json::to_string_pretty(export).unwrap_or_default())
}

/// Those that are being deleted are as good as gone.
fn all_names(client: &Client) -> Result<Vec<String>, Failure> {
    let answer = client.get(&Resource::new(&["schedulers"]), "schedulers")?;
    let mut names = Vec::new();
    for scheduler in answer.get("schedulers").items() {
        let name = scheduler.get("name").cell();
        match scheduler.get("state").as_str() {
            Some("deleting") => note(&format!("scheduler {name} is being deleted, and left out")),
            Some("unreadable") => {
                return Err(Failure::failed(format!(
                    "the server cannot read scheduler {name}; to export the others without it, name them"
                )));
            }
            _ => names.push(name),
        }
    }
    Ok(names)
}

fn scheduler(client: &Client, name: &str) -> Result<Json, Failure> {
    let answer = client.get(&Resource::new(&["schedulers", name, "versions"]), "versions")?;
    let (mut versions, mut active) = (Vec::new(), None);
    for listed in answer.get("versions").items() {
        let number = listed.get("version").cell();
        let is_active = listed.get("isActive").is_true();
        match listed.get("status").as_str() {
            Some(status @ ("validating" | "unreadable")) if !is_active => {
                note(&format!("scheduler {name}: version {number} is {status}, and left out"));
                continue;
            }
            _ => {}
        }
        let resource = Resource::scheduler(name).query("version", &number);
        let recipe = client.get(&resource, "scheduler")?.get("scheduler").clone();
        if is_active {
            active = Some((number, recipe.get("roomsReplicas").clone()));
        }
        versions.push(version(listed, recipe));
    }
    let Some((active, fleet_size)) = active else {
        return Err(Failure::failed(format!("the server names no active version of scheduler {name}")));
    };
    Ok(Json::object([
        ("name", Json::from(name)),
        ("activeVersion", Json::from(active.as_str())),
        ("fleetSize", fleet_size),
        ("versions", Json::Array(versions)),
    ]))
}

fn version(listed: &Json, recipe: Json) -> Json {
    let of_list = ["version", "status", "cause", "createdAt"].map(|key| (key, listed.get(key).clone()));
    let [version, status, cause, created_at] = of_list;
    Json::object([version, status, cause, created_at, ("recipe", without_state(recipe))])
}

/// Regions that get no new rooms; those that are drained, too.
fn cordoned(client: &Client) -> Result<Vec<Json>, Failure> {
    let answer = client.get(&Resource::new(&["regions"]), "regions")?;
    let is_cordoned = |region: &&Json| region.get("cordoned").is_true() || region.get("draining").is_true();
    let regions = answer.get("regions").items().iter().filter(is_cordoned);
    let entry = |region: &Json| {
        Json::object([("name", region.get("name").clone()), ("reason", region.get("reason").clone())])
    };
    Ok(regions.map(entry).collect())
}
