//! One block of a scenario's document: its fields are taken one by one, and what nobody took is not known.
//!
//! Numbers may be written as text, which is how options of a command line come.

use std::ops::RangeInclusive;

use maestro_core::duration;
use maestro_core::time::Millis;
use maestro_core::violation::Violation;
use serde_json::{Map, Value};

use crate::findings::{Findings, path_in};

pub(super) struct Block<'a> {
    path: String,
    values: Map<String, Value>,
    known: Vec<&'static str>,
    findings: &'a Findings,
}

/// What every reader of a field gives: `None` if it is not there, and also if it is wrong, which is a finding then.
impl<'a> Block<'a> {
    pub(super) fn root(values: Map<String, Value>, findings: &'a Findings) -> Self {
        Self { path: String::new(), values, known: Vec::new(), findings }
    }

    pub(super) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.values.remove(name).filter(|value| !value.is_null())
    }

    pub(super) fn block(&mut self, name: &'static str) -> Option<Self> {
        match self.value(name)? {
            Value::Object(values) => Some(self.child(name, values)),
            other => self.refuse(name, format!("{other} is not a block of fields")),
        }
    }

    pub(super) fn child(&self, name: &str, values: Map<String, Value>) -> Self {
        Self { path: self.path_of(name), values, known: Vec::new(), findings: self.findings }
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            other => self.refuse(name, format!("{other} is not a text")),
        }
    }

    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(reason) => self.refuse(name, reason),
        }
    }

    pub(super) fn number<T>(&mut self, name: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        self.parsed(name, |text| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                format!("{text} is not a whole number from {} to {}", range.start(), range.end())
            })
        })
    }

    pub(super) fn required_number<T>(&mut self, name: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        match self.values.get(name) {
            None | Some(Value::Null) => {
                self.known.push(name);
                self.refuse(name, "is missing; a whole number is needed")
            }
            Some(_) => self.number(name, range),
        }
    }

    pub(super) fn time(&mut self, name: &'static str) -> Option<Millis> {
        self.parsed(name, |text| {
            let time = duration::parse(text).map_err(|reason| format!("{text}: {reason}"))?;
            Ok(Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        })
    }

    pub(super) fn time_above_zero(&mut self, name: &'static str) -> Option<Millis> {
        match self.time(name)? {
            Millis(0) => self.refuse(name, "0s is too short; it must be longer than zero"),
            time => Some(time),
        }
    }

    pub(super) fn refuse<T>(&self, name: &str, reason: impl Into<String>) -> Option<T> {
        self.findings.add(Violation::new(self.path_of(name), reason));
        None
    }

    /// What is left belongs to something that was refused already.
    pub(super) fn ignore_rest(&mut self) {
        self.values.clear();
    }

    /// What is left was written in vain: a typo must not pass for a default.
    pub(super) fn finish(self) {
        for name in self.values.keys() {
            let known = self.known.join(", ");
            self.findings
                .add(Violation::new(self.path_of(name), format!("is not known; known here are {known}")));
        }
    }

    fn path_of(&self, name: &str) -> String {
        path_in(&self.path, name)
    }
}
