//! Schedulers of another installation.

use maestro_core::scheduler::{Recipe, Version, VersionStatus};
use maestro_core::time::Timestamp;
use maestro_core::violation::{Violation, Violations};
use maestro_engine::Error;
use maestro_engine::services::{ImportedScheduler, ImportedVersion};
use maestro_proto::v1::{self, ImportSchedulerRequest, ImportSchedulerResponse};

use super::{Answered, Call, Management};

pub(super) async fn import(
    api: Management,
    call: Call<ImportSchedulerRequest>,
) -> Answered<ImportSchedulerResponse> {
    let user = call.user()?;
    let imported = scheduler(call.message).map_err(|violations| Error::from(Violations(violations)))?;
    let id = api.engine.import_scheduler(imported, &user).await?;
    Ok(ImportSchedulerResponse { operation_id: id.to_string() })
}

/// Everything that is wrong with it by itself; what its versions mean together is for the engine to judge.
fn scheduler(request: ImportSchedulerRequest) -> Result<ImportedScheduler, Vec<Violation>> {
    let ImportSchedulerRequest { scheduler_name: name, active_version, fleet_size, versions } = request;
    let mut violations = Vec::new();
    let active = parsed(Version::parse(&active_version), "activeVersion", &mut violations);
    let mut read = Vec::new();
    for (index, version) in versions.into_iter().enumerate() {
        match self::version(version) {
            Ok(version) => read.push(version),
            Err(wrong) => violations.extend(wrong.into_iter().map(|Violation { field, reason }| {
                Violation::new(format!("versions[{index}].{field}"), reason)
            })),
        }
    }
    match active {
        Some(active) if violations.is_empty() => {
            Ok(ImportedScheduler { name, active, fleet_size, versions: read })
        }
        Some(_) | None => Err(violations),
    }
}

fn version(version: v1::ImportedVersion) -> Result<ImportedVersion, Vec<Violation>> {
    let v1::ImportedVersion { version: number, status, cause, created_at, recipe } = version;
    let mut violations = Vec::new();
    let number = parsed(Version::parse(&number), "version", &mut violations);
    let unknown = || format!("{status:?} is not the status of a version");
    let status = parsed(VersionStatus::parse(&status).ok_or_else(unknown), "status", &mut violations);
    let created_at = created_at.as_ref().map(Timestamp::try_from).transpose();
    let created_at = parsed(created_at, "createdAt", &mut violations).flatten();
    let recipe = match Recipe::try_from(&recipe.unwrap_or_default()) {
        Ok(recipe) => Some(recipe),
        Err(Violations(wrong)) => {
            let inside = |violation: Violation| {
                Violation::new(format!("recipe.{}", violation.field), violation.reason)
            };
            violations.extend(wrong.into_iter().map(inside));
            None
        }
    };
    match (number, status, recipe) {
        (Some(version), Some(status), Some(recipe)) if violations.is_empty() => {
            Ok(ImportedVersion { version, status, cause, created_at, recipe: recipe.into() })
        }
        _ => Err(violations),
    }
}

fn parsed<T>(outcome: Result<T, String>, field: &str, violations: &mut Vec<Violation>) -> Option<T> {
    outcome.map_err(|reason| violations.push(Violation::new(field, reason))).ok()
}
