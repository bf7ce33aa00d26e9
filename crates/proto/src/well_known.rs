//! The well-known types' own JSON: times and lengths of time as text, `Struct` as the object it stands for, wrappers
//! as the value in them.

use std::time::Duration as StdDuration;

use maestro_core::time::Timestamp as Instant;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::json::plain_number;
use crate::protobuf::value::Kind;
use crate::protobuf::{Duration, ListValue, StringValue, Struct, Timestamp, UInt64Value, Value};

impl From<Instant> for Timestamp {
    fn from(instant: Instant) -> Self {
        // Protobuf counts nanoseconds forward, also before 1970.
        let nanos = instant.as_nanosecond();
        Self {
            seconds: nanos.div_euclid(NANOS_PER_SECOND) as i64,
            nanos: nanos.rem_euclid(NANOS_PER_SECOND) as i32,
        }
    }
}

const NANOS_PER_SECOND: i128 = 1_000_000_000;

impl TryFrom<&Timestamp> for Instant {
    type Error = String;

    fn try_from(timestamp: &Timestamp) -> Result<Self, String> {
        Self::new(timestamp.seconds, timestamp.nanos).map_err(|error| error.to_string())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let instant = Instant::try_from(self).map_err(S::Error::custom)?;
        match fraction_digits(self.nanos.unsigned_abs()) {
            0 => serializer.collect_str(&format_args!("{instant:.0}")),
            digits => serializer.collect_str(&format_args!("{instant:.digits$}")),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<Instant>() {
            Ok(instant) => Ok(instant.into()),
            Err(_) => Err(D::Error::custom(format_args!(
                "{text:?} is not a time; write it as 2006-01-02T15:04:05Z"
            ))),
        }
    }
}

/// Protobuf prints fractions of a second in thousands: 0, 3, 6 or 9 digits.
fn fraction_digits(nanos: u32) -> usize {
    match nanos {
        0 => 0,
        nanos if nanos.is_multiple_of(1_000_000) => 3,
        nanos if nanos.is_multiple_of(1_000) => 6,
        _ => 9,
    }
}

impl From<StdDuration> for Duration {
    fn from(duration: StdDuration) -> Self {
        Self {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanos: duration.subsec_nanos().cast_signed(),
        }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = self.nanos.unsigned_abs();
        let negative = self.seconds < 0 || self.nanos < 0;
        if nanos >= 1_000_000_000 || (negative && (self.seconds > 0 || self.nanos > 0)) {
            return Err(S::Error::custom("a length of time whose two parts do not fit together"));
        }
        let sign = if negative { "-" } else { "" };
        let seconds = self.seconds.unsigned_abs();
        match fraction_digits(nanos) {
            0 => serializer.collect_str(&format_args!("{sign}{seconds}s")),
            digits => {
                let fraction = &format!("{nanos:09}")[..digits];
                serializer.collect_str(&format_args!("{sign}{seconds}.{fraction}s"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{text:?} is not a length of time; write it in seconds, as 30s or 0.5s"
            ))
        })
    }
}

pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits_only = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits_only(whole) || !digits_only(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds: i64 = whole.parse().ok()?;
    let nanos: i32 = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration { seconds: sign * seconds, nanos: sign as i32 * nanos })
}

impl From<Map<String, Json>> for Struct {
    fn from(object: Map<String, Json>) -> Self {
        let fields = object.into_iter().map(|(key, value)| (key, value.into())).collect();
        Self { fields }
    }
}

