//! Where in a recipe the reader is, and what it found wrong so far.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use maestro_core::violation::Violation;
use maestro_core::words::Word;

/// Everything found wrong, in the order in which it was found.
#[derive(Default)]
pub(super) struct Findings(RefCell<Vec<Violation>>);

impl Findings {
    pub(super) fn root(&self) -> Field<'_> {
        Field { path: String::new(), findings: self }
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.0.into_inner()
    }
}

/// Proof that something was found wrong: only [`Field::refuse`] makes one, so a value that is not there always has
/// its violation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused(());

/// A field of the recipe, by its path as the user writes it.
#[derive(Clone)]
pub(super) struct Field<'a> {
    path: String,
    findings: &'a Findings,
}

impl Field<'_> {
    pub(super) fn child(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { path, findings: self.findings }
    }

    pub(super) fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), findings: self.findings }
    }

    pub(super) fn refuse(&self, reason: impl Into<String>) -> Refused {
        let violation = Violation::new(self.path.clone(), reason);
        self.findings.0.borrow_mut().push(violation);
        Refused(())
    }

    /// Takes over violations whose fields are relative to this one.
    pub(super) fn refuse_all(&self, violations: Vec<Violation>) {
        let absolute = |Violation { field, reason }| Violation::new(format!("{}{field}", self.path), reason);
        self.findings.0.borrow_mut().extend(violations.into_iter().map(absolute));
    }

    /// Takes over what a parser of plain text says about this field.
    pub(super) fn take<T>(&self, outcome: Result<T, String>) -> Result<T, Refused> {
        outcome.map_err(|reason| self.refuse(reason))
    }

    pub(super) fn text(&self, value: &str, needed: &str) -> Result<String, Refused> {
        if value.is_empty() {
            Err(self.refuse(format!("is missing; {needed} is needed")))
        } else {
            Ok(value.to_owned())
        }
    }

    /// One of some words; their type says which.
    pub(super) fn choose<T: Word>(&self, text: &str) -> Result<T, Refused> {
        let found = T::WORDS.iter().find(|(_, word)| *word == text);
        found.map(|(choice, _)| *choice).ok_or_else(|| {
            let words = T::WORDS.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(", ");
            self.refuse(match text {
                "" => format!("is missing; one of {words} is needed"),
                text => format!("{text:?} is not one of {words}"),
            })
        })
    }

    /// A whole number between `min` and `max`, as the unsigned type that the recipe keeps.
    pub(super) fn number<U: TryFrom<i32>>(&self, value: i32, min: i32, max: i32) -> Result<U, Refused> {
        let right = match max {
            i32::MAX => format!("at least {min}"),
            max => format!("between {min} and {max}"),
        };
        let within = (min..=max).contains(&value);
        let number = U::try_from(value).ok().filter(|_| within);
        number.ok_or_else(|| self.refuse(format!("{value} is not {right}")))
    }

    pub(super) fn optional<W, T>(
        &self,
        name: &str,
        wire: Option<W>,
        read: impl FnOnce(&Self, W) -> Result<T, Refused>,
    ) -> Result<Option<T>, Refused> {
        wire.map(|wire| read(&self.child(name), wire)).transpose()
    }

    pub(super) fn optional_number(
        &self,
        name: &str,
        wire: Option<i32>,
        min: i32,
    ) -> Result<Option<u32>, Refused> {
        self.optional(name, wire, |field, number| field.number(number, min, i32::MAX))
    }

    /// Every item, with all that is wrong with any of them.
    pub(super) fn items<W, T>(
        &self,
        items: &[W],
        read: impl Fn(&Self, &W) -> Result<T, Refused>,
    ) -> Result<Vec<T>, Refused> {
        let outcomes: Vec<_> =
            items.iter().enumerate().map(|(index, item)| read(&self.item(index), item)).collect();
        outcomes.into_iter().collect()
    }

    /// No name twice; one that is missing has its own violation. `what` the things are, for the message.
    pub(super) fn check_unique<'n>(names: impl IntoIterator<Item = (Self, &'n str)>, what: &str) {
        let mut first_use = BTreeMap::new();
        for (field, name) in names.into_iter().filter(|(_, name)| !name.is_empty()) {
            if let Some(first) = first_use.get(name) {
                let reason = format!("{name:?} is taken by {first}; {what} of a room need different names");
                field.child("name").refuse(reason);
            } else {
                first_use.insert(name, field);
            }
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
