//! HTTP for handlers: a message is made of a request's path, query and body, and the answer is written as JSON. Whatever
//! cannot be read is a 400 that says what and where.

use std::future::Future;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use maestro_proto::json::{Decoded, FromJson};
use maestro_proto::query;
use maestro_proto::rpc::Named;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::body;
use crate::error::ApiError;
use crate::request::{Api, Call, InPath};
use crate::warning::Warnings;

/// A function that answers a message.
pub(crate) trait Handler<A, Q, R>: Clone + Send + Sync + 'static {
    fn answer(&self, api: Arc<A>, call: Call<Q>) -> impl Future<Output = Result<R, ApiError>> + Send;
}

impl<A, Q, R, F, H> Handler<A, Q, R> for H
where
    F: Future<Output = Result<R, ApiError>> + Send,
    H: Fn(Arc<A>, Call<Q>) -> F + Clone + Send + Sync + 'static,
{
    fn answer(&self, api: Arc<A>, call: Call<Q>) -> impl Future<Output = Result<R, ApiError>> + Send {
        self(api, call)
    }
}

/// A message that is made of path and query.
pub(crate) trait QueryMessage: Named + DeserializeOwned + Send + 'static {}

impl<Q: Named + DeserializeOwned + Send + 'static> QueryMessage for Q {}

/// A message that is made of path and body.
pub(crate) trait BodyMessage: Named + FromJson + Send + 'static {}

impl<Q: Named + FromJson + Send + 'static> BodyMessage for Q {}

/// Reads the message from the query.
pub(crate) fn get<A: Api, Q: QueryMessage, R: Serialize + 'static>(
    handler: impl Handler<A, Q, R>,
) -> MethodRouter<Arc<A>> {
    get_as(handler, json)
}

/// The same, with an answer that is not the message as JSON.
pub(crate) fn get_as<A: Api, Q: QueryMessage, R: 'static>(
    handler: impl Handler<A, Q, R>,
    write: fn(R) -> Response,
) -> MethodRouter<Arc<A>> {
    without_body(MethodFilter::GET, handler, write)
}

/// Reads the message from the query.
pub(crate) fn delete<A: Api, Q: QueryMessage, R: Serialize + 'static>(
    handler: impl Handler<A, Q, R>,
) -> MethodRouter<Arc<A>> {
    delete_as(handler, json)
}

/// The same, with an answer that is not the message as JSON.
pub(crate) fn delete_as<A: Api, Q: QueryMessage, R: 'static>(
    handler: impl Handler<A, Q, R>,
    write: fn(R) -> Response,
) -> MethodRouter<Arc<A>> {
    without_body(MethodFilter::DELETE, handler, write)
}

/// Reads the message from the body.
pub(crate) fn post<A: Api, Q: BodyMessage, R: Serialize + 'static>(
    handler: impl Handler<A, Q, R>,
) -> MethodRouter<Arc<A>> {
    with_body(MethodFilter::POST, Body::Message, handler)
}

/// The same for a message with a reason, which may be in the query instead; that takes precedence if it is given.
pub(crate) fn post_with_reason<A: Api, Q: BodyMessage, R: Serialize + 'static>(
    handler: impl Handler<A, Q, R>,
    reason_of: fn(&mut Q) -> &mut String,
) -> MethodRouter<Arc<A>> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct InQuery {
        reason: String,
    }
    on(MethodFilter::POST, async move |State(api): State<Arc<A>>, request: Request| {
        let InQuery { reason } = from_query(request.uri())?;
        let mut call = from_body_and_path(request, Body::Message, api.body_max_bytes()).await?;
        if !reason.trim().is_empty() {
            *reason_of(&mut call.message) = reason;
        }
        answered(api, handler, call).await
    })
}

/// Reads the message from the body.
pub(crate) fn put<A: Api, Q: BodyMessage, R: Serialize + 'static>(
    handler: impl Handler<A, Q, R>,
) -> MethodRouter<Arc<A>> {
    with_body(MethodFilter::PUT, Body::Message, handler)
}

