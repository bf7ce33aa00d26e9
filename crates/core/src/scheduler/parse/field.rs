//! Where in a draft the parser is, and what it found wrong so far.

use std::cell::RefCell;
use std::fmt;

use crate::violation::Violation;

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

/// A field of the draft, by its path as the user writes it.
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

    /// Every item, with all that is wrong with any of them.
    pub(super) fn items<D, T>(
        &self,
        drafts: &[D],
        parse: impl Fn(&Self, &D) -> Result<T, Refused>,
    ) -> Result<Vec<T>, Refused> {
        let outcomes: Vec<_> =
            drafts.iter().enumerate().map(|(index, draft)| parse(&self.item(index), draft)).collect();
        outcomes.into_iter().collect()
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
