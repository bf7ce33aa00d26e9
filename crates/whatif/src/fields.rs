//! The fields of a case or a scenario, as their own text: a decimal must not pass through a binary float. Numbers may be
//! written as text, which is how options of a command line come.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;

use maestro_core::duration;
use maestro_core::time::Millis;
use maestro_core::violation::Violation;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Values longer than this are not repeated whole in an error.
const SHOWN_MAX: usize = 40;

/// Everything found wrong with an input, in the order in which it was found.
#[derive(Debug, Default)]
pub(crate) struct Findings(RefCell<Vec<Violation>>);

impl Findings {
    pub(crate) fn add(&self, violation: Violation) {
        self.0.borrow_mut().push(violation);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.0.into_inner()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.borrow().iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

/// In the order in which they came. What every reader of a field gives: `None` if it is null or not there, and also if it
/// is wrong, which is a finding then.
#[derive(Debug)]
pub struct Fields<'a> {
    path: String,
    values: Vec<(String, &'a RawValue)>,
    /// Those that somebody asked for.
    known: RefCell<Vec<String>>,
    findings: &'a Findings,
}

impl<'a> Fields<'a> {
    pub(crate) fn none(path: String, findings: &'a Findings) -> Self {
        Self { path, values: Vec::new(), known: RefCell::default(), findings }
    }

    /// Also keeps the fields that were read before something turned out to be wrong: the id is among them, mostly.
    pub(crate) fn read(&mut self, line: &'a str, number: u64) -> Result<(), String> {
        let mut reader = serde_json::Deserializer::from_str(line);
        let mut reading = None;
        let collect = Collect { fields: self, reading: &mut reading };
        let outcome = collect.deserialize(&mut reader).and_then(|()| reader.end());
        outcome.map_err(|error| match reading {
            Some(field) if error.is_syntax() => {
                format!("{field}: {} is not valid JSON", value_of(&field, line))
            }
            Some(field) if error.is_data() => format!("{field}: appears twice"),
            // The position in the line is enough: each line is a document of its own.
            Some(_) | None => format!("line {number}: {error}").replace("line 1 column", "column"),
        })
    }

    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let mut known = self.known.borrow_mut();
        if known.iter().all(|known| known != name) {
            known.push(name.to_owned());
        }
        let (_, value) = self.values.iter().find(|(key, _)| key == name)?;
        Some(*value)
    }

    /// The JSON of a value.
    pub(crate) fn json(&self, name: &str) -> Option<&'a str> {
        self.raw(name).map(RawValue::get).filter(|json| *json != "null")
    }

    /// A number's own text, or the text of a string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        match self.json(name)? {
            json if json.starts_with('"') => serde_json::from_str::<String>(json).ok().map(Cow::Owned),
            json => Some(Cow::Borrowed(json)),
        }
    }

    /// The fields of an object that is a field; none if it is not there.
    pub fn object(&self, name: &str) -> Option<Self> {
        match self.json(name) {
            None => Some(Self::none(self.path_of(name), self.findings)),
            Some(json) => self.child(name, json),
        }
    }

    /// The objects of a list that is a field; none if it is not there.
    pub fn objects(&self, name: &str) -> Option<Vec<Self>> {
        let json = self.json(name).unwrap_or("[]");
        let Ok(list) = serde_json::from_str::<Vec<&'a RawValue>>(json) else {
            return self.refuse(name, format!("{} is not a list", shortened(json.into())));
        };
        let list = list.into_iter().enumerate();
        let objects: Vec<_> =
            list.map(|(index, raw)| self.child(&format!("{name}[{index}]"), raw.get())).collect();
        objects.into_iter().collect()
    }

    fn child(&self, name: &str, json: &'a str) -> Option<Self> {
        if !json.starts_with('{') {
            return self.refuse(name, format!("{} is not an object", shortened(json.into())));
        }
        let mut fields = Self::none(self.path_of(name), self.findings);
        self.check(name, fields.read(json, 1))?;
        Some(fields)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str())
    }

    pub fn refuse<T>(&self, name: &str, reason: impl Into<String>) -> Option<T> {
        self.findings.add(Violation::new(self.path_of(name), reason));
        None
    }

    /// What nobody asked for was written in vain: a typo must not pass for a default.
    pub fn refuse_unknown(&self) {
        let known = self.known.borrow();
        for name in self.names().filter(|name| known.iter().all(|known| known != name)) {
            self.refuse::<()>(name, format!("unknown field; known fields are {}", known.join(", ")));
        }
    }

    /// What was made of the fields, unless anything is wrong with them.
    pub fn unless_refused<T>(&self, made: T) -> Option<T> {
        self.findings.is_empty().then_some(made)
    }

    /// What was made of a field, if that is possible.
    pub fn check<T>(&self, name: &str, made: Result<T, String>) -> Option<T> {
        made.map_or_else(|reason| self.refuse(name, reason), Some)
    }

    pub fn parsed<T>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(name).map(shortened)?;
        self.check(name, parse(&text))
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.parsed(name, |text| text.parse().map_err(|_| format!("{text} is not true or false")))
    }

    pub fn required(&self, name: &str, needed: &str) -> Option<Cow<'a, str>> {
        self.text(name)
            .map(shortened)
            .or_else(|| self.refuse(name, format!("is missing; {needed} is needed")))
    }

    /// A whole number, as a number or as text.
    pub fn whole<T>(&self, name: &str, range: RangeInclusive<T>) -> Option<T>
    where
        T: std::str::FromStr + PartialOrd + fmt::Display,
    {
        let (low, high) = (range.start(), range.end());
        self.parsed(name, |text| {
            let number = text.parse().ok().filter(|number| range.contains(number) && !text.starts_with('+'));
            number.ok_or_else(|| format!("{text} is not a whole number from {low} to {high}"))
        })
    }

    pub fn required_whole<T>(&self, name: &str, range: RangeInclusive<T>) -> Option<T>
    where
        T: std::str::FromStr + PartialOrd + fmt::Display,
    {
        self.required(name, "a whole number").and_then(|_| self.whole(name, range))
    }

    pub fn time(&self, name: &str) -> Option<Millis> {
        self.parsed(name, |text| {
            let time = duration::parse(text).map_err(|reason| format!("{text}: {reason}"))?;
            Ok(Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        })
    }

    pub fn time_above_zero(&self, name: &str) -> Option<Millis> {
        match self.time(name)? {
            Millis(0) => self.refuse(name, "0s is too short; it must be longer than zero"),
            time => Some(time),
        }
    }

    /// The path of the outermost fields is empty.
    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
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
            let is_repeated = self.fields.names().any(|name| name == key);
            *self.reading = Some(key.clone());
            if is_repeated {
                return Err(A::Error::custom("appears twice"));
            }
            self.fields.values.push((key, map.next_value()?));
            *self.reading = None;
        }
        Ok(())
    }
}
