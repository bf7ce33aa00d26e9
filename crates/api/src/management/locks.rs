//! Locks: who holds and awaits them, and a forced release. The paths and the first three keys are v9's.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maestro_core::lock::{Lock, Waiter};
use maestro_engine::services::LockView;
use maestro_proto::v1::{
    self, ListLocksRequest, ListLocksResponse, LockWaiter, ReleaseLockRequest, ReleaseLockResponse,
};

use super::{Answered, Call, Management, View};
use crate::answer::Answer;
use crate::request::reason;

pub(super) async fn list(api: Management, call: Call<ListLocksRequest>) -> Answered<ListLocksResponse> {
    let ListLocksRequest { scheduler_name: scheduler, view } = call.message;
    let view = View::parse(&view)?;
    let locks = api.engine.locks(&scheduler).await?;
    Ok(ListLocksResponse { locks: locks.into_iter().map(|lock| listed(lock, view)).collect() })
}

/// HTTP has the list alone, as v9.
pub(super) fn alone(response: ListLocksResponse) -> Response {
    Answer(response.locks).into_response()
}

pub(super) async fn release(
    api: Management,
    call: Call<ReleaseLockRequest>,
) -> Answered<ReleaseLockResponse> {
    let user = call.user()?;
    let ReleaseLockRequest { scheduler_name: scheduler, lock_key: key, reason: given, token } = call.message;
    api.engine.release_lock(&scheduler, &key, token, &user, reason(&given)?).await?;
    Ok(ReleaseLockResponse {})
}

pub(super) fn no_content(_: ReleaseLockResponse) -> Response {
    StatusCode::NO_CONTENT.into_response()
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
