//! Which keys an answer has. v10's clients decode strictly and fail on a key that they do not know, so ours appear
//! only when they are asked for, with `view=full`.

use crate::error::ApiError;

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
