//! What a server says is wrong, for people.

use ureq::http::StatusCode;

use super::{Exit, Failure, Json};

/// gRPC's code.
const FAILED_PRECONDITION: u64 = 9;

/// How much of an answer that is not JSON is quoted.
const EXCERPT_CHARS_MAX: usize = 120;

/// What the server says is wrong, in its own words if it found any.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let body_json = serde_json::from_slice::<Json>(body).unwrap_or(Json::Null);
    let exit = match body_json.get("code").as_u64() {
        // v10 answers 400: the request is right, and has to wait for something else to end.
        Some(FAILED_PRECONDITION) => Exit::Conflict,
        Some(_) | None => Exit::of_status(status.as_u16()),
    };
    let said = body_json.get("message").as_str();
    let message = match (said, status.is_client_error()) {
        (Some(message), true) => format!("{message}{}", no_rooms(&body_json)),
        (Some(message), false) => format!("the server failed ({status}): {message}"),
        (None, _) => format!("the server answered {status}: {}", excerpt(body)),
    };
    Failure::new(exit, message)
}

/// Why there is no room, if that is what the details say.
fn no_rooms(error: &Json) -> String {
    let is_that = |detail: &&Json| {
        detail.get("@type").as_str().is_some_and(|name| name.ends_with("/maestro.api.v1.NoRoomsAvailable"))
    };
    let Some(detail) = error.get("details").items().iter().find(is_that) else { return String::new() };
    let [ready, occupied, held, waiting, desired] =
        ["ready", "occupied", "held", "waiting", "desired"].map(|key| detail.get(key).cell());
    format!(
        ": {ready} ready, {occupied} occupied, {held} held, {desired} desired; requests waiting: {waiting}"
    )
}

pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return "(empty)".to_owned();
    }
    if let Some((end, _)) = words.char_indices().nth(EXCERPT_CHARS_MAX) {
        words.truncate(end);
        words.push('…');
    }
    format!("`{words}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals() {
        let detail = r#"{"@type":"type.googleapis.com/maestro.api.v1.NoRoomsAvailable","ready":0,"occupied":3,"held":2,"waiting":1,"desired":5}"#;
        let no_rooms = format!(r#"{{"code":8,"message":"no ready rooms","details":[{detail}]}}"#);
        for (status, body, exit, message) in [
            (
                429,
                no_rooms.as_str(),
                Exit::Conflict,
                "no ready rooms: 0 ready, 3 occupied, 2 held, 5 desired; requests waiting: 1",
            ),
            (429, r#"{"code":8,"message":"too many","details":[]}"#, Exit::Conflict, "too many"),
            (400, r#"{"code":9,"message":"wait","details":[{"@type":7}]}"#, Exit::Conflict, "wait"),
            (404, r#"{"code":5,"message":"no such"}"#, Exit::NotFound, "no such"),
        ] {
            let failure = refusal(StatusCode::from_u16(status).unwrap(), body.as_bytes());
            assert_eq!((failure.exit, failure.message.as_str()), (exit, message));
        }
    }
}
