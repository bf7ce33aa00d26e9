//! The name of a scheduler: its identity, and on Kubernetes its namespace.

use std::sync::Arc;

use crate::text::shared_text;

/// 1 to 63 characters `a-z0-9-`, not starting or ending with `-`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchedulerName(Arc<str>);

impl SchedulerName {
    pub const LENGTH_MAX: usize = 63;

    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse_label(text).map(|label| Self(label.into()))
    }
}

shared_text!(SchedulerName);

/// A label as RFC 1123 has it, which Kubernetes asks of namespaces and containers alike. The reason alone on
/// failure.
pub fn parse_label(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed".into());
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = text.len() <= SchedulerName::LENGTH_MAX && text.chars().all(allowed);
    if !fits || text.starts_with('-') || text.ends_with('-') {
        return Err(format!(
            "{text:?} is not a name: use 1 to 63 characters a-z, 0-9 and -, not starting or ending with - (RFC 1123)"
        ));
    }
    Ok(text.to_owned())
}
