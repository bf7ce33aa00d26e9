//! Rollouts: how far one is, and pause, resume, cancel. None of it is in v10.

use maestro_proto::v1::{
    CancelRolloutResponse, GetRolloutRequest, GetRolloutResponse, PauseRolloutResponse, ResumeRolloutResponse,
};

use super::{Answer, Answered, Api, Asked, Named, State, User};

pub(super) async fn get(
    State(api): Api,
    Named(name): Named<String>,
    Asked(request): Asked<GetRolloutRequest>,
) -> Answered<GetRolloutResponse> {
    let version = Some(request.version).filter(|version| !version.is_empty());
    let rollout = api.engine.rollout(&name, version.as_deref()).await?;
    let by_version = rollout.rooms_by_version.into_iter();
    Ok(Answer(GetRolloutResponse {
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
    }))
}

pub(super) async fn pause(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
) -> Answered<PauseRolloutResponse> {
    api.engine.pause_rollout(&name, &user).await?;
    Ok(Answer(PauseRolloutResponse {}))
}

pub(super) async fn resume(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
) -> Answered<ResumeRolloutResponse> {
    api.engine.resume_rollout(&name, &user).await?;
    Ok(Answer(ResumeRolloutResponse {}))
}

pub(super) async fn cancel(
    State(api): Api,
    Named(name): Named<String>,
    User(user): User,
) -> Answered<CancelRolloutResponse> {
    let operation_id = api.engine.cancel_rollout(&name, &user).await?.to_string();
    Ok(Answer(CancelRolloutResponse { operation_id }))
}
