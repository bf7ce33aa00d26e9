//! Errors as clients see them: `{"code","message","details"}`, whatever went wrong and wherever.
//!
//! [`Code::of`] and [`Code::status`] together are the one table from domain error to gRPC code to HTTP status. Over gRPC,
//! `grpc/status.rs` writes the same errors.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maestro_core::violation::{Violation, Violations};
use maestro_engine::{Error, NoRooms, with_sources};
use maestro_proto::json::DecodeError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::grpc;
use crate::limits::STREAMS_MAX;

/// gRPC's codes, as far as they are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

impl Code {
    fn of(error: &Error) -> Self {
        match error {
            Error::Invalid(_) | Error::Violations(_) => Self::InvalidArgument,
            Error::NotFound(_) => Self::NotFound,
            Error::AlreadyExists(_) => Self::AlreadyExists,
            Error::Conflict(_) => Self::Aborted,
            Error::Precondition(_) => Self::FailedPrecondition,
            Error::NoRooms(_) | Error::TooMany(_) => Self::ResourceExhausted,
            Error::Unavailable { .. } => Self::Unavailable,
        }
    }

    /// The code with this number. Those that are not used here come from no handler of ours.
    pub(crate) fn of_number(number: u8) -> Self {
        let used = [
            Self::InvalidArgument,
            Self::DeadlineExceeded,
            Self::NotFound,
            Self::AlreadyExists,
            Self::PermissionDenied,
            Self::ResourceExhausted,
            Self::FailedPrecondition,
            Self::Aborted,
            Self::Unimplemented,
            Self::Internal,
            Self::Unavailable,
        ];
        used.into_iter().find(|code| *code as u8 == number).unwrap_or(Self::Internal)
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::AlreadyExists | Self::Aborted => StatusCode::CONFLICT,
            Self::ResourceExhausted => StatusCode::PAYLOAD_TOO_LARGE,
            // v10 answers 501, as if the server were at fault.
            Self::Unimplemented => StatusCode::METHOD_NOT_ALLOWED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

pub(crate) const TOO_MANY_REQUESTS: &str = "too many requests at once; try again in a second";

/// Streams last: one that ends now is no matter of a second.
const STREAMS_RETRY_AFTER_SECONDS: u16 = 10;

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// What is wrong with which field, if it is several of them: the message has it too.
    pub(crate) violations: Vec<Violation>,
    pub(crate) retry_after_seconds: Option<u16>,
    /// A message with its type, as `google.protobuf.Any` is written in JSON.
    pub(crate) detail: Option<Value>,
    pub(crate) cause: Option<Cause>,
}

/// What lies behind a 5xx: for the log, not for the client. It travels with the response to the edge, which writes
/// the one line about the request.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) String);

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            message: message.into(),
            violations: Vec::new(),
            retry_after_seconds: None,
            detail: None,
            cause: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn too_many_requests() -> Self {
        let error = Self::new(Code::Unavailable, TOO_MANY_REQUESTS);
        Self { retry_after_seconds: Some(1), ..error }
    }

    pub(crate) fn too_many_streams() -> Self {
        let message = format!("{STREAMS_MAX} streams are open, and there are no more; try again later");
        Self {
            retry_after_seconds: Some(STREAMS_RETRY_AFTER_SECONDS),
            ..Self::new(Code::Unavailable, message)
        }
    }

    /// Without the detail, which v10's clients would not understand.
    pub(crate) fn without_detail(self) -> Self {
        Self { detail: None, ..self }
    }

    pub(crate) fn with_cause(mut self, cause: String) -> Self {
        self.cause = Some(Cause(cause));
        self
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let mut api_error = Self::new(Code::of(&error), message(&error));
        if let Error::NoRooms(_) | Error::TooMany(_) = &error {
            api_error.status = StatusCode::TOO_MANY_REQUESTS;
            api_error.retry_after_seconds = Some(1);
            api_error.detail = detail(&error);
        }
        if api_error.status.is_server_error() {
            api_error = api_error.with_cause(with_sources(&error));
        }
        if let Error::Violations(Violations(violations)) = error {
            api_error.violations = violations;
        }
        api_error
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        match error.field.as_str() {
            "" => Self::invalid(format!("body: {error}")),
            _ => Self::invalid(error.to_string()),
        }
    }
}

