//! What is wrong with an input: everything is said at once.

use std::cell::RefCell;

use maestro_core::violation::Violation;

/// Everything found wrong, in the order in which it was found.
#[derive(Debug, Default)]
pub(crate) struct Findings(RefCell<Vec<Violation>>);

/// Something cannot be read; why is among the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

impl Findings {
    pub(crate) fn add(&self, violation: Violation) {
        self.0.borrow_mut().push(violation);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn joined(&self) -> String {
        let texts: Vec<_> = self.0.borrow().iter().map(ToString::to_string).collect();
        texts.join("; ")
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.0.into_inner()
    }
}

/// The path of a field in a block, which is empty for the outermost one.
pub(crate) fn path_in(block: &str, field: &str) -> String {
    if block.is_empty() { field.to_owned() } else { format!("{block}.{field}") }
}
