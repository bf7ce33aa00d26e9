//! Rollouts: how far one is, and pause, resume, cancel. None of it is in v10.

use maestro_proto::v1::{
    CancelRolloutRequest, CancelRolloutResponse, GetRolloutRequest, GetRolloutResponse, PauseRolloutRequest,
    PauseRolloutResponse, ResumeRolloutRequest, ResumeRolloutResponse,
};

use super::{Answered, Call, Management};

pub(super) async fn get(api: Management, call: Call<GetRolloutRequest>) -> Answered<GetRolloutResponse> {
    let GetRolloutRequest { scheduler_name: name, version } = call.message;
    let version = Some(version).filter(|version| !version.is_empty());
    let rollout = api.engine.rollout(&name, version.as_deref()).await?;
    let by_version = rollout.rooms_by_version.into_iter();
    Ok(GetRolloutResponse {
        state: rollout.state.as_str().to_owned(),
        active: rollout.active.to_string(),
        rooms_by_version: by_version.map(|(version, rooms)| (version.to_string(), rooms)).collect(),
        old_rooms: rollout.old_rooms,
        new_rooms: rollout.new_rooms,
        total: rollout.total,
        percent: rollout.percent,
        waiting_for: rollout.waiting_for,
        version: rollout.version.map(|version| version.to_string()).unwrap_or_default(),
        status: rollout.status.as_str().to_owned(),
        outcome: rollout.outcome.as_str().to_owned(),
        cause: rollout.cause,
        log_lines: rollout.log_lines,
        operation_id: rollout.operation.map(|operation| operation.to_string()).unwrap_or_default(),
        occupied_old_rooms: rollout.occupied.rooms,
        waits_for_match_end: rollout.occupied.waits_for_match_end,
        next_occupied_at: rollout.occupied.next_at.map(Into::into),
    })
}

pub(super) async fn pause(
    api: Management,
    call: Call<PauseRolloutRequest>,
) -> Answered<PauseRolloutResponse> {
    api.engine.pause_rollout(&call.message.scheduler_name, &call.user()?).await?;
    Ok(PauseRolloutResponse {})
}

pub(super) async fn resume(
    api: Management,
    call: Call<ResumeRolloutRequest>,
) -> Answered<ResumeRolloutResponse> {
    api.engine.resume_rollout(&call.message.scheduler_name, &call.user()?).await?;
    Ok(ResumeRolloutResponse {})
}

pub(super) async fn cancel(
    api: Management,
    call: Call<CancelRolloutRequest>,
) -> Answered<CancelRolloutResponse> {
    let id = api.engine.cancel_rollout(&call.message.scheduler_name, &call.user()?).await?;
    Ok(CancelRolloutResponse { operation_id: id.to_string() })
}