impl From<Struct> for Map<String, Json> {
    fn from(object: Struct) -> Self {
        object.fields.into_iter().map(|(key, value)| (key, value.into())).collect()
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        let kind = match json {
            Json::Null => Kind::NullValue(0),
            Json::Bool(value) => Kind::BoolValue(value),
            // All of serde_json's numbers have one, unless it is told to keep their digits.
            Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
            Json::String(text) => Kind::StringValue(text),
            Json::Array(items) => {
                Kind::ListValue(ListValue { values: items.into_iter().map(Self::from).collect() })
            }
            Json::Object(object) => Kind::StructValue(object.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value.kind {
            None | Some(Kind::NullValue(_)) => Self::Null,
            Some(Kind::BoolValue(value)) => Self::Bool(value),
            Some(Kind::NumberValue(number)) => plain_number(number),
            Some(Kind::StringValue(text)) => Self::String(text),
            Some(Kind::ListValue(list)) => list.values.into_iter().map(Self::from).collect(),
            Some(Kind::StructValue(object)) => Self::Object(object.into()),
        }
    }
}

impl Serialize for Struct {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.fields)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Json::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Struct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self::from)
    }
}

impl From<String> for StringValue {
    fn from(value: String) -> Self {
        Self { value }
    }
}

impl From<u64> for UInt64Value {
    fn from(value: u64) -> Self {
        Self { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(json: &str, canonical: &str)
    where
        T: Serialize + for<'de> Deserialize<'de>,
    {
        let value: T = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), canonical);
    }

    #[test]
    fn durations() {
        for (json, canonical) in [
            (r#""5s""#, r#""5s""#),
            (r#""0s""#, r#""0s""#),
            (r#""0.000000015s""#, r#""0.000000015s""#),
            (r#""1.5s""#, r#""1.500s""#),
            (r#""1.000001s""#, r#""1.000001s""#),
            (r#""-0.5s""#, r#""-0.500s""#),
            (r#""-3s""#, r#""-3s""#),
            (r#""9223372036854775807s""#, r#""9223372036854775807s""#),
        ] {
            check::<Duration>(json, canonical);
        }
        for text in
            ["", "s", "5", "5m", "--5s", "+5s", "5.s", ".5s", "1.0000000001s", "5 s", "9223372036854775808s"]
        {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_that_protobuf_can_hold_and_nobody_can_mean() {
        for (seconds, nanos) in [(5, -1), (-5, 1), (0, 1_000_000_000), (0, i32::MIN)] {
            assert!(serde_json::to_string(&Duration { seconds, nanos }).is_err());
        }
    }

    #[test]
    fn times() {
        for (json, canonical) in [
            (r#""2026-11-15T09:06:47Z""#, r#""2026-11-15T09:06:47Z""#),
            (r#""2026-11-15T09:06:47.5Z""#, r#""2026-11-15T09:06:47.500Z""#),
            (r#""2026-11-15T09:06:47.339752Z""#, r#""2026-11-15T09:06:47.339752Z""#),
            (r#""2026-11-15T09:06:53.177742090Z""#, r#""2026-11-15T09:06:53.177742090Z""#),
            (r#""2026-11-15T10:06:47+01:00""#, r#""2026-11-15T09:06:47Z""#),
            (r#""0001-01-01T00:00:00Z""#, r#""0001-01-01T00:00:00Z""#),
            (r#""1969-12-31T23:59:59.250Z""#, r#""1969-12-31T23:59:59.250Z""#),
        ] {
            check::<Timestamp>(json, canonical);
        }
        assert!(serde_json::from_str::<Timestamp>(r#""yesterday""#).is_err());
        assert!(serde_json::to_string(&Timestamp { seconds: i64::MAX, nanos: 0 }).is_err());
    }

    #[test]
    fn wrappers() {
        check::<Option<StringValue>>(r#""add_rooms""#, r#""add_rooms""#);
        check::<Option<StringValue>>("null", "null");
        check::<Option<UInt64Value>>("1841", "1841");
        check::<UInt64Value>(r#""1841""#, "1841");
    }

    #[test]
    fn objects() {
        let json = r#"{"a":5,"b":[1.5,null,true,"x",{}],"c":{"d":-9007199254740992},"e":1e+100}"#;
        check::<Struct>(json, json);
        check::<Struct>(r#"{"a":5.0}"#, r#"{"a":5}"#);
        let object: Map<String, Json> = serde_json::from_str(json).unwrap();
        assert_eq!(Map::from(Struct::from(object.clone())), object);
    }
}
