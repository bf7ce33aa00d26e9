//! Reading and writing messages as JSON, the way v10 does.
//!
//! Written: every field, in the schema's order; not those marked optional that are not set; signed 64-bit integers as text.
//! Read: both spellings of a name, numbers also as text, and null as not set. Unknown fields are skipped and reported, so
//! that a typo can be pointed out.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serializer};
use serde_json::Value;

/// More than anybody mistypes, and few enough for the header of an answer.
const UNKNOWN_FIELDS_MAX: usize = 16;

/// A message, and the paths of the first few unknown fields in its JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded<T> {
    pub message: T,
    pub unknown_fields: Vec<String>,
}

/// Why some JSON is not the message it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}{}{reason}", if .field.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// Path of the field, empty if it is the JSON itself that is broken.
    pub field: String,
    /// What was found, what was expected, and where in the text.
    pub reason: String,
}

/// What can be read from the body of a request.
pub trait FromJson: Sized {
    fn from_json(json: &[u8]) -> Result<Decoded<Self>, DecodeError>;
}

impl<T: DeserializeOwned + Default> FromJson for T {
    fn from_json(json: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        decode(json)
    }
}

/// Reads a message. Nothing at all is the message with nothing set: clients leave out a body that would be `{}`.
pub fn decode<T: DeserializeOwned + Default>(json: &[u8]) -> Result<Decoded<T>, DecodeError> {
    let mut unknown_fields = Vec::new();
    if json.trim_ascii().is_empty() {
        let message = T::default();
        return Ok(Decoded { message, unknown_fields });
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let mut ignored = |path: serde_ignored::Path<'_>| {
        if unknown_fields.len() < UNKNOWN_FIELDS_MAX {
            unknown_fields.push(written(&path));
        }
    };
    let outcome = message(serde_ignored::Deserializer::new(tracked, &mut ignored))
        .and_then(|message: Option<T>| reader.end().map(|()| message.unwrap_or_default()));
    match outcome {
        Ok(message) => Ok(Decoded { message, unknown_fields }),
        Err(error) => {
            let path = track.path();
            let is_named = error.is_data() && path.iter().len() > 0;
            Err(DecodeError {
                field: if is_named { path.to_string() } else { String::new() },
                reason: error.to_string(),
            })
        }
    }
}

/// The path of a field as a person would write it, `spec.containers[0].colour`.
fn written(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", written(parent)),
        Path::Map { parent, key } => match written(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            written(parent)
        }
    }
}

/// The number as JSON has it, without a point if it is whole: 5, not 5.0, as Go prints it.
pub(crate) fn plain_number(number: f64) -> Value {
    // Between these two, every whole number has an i64 of its own.
    const WHOLE_MAX: f64 = (1_u64 << 63) as f64;
    if number.fract() == 0.0 && number.abs() < WHOLE_MAX {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

pub(crate) fn int64_as_text<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Any JSON, of which null is one: what is there and null is told from what is not there.
pub(crate) fn value<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A message as a field of another. Only an object is one: serde by itself would also take an array of the fields.
pub(crate) fn message<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(MessageVisitor(PhantomData))
}

pub(crate) fn messages<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(MessagesVisitor(PhantomData))
}

struct MessageVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MessageVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

struct MessagesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MessagesVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(Item(message)) = items.next_element()? {
            messages.push(message);
        }
        Ok(messages)
    }
}

/// A message in a list, where null stands for nothing.
struct Item<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let message = message(deserializer)?;
        message.map(Self).ok_or_else(|| D::Error::invalid_type(Unexpected::Unit, &"an object"))
    }
}

/// A text that may be written as a number, where any number means what it says: `cpu: 0.5`.
pub(crate) fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(deserializer.deserialize_any(TextVisitor { is_quantity: true })?.unwrap_or_default())
}

/// A text that may be written as a whole number or a truth value. Other numbers have to be quoted, because 1.10 may be
/// meant exactly as it is written.
pub(crate) fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(TextVisitor { is_quantity: false })
}

pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts: Option<Vec<Text>> = Option::deserialize(deserializer)?;
    Ok(texts.unwrap_or_default().into_iter().map(|Text(text)| text).collect())
}

pub(crate) fn text_map<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts: Option<BTreeMap<String, Text>> = Option::deserialize(deserializer)?;
    Ok(texts.unwrap_or_default().into_iter().map(|(key, Text(text))| (key, text)).collect())
}

struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = optional_text(deserializer)?;
        text.map(Self).ok_or_else(|| D::Error::invalid_type(Unexpected::Unit, &"a string"))
    }
}

struct TextVisitor {
    is_quantity: bool,
}

impl Visitor<'_> for TextVisitor {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        match self.is_quantity {
            true => Ok(Some(number.to_string())),
            false => Err(E::invalid_type(Unexpected::Float(number), &"a string; write it in quotes")),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        match self.is_quantity {
            false => Ok(Some(value.to_string())),
            true => Err(E::invalid_type(Unexpected::Bool(value), &self)),
        }
    }
}

pub(crate) fn number<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Number,
{
    Ok(optional_number(deserializer)?.unwrap_or_default())
}

pub(crate) fn optional_number<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Number,
{
    deserializer.deserialize_any(NumberVisitor(PhantomData))
}

/// A whole number, which may also be written as text, or as a float without a fraction.
pub(crate) trait Number: Default + FromStr + TryFrom<i128> {}

impl<T: Default + FromStr + TryFrom<i128>> Number for T {}

struct NumberVisitor<T>(PhantomData<T>);

impl<T: Number> NumberVisitor<T> {
    fn accept<E: Error>(self, number: Option<T>, found: Unexpected<'_>) -> Result<Option<T>, E> {
        number.map(Some).ok_or_else(|| E::invalid_value(found, &self))
    }
}

impl<T: Number> Visitor<'_> for NumberVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if T::try_from(-1).is_ok() { "" } else { ", not negative" };
        write!(f, "a whole number of {} bits{sign}", 8 * size_of::<T>())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.accept(T::try_from(number.into()).ok(), Unexpected::Signed(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.accept(T::try_from(number.into()).ok(), Unexpected::Unsigned(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        // Whole and within reach of an i128, or the cast would make something up.
        let whole = (number.fract() == 0.0 && number.abs() < 1e30).then_some(number as i128);
        self.accept(whole.and_then(|whole| T::try_from(whole).ok()), Unexpected::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.accept(text.parse().ok(), Unexpected::Str(text))
    }
}
