//! What is wrong with an input, in a form that tells a person what to correct: which field, and why.

use std::fmt;

/// One thing wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field as the user writes it, `spec.containers[0].ports[1].name`.
    pub field: String,
    /// The value that was given and what would be right, without the field's name.
    pub reason: String,
}

impl Violation {
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

/// Everything wrong with an input, never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Violations(pub Vec<Violation>);
