//! What handlers read from a request: names in its path, its query, its message, and who sent it. Whatever cannot be
//! read is a 400 that says what and where.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::Uri;
use axum::http::request::Parts;
use maestro_proto::json::{Decoded, FromJson};
use maestro_proto::query;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::body;
use crate::error::ApiError;
use crate::management::ManagementApi;
use crate::warning::Warnings;

/// The parameters of the path, decoded.
pub(crate) struct Named<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for Named<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let names = Path::from_request_parts(parts, state).await;
        names
            .map(|Path(names)| Self(names))
            .map_err(|error| ApiError::invalid(format!("path: {}", error.body_text())))
    }
}

/// The message that the parameters of the query make. Names in both spellings; unknown ones are passed over.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for Asked<T>
where
    T: DeserializeOwned,
    S: Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        from_query(&parts.uri).map(Self)
    }
}

fn from_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| ApiError::invalid(format!("query: {}", error.body_text())))?;
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    query::decode_query(pairs).map_err(|error| ApiError::invalid(error.to_string()))
}

/// The message in the body. Whatever its content type says, it is JSON. Fields that nobody knows are named in
/// `warnings`, and refused if the query asks for `strict`.
pub(crate) struct Message<T> {
    pub(crate) message: T,
    pub(crate) warnings: Warnings,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Strictness {
    strict: bool,
}

impl<T: FromJson> FromRequest<Arc<ManagementApi>> for Message<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<ManagementApi>) -> Result<Self, ApiError> {
        let Strictness { strict } = from_query(request.uri())?;
        let body = body::read(request.into_body(), api.body_max_bytes).await?;
        let Decoded { message, unknown_fields } =
            T::from_json(&body).map_err(|error| match error.field.as_str() {
                "" => ApiError::invalid(format!("body: {error}")),
                _ => ApiError::invalid(error.to_string()),
            })?;
        let warnings = Warnings::unknown_fields(unknown_fields);
        if strict && !warnings.is_empty() {
            return Err(ApiError::invalid(warnings.to_string()));
        }
        Ok(Self { message, warnings })
    }
}

/// The name that the sender of a request gives: a record, not a proof.
pub(crate) struct User(pub(crate) String);

impl User {
    const HEADER: &str = "x-maestro-user";
    const DEFAULT: &str = "anonymous";
    /// The name is kept in the history of operations.
    const LENGTH_MAX: usize = 128;
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Some(value) = parts.headers.get(Self::HEADER) else {
            return Ok(Self(Self::DEFAULT.to_owned()));
        };
        let wrong = || {
            let max = Self::LENGTH_MAX;
            ApiError::invalid(format!(
                "header X-Maestro-User: write a name of 1 to {max} printable characters"
            ))
        };
        let name = std::str::from_utf8(value.as_bytes()).map_err(|_| wrong())?.trim();
        let length = name.chars().count();
        if length == 0 || length > Self::LENGTH_MAX || name.chars().any(char::is_control) {
            return Err(wrong());
        }
        Ok(Self(name.to_owned()))
    }
}

/// A reason is kept in histories and in the records of rollouts and regions.
const REASON_LENGTH_MAX: usize = 512;
const NO_REASON: &str = "no reason given";

/// Why something is asked for, as it is recorded.
pub(crate) fn reason(given: &str) -> Result<&str, ApiError> {
    let reason = given.trim();
    if reason.chars().count() > REASON_LENGTH_MAX || reason.chars().any(char::is_control) {
        let message =
            format!("query parameter reason: write it on one line of at most {REASON_LENGTH_MAX} characters");
        return Err(ApiError::invalid(message));
    }
    Ok(if reason.is_empty() { NO_REASON } else { reason })
}
