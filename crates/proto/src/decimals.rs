//! The decimals of a recipe. A float of the message cannot hold all their digits, and neither can a reader of JSON or
//! YAML that makes a 64-bit float of every number, so here they are the text that was written.

use std::borrow::Cow;

use serde::de::{Deserializer, Error, Unexpected};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_saphyr::Spanned;

use crate::v1::RoomOccupancy;

impl RoomOccupancy {
    pub(crate) fn of_decimals(ready_target: String, down_threshold: Option<String>) -> Self {
        let (ready_target, exact_ready_target) = float_of(ready_target);
        let (down_threshold, exact_down_threshold) = down_threshold.map(float_of).unzip();
        let exact_down_threshold = exact_down_threshold.flatten();
        Self { ready_target, down_threshold, exact_ready_target, exact_down_threshold }
    }

    pub(crate) fn ready_target_text(&self) -> String {
        self.exact_ready_target.clone().unwrap_or_else(|| self.ready_target.to_string())
    }

    pub(crate) fn down_threshold_text(&self) -> Option<String> {
        self.exact_down_threshold.clone().or_else(|| self.down_threshold.map(|float| float.to_string()))
    }
}

/// The nearest float, and the decimal itself if the float does not stand for it.
fn float_of(decimal: String) -> (f32, Option<String>) {
    // `Display` of a float is the shortest text that reads back as it, and never has an exponent.
    match decimal.parse::<f32>() {
        Ok(float) if float.to_string() == decimal => (float, None),
        Ok(float) => (float, Some(decimal)),
        Err(_) => (0.0, Some(decimal)),
    }
}

/// [`RoomOccupancy`] in JSON.
#[derive(Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RoomOccupancyJson {
    #[serde(alias = "ready_target", deserialize_with = "decimal_or_zero")]
    ready_target: Decimal,
    #[serde(alias = "down_threshold", skip_serializing_if = "Option::is_none", deserialize_with = "decimal")]
    down_threshold: Option<Decimal>,
}

impl Default for RoomOccupancyJson {
    fn default() -> Self {
        RoomOccupancy::default().into()
    }
}

impl From<RoomOccupancyJson> for RoomOccupancy {
    fn from(json: RoomOccupancyJson) -> Self {
        Self::of_decimals(json.ready_target.0, json.down_threshold.map(|Decimal(text)| text))
    }
}

impl From<RoomOccupancy> for RoomOccupancyJson {
    fn from(occupancy: RoomOccupancy) -> Self {
        Self {
            ready_target: Decimal(occupancy.ready_target_text()),
            down_threshold: occupancy.down_threshold_text().map(Decimal),
        }
    }
}

/// A JSON number with all its digits.
struct Decimal(String);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(text) = self;
        match RawValue::from_string(text.clone()) {
            Ok(number) => number.serialize(serializer),
            // What came as a float that is no number; parsed recipes have none.
            Err(_) => serializer.serialize_str(text),
        }
    }
}

fn decimal_or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    Ok(decimal(deserializer)?.unwrap_or_else(|| Decimal("0".to_owned())))
}

/// Numbers may be written as text; null is not set.
fn decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    let value = Box::<RawValue>::deserialize(deserializer)?;
    let raw = value.get();
    if raw == "null" {
        return Ok(None);
    }
    let refused = |found: Unexpected<'_>| Err(D::Error::invalid_value(found, &"a number"));
    let text = match serde_json::from_str(raw) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Number(_)) => raw.to_owned(),
        Ok(serde_json::Value::Bool(value)) => return refused(Unexpected::Bool(value)),
        Ok(serde_json::Value::Array(_)) => return refused(Unexpected::Seq),
        Ok(_) | Err(_) => return refused(Unexpected::Map),
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(Decimal(text))),
        Ok(_) | Err(_) => refused(Unexpected::Str(&text)),
    }
}

/// The text of a recipe's file, YAML or JSON, with quotes around the decimals whose digits a reader would lose.
pub(crate) fn with_exact_decimals(text: &str) -> Cow<'_, str> {
    let file: Block = serde_saphyr::from_str(text).unwrap_or_default();
    let occupancy = file.scheduler.as_deref().unwrap_or(&file).occupancy();
    let written = occupancy.map(|occupancy| [&occupancy.ready_target, &occupancy.down_threshold]);
    let mut ranges: Vec<_> =
        written.into_iter().flatten().flatten().filter_map(|decimal| long_decimal(decimal, text)).collect();
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    ranges.sort_by_key(|range| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for range in ranges {
        text.insert(range.end, '"');
        text.insert(range.start, '"');
    }
    Cow::Owned(text)
}

