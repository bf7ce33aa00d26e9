//! What a person sees while a command waits for something.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::{Failure, note, plain, print};

const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Progress {
    shown_on: ShownOn,
    /// The latest state that was shown.
    state: String,
    /// Why the server cannot be reached, if that was shown since it was reached last.
    outage: String,
}

enum ShownOn {
    /// On a terminal: one line that stays current.
    Spinner(ProgressBar),
    /// On stderr, a line each.
    Notes,
    /// On stdout, a line each: they are the result.
    Lines,
}

impl Progress {
    /// For a command whose result is something else.
    pub(super) fn beside_result() -> Self {
        if std::io::stderr().is_terminal() { Self::spinner() } else { Self::notes() }
    }

    pub(super) fn notes() -> Self {
        Self::new(ShownOn::Notes)
    }

    pub(super) fn lines() -> Self {
        Self::new(ShownOn::Lines)
    }

    pub(super) fn spinner() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(SPINNER_INTERVAL);
        Self::new(ShownOn::Spinner(bar))
    }

    fn new(shown_on: ShownOn) -> Self {
        Self { shown_on, state: String::new(), outage: String::new() }
    }

    pub(super) fn is_spinner(&self) -> bool {
        matches!(self.shown_on, ShownOn::Spinner(_))
    }

    /// Something that is news by itself.
    pub(super) fn say(&mut self, line: &str) -> Result<(), Failure> {
        match &self.shown_on {
            ShownOn::Spinner(bar) => bar.set_message(plain(line)),
            ShownOn::Notes => note(line),
            ShownOn::Lines => print(&plain(line))?,
        }
        Ok(())
    }

    /// Something that is news when it changes.
    pub(super) fn state(&mut self, line: &str) -> Result<(), Failure> {
        if self.state != line {
            line.clone_into(&mut self.state);
            self.say(line)?;
        }
        Ok(())
    }

    pub(super) fn unreachable(&mut self, why: &str) {
        if self.outage != why {
            why.clone_into(&mut self.outage);
            let line = format!("{why}; trying again");
            match &self.shown_on {
                ShownOn::Spinner(bar) => bar.set_message(line),
                ShownOn::Notes | ShownOn::Lines => note(&line),
            }
        }
    }

    /// The server has answered. The state is shown again after an outage, whatever it is.
    pub(super) fn reached(&mut self) {
        if !std::mem::take(&mut self.outage).is_empty() {
            self.state.clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let ShownOn::Spinner(bar) = &self.shown_on {
            bar.finish_and_clear();
        }
    }
}
