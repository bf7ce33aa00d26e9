//! A request as handlers get it, whichever way it came: its message, and who sent it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use maestro_engine::Engine;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::warning::Warnings;

/// What the handlers of an API share.
pub(crate) trait Api: Send + Sync + 'static {
    fn engine(&self) -> &Arc<Engine>;

    /// The longest message.
    fn body_max_bytes(&self) -> usize;
}

/// A request to a handler.
pub(crate) struct Call<Q> {
    pub(crate) message: Q,
    /// About fields of its JSON that nobody knows.
    pub(crate) warnings: Warnings,
    user: Option<HeaderValue>,
}

impl<Q> Call<Q> {
    const USER: &str = "x-maestro-user";
    const USER_DEFAULT: &str = "anonymous";
    /// The name is kept in the history of operations.
    const USER_LENGTH_MAX: usize = 128;

    pub(crate) fn new(message: Q, warnings: Warnings, headers: &HeaderMap) -> Self {
        Self { message, warnings, user: headers.get(Self::USER).cloned() }
    }

    /// The name that the sender of the request gives: a record, not a proof.
    pub(crate) fn user(&self) -> Result<String, ApiError> {
        let Some(value) = &self.user else {
            return Ok(Self::USER_DEFAULT.to_owned());
        };
        let wrong = || {
            let max = Self::USER_LENGTH_MAX;
            ApiError::invalid(format!(
                "header X-Maestro-User: write a name of 1 to {max} printable characters"
            ))
        };
        let name = std::str::from_utf8(value.as_bytes()).map_err(|_| wrong())?.trim();
        let length = name.chars().count();
        if length == 0 || length > Self::USER_LENGTH_MAX || name.chars().any(char::is_control) {
            return Err(wrong());
        }
        Ok(name.to_owned())
    }
}

/// The parameters of the path, decoded.
pub(crate) struct InPath<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for InPath<T>
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