/// The range of a number that a 64-bit float would not give back as it is written.
fn long_decimal(written: &Spanned<String>, text: &str) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(written.defined.span().byte_offset()?).ok()?;
    let range = start..start + written.value.len();
    let number: f64 = written.value.parse().ok()?;
    // Not if it is quoted, or comes from elsewhere.
    let stands_there = text.get(range.clone()) == Some(&written.value);
    (stands_there && number.to_string() != written.value).then_some(range)
}

/// The part of a file that is around the decimals: a block on the way to them, or the one that they are in.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Block {
    scheduler: Option<Box<Block>>,
    autoscaling: Option<Box<Block>>,
    policy: Option<Box<Block>>,
    parameters: Option<Box<Block>>,
    #[serde(rename = "roomOccupancy", alias = "room_occupancy")]
    room_occupancy: Option<Box<Block>>,
    #[serde(rename = "readyTarget", alias = "ready_target")]
    ready_target: Option<Spanned<String>>,
    #[serde(rename = "downThreshold", alias = "down_threshold")]
    down_threshold: Option<Spanned<String>>,
}

impl Block {
    fn occupancy(&self) -> Option<&Self> {
        self.autoscaling.as_ref()?.policy.as_ref()?.parameters.as_ref()?.room_occupancy.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::json::decode;

    fn check(json: &str, shown: &str) {
        let decoded = decode::<RoomOccupancy>(json.as_bytes()).unwrap();
        assert_eq!(decoded.unknown_fields, Vec::<String>::new());
        assert_eq!(serde_json::to_string(&decoded.message).unwrap(), shown);
        let wire = decoded.message.encode_to_vec();
        assert_eq!(RoomOccupancy::decode(wire.as_slice()).unwrap(), decoded.message);
    }

    #[test]
    fn numbers_keep_their_digits() {
        for decimal in
            ["0.5", "0.1", "0.8", "0.123456789012345678", "0.999999999999999999", "0.000000000000000001", "1"]
        {
            let shown = format!(r#"{{"readyTarget":{decimal},"downThreshold":{decimal}}}"#);
            check(&shown, &shown);
            check(&format!(r#"{{"ready_target":"{decimal}","down_threshold":"{decimal}"}}"#), &shown);
        }
        check("{}", r#"{"readyTarget":0}"#);
        check(r#"{"readyTarget":null,"downThreshold":null}"#, r#"{"readyTarget":0}"#);
    }

    /// Clients of v10 that speak protobuf see the float they know.
    #[test]
    fn the_exact_decimal_is_sent_where_a_float_is_not_enough() {
        for (decimal, float, exact) in [
            ("0.5", 0.5, None),
            ("0.8", 0.8, None),
            ("0.123456789012345678", 0.123_456_79, Some("0.123456789012345678")),
        ] {
            let occupancy = RoomOccupancy::of_decimals(decimal.into(), None);
            assert_eq!((occupancy.ready_target, occupancy.exact_ready_target.as_deref()), (float, exact));
        }
        let occupancy = RoomOccupancy { ready_target: 0.8, ..RoomOccupancy::default() };
        assert_eq!(occupancy.ready_target_text(), "0.8");
    }

    #[test]
    fn what_is_no_number() {
        for (json, found) in [
            (r#"{"readyTarget":"half"}"#, r#"string "half""#),
            (r#"{"readyTarget":"NaN"}"#, r#"string "NaN""#),
            (r#"{"readyTarget":true}"#, "boolean `true`"),
            (r#"{"readyTarget":[0.5]}"#, "sequence"),
            (r#"{"readyTarget":{}}"#, "map"),
        ] {
            let error = decode::<RoomOccupancy>(json.as_bytes()).unwrap_err();
            let expected = format!("readyTarget: invalid value: {found}, expected a number");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn decimals_in_files() {
        let long = "0.123456789012345678";
        let yaml = |decimal: &str| {
            format!(
                "# é\nname: é\nautoscaling:\n  policy:\n    parameters:\n      roomOccupancy: {{readyTarget: {decimal}, downThreshold: 0.5}}\n"
            )
        };
        let quoted = format!("{long:?}");
        assert_eq!(with_exact_decimals(&yaml(long)), yaml(&quoted));
        for as_it_is in ["0.5", "0.1234567890123456", &quoted, "'0.123456789012345678'", "many", "[]", ""] {
            assert_eq!(with_exact_decimals(&yaml(as_it_is)), yaml(as_it_is));
        }
        let json = |decimal: &str| {
            format!(
                r#"{{"scheduler":{{"autoscaling":{{"policy":{{"parameters":{{"room_occupancy":{{"down_threshold":{decimal},"ready_target":{decimal}}}}}}}}}}}}}"#
            )
        };
        assert_eq!(with_exact_decimals(&json(long)), json(&quoted));
        assert_eq!(with_exact_decimals("scheduler: arena.yaml\n"), "scheduler: arena.yaml\n");
        assert_eq!(with_exact_decimals("}"), "}");
    }
}
