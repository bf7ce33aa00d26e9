//! Locks: who holds and awaits them, and a forced release. The paths and the first three keys are v9's.

use axum::http::StatusCode;
use maestro_core::lock::{Lock, Waiter};
use maestro_engine::services::LockView;
use maestro_proto::v1::{self, ListLocksRequest, LockWaiter, ReleaseLockRequest};

use super::{Answer, Answered, Api, ApiError, Asked, Named, State, User, View, reason};

pub(super) async fn list(
    State(api): Api,
    Named(scheduler): Named<String>,
    Asked(request): Asked<ListLocksRequest>,
) -> Answered<Vec<v1::Lock>> {
    let view = View::parse(&request.view)?;
    let locks = api.engine.locks(&scheduler).await?;
    Ok(Answer(locks.into_iter().map(|lock| listed(lock, view)).collect()))
}

pub(super) async fn release(
    State(api): Api,
    Named((scheduler, key)): Named<(String, String)>,
    User(user): User,
    Asked(request): Asked<ReleaseLockRequest>,
) -> Result<StatusCode, ApiError> {
    let reason = reason(&request.reason)?;
    api.engine.release_lock(&scheduler, &key, request.token, &user, reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn listed(lock_view: LockView, view: View) -> v1::Lock {
    let ttl_in_sec = lock_view.ttl_in_sec();
    let LockView { kind, key, held, waiters, seen_at: _ } = lock_view;
    let waiters = view.full(|| waiters.iter().map(waiter).collect()).unwrap_or_default();
    let free = v1::Lock { key, ttl_in_sec, kind: kind.to_string(), waiters, ..v1::Lock::default() };
    let Some(Lock { kind: _, holder, reason, token, acquired_at, expires_at }) = held else {
        return free;
    };
    v1::Lock {
        is_locked: true,
        owner: Some(holder.to_string().into()),
        operation_id: holder.operation().map(|id| id.to_string().into()),
        reason: Some(reason.into()),
        fencing_token: Some(token.0.into()),
        acquired_at: Some(acquired_at.into()),
        expires_at: view.full(|| expires_at.map(Into::into)).flatten(),
        ..free
    }
}

fn waiter(waiter: &Waiter) -> LockWaiter {
    let Waiter { kind: _, holder, since, until } = *waiter;
    LockWaiter {
        owner: holder.to_string(),
        operation_id: holder.operation().map(|id| id.to_string().into()),
        since: Some(since.into()),
        until: Some(until.into()),
    }
}
