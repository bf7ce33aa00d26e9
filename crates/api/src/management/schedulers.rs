//! Schedulers: list, read, create, delete, and how they scale.

use maestro_core::condition::Problem;
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::{Autoscaling, Recipe};
use maestro_core::time::Timestamp;
use maestro_engine::Error;
use maestro_engine::ports::room_table::FleetCounts;
use maestro_engine::ports::store::{SchedulerRecord, UnreadableScheduler};
use maestro_engine::services::{AutoscalingDecision, FleetInfo, FleetOverview, SchedulerFilter};
use maestro_proto::recipe::{self, Shown, signed};
use maestro_proto::v1::{
    self, AutoscalingInfo, CreateSchedulerRequest, CreateSchedulerResponse, DeleteSchedulerRequest,
    DeleteSchedulerResponse, FleetProblem, GetAutoscalingDecisionsRequest, GetAutoscalingDecisionsResponse,
    GetSchedulerRequest, GetSchedulerResponse, GetSchedulersInfoRequest, GetSchedulersInfoResponse,
    ListSchedulersRequest, ListSchedulersResponse, SchedulerInfo, SchedulerWithoutSpec,
};

use super::{Answered, Call, Management, View};

pub(super) async fn list(
    api: Management,
    call: Call<ListSchedulersRequest>,
) -> Answered<ListSchedulersResponse> {
    let ListSchedulersRequest { name, game, version, view } = call.message;
    let filter = SchedulerFilter { name: given(name), game: given(game), version: given(version) };
    let view = View::parse(&view)?;
    let mut schedulers: Vec<_> = match view {
        View::V10 => api.engine.schedulers(&filter).await?.iter().map(listed).collect(),
        View::Full => api.engine.fleet_overviews(&filter).await?.iter().map(overview).collect(),
    };
    let unreadable = api.engine.unreadable_schedulers(&filter).await?;
    schedulers.extend(unreadable.iter().map(|scheduler| unreadable_listed(scheduler, view)));
    schedulers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(ListSchedulersResponse { schedulers })
}

fn listed(record: &SchedulerRecord) -> SchedulerWithoutSpec {
    let shown = Shown { created_at: record.created_at, ..shown(record) };
    recipe::scheduler_without_spec(&record.recipe, shown)
}

fn overview(overview: &FleetOverview) -> SchedulerWithoutSpec {
    let FleetOverview { info, wanted, problem } = overview;
    let rooms = fleet_info(info);
    let problem = problem.clone().map(|Problem { word, reason, room }| FleetProblem {
        word: word.to_owned(),
        reason,
        room: room.map(|room| room.to_string()).unwrap_or_default(),
    });
    SchedulerWithoutSpec {
        rooms_ready: Some(rooms.rooms_ready),
        rooms_occupied: Some(rooms.rooms_occupied),
        rooms_pending: Some(rooms.rooms_pending),
        rooms_terminating: Some(rooms.rooms_terminating),
        rooms_wanted: Some(signed(*wanted)),
        autoscaling: rooms.autoscaling,
        problem,
        ..listed(&info.scheduler)
    }
}

pub(super) async fn info(
    api: Management,
    call: Call<GetSchedulersInfoRequest>,
) -> Answered<GetSchedulersInfoResponse> {
    let game = given(call.message.game);
    let infos = api.engine.fleet_infos(game.clone()).await?;
    let mut schedulers: Vec<_> = infos.iter().map(fleet_info).collect();
    let filter = SchedulerFilter { game, ..SchedulerFilter::default() };
    for unreadable in api.engine.unreadable_schedulers(&filter).await? {
        let counts = api.engine.counts_of_unreadable(&unreadable).await?;
        schedulers.push(SchedulerInfo {
            name: unreadable.name.to_string(),
            state: UNREADABLE.to_owned(),
            rooms_replicas: signed(unreadable.fleet_size),
            ..counted(&counts)
        });
    }
    schedulers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(GetSchedulersInfoResponse { schedulers })
}

pub(super) async fn get(api: Management, call: Call<GetSchedulerRequest>) -> Answered<GetSchedulerResponse> {
    let GetSchedulerRequest { scheduler_name: name, version } = call.message;
    let version = given(version);
    let (record, version) = api.engine.scheduler_version(&name, version.as_deref()).await?;
    let rooms_replicas = if version.is_active { record.fleet_size } else { version.recipe.rooms_replicas };
    let (version_number, created_at) = (version.version, version.created_at);
    let shown = Shown { version: version_number, created_at, rooms_replicas, ..shown(&record) };
    Ok(GetSchedulerResponse { scheduler: Some(recipe::scheduler(&version.recipe, shown)) })
}

