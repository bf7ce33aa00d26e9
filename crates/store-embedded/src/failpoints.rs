//! Places where the store fails on purpose, so that tests can kill Maestro at every write it makes. Only with the
//! feature `failpoints`: what is shipped has `no_failpoints.rs` in its place.
//!
//! Written as a list, `log:/tmp/writes,kill:7:after`:
//! - `kill:N:before`, `kill:N:after`: the process ends by SIGKILL at the N-th write, before or after its commit.
//! - `full:N`: the N-th write fails as on a full disk.
//! - `panic:N`: the thread that writes panics at the N-th write.
//! - `hold:N:FILE`: the N-th write is done, and its answer is held back until FILE is there. Other writes go on meanwhile.
//! - `log:FILE`: appends a line `N label` per write, so that a test can see which writes there are.
//!
//! Writes are counted from 1 in the order in which the store takes them up. Renewals come by the clock and would
//! disturb the count, so they have none: `renew` in place of N means the first of them. `=LABEL` means the first write
//! with that label, whatever its number is.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rusqlite::ffi;

/// The name of the write that is not counted.
pub(crate) const RENEW: &str = "renew";

/// How often to look for the file that an answer is held back for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What should fail. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failpoints {
    points: Vec<(Target, Effect)>,
    log: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// From 1.
    Write(u64),
    /// The next one with this label.
    Next(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Effect {
    KillBefore,
    KillAfter,
    Full,
    Panic,
    /// Until this file is there.
    Hold(PathBuf),
}

impl Failpoints {
    /// Whether this build has them.
    pub const BUILT_IN: bool = true;
}

impl FromStr for Failpoints {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut failpoints = Self::default();
        for point in text.split(',').filter(|point| !point.is_empty()) {
            let wrong = || {
                format!(
                    "{point:?} is not a failpoint: write kill:N:before, kill:N:after, full:N, panic:N, \
                     hold:N:FILE or log:FILE, with a number of a write, renew or =LABEL for N"
                )
            };
            let (kind, rest) = point.split_once(':').ok_or_else(wrong)?;
            let (target, effect) = match (kind, rest.split_once(':')) {
                ("log", _) => {
                    failpoints.log = Some(rest.into());
                    continue;
                }
                ("full", None) => (rest, Effect::Full),
                ("panic", None) => (rest, Effect::Panic),
                ("hold", Some((target, file))) if !file.is_empty() => (target, Effect::Hold(file.into())),
                ("kill", Some((target, "before"))) => (target, Effect::KillBefore),
                ("kill", Some((target, "after"))) => (target, Effect::KillAfter),
                _ => return Err(wrong()),
            };
            let target = match (target, target.strip_prefix('=')) {
                (RENEW, _) => Target::Next(RENEW.to_owned()),
                (_, Some(label)) => Target::Next(label.to_owned()),
                (number, None) => match number.parse() {
                    Ok(number) if number > 0 => Target::Write(number),
                    _ => return Err(wrong()),
                },
            };
            failpoints.points.push((target, effect));
        }
        Ok(failpoints)
    }
}

/// Failpoints at work: it sees every write of one store.
pub(crate) struct Armed {
    points: Vec<(Target, Effect)>,
    log: Option<File>,
    writes: u64,
    /// What the writes of the group at hand have hit.
    hit: Vec<Effect>,
}

impl Armed {
    pub(crate) fn new(failpoints: Failpoints) -> io::Result<Self> {
        let Failpoints { points, log } = failpoints;
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self { points, log: log.map(open).transpose()?, writes: 0, hit: Vec::new() })
    }

    /// A write is taken up into the group at hand.
    pub(crate) fn take_up(&mut self, label: &str) {
        if label != RENEW {
            self.writes += 1;
            self.log_write(label);
        }
        let (writes, counts) = (self.writes, label != RENEW);
        let is_hit = |target: &Target| match target {
            Target::Write(number) => counts && *number == writes,
            Target::Next(next) => next == label,
        };
        let hit = self.points.extract_if(.., |(target, _)| is_hit(target));
        self.hit.extend(hit.map(|(_, effect)| effect));
    }

    pub(crate) fn before_commit(&self) -> Result<(), rusqlite::Error> {
        if self.hit.contains(&Effect::KillBefore) {
            kill_this_process();
        }
        assert!(!self.hit.contains(&Effect::Panic), "failpoint");
        if self.hit.contains(&Effect::Full) {
            let why = "database or disk is full (failpoint)".to_owned();
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), Some(why)));
        }
        Ok(())
    }

    pub(crate) fn after_commit(&self) {
        if self.hit.contains(&Effect::KillAfter) {
            kill_this_process();
        }
    }

    /// Gives the answers to the writes of the group at hand, however it ended.
    pub(crate) fn answer(&self, answer: impl FnOnce() + Send + 'static) {
        let held_back = self.hit.iter().find_map(|effect| match effect {
            Effect::Hold(file) => Some(file.clone()),
            Effect::KillBefore | Effect::KillAfter | Effect::Full | Effect::Panic => None,
        });
        let Some(file) = held_back else { return answer() };
        std::thread::spawn(move || {
            while !file.exists() {
                std::thread::sleep(LOOK_EVERY);
            }
            answer();
        });
    }

    /// The group is over, however it ended.
    pub(crate) fn end_group(&mut self) {
        self.hit.clear();
    }

    fn log_write(&mut self, label: &str) {
        if let Some(log) = &mut self.log
            && let Err(error) = log.write_all(format!("{} {label}\n", self.writes).as_bytes())
        {
            tracing::warn!(%error, "failpoint log is not written");
        }
    }
}

/// SIGKILL, not an orderly end: nothing may be flushed, dropped or answered.
fn kill_this_process() -> ! {
    let this = rustix::process::getpid();
    loop {
        if rustix::process::kill_process(this, rustix::process::Signal::KILL).is_err() {
            std::process::abort();
        }
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read() {
        let points: Failpoints =
            "log:/tmp/a:b,kill:7:after,kill:renew:before,full:3,hold:=end:/tmp/c:d".parse().unwrap();
        let expected = Failpoints {
            points: vec![
                (Target::Write(7), Effect::KillAfter),
                (Target::Next(RENEW.to_owned()), Effect::KillBefore),
                (Target::Write(3), Effect::Full),
                (Target::Next("end".to_owned()), Effect::Hold("/tmp/c:d".into())),
            ],
            log: Some("/tmp/a:b".into()),
        };
        assert_eq!(points, expected);
        assert_eq!("".parse(), Ok(Failpoints::default()));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "kill",
            "kill:1",
            "kill:0:before",
            "kill:1:later",
            "full:x",
            "full:1:before",
            "hold:1",
            "hold:1:",
            "hold:x:/tmp/a",
            "stop:1",
        ] {
            let error = text.parse::<Failpoints>().unwrap_err();
            assert!(error.starts_with(&format!("{text:?} is not a failpoint")), "{error}");
        }
    }
}
