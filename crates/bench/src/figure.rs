//! One figure, as tools read it.

use std::io::Write;

use anyhow::Context as _;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figure {
    bench: String,
    value: f64,
    unit: &'static str,
    /// What it was compared with in the same run.
    ratio_to: Option<&'static str>,
    /// How many times that it is.
    ratio: Option<f64>,
}

impl Figure {
    pub(crate) fn new(bench: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { bench: bench.into(), value: rounded(value), unit, ratio_to: None, ratio: None }
    }

    pub(crate) fn compared(mut self, ratio_to: &'static str, ratio: f64) -> Self {
        self.ratio_to = Some(ratio_to);
        self.ratio = Some(rounded(ratio));
        self
    }

    pub(crate) fn print(&self) -> anyhow::Result<()> {
        let line = serde_json::to_string(self)?;
        writeln!(std::io::stdout(), "{line}").context("writing to stdout")
    }
}

/// Three digits behind the point; there is nothing but noise beyond.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