/// Reads a recipe, or a part of one, from the body.
pub(crate) fn recipe<A: Api, Q: BodyMessage, R: Serialize + 'static>(
    method: MethodFilter,
    handler: impl Handler<A, Q, R>,
) -> MethodRouter<Arc<A>> {
    with_body(method, Body::Recipe, handler)
}

fn json<R: Serialize>(answer: R) -> Response {
    Answer(answer).into_response()
}

fn without_body<A: Api, Q: QueryMessage, R: 'static>(
    method: MethodFilter,
    handler: impl Handler<A, Q, R>,
    write: fn(R) -> Response,
) -> MethodRouter<Arc<A>> {
    on(method, async move |State(api): State<Arc<A>>, request: Request| {
        let call = from_query_and_path(request).await?;
        handler.answer(api, call).await.map(write)
    })
}

fn with_body<A: Api, Q: BodyMessage, R: Serialize + 'static>(
    method: MethodFilter,
    body: Body,
    handler: impl Handler<A, Q, R>,
) -> MethodRouter<Arc<A>> {
    on(method, async move |State(api): State<Arc<A>>, request: Request| {
        let call = from_body_and_path(request, body, api.body_max_bytes()).await?;
        answered(api, handler, call).await
    })
}

async fn answered<A, Q, R>(
    api: Arc<A>,
    handler: impl Handler<A, Q, R>,
    call: Call<Q>,
) -> Result<(Warnings, Answer<R>), ApiError> {
    let warnings = call.warnings.clone();
    Ok((warnings, Answer(handler.answer(api, call).await?)))
}

pub(crate) async fn from_query_and_path<Q>(request: Request) -> Result<Call<Q>, ApiError>
where
    Q: Named + DeserializeOwned,
{
    let mut message = from_query(request.uri())?;
    let headers = name(&mut message, request).await?;
    Ok(Call::new(message, Warnings::default(), &headers))
}

/// What a body is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The path takes precedence over names in it.
    Message,
    /// One that names something else than the path is refused: it was written for another scheduler.
    Recipe,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Strictness {
    strict: bool,
}

/// Whatever its content type says, it is JSON. Fields that nobody knows are warned of, and refused if the query asks for
/// `strict`.
async fn from_body_and_path<Q>(request: Request, read_as: Body, max_bytes: usize) -> Result<Call<Q>, ApiError>
where
    Q: Named + FromJson,
{
    let Strictness { strict } = from_query(request.uri())?;
    let (parts, body) = request.into_parts();
    let body = body::read(body, max_bytes).await?;
    let Decoded { mut message, unknown_fields } = Q::from_json(&body)?;
    let mut warnings = Warnings::unknown_fields(unknown_fields);
    if strict && !warnings.is_empty() {
        return Err(ApiError::invalid(warnings.to_string()));
    }
    let written: Option<String> = message.names_mut().first().map(|name| (*name).clone());
    let headers = name(&mut message, Request::from_parts(parts, axum::body::Body::empty())).await?;
    if read_as == Body::Recipe {
        warnings = warnings.of_recipe();
        let names = message.names_mut();
        if let (Some(written), Some(named)) = (written.filter(|name| !name.is_empty()), names.first())
            && written != **named
        {
            let message = format!("name: {written} is not the scheduler's name, which is {named}");
            return Err(ApiError::invalid(message));
        }
    }
    Ok(Call::new(message, warnings, &headers))
}

/// Writes what the path names into the message.
async fn name<Q: Named>(message: &mut Q, request: Request) -> Result<HeaderMap, ApiError> {
    let (mut parts, _) = request.into_parts();
    let InPath(values) = InPath::<Vec<(String, String)>>::from_request_parts(&mut parts, &()).await?;
    for (name, (_, value)) in message.names_mut().into_iter().zip(values) {
        *name = value;
    }
    Ok(parts.headers)
}

/// Names in both spellings; unknown ones are passed over.
pub(crate) fn from_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| ApiError::invalid(format!("query: {}", error.body_text())))?;
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    query::decode_query(pairs).map_err(|error| ApiError::invalid(error.to_string()))
}
