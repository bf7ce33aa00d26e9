//! The fields of one case, as their own text: a decimal must not pass through a binary float.

use std::borrow::Cow;
use std::fmt;

use maestro_core::violation::Violation;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Values longer than this are not repeated whole in an error.
const SHOWN_MAX: usize = 40;

/// In the order in which they came.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Also gives the fields that were read before something turned out to be wrong: the id is among them, mostly.
    pub(super) fn read(line: &'a str, number: u64) -> (Self, Result<(), String>) {
        let mut fields = Self::default();
        let mut reader = serde_json::Deserializer::from_str(line);
        let mut reading = None;
        let collect = Collect { fields: &mut fields, reading: &mut reading };
        let outcome = collect.deserialize(&mut reader).and_then(|()| reader.end());
        let outcome = outcome.map_err(|error| match reading {
            Some(field) if error.is_syntax() => {
                format!("{field}: {} is not valid JSON", value_of(&field, line))
            }
            Some(field) if error.is_data() => format!("{field}: is there twice"),
            // The position in the line is enough: each line is a document of its own.
            Some(_) | None => format!("line {number}: {error}").replace("line 1 column", "column"),
        });
        (fields, outcome)
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        Some(value)
    }

    /// A number's own text, or the text of a string; `None` if it is null or not there.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        match self.raw(name)?.get() {
            "null" => None,
            raw if raw.starts_with('"') => serde_json::from_str::<String>(raw).ok().map(Cow::Owned),
            raw => Some(Cow::Borrowed(raw)),
        }
    }

    /// The fields of an object that is a field; none if it is null or not there.
    pub fn object(&self, name: &str) -> Result<Self, Violation> {
        match self.raw(name).map(RawValue::get) {
            None | Some("null") => Ok(Self::default()),
            Some(raw) => Self::of(raw).map_err(|reason| Violation::new(name, reason)),
        }
    }

    /// The objects of a list that is a field, each with its path; none if it is null or not there.
    pub fn objects(&self, name: &str) -> Result<Vec<(String, Self)>, Vec<Violation>> {
        let raw = self.raw(name).map_or("null", RawValue::get);
        let list: Option<Vec<&'a RawValue>> = serde_json::from_str(raw)
            .map_err(|_| vec![Violation::new(name, format!("{} is not a list", shortened(raw.into())))])?;
        let mut objects = Vec::new();
        let mut violations = Vec::new();
        for (index, raw) in list.unwrap_or_default().into_iter().enumerate() {
            let path = format!("{name}[{index}]");
            match Self::of(raw.get()) {
                Ok(object) => objects.push((path, object)),
                Err(reason) => violations.push(Violation::new(path, reason)),
            }
        }
        if violations.is_empty() { Ok(objects) } else { Err(violations) }
    }

    fn of(raw: &'a str) -> Result<Self, String> {
        if !raw.starts_with('{') {
            return Err(format!("{} is not an object", shortened(raw.into())));
        }
        let (fields, outcome) = Self::read(raw, 1);
        outcome.map(|()| fields)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// `None` if it is null or not there.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Violation> {
        match self.text(name).as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => {
                Err(Violation::new(name, format!("{} is not true or false", shortened(other.into()))))
            }
        }
    }

    pub fn required(&self, name: &str, needed: &str) -> Result<Cow<'a, str>, Violation> {
        self.text(name)
            .map(shortened)
            .ok_or_else(|| Violation::new(name, format!("is missing; {needed} is needed")))
    }

    /// A whole number, as a number or as text.
    pub fn whole<T>(&self, name: &str, default: Option<T>, low: T, high: T) -> Result<T, Violation>
    where
        T: std::str::FromStr + Copy + PartialOrd + fmt::Display,
    {
        let Some(text) = self.text(name).map(shortened) else {
            return default.ok_or_else(|| Violation::new(name, "is missing; a whole number is needed"));
        };
        let number =
            text.parse().ok().filter(|number| (low..=high).contains(number) && !text.starts_with('+'));
        number
            .ok_or_else(|| Violation::new(name, format!("{text} is not a whole number from {low} to {high}")))
    }
}

/// The text of a value that could not be read.
fn value_of<'a>(field: &str, line: &'a str) -> Cow<'a, str> {
    let key = format!("\"{field}\"");
    let after_key = line.rfind(&key).map_or("", |at| &line[at + key.len()..]);
    let value = after_key.trim_start_matches([' ', ':']).split([',', '}']).next();
    shortened(Cow::Borrowed(value.unwrap_or_default().trim()))
}

fn shortened(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

struct Collect<'f, 'a> {
    fields: &'f mut Fields<'a>,
    /// The field whose value is being read.
    reading: &'f mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Collect<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Collect<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a case, a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let is_repeated = self.fields.raw(&key).is_some();
            *self.reading = Some(key.clone());
            if is_repeated {
                return Err(A::Error::custom("is there twice"));
            }
            self.fields.0.push((key, map.next_value()?));
            *self.reading = None;
        }
        Ok(())
    }
}
