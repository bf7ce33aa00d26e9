//! The fields of one case, as their own text: a decimal must not pass through a binary float.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use maestro_core::violation::Violation;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::findings::{Findings, Refused, path_in};

/// Values longer than this are not repeated whole in an error.
const SHOWN_MAX: usize = 40;

/// In the order in which they came. Every reader gives what is there, or says in the findings why it cannot be read.
#[derive(Debug)]
pub struct Fields<'a> {
    path: String,
    values: Vec<(String, &'a RawValue)>,
    findings: &'a Findings,
}

impl<'a> Fields<'a> {
    pub(super) fn none(path: String, findings: &'a Findings) -> Self {
        Self { path, values: Vec::new(), findings }
    }

    /// Also keeps the fields that were read before something turned out to be wrong: the id is among them, mostly.
    pub(super) fn read(&mut self, line: &'a str, number: u64) -> Result<(), String> {
        let mut reader = serde_json::Deserializer::from_str(line);
        let mut reading = None;
        let collect = Collect { fields: self, reading: &mut reading };
        let outcome = collect.deserialize(&mut reader).and_then(|()| reader.end());
        outcome.map_err(|error| match reading {
            Some(field) if error.is_syntax() => {
                format!("{field}: {} is not valid JSON", value_of(&field, line))
            }
            Some(field) if error.is_data() => format!("{field}: is there twice"),
            // The position in the line is enough: each line is a document of its own.
            Some(_) | None => format!("line {number}: {error}").replace("line 1 column", "column"),
        })
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.values.iter().find(|(key, _)| key == name)?;
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
    pub fn object(&self, name: &str) -> Result<Self, Refused> {
        match self.raw(name).map(RawValue::get) {
            None | Some("null") => Ok(Self::none(path_in(&self.path, name), self.findings)),
            Some(raw) => self.child(name, raw),
        }
    }

    /// The objects of a list that is a field; none if it is null or not there.
    pub fn objects(&self, name: &str) -> Result<Vec<Self>, Refused> {
        let raw = self.raw(name).map_or("null", RawValue::get);
        let list: Option<Vec<&'a RawValue>> = serde_json::from_str(raw)
            .map_err(|_| self.refuse(name, format!("{} is not a list", shortened(raw.into()))))?;
        let list = list.unwrap_or_default().into_iter().enumerate();
        let objects: Vec<_> =
            list.map(|(index, raw)| self.child(&format!("{name}[{index}]"), raw.get())).collect();
        objects.into_iter().collect()
    }

    fn child(&self, name: &str, raw: &'a str) -> Result<Self, Refused> {
        if !raw.starts_with('{') {
            return Err(self.refuse(name, format!("{} is not an object", shortened(raw.into()))));
        }
        let mut fields = Self::none(path_in(&self.path, name), self.findings);
        self.check(name, fields.read(raw, 1))?;
        Ok(fields)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str())
    }

    pub fn refuse(&self, name: &str, reason: impl Into<String>) -> Refused {
        self.findings.add(Violation::new(path_in(&self.path, name), reason));
        Refused
    }

    /// What was made of the fields, unless anything is wrong with them.
    pub fn unless_refused<T>(&self, made: T) -> Result<T, Refused> {
        if self.findings.is_empty() { Ok(made) } else { Err(Refused) }
    }

    /// What was made of a field, if that is possible.
    pub fn check<T>(&self, name: &str, made: Result<T, String>) -> Result<T, Refused> {
        made.map_err(|reason| self.refuse(name, reason))
    }

    /// `None` if it is null or not there.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Refused> {
        match self.text(name).as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => {
                Err(self.refuse(name, format!("{} is not true or false", shortened(other.into()))))
            }
        }
    }

    pub fn required(&self, name: &str, needed: &str) -> Result<Cow<'a, str>, Refused> {
        let text = self.text(name).map(shortened);
        text.ok_or_else(|| self.refuse(name, format!("is missing; {needed} is needed")))
    }

    /// A whole number, as a number or as text; `None` if it is null or not there.
    pub fn whole<T>(&self, name: &str, range: RangeInclusive<T>) -> Result<Option<T>, Refused>
    where
        T: std::str::FromStr + PartialOrd + fmt::Display,
    {
        let Some(text) = self.text(name).map(shortened) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| range.contains(number) && !text.starts_with('+'));
        let (low, high) = (range.start(), range.end());
        let refuse = || self.refuse(name, format!("{text} is not a whole number from {low} to {high}"));
        number.map(Some).ok_or_else(refuse)
    }

    pub fn required_whole<T>(&self, name: &str, range: RangeInclusive<T>) -> Result<T, Refused>
    where
        T: std::str::FromStr + PartialOrd + fmt::Display,
    {
        self.whole(name, range)?.ok_or_else(|| self.refuse(name, "is missing; a whole number is needed"))
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
            self.fields.values.push((key, map.next_value()?));
            *self.reading = None;
        }
        Ok(())
    }
}
