//! Messages on their way out.

use axum::response::{IntoResponse, Response};
use maestro_core::room::HostPort;
use maestro_proto::v1::Port;
use serde::Serialize;

use crate::error::{ApiError, Code, json_response};

/// A message as JSON.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => json_response(body),
            // Only a time that no calendar has can do this.
            Err(error) => ApiError::new(Code::Internal, "the answer has no JSON form")
                .with_cause(error.to_string())
                .into_response(),
        }
    }
}

/// Which keys an answer has. v10's clients decode strictly and fail on a key that they do not know, so ours appear only
/// when they are asked for, with `view=full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    V10,
    Full,
}

impl View {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "" => Ok(Self::V10),
            "full" => Ok(Self::Full),
            other => {
                let message =
                    format!("query parameter view: {other:?} is not a view; write full, or leave it out");
                Err(ApiError::invalid(message))
            }
        }
    }

    /// The value of a key that v10 does not have.
    pub(crate) fn full<T>(self, value: impl FnOnce() -> T) -> Option<T> {
        match self {
            Self::V10 => None,
            Self::Full => Some(value()),
        }
    }
}

/// A port of a room, as players reach it.
pub(crate) fn port(port: HostPort) -> Port {
    Port {
        name: port.name,
        // In capitals, as Kubernetes writes it.
        protocol: port.protocol.as_str().to_ascii_uppercase(),
        port: i32::from(port.host_port),
    }
}
