//! Reading a ping. It is the one body that arrives thousands of times a second, so nothing of it is copied: fields
//! are found as raw JSON and read in place.

use std::borrow::Cow;

use maestro_core::allocation::AllocationId;
use maestro_core::room::PingStatus;
use maestro_engine::ports::room_table::Ping;
use maestro_proto::v1::UpdateRoomWithPingRequest;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ApiError;

/// What a room says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) status: PingStatus,
    pub(super) matches: u32,
    /// A JSON object.
    pub(super) metadata: Option<&'a str>,
    /// In seconds, by the room's clock.
    pub(super) sent_at: Option<i64>,
    /// The allocations whose matches have begun.
    pub(super) begun: Vec<AllocationId>,
}

/// Raw, so that what is wrong can be said with the field's name.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, rename = "runningMatches", alias = "running_matches")]
    running_matches: Option<&'a RawValue>,
    #[serde(borrow)]
    begun: Option<&'a RawValue>,
}

impl<'a> Said<'a> {
    pub(super) fn decode(body: &'a [u8]) -> Result<Self, ApiError> {
        let fields = Fields::read(body)?;
        Ok(Self {
            // 0 is what a client sends over gRPC that sets no time.
            sent_at: integer("timestamp", fields.timestamp)?.filter(|at| *at > 0),
            begun: begun(fields.begun)?,
            status: status(fields.status)?,
            matches: matches(fields.running_matches)?,
            metadata: metadata(fields.metadata)?,
        })
    }

    /// The same from the fields of a message, where nothing and what is not there are one.
    pub(super) fn of(
        message: &UpdateRoomWithPingRequest,
        metadata: Option<&'a str>,
    ) -> Result<Self, ApiError> {
        let UpdateRoomWithPingRequest { status, running_matches, timestamp, begun, .. } = message;
        let missing_or_wrong =
            || if status.is_empty() { no_status() } else { not_a_status(&format!("{status:?}")) };
        Ok(Self {
            status: PingStatus::parse_said(status).ok_or_else(missing_or_wrong)?,
            matches: number_of_matches(*running_matches)?,
            metadata,
            sent_at: Some(*timestamp).filter(|at| *at > 0),
            begun: begun.iter().filter_map(|id| AllocationId::parse(id)).collect(),
        })
    }

    pub(super) fn ping(&'a self, scheduler: &'a str, room: &'a str) -> Ping<'a> {
        let Self { status, matches, metadata, sent_at, begun } = self;
        Ping {
            matches: *matches,
            metadata: *metadata,
            sent_at: *sent_at,
            begun,
            ..Ping::of(scheduler, room, *status)
        }
    }
}

impl<'a> Fields<'a> {
    fn read(body: &'a [u8]) -> Result<Self, ApiError> {
        // An empty body is an empty message. Only objects are messages; serde would take a list for one as well.
        let text = match body.trim_ascii() {
            b"" => b"{}",
            text if text.starts_with(b"{") => text,
            _ => return Err(ApiError::invalid("body: is not a JSON object")),
        };
        serde_json::from_slice(text).map_err(|error| ApiError::invalid(format!("body: {error}")))
    }
}

fn status(field: Option<&RawValue>) -> Result<PingStatus, ApiError> {
    let field = field.ok_or_else(no_status)?;
    let parsed = text(field.get()).and_then(|text| PingStatus::parse_said(&text));
    parsed.ok_or_else(|| not_a_status(&shown(field)))
}

fn no_status() -> ApiError {
    ApiError::invalid(format!("status: is missing; write one of {}", statuses()))
}

fn not_a_status(given: &str) -> ApiError {
    ApiError::invalid(format!("status: {given} is not a status; write one of {}", statuses()))
}

fn statuses() -> String {
    PingStatus::SAID.map(PingStatus::as_str).join(", ")
}

/// Borrowed unless something in it is escaped; `None` if it is no text.
fn text(json: &str) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<&str>(json) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) => serde_json::from_str::<String>(json).ok().map(Cow::Owned),
    }
}

fn matches(field: Option<&RawValue>) -> Result<u32, ApiError> {
    integer("runningMatches", field)?.map_or(Ok(0), number_of_matches)
}

pub(super) fn number_of_matches(number: i64) -> Result<u32, ApiError> {
    u32::try_from(number).map_err(|_| {
        let max = u32::MAX;
        ApiError::invalid(format!(
            "runningMatches: {number} is not a number of matches; write one from 0 to {max}"
        ))
    })
}

/// A whole number, or a text that is one: 64-bit numbers travel as text in protobuf's JSON.
fn integer(name: &str, field: Option<&RawValue>) -> Result<Option<i64>, ApiError> {
    let Some(field) = field else {
        return Ok(None);
    };
    let json = field.get();
    let digits = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(json);
    let number = digits.parse().ok().or_else(|| whole(digits));
    let wrong = || ApiError::invalid(format!("{name}: {} is not a whole number", shown(field)));
    number.map(Some).ok_or_else(wrong)
}

/// `3.0` and `1e3` are whole numbers too.
fn whole(digits: &str) -> Option<i64> {
    /// Beyond it not every whole number exists in binary floating point.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let number: f64 = digits.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
}

