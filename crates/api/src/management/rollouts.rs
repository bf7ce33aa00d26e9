//! Rollouts: how far one is, and pause, resume, cancel. None of it is in v10.

use axum::extract::State;
use maestro_engine::services::RolloutView;
use maestro_proto::v1::{
    CancelRolloutResponse, GetRolloutResponse, PauseRolloutResponse, ResumeRolloutResponse,
};

use super::Api;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::request::{Named, User};

/// The state of a scheduler whose rooms are not being replaced.
const NO_ROLLOUT: &str = "none";

type Answered<T> = Result<Answer<T>, ApiError>;

pub(super) async fn get(State(api): Api, Named(name): Named<String>) -> Answered<GetRolloutResponse> {
    let RolloutView { state, active, rooms_by_version, old_rooms, new_rooms, total, percent, waiting_for } =
        api.engine.rollout(&name).await?;
    let rooms_by_version = rooms_by_version.into_iter();
    Ok(Answer(GetRolloutResponse {
        state: state.map_or(NO_ROLLOUT, |state| state.as_str()).to_owned(),
        active: active.to_string(),
        rooms_by_version: rooms_by_version.map(|(version, rooms)| (version.to_string(), rooms)).collect(),
        old_rooms,
        new_rooms,
        total,
        percent,
        waiting_for,
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
