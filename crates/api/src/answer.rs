//! Messages on their way out.

use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::{ApiError, Code, json};

/// A message as JSON.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => json(body),
            // Only a time that no calendar has can do this.
            Err(error) => ApiError::new(Code::Internal, "the answer has no JSON form")
                .with_cause(error.to_string())
                .into_response(),
        }
    }
}