/// For messages that are what handlers take.
impl From<Infallible> for ApiError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

fn detail(error: &Error) -> Option<Value> {
    let Error::NoRooms(no_rooms) = error else { return None };
    let NoRooms { scheduler: _, ready, occupied, held, waiting, desired } = &**no_rooms;
    Some(json!({
        "@type": "type.googleapis.com/maestro.api.v1.NoRoomsAvailable",
        "ready": ready, "occupied": occupied, "held": held, "waiting": waiting, "desired": desired,
    }))
}

fn message(error: &Error) -> String {
    match error {
        // v10's first line; its clients cut it off.
        Error::Violations(violations) => format!("Validation Error:\n{violations}"),
        Error::Invalid(_)
        | Error::NotFound(_)
        | Error::AlreadyExists(_)
        | Error::Conflict(_)
        | Error::Precondition(_)
        | Error::NoRooms(_)
        | Error::TooMany(_)
        | Error::Unavailable { .. } => error.to_string(),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Wire<'a> {
            code: u8,
            message: &'a str,
            details: Vec<Value>,
        }
        let details = self.detail.into_iter().collect();
        let wire = Wire { code: self.code as u8, message: &self.message, details };
        let mut response = json_response(serde_json::to_vec(&wire).unwrap_or_default());
        *response.status_mut() = self.status;
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(cause);
        }
        response
    }
}

/// A response with a JSON body.
pub(crate) fn json_response(body: impl Into<Body>) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// Answers a path that leads nowhere, in v10's words; a method that no service has is gRPC's to name.
pub(crate) async fn not_found(request: Request) -> Response {
    if !grpc::is_grpc(request.headers()) {
        return ApiError::new(Code::NotFound, "Not Found").into_response();
    }
    let message = format!("method {:?} is not served here", request.uri().path());
    let error = ApiError::new(Code::Unimplemented, message);
    grpc::status::refusal(error.with_status(StatusCode::NOT_FOUND))
}

/// Answers a method that a path does not have, in v10's words; the router adds the `Allow` header.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(Code::Unimplemented, "Method Not Allowed")
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn check(error: Error, status: u16, body: &str) {
        let response = ApiError::from(error).into_response();
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(std::str::from_utf8(&bytes).unwrap(), body);
    }

    #[tokio::test]
    async fn the_table() {
        let text = || "x".to_owned();
        check(Error::Invalid(text()), 400, r#"{"code":3,"message":"x","details":[]}"#).await;
        check(Error::NotFound(text()), 404, r#"{"code":5,"message":"x","details":[]}"#).await;
        check(Error::AlreadyExists(text()), 409, r#"{"code":6,"message":"x","details":[]}"#).await;
        check(Error::Conflict(text()), 409, r#"{"code":10,"message":"x","details":[]}"#).await;
        check(Error::Precondition(text()), 400, r#"{"code":9,"message":"x","details":[]}"#).await;
        check(Error::TooMany(text()), 429, r#"{"code":8,"message":"x","details":[]}"#).await;
        let unavailable = Error::Unavailable { what: text(), source: Some("the disk is full".into()) };
        check(unavailable, 503, r#"{"code":14,"message":"x","details":[]}"#).await;
        let violations =
            Violations(vec![Violation::new("game", "is missing"), Violation::new("maxSurge", "\"x\"")]);
        check(
            violations.into(),
            400,
            r#"{"code":3,"message":"Validation Error:\ngame: is missing\nmaxSurge: \"x\"","details":[]}"#,
        )
        .await;
    }

    #[test]
    fn what_lies_behind_a_5xx_travels_to_the_log() {
        let source = Some("the disk is full".into());
        let error = Error::Unavailable { what: "no store".into(), source };
        let response = ApiError::from(error).into_response();
        let cause = response.extensions().get::<Cause>().unwrap();
        assert_eq!(cause.0, "no store: the disk is full");
    }
}
