//! Versions of a scheduler: list, submit, patch, switch.

use maestro_core::scheduler::Recipe;
use maestro_engine::Error;
use maestro_engine::ports::store::{UnreadableVersion, VersionRecord};
use maestro_proto::recipe::Patch;
use maestro_proto::v1::{
    CreateSchedulerRequest, GetSchedulerVersionsRequest, GetSchedulerVersionsResponse,
    NewSchedulerVersionResponse, PatchSchedulerResponse, SchedulerVersion, SwitchActiveVersionRequest,
    SwitchActiveVersionResponse,
};

use super::schedulers::UNREADABLE;
use super::{Answered, ApiError, Call, Management, View, Warnings};
use crate::error::Code;

pub(super) async fn list(
    api: Management,
    call: Call<GetSchedulerVersionsRequest>,
) -> Answered<GetSchedulerVersionsResponse> {
    let GetSchedulerVersionsRequest { scheduler_name: name, view } = call.message;
    let view = View::parse(&view)?;
    let (readable, unreadable) = api.engine.versions(&name).await?;
    let readable = readable.iter().map(|record| (record.version, version(record, view)));
    let unreadable = unreadable.iter().map(|stored| (stored.version, unreadable_version(stored, view)));
    let mut versions: Vec<_> = readable.chain(unreadable).collect();
    versions.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let next = match api.engine.next_versions(&name).await {
        // The active one is among those that cannot be read: nothing comes next.
        Err(Error::Conflict(_)) => None,
        next => Some(next?),
    };
    Ok(GetSchedulerVersionsResponse {
        versions: versions.into_iter().map(|(_, version)| version).collect(),
        next_major: next.as_ref().and_then(|next| view.full(|| next.major.to_string())),
        next_minor: next.as_ref().and_then(|next| view.full(|| next.minor.to_string())),
    })
}

pub(super) async fn create(
    api: Management,
    call: Call<CreateSchedulerRequest>,
) -> Answered<NewSchedulerVersionResponse> {
    let recipe = Recipe::try_from(&call.message).map_err(Error::from)?;
    let id = api.engine.create_version(&call.message.name, recipe, &call.user()?).await?;
    Ok(NewSchedulerVersionResponse { operation_id: id.to_string() })
}

pub(super) async fn patch(api: Management, call: Call<Patch>) -> Answered<PatchSchedulerResponse> {
    let (patch, user) = (&call.message, call.user()?);
    let name = patch.name();
    if patch.is_empty() {
        return Err(no_change(name, &call.warnings));
    }
    let states_size = patch.states_rooms_replicas();
    let id = api.engine.patch_version(name, |recipe| patch.apply(recipe), states_size, &user).await?;
    Ok(PatchSchedulerResponse { operation_id: id.to_string() })
}

/// A field that nobody knows may be why.
fn no_change(name: &str, warnings: &Warnings) -> ApiError {
    let mut message = format!("no change found to scheduler {name}");
    if !warnings.is_empty() {
        message = format!("{message}\n{warnings}");
    }
    ApiError::new(Code::AlreadyExists, message)
}

pub(super) async fn switch(
    api: Management,
    call: Call<SwitchActiveVersionRequest>,
) -> Answered<SwitchActiveVersionResponse> {
    let user = call.user()?;
    let SwitchActiveVersionRequest { scheduler_name: name, version } = call.message;
    let id = api.engine.switch_version(&name, &version, &user).await?;
    Ok(SwitchActiveVersionResponse { operation_id: id.to_string() })
}

fn version(record: &VersionRecord, view: View) -> SchedulerVersion {
    SchedulerVersion {
        version: record.version.to_string(),
        is_active: record.is_active,
        created_at: Some(record.created_at.into()),
        status: view.full(|| record.status.as_str().to_owned()),
        cause: view.full(|| record.cause.clone()),
    }
}

fn unreadable_version(stored: &UnreadableVersion, view: View) -> SchedulerVersion {
    SchedulerVersion {
        version: stored.version.to_string(),
        is_active: stored.is_active,
        created_at: Some(stored.created_at.into()),
        status: view.full(|| UNREADABLE.to_owned()),
        cause: view.full(|| stored.why.clone()),
    }
}