/// Ids of allocations. One that is not ours names nothing.
fn begun(field: Option<&RawValue>) -> Result<Vec<AllocationId>, ApiError> {
    let Some(field) = field else {
        // Nothing is allocated for the pings of most rooms.
        return Ok(Vec::new());
    };
    let wrong = || ApiError::invalid(format!("begun: {} is not a list of ids of allocations", shown(field)));
    let ids: Vec<Cow<'_, str>> = serde_json::from_str(field.get()).map_err(|_| wrong())?;
    Ok(ids.iter().filter_map(|id| AllocationId::parse(id)).collect())
}

fn metadata(field: Option<&RawValue>) -> Result<Option<&str>, ApiError> {
    match field {
        None => Ok(None),
        Some(field) if field.get().starts_with('{') => Ok(Some(field.get())),
        Some(field) => Err(ApiError::invalid(format!("metadata: {} is not a JSON object", shown(field)))),
    }
}

/// A value as it was given, as far as it fits into a message.
fn shown(field: &RawValue) -> String {
    const LENGTH_MAX: usize = 64;
    let json = field.get();
    if json.chars().count() <= LENGTH_MAX {
        return json.to_owned();
    }
    json.chars().take(LENGTH_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::response::IntoResponse;

    use super::*;

    fn accepts(body: &str, status: PingStatus, matches: u32, metadata: Option<&str>) {
        let said = decoded(body);
        assert_eq!((said.status, said.matches, said.metadata), (status, matches, metadata), "{body}");
    }

    fn decoded(body: &str) -> Said<'_> {
        Said::decode(body.as_bytes()).map_err(|error| panic!("{body}: {error:?}")).unwrap()
    }

    #[test]
    fn times_and_matches_that_have_begun() {
        assert_eq!(decoded(r#"{"status":"ready","timestamp":"1794733616"}"#).sent_at, Some(1_794_733_616));
        assert_eq!(decoded(r#"{"status":"ready","timestamp":0}"#).sent_at, None);
        assert_eq!(decoded(r#"{"status":"ready"}"#).begun, []);
        let begun = r#"{"status":"occupied","begun":["01a1e37a-3bc9-7123-b0c1-18cc2bff41a0","x"]}"#;
        assert_eq!(decoded(begun).begun.len(), 1);
    }

    async fn refuses(body: &str, message: &str) {
        let refused = Said::decode(body.as_bytes()).expect_err(body).into_response();
        assert_eq!(refused.status(), 400, "{body}");
        let bytes = to_bytes(refused.into_body(), usize::MAX).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(answer["message"], message, "{body}");
    }

    #[test]
    fn pings_as_clients_send_them() {
        use PingStatus::{Occupied, Ready, Terminating};
        accepts(r#"{"status":"ready"}"#, Ready, 0, None);
        accepts(
            r#" {"timestamp":1794733614,"status":"ready","metadata":{"region":"us","players":3}} "#,
            Ready,
            0,
            Some(r#"{"region":"us","players":3}"#),
        );
        accepts(r#"{"timestamp":"1794733616","status":"occupied","runningMatches":"3"}"#, Occupied, 3, None);
        accepts(r#"{"status":"occupied","running_matches":2.0,"metadata":null}"#, Occupied, 2, None);
        accepts(r#"{"status":"termin\u0061ting","new":[1,{"a":2}],"timestamp":null}"#, Terminating, 0, None);
    }

    #[tokio::test]
    async fn what_is_wrong_is_named_with_its_value() {
        let words = "ready, occupied, terminating, terminated";
        for (body, message) in [
            ("", &*format!("status: is missing; write one of {words}")),
            (r#"{"timestamp":1}"#, &*format!("status: is missing; write one of {words}")),
            (
                r#"{"status":"dancing"}"#,
                &*format!(r#"status: "dancing" is not a status; write one of {words}"#),
            ),
            (r#"{"status":7}"#, &*format!("status: 7 is not a status; write one of {words}")),
            (r#"{"status":"ready","begun":"all"}"#, r#"begun: "all" is not a list of ids of allocations"#),
            ("{", "body: EOF while parsing an object at line 1 column 1"),
            ("[]", "body: is not a JSON object"),
            (r#"{"status":"ready","status":"ready"}"#, "body: duplicate field `status` at line 1 column 26"),
            (
                r#"{"status":"ready","runningMatches":-1}"#,
                "runningMatches: -1 is not a number of matches; write one from 0 to 4294967295",
            ),
            (
                r#"{"status":"ready","runningMatches":"many"}"#,
                r#"runningMatches: "many" is not a whole number"#,
            ),
            (r#"{"status":"ready","timestamp":1.5}"#, "timestamp: 1.5 is not a whole number"),
            (r#"{"status":"ready","timestamp":true}"#, "timestamp: true is not a whole number"),
            (r#"{"status":"ready","metadata":[1]}"#, "metadata: [1] is not a JSON object"),
            (r#"{"status":"ready","metadata":"x"}"#, r#"metadata: "x" is not a JSON object"#),
        ] {
            refuses(body, message).await;
        }
    }

    #[tokio::test]
    async fn a_long_value_is_cut_in_the_message() {
        let body = format!(r#"{{"status":"{}"}}"#, "ä".repeat(100));
        let given = format!("\"{}…", "ä".repeat(63));
        let message =
            format!("status: {given} is not a status; write one of ready, occupied, terminating, terminated");
        refuses(&body, &message).await;
    }
}
