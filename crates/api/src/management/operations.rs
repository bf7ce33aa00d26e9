//! Operations: lists by stage, one in full, cancel; and, which v10 does not have, what they wait for and which are stuck.

use maestro_core::operation::explain::{self, Explanation};
use maestro_core::operation::{
    Definition, DefinitionKind, HistoryEvent, IdPrefix, Lease, Operation, OperationStatus, Stage,
};
use maestro_core::scheduler::Version;
use maestro_core::time::Timestamp;
use maestro_engine::documents;
use maestro_engine::ports::store::{OperationFilter, PageRequest, SchedulerState};
use maestro_engine::services::{ExplainedOperation, OperationView};
use maestro_proto::protobuf::Struct;
use maestro_proto::recipe::go_cased_scheduler;
use maestro_proto::v1::{
    self, CancelOperationRequest, CancelOperationResponse, Claim, Expectation, ExplainOperationRequest,
    GetOperationRequest, GetOperationResponse, ListOperationItem, ListOperationsRequest,
    ListOperationsResponse, ListStuckOperationsRequest, ListStuckOperationsResponse, OperationEvent,
    OperationExplanation,
};
use serde_json::{Value, json};

use crate::page::{Page, asked_page};

use super::{Answered, ApiError, Call, Management, View};

pub(super) async fn list(
    api: Management,
    call: Call<ListOperationsRequest>,
) -> Answered<ListOperationsResponse> {
    let request = call.message;
    let view = View::parse(&request.view)?;
    let (stage, page) = asked_list(&request)?;
    let list = api.engine.operations(&request.scheduler_name, stage, page).await?;
    Ok(ListOperationsResponse {
        page: Some(list.page),
        page_size: Some(list.page_size),
        total: Some(list.total),
        operations: list.operations.iter().map(|operation| item(operation, view)).collect(),
    })
}

pub(super) async fn get(api: Management, call: Call<GetOperationRequest>) -> Answered<GetOperationResponse> {
    let GetOperationRequest { scheduler_name: scheduler, operation_id: id, view } = call.message;
    let view = View::parse(&view)?;
    let operation = api.engine.operation(&scheduler, &id).await?;
    Ok(GetOperationResponse { operation: Some(whole(operation, view)) })
}

pub(super) async fn cancel(
    api: Management,
    call: Call<CancelOperationRequest>,
) -> Answered<CancelOperationResponse> {
    let user = call.user()?;
    let CancelOperationRequest { scheduler_name: scheduler, operation_id: id } = call.message;
    api.engine.cancel_operation(&scheduler, &id, &user).await?;
    Ok(CancelOperationResponse {})
}

/// What an operation waits for, who works on it, what will happen next, and whether it is stuck.
pub(super) async fn explain(
    api: Management,
    call: Call<ExplainOperationRequest>,
) -> Answered<OperationExplanation> {
    let ExplainOperationRequest { scheduler_name: scheduler, operation_id: id } = call.message;
    Ok(explanation(api.engine.explain_operation(&scheduler, &id).await?))
}

pub(super) async fn stuck(
    api: Management,
    call: Call<ListStuckOperationsRequest>,
) -> Answered<ListStuckOperationsResponse> {
    let stuck = api.engine.stuck_operations(&call.message.scheduler_name).await?;
    Ok(ListStuckOperationsResponse { operations: stuck.into_iter().map(explanation).collect() })
}

/// Checks in v10's order, so that a request with several mistakes is told of the same one.
fn asked_list(request: &ListOperationsRequest) -> Result<(Stage, PageRequest), ApiError> {
    let newest_first = newest_first(&request.order_by)?;
    let ListOperationsRequest { page, per_page, page_size, .. } = *request;
    let Page { number, size } = asked_page(page, per_page, page_size)?;
    let stage = request.stage.as_str();
    if stage != "final" && page.or(per_page).or(page_size).is_some() {
        let message = format!("there is no pagination filter implemented for {stage} stage");
        return Err(ApiError::invalid(message));
    }
    let Some(stage) = Stage::parse(stage) else {
        let message = format!("invalid stage filter: {stage}; write one of pending, active, final");
        return Err(ApiError::invalid(message));
    };
    let only = asked_for(request)?;
    let no_action = request.no_action;
    let page = PageRequest { page: number, page_size: size, newest_first, no_action, only };
    Ok((stage, page))
}

fn asked_for(request: &ListOperationsRequest) -> Result<OperationFilter, ApiError> {
    let ListOperationsRequest { definition_name, status, since, id_prefix, .. } = request;
    let one_of = |names: Vec<&str>| format!("one of {}", names.join(", "));
    let kinds = || one_of(DefinitionKind::KNOWN.iter().map(|kind| kind.as_str()).collect());
    let statuses = || one_of(OperationStatus::ALL.map(OperationStatus::as_str).into());
    Ok(OperationFilter {
        kind: parameter("definitionName", definition_name, DefinitionKind::parse_known, kinds)?,
        status: parameter("status", status, OperationStatus::parse, statuses)?,
        since: parameter(
            "since",
            since,
            |text| text.parse::<Timestamp>().ok(),
            || "a time such as 2026-11-15T09:00:00Z".to_owned(),
        )?,
        id: parameter("idPrefix", id_prefix, IdPrefix::parse, || "hexadecimal digits".to_owned())?,
    })
}

