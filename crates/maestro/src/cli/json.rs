//! JSON that keeps the order of its keys, so that people see a scheduler as the server (or they) wrote it: the value type
//! of `serde_json` would sort them. Reading a missing field gives null and never panics, because the answer of a server
//! cannot be trusted to have every field.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Number;

use crate::yaml::visit_scalars;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(#[serde(serialize_with = "in_order")] Vec<(String, Json)>),
}

static NULL: Json = Json::Null;

impl Json {
    pub(super) fn object<const N: usize>(entries: [(&str, Json); N]) -> Self {
        Self::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Reads an answer. A number with more digits than a 64-bit float holds becomes the text that it is written as.
    pub(super) fn read(answer: &[u8]) -> serde_json::Result<Self> {
        match std::str::from_utf8(answer) {
            Ok(text) => serde_json::from_str(&with_long_numbers_quoted(text)),
            Err(_) => serde_json::from_slice(answer),
        }
    }

    /// The value of a key; null if there is none.
    pub(super) fn get(&self, key: &str) -> &Json {
        self.entries().iter().find(|(name, _)| name == key).map_or(&NULL, |(_, value)| value)
    }

    /// The keys and values of an object; none if it is not one.
    pub(super) fn entries(&self) -> &[(String, Json)] {
        match self {
            Self::Object(entries) => entries,
            _ => &[],
        }
    }

    /// The value at a path of keys, such as `rooms.ready`.
    pub(super) fn at(&self, path: &str) -> &Json {
        path.split('.').fold(self, Self::get)
    }

    /// The elements of an array; none if it is not one.
    pub(super) fn items(&self) -> &[Json] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// A text that is not empty.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// For a cell of a table: `-` where there is nothing.
    pub(super) fn cell(&self) -> String {
        match self {
            Self::Null => "-".to_owned(),
            Self::String(text) if text.is_empty() => "-".to_owned(),
            Self::String(text) => text.clone(),
            Self::Bool(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Array(items) => or_dash(items.iter().map(Self::cell), ","),
            Self::Object(entries) if entries.is_empty() => "-".to_owned(),
            // Only free-form data is shown this way; it has no better short form than itself.
            Self::Object(_) => serde_json::to_string(self).unwrap_or_default(),
        }
    }
}

/// The parts of a cell in one text; `-` if there are none.
pub(super) fn or_dash(parts: impl Iterator<Item = String>, separator: &str) -> String {
    let text = parts.collect::<Vec<_>>().join(separator);
    if text.is_empty() { "-".to_owned() } else { text }
}

fn with_long_numbers_quoted(json: &str) -> String {
    let mut quoted = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        quoted.push_str(&rest[..start]);
        rest = &rest[start..];
        let token;
        (token, rest) =
            rest.split_at(if rest.starts_with('"') { string_end(rest) } else { number_end(rest) });
        let is_long = !token.starts_with('"') && token.contains('.') && !is_float(token);
        quoted.push_str(&if is_long { format!("\"{token}\"") } else { token.to_owned() });
    }
    quoted + rest
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |(_, c): &(usize, char)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    };
    text.char_indices().skip(1).find(is_end).map_or(text.len(), |(at, _)| at + 1)
}

fn number_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(text.len())
}

/// Whether a float prints as the number is written; those with an exponent were printed by one.
fn is_float(number: &str) -> bool {
    let plain = number.trim_end_matches('0').trim_end_matches('.');
    number.contains(['e', 'E']) || number.parse::<f64>().is_ok_and(|float| float.to_string() == plain)
}

macro_rules! from_scalars {
    ($($type:ty: |$value:ident| $made:expr),+ $(,)?) => {
        $(impl From<$type> for Json {
            fn from($value: $type) -> Self {
                $made
            }
        })+
    };
}

from_scalars! {
    &str: |text| Self::String(text.to_owned()),
    i64: |number| Self::Number(number.into()),
    u64: |number| Self::Number(number.into()),
    u32: |number| Self::Number(number.into()),
    bool: |flag| Self::Bool(flag),
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // Every value of that type is one of this.
        Self::deserialize(value).unwrap_or(Self::Null)
    }
}

fn in_order<S: Serializer>(entries: &[(String, Json)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    visit_scalars!(Json, Json::Null, |value| Json::from(value),
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str
    );

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        let number =
            Number::from_f64(value).ok_or_else(|| E::custom(format!("{value} is not a number in JSON")))?;
        Ok(Json::Number(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        std::iter::from_fn(|| seq.next_element().transpose()).collect::<Result<_, _>>().map(Json::Array)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries: Vec<(String, Json)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Json>()? {
            if entries.iter().any(|(name, _)| *name == key) {
                return Err(A::Error::custom(format!("the key {key} appears twice")));
            }
            entries.push((key, value));
        }
        Ok(Json::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_numbers_survive() {
        let text = r#"{"z":1,"a":{"y":[null,true,-2,0.8,"1000"],"b":""}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        let yaml = serde_saphyr::to_string(&json).unwrap();
        assert_eq!(serde_saphyr::from_str::<Json>(&yaml).unwrap(), json);
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (answer, expected) in [
            (r#"{"a":0.123456789012345678}"#, r#"{"a":"0.123456789012345678"}"#),
            (r#"[-0.999999999999999999, 1]"#, r#"["-0.999999999999999999",1]"#),
            (r#"{"a":0.8,"b":-2,"c":1e-7,"d":[0.1,5.0]}"#, r#"{"a":0.8,"b":-2,"c":1e-7,"d":[0.1,5.0]}"#),
            (r#"{"a\"0.123456789012345678":"\\","b":0.5}"#, r#"{"a\"0.123456789012345678":"\\","b":0.5}"#),
            (r#"{"é":"0.123456789012345678é"}"#, r#"{"é":"0.123456789012345678é"}"#),
        ] {
            assert_eq!(serde_json::to_string(&Json::read(answer.as_bytes()).unwrap()).unwrap(), expected);
        }
        assert!(Json::read(b"{\"a").is_err());
        assert!(Json::read(b"\xff").is_err());
    }

    #[test]
    fn cells() {
        for (text, cell) in [
            ("null", "-"),
            ("\"\"", "-"),
            ("[]", "-"),
            ("{}", "-"),
            ("[1,2]", "1,2"),
            ("false", "false"),
            (r#"{"b":1,"a":2}"#, r#"{"b":1,"a":2}"#),
        ] {
            assert_eq!(serde_json::from_str::<Json>(text).unwrap().cell(), cell);
        }
    }

    #[test]
    fn what_is_missing_is_null() {
        let json: Json = serde_json::from_str(r#"{"a":[1]}"#).unwrap();
        assert!(json.get("b").get("c").is_null());
        assert!(json.get("a").get("c").items().is_empty());
    }

    #[test]
    fn a_key_twice_is_refused() {
        let error = serde_json::from_str::<Json>(r#"{"a":1,"a":2}"#).unwrap_err().to_string();
        assert!(error.starts_with("the key a appears twice"), "{error}");
    }
}
