//! Errors as gRPC has them: a code, a message, and details of its own kinds.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::error::{self, ApiError};

/// Errors travel in headers, of which clients take 8 KiB or so: the message is in there twice, and not as short as it is
/// here. HTTP has all of it.
const MESSAGE_MAX_BYTES: usize = 1024;
const VIOLATIONS_MAX: usize = 8;
const VIOLATION_MAX_BYTES: usize = 160;

/// What HTTP would have answered: for metrics and the log.
#[derive(Debug, Clone, Copy)]
struct HttpStatus(StatusCode);

/// An answer that is an error.
pub(crate) fn refusal(error: ApiError) -> Response {
    let http_status = HttpStatus(error.status);
    let mut response = status(&error).into_http::<Body>();
    response.extensions_mut().insert(http_status);
    if let Some(cause) = error.cause {
        response.extensions_mut().insert(cause);
    }
    response
}

/// The end of a stream that is an error.
pub(crate) fn trailers(error: &ApiError) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // What cannot be written leaves out the status, and clients take that for an error of the server.
    if let Err(status) = status(error).add_header(&mut trailers) {
        tracing::debug!(%status, "a status has no headers");
    }
    trailers
}

/// The status of an answer, in HTTP's words.
pub(crate) fn http_status(response: &Response) -> StatusCode {
    let extensions = response.extensions();
    if let Some(HttpStatus(status)) = extensions.get() {
        return *status;
    }
    match extensions.get::<Status>() {
        Some(status) => error::Code::of_number(status.code() as u8).status(),
        None => response.status(),
    }
}

fn status(error: &ApiError) -> Status {
    let code = Code::from_i32(error.code as i32);
    let message = cut(&error.message, MESSAGE_MAX_BYTES);
    let mut details = ErrorDetails::new();
    for violation in error.violations.iter().take(VIOLATIONS_MAX) {
        let [field, reason] =
            [&violation.field, &violation.reason].map(|text| cut(text, VIOLATION_MAX_BYTES));
        details.add_bad_request_violation(field, reason);
    }
    if let Some(seconds) = error.retry_after_seconds {
        details.set_retry_info(Some(std::time::Duration::from_secs(seconds.into())));
    }
    if error.violations.is_empty() && error.retry_after_seconds.is_none() {
        return Status::new(code, message);
    }
    Status::with_error_details(code, message, details)
}

/// The beginning of a text that is too long.
fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_bytes);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use maestro_core::violation::{Violation, Violations};
    use maestro_engine::Error;

    use super::*;
    use crate::error::Code as OurCode;

    #[test]
    fn a_status_has_the_code_the_message_and_each_violation() {
        let violations =
            Violations(vec![Violation::new("game", "is missing"), Violation::new("maxSurge", "\"x\"")]);
        let response = refusal(Error::from(violations).into());
        assert_eq!((response.status(), http_status(&response)), (StatusCode::OK, StatusCode::BAD_REQUEST));
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "Validation Error:\ngame: is missing\nmaxSurge: \"x\"");
        let details = status.get_details_bad_request().unwrap().field_violations;
        let fields: Vec<_> =
            details.iter().map(|one| (one.field.as_str(), one.description.as_str())).collect();
        assert_eq!(fields, [("game", "is missing"), ("maxSurge", "\"x\"")]);
    }

    #[test]
    fn codes_are_those_of_http() {
        for (code, number, http) in [
            (OurCode::NotFound, 5, 404),
            (OurCode::Aborted, 10, 409),
            (OurCode::Unavailable, 14, 503),
            (OurCode::Unimplemented, 12, 405),
        ] {
            let response = refusal(ApiError::new(code, "x"));
            assert_eq!(response.headers()["grpc-status"], number.to_string().as_str());
            assert_eq!(http_status(&response).as_u16(), http);
        }
        // Those of services that are not ours.
        let response = Status::not_found("x").into_http::<Body>();
        assert_eq!(http_status(&response), StatusCode::NOT_FOUND);
        let response = Status::data_loss("x").into_http::<Body>();
        assert_eq!(http_status(&response), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn however_long_it_is_it_fits_into_headers() {
        let many = (0..1000).map(|number| Violation::new(format!("field{number}"), "ü".repeat(1000)));
        let response = refusal(Error::from(Violations(many.collect())).into());
        let bytes: usize = response.headers().values().map(|value| value.len()).sum();
        assert!(bytes < 8 * 1024, "{bytes}");
        assert!(Status::from_header_map(response.headers()).unwrap().message().ends_with("ü…"));
    }

    #[test]
    fn who_should_try_again_is_told_when() {
        let response = refusal(ApiError::too_many_requests());
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(status.code(), Code::Unavailable);
        let after = status.get_details_retry_info().unwrap().retry_delay;
        assert_eq!(after, Some(std::time::Duration::from_secs(1)));
    }
}
