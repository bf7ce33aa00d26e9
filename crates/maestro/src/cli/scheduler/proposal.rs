//! A recipe in a file, against the scheduler of that name on the server.

use maestro_core::scheduler::{Difference, Recipe, RecipeChange, SchedulerName, Version};
use maestro_proto::unknown_recipe_field;

use crate::cli::document::{RecipeOptions, Written, decode_recipe, read_recipe};
use crate::cli::{Client, Exit, Failure, Json, Resource, warn};

pub(super) struct Proposal {
    /// As it was written, with the present number of rooms if it says none: what is submitted.
    pub(super) written: Written,
    pub(super) recipe: Recipe,
    /// `None`: there is no scheduler of that name.
    pub(super) current: Option<Current>,
}

/// What is there, and what the proposal makes of it.
pub(super) struct Current {
    pub(super) recipe: Recipe,
    pub(super) version: Version,
    pub(super) difference: Difference,
    /// The version that the proposal would become.
    pub(super) next: Version,
}

impl Proposal {
    pub(super) fn read(client: &Client, options: &RecipeOptions) -> Result<Self, Failure> {
        let mut written = read_recipe(options)?;
        let mut recipe =
            Recipe::try_from(&written.message).map_err(|violations| written.violations(&violations))?;
        let found = recipe_of(client, &recipe.name, None)?;
        if let Some((current, _)) = found.as_ref().filter(|_| !states_replicas(&written.recipe)) {
            // To the API a recipe that does not say how many rooms says none at all.
            recipe.rooms_replicas = current.rooms_replicas;
            set_replicas(&mut written.recipe, current.rooms_replicas);
        }
        let current = found.map(|found| Current::read(client, found, &recipe)).transpose()?;
        Ok(Self { written, recipe, current })
    }

    pub(super) fn name(&self) -> &SchedulerName {
        &self.recipe.name
    }

    /// What the server would say if the recipe were submitted.
    pub(super) fn warn_of_unknown_fields(&self) {
        for field in &self.written.unknown_fields {
            warn(&unknown_recipe_field(field));
        }
    }
}

impl Current {
    fn read(
        client: &Client,
        (recipe, version): (Recipe, Version),
        proposed: &Recipe,
    ) -> Result<Self, Failure> {
        let resource = Resource::new(&["schedulers", proposed.name.as_str(), "versions"]);
        let answer = client.get(&resource, "versions")?;
        let number = |field| Version::parse(&answer.get(field).cell()).unwrap_or(version);
        let difference = Difference::between(&recipe, proposed);
        let next = match difference.change() {
            RecipeChange::None => version,
            RecipeChange::Minor => number("nextMinor"),
            RecipeChange::Major => number("nextMajor"),
        };
        Ok(Self { recipe, version, difference, next })
    }
}

fn states_replicas(document: &Json) -> bool {
    ["roomsReplicas", "rooms_replicas"].iter().any(|key| !document.get(key).is_null())
}

fn set_replicas(document: &mut Json, replicas: u32) {
    if let Json::Object(entries) = document {
        entries.retain(|(key, _)| key != "roomsReplicas" && key != "rooms_replicas");
        entries.push(("roomsReplicas".to_owned(), Json::from(replicas)));
    }
}

/// A recipe that the server has, and its version; the active one if none is named. `None`: it does not have it.
pub(in crate::cli) fn recipe_of(
    client: &Client,
    name: &SchedulerName,
    version: Option<Version>,
) -> Result<Option<(Recipe, Version)>, Failure> {
    let resource = Resource::scheduler(name.as_str()).query_some("version", version);
    let answer = match client.get(&resource, "scheduler") {
        Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
        answer => answer?,
    };
    let scheduler = answer.get("scheduler");
    let unreadable = |reason: String| {
        let text = format!("the server's recipe of {name} cannot be compared by this maestro: {reason}");
        Failure::failed(text)
    };
    let version = scheduler.get("spec").get("version").cell();
    let version = Version::parse(&version).map_err(unreadable)?;
    let decoded = decode_recipe(scheduler).map_err(|error| unreadable(error.to_string()))?;
    let recipe =
        Recipe::try_from(&decoded.message).map_err(|violations| unreadable(violations.to_string()))?;
    Ok(Some((recipe, version)))
}
