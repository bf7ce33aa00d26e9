//! What replaces `failpoints.rs` in builds without the feature: nothing fails on purpose, and a request for it is refused.
//! It has the same names.

use std::io;
use std::str::FromStr;

/// The name of the write that is not counted.
pub(crate) const RENEW: &str = "renew";

/// Nothing. There is no other value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failpoints(());

impl Failpoints {
    /// Whether this build has them.
    pub const BUILT_IN: bool = false;
}

impl FromStr for Failpoints {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        Err("this build has no failpoints; only tests do, with the cargo feature `failpoints`".to_owned())
    }
}

pub(crate) struct Armed(());

impl Armed {
    pub(crate) fn new(_failpoints: Failpoints) -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(crate) fn take_up(&mut self, _label: &str) {}

    pub(crate) fn before_commit(&self) -> Result<(), rusqlite::Error> {
        Ok(())
    }

    pub(crate) fn after_commit(&self) {}

    pub(crate) fn answer(&self, answer: impl FnOnce()) {
        answer();
    }

    pub(crate) fn end_group(&mut self) {}
}
