//! The file of an export, checked before anything is asked of a server.

use std::path::Path;

use maestro_core::scheduler::{Recipe, SchedulerName, Version};
use maestro_proto::document;

use crate::cli::document::decode_recipe;
use crate::cli::export::{FORMAT, FORMAT_KEY};
use crate::cli::{Failure, Json};

/// Hundreds of schedulers with all of their versions.
const FILE_BYTES_MAX: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Exported {
    pub(super) schedulers: Vec<ExportedScheduler>,
    pub(super) cordoned_regions: Vec<Json>,
}

#[derive(Debug)]
pub(super) struct ExportedScheduler {
    entry: Json,
    pub(super) active: Version,
    /// Of the active version.
    pub(super) recipe: Recipe,
}

pub(super) fn read(path: &Path) -> Result<Exported, Failure> {
    let name = document::name(path);
    let wrong = |reason: String| Failure::invalid(format!("{name}: {reason}"));
    let text = document::read_text(path, FILE_BYTES_MAX)
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let export: Json = document::parse(&text).map_err(|error| Failure::invalid(error.in_file(&name)))?;
    match export.get(FORMAT_KEY) {
        Json::Null => Err(wrong(format!("is not what maestro export writes: it has no {FORMAT_KEY}")))?,
        format if format.as_u64() != Some(FORMAT.into()) => {
            let text = format!("has the format {}, and this maestro reads {FORMAT}", format.cell());
            return Err(wrong(text));
        }
        _ => {}
    }
    let entries = export.get("schedulers").items().iter().enumerate();
    let read = |(index, entry): (usize, &Json)| {
        ExportedScheduler::read(entry).map_err(|reason| wrong(format!("schedulers[{index}].{reason}")))
    };
    Ok(Exported {
        schedulers: entries.map(read).collect::<Result<_, _>>()?,
        cordoned_regions: export.get("cordonedRegions").items().to_vec(),
    })
}

impl ExportedScheduler {
    fn read(entry: &Json) -> Result<Self, String> {
        let active = entry.get("activeVersion").cell();
        let versions = entry.get("versions").items();
        let index = versions.iter().position(|version| version.get("version").as_str() == Some(&active));
        let index = index.ok_or_else(|| format!("activeVersion: {active} is not among the versions"))?;
        let place = format!("versions[{index}].recipe");
        let decoded =
            decode_recipe(versions[index].get("recipe")).map_err(|error| format!("{place}: {error}"))?;
        let recipe =
            Recipe::try_from(&decoded.message).map_err(|violations| format!("{place}.{violations}"))?;
        let name = entry.get("name").cell();
        if recipe.name.as_str() != name {
            return Err(format!(
                "{place}.name: {} is not the scheduler's name, which is {name}",
                recipe.name
            ));
        }
        let active = Version::parse(&active).map_err(|reason| format!("activeVersion: {reason}"))?;
        Ok(Self { entry: entry.clone(), active, recipe })
    }

    pub(super) fn name(&self) -> &SchedulerName {
        &self.recipe.name
    }

    /// The numbers of all versions.
    pub(super) fn versions(&self) -> impl Iterator<Item = String> {
        self.entry.get("versions").items().iter().map(|version| version.get("version").cell())
    }

    pub(super) fn active_recipe(&self) -> &Json {
        let active = self.active.to_string();
        let versions = self.entry.get("versions").items().iter();
        let mut of_active = versions.filter(|version| version.get("version").as_str() == Some(&active));
        of_active.next().unwrap_or(&Json::Null).get("recipe")
    }

    /// The entry without its name, which is in the path.
    pub(super) fn request(&self) -> Json {
        let entries = self.entry.entries().iter().filter(|(key, _)| key != "name");
        Json::Object(entries.cloned().collect())
    }
}