pub(super) async fn create(
    api: Management,
    call: Call<CreateSchedulerRequest>,
) -> Answered<CreateSchedulerResponse> {
    let recipe = Recipe::try_from(&call.message).map_err(Error::from)?;
    let record = api.engine.create_scheduler(recipe, &call.user()?).await?;
    Ok(CreateSchedulerResponse { scheduler: Some(recipe::scheduler(&record.recipe, shown(&record))) })
}

pub(super) async fn delete(
    api: Management,
    call: Call<DeleteSchedulerRequest>,
) -> Answered<DeleteSchedulerResponse> {
    let user = call.user()?;
    let DeleteSchedulerRequest { scheduler_name: name, force } = call.message;
    let operation_id = match force {
        true => api.engine.delete_scheduler_by_force(&name, &user).await?,
        false => api.engine.delete_scheduler(&name, &user).await?,
    };
    Ok(DeleteSchedulerResponse { operation_id: operation_id.to_string() })
}

pub(super) async fn autoscaling_decisions(
    api: Management,
    call: Call<GetAutoscalingDecisionsRequest>,
) -> Answered<GetAutoscalingDecisionsResponse> {
    let decisions = api.engine.autoscaling_decisions(&call.message.scheduler_name).await?;
    Ok(GetAutoscalingDecisionsResponse { decisions: decisions.into_iter().map(decision).collect() })
}

/// A parameter that is empty was not given.
fn given(parameter: String) -> Option<String> {
    Some(parameter).filter(|text| !text.is_empty())
}

/// What answers say about the active version.
fn shown(record: &SchedulerRecord) -> Shown<'_> {
    Shown {
        version: record.active_version,
        state: record.state.as_str(),
        created_at: record.version_created_at,
        rooms_replicas: record.fleet_size,
    }
}

fn decision(decision: AutoscalingDecision) -> v1::AutoscalingDecision {
    let AutoscalingDecision { at, total, occupied, ready, desired, desired_ready, decision, reason } =
        decision;
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    v1::AutoscalingDecision {
        at: at.parse::<Timestamp>().ok().map(Into::into),
        total: number(total),
        occupied: number(occupied),
        ready: number(ready),
        desired: number(desired),
        desired_ready: number(desired_ready),
        decision,
        reason,
    }
}

/// The state of a scheduler, or the status of a version, that this build cannot read.
pub(super) const UNREADABLE: &str = "unreadable";

fn unreadable_listed(scheduler: &UnreadableScheduler, view: View) -> SchedulerWithoutSpec {
    let problem = FleetProblem {
        word: UNREADABLE.to_owned(),
        reason: format!("{}; start the version of Maestro that wrote it", scheduler.why),
        room: String::new(),
    };
    SchedulerWithoutSpec {
        name: scheduler.name.to_string(),
        state: UNREADABLE.to_owned(),
        version: scheduler.active_version.clone(),
        created_at: Some(scheduler.created_at.into()),
        rooms_replicas: signed(scheduler.fleet_size),
        problem: view.full(|| problem),
        ..SchedulerWithoutSpec::default()
    }
}

fn fleet_info(info: &FleetInfo) -> SchedulerInfo {
    let FleetInfo { scheduler, counts } = info;
    SchedulerInfo {
        name: scheduler.name.to_string(),
        game: scheduler.recipe.game.clone(),
        state: scheduler.state.as_str().to_owned(),
        rooms_replicas: signed(scheduler.fleet_size),
        autoscaling: scheduler.recipe.autoscaling.as_ref().map(autoscaling_info),
        ..counted(counts)
    }
}

/// Rooms with any match and allocated ones are occupied, rooms that are up and have not pinged are on their way: in
/// v10 such rooms are in none of the four numbers.
fn counted(counts: &FleetCounts) -> SchedulerInfo {
    let rooms = |statuses: &[RoomStatus]| {
        let rooms = statuses.iter().map(|status| counts.by_status.of(*status)).fold(0, u32::saturating_add);
        signed(rooms)
    };
    SchedulerInfo {
        rooms_ready: rooms(&[RoomStatus::Ready]),
        rooms_occupied: rooms(&[RoomStatus::Active, RoomStatus::Occupied, RoomStatus::Allocated]),
        rooms_pending: rooms(&[RoomStatus::Pending, RoomStatus::Unready]),
        rooms_terminating: rooms(&[RoomStatus::Terminating]),
        // v10 has the field and never fills it.
        match_allocation: None,
        ..SchedulerInfo::default()
    }
}

fn autoscaling_info(autoscaling: &Autoscaling) -> AutoscalingInfo {
    AutoscalingInfo {
        enabled: autoscaling.enabled,
        min: signed(autoscaling.min),
        max: autoscaling.max.map_or(-1, signed),
        cooldown: signed(autoscaling.cooldown_seconds),
    }
}
