//! What operations wait for, who works on them, what will happen next, and which are stuck. None of it is in v10.

use axum::extract::State;
use maestro_core::operation::Lease;
use maestro_core::operation::explain::{self, Explanation};
use maestro_core::time::Timestamp;
use maestro_engine::services::ExplainedOperation;
use maestro_proto::v1::{Claim, Expectation, ListStuckOperationsResponse, OperationExplanation};

use super::Api;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::request::Named;

pub(super) async fn explain(
    State(api): Api,
    Named((scheduler, id)): Named<(String, String)>,
) -> Result<Answer<OperationExplanation>, ApiError> {
    Ok(Answer(explanation(api.engine.explain_operation(&scheduler, &id).await?)))
}

pub(super) async fn stuck(
    State(api): Api,
    Named(scheduler): Named<String>,
) -> Result<Answer<ListStuckOperationsResponse>, ApiError> {
    let stuck = api.engine.stuck_operations(&scheduler).await?;
    Ok(Answer(ListStuckOperationsResponse { operations: stuck.into_iter().map(explanation).collect() }))
}

fn explanation(explained: ExplainedOperation) -> OperationExplanation {
    let ExplainedOperation { operation, ownership, explanation, seen_at } = explained;
    let Explanation { since, waits_for, next, stuck } = explanation;
    let lease = operation.lease.filter(|_| !operation.status.is_final());
    OperationExplanation {
        id: operation.id.to_string(),
        definition_name: operation.definition.name().to_owned(),
        scheduler_name: operation.scheduler.to_string(),
        status: operation.status.as_str().to_owned(),
        since: Some(since.into()),
        waiting_for: waits_for.unwrap_or_default(),
        last_event: operation.history.last().map(|last| last.event.clone()).unwrap_or_default(),
        owner: ownership.map(|ownership| claim(ownership, seen_at)),
        lease: lease.map(|lease| claim(lease, seen_at)),
        next: next.into_iter().map(expectation).collect(),
        stuck: stuck.is_some(),
        stuck_because: stuck.unwrap_or_default(),
    }
}

fn claim(lease: Lease, now: Timestamp) -> Claim {
    let Lease { owner, token, expires_at } = lease;
    Claim {
        worker: owner,
        until: Some(expires_at.into()),
        fencing_token: token.0,
        has_run_out: expires_at <= now,
    }
}

fn expectation(expectation: explain::Expectation) -> Expectation {
    let explain::Expectation { what, at } = expectation;
    Expectation { what, at: at.map(Into::into) }
}