/// `None` if it is not given.
fn parameter<T>(
    name: &str,
    text: &str,
    parse: impl FnOnce(&str) -> Option<T>,
    expected: impl FnOnce() -> String,
) -> Result<Option<T>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || ApiError::invalid(format!("query parameter {name}: {text:?} must be {}", expected()));
    parse(text).map(Some).ok_or_else(wrong)
}

/// `createdAt`, and perhaps `asc` or `desc`.
fn newest_first(order_by: &str) -> Result<bool, ApiError> {
    let mut words = order_by.split_whitespace();
    let (field, order, more) = (words.next(), words.next(), words.next());
    if more.is_some() {
        return Err(ApiError::invalid(
            "invalid sorting parameters number: write a field and an order, as in createdAt desc",
        ));
    }
    match field {
        None | Some("createdAt") => {}
        Some(field) => {
            let message = format!("invalid sorting field: {field}; write createdAt");
            return Err(ApiError::invalid(message));
        }
    }
    match order {
        None | Some("desc") => Ok(true),
        Some("asc") => Ok(false),
        Some(order) => {
            let message = format!("invalid sorting order: {order}; write asc or desc");
            Err(ApiError::invalid(message))
        }
    }
}

fn item(view_of: &OperationView, view: View) -> ListOperationItem {
    let operation = described(view_of, view);
    ListOperationItem {
        id: operation.id,
        status: operation.status,
        definition_name: operation.definition_name,
        lease: operation.lease,
        scheduler_name: operation.scheduler_name,
        created_at: operation.created_at,
        data: operation.data,
        reason: operation.reason,
        waiting_for: operation.waiting_for,
        cause: operation.cause,
    }
}

fn whole(view_of: OperationView, view: View) -> v1::Operation {
    let mut operation = described(&view_of, view);
    operation.input = Some(object(input(&view_of.operation)));
    operation.execution_history = view_of.operation.history.into_iter().map(event).collect();
    operation
}

/// What lists and single operations have in common.
fn described(view_of: &OperationView, view: View) -> v1::Operation {
    let operation = &view_of.operation;
    v1::Operation {
        id: operation.id.to_string(),
        status: operation.status.as_str().to_owned(),
        definition_name: operation.definition.name().to_owned(),
        lease: lease(operation),
        scheduler_name: operation.scheduler.to_string(),
        created_at: Some(operation.created_at.into()),
        input: None,
        execution_history: Vec::new(),
        data: view.full(|| object(operation.data.clone())),
        reason: view.full(|| reason(view_of)),
        waiting_for: view.full(|| view_of.waiting_for.clone()).flatten(),
        cause: view.full(|| view_of.cause.clone()).flatten(),
    }
}

/// Why an operation was asked for; if it ended without finishing, first why it did.
fn reason(view_of: &OperationView) -> String {
    let OperationView { operation, cause, .. } = view_of;
    match (cause, operation.reason.as_str()) {
        (Some(cause), "") if operation.status.is_final() => cause.clone(),
        (Some(cause), asked) if operation.status.is_final() => format!("{cause} ({asked})"),
        (Some(_) | None, asked) => asked.to_owned(),
    }
}

/// Only what is in progress has one; an expired one is shown as it is.
fn lease(operation: &Operation) -> Option<v1::Lease> {
    let lease = operation.lease.as_ref()?;
    let ttl = || lease.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    (operation.status == OperationStatus::InProgress).then(|| v1::Lease { ttl: ttl() })
}

/// What was asked for, in v10's form.
fn input(operation: &Operation) -> Value {
    match &operation.definition {
        Definition::CreateScheduler { recipe } => {
            let state = SchedulerState::InSync.as_str();
            json!({ "scheduler": go_cased_scheduler(recipe, Some(Version::FIRST), state, None) })
        }
        Definition::CreateVersion { recipe } => {
            // Not before it was numbered, which is its first step.
            let version = |key: &str| operation.data[key].as_str().and_then(|text| Version::parse(text).ok());
            let state = SchedulerState::Creating.as_str();
            let scheduler = go_cased_scheduler(recipe, version("version"), state, version("rollbackVersion"));
            json!({ "scheduler": scheduler })
        }
        Definition::HealthController if operation.status.is_final() => {
            json!({ "took_action": operation.took_action })
        }
        definition @ (Definition::DeleteScheduler
        | Definition::SwitchVersion(_)
        | Definition::AddRooms { .. }
        | Definition::RemoveRooms { .. }
        | Definition::Resize { .. }
        | Definition::CreateRoom { .. }
        | Definition::HealthController
        | Definition::StorageCleanUp
        | Definition::Unknown { .. }) => documents::definition_to_json(definition),
    }
}

/// Anything but an object would not be a message: nothing was decided yet, or it was written by something else.
fn object(value: Value) -> Struct {
    match value {
        Value::Object(fields) => fields.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Struct::default()
        }
    }
}

fn event(event: HistoryEvent) -> OperationEvent {
    OperationEvent { created_at: Some(event.at.into()), event: event.event }
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
