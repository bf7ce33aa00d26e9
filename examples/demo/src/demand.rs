//! How many players want to play: as many as a file says, and without it as many as a tide brings.

use std::f64::consts::TAU;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// From one busiest time to the next.
const WAVE: Duration = Duration::from_secs(60);

/// At the quietest time, this share of the players is still there.
const QUIET_SHARE: f64 = 0.25;

/// More than a number needs. What is longer is none, and need not be read to know it.
const FILE_BYTES_MAX: u64 = 64;

pub(crate) struct Demand {
    file: PathBuf,
    players_max: u32,
    started: Instant,
    /// The last number that the file had, while there is a file.
    ordered: Option<u32>,
    /// What was last said about the file, so that it is not said again with every look.
    complaint: Option<String>,
}

impl Demand {
    /// The tide has its turn from `now` on, at the quietest.
    pub(crate) fn new(data_dir: &Path, players_max: u32, now: Instant) -> Self {
        Self { file: data_dir.join("players"), players_max, started: now, ordered: None, complaint: None }
    }

    /// Where the number can be written.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// How many players there should be; and, once, what is wrong with the file if something is.
    pub(crate) fn look(&mut self, now: Instant) -> (u32, Option<String>) {
        let complaint = self.read_file().err().map(|why| format!("{}: {why}", self.file.display()));
        let news = complaint.clone().filter(|complaint| self.complaint.as_ref() != Some(complaint));
        self.complaint = complaint;
        let tide = || tide(now.duration_since(self.started), self.players_max);
        (self.ordered.unwrap_or_else(tide), news)
    }

    fn read_file(&mut self) -> Result<(), String> {
        match read_beginning(&self.file) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                // A shell that writes to the file empties it first: the number is about to come.
                if !text.trim().is_empty() {
                    self.ordered = Some(parse(&text)?);
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.ordered = None;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn read_beginning(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.parse().map_err(|_| format!("{text:?} is not a number of players, and is ignored"))
}

/// A wave between a quarter of the players and all.
fn tide(elapsed: Duration, players_max: u32) -> u32 {
    let level = (1.0 - (TAU * elapsed.as_secs_f64() / WAVE.as_secs_f64()).cos()) / 2.0;
    let share = QUIET_SHARE + (1.0 - QUIET_SHARE) * level;
    // Between 0 and `players_max`, so it fits.
    (f64::from(players_max) * share).round() as u32
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_tide() {
        for (seconds, number) in [(0, 2), (15, 5), (30, 8), (45, 5), (60, 2), (90, 8)] {
            assert_eq!(tide(Duration::from_secs(seconds), 8), number, "after {seconds} s");
        }
        assert!((0..600).all(|tenths| tide(Duration::from_millis(100 * tenths), 0) == 0));
    }

    #[test]
    fn the_file_has_the_say_while_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let mut demand = Demand::new(directory.path(), 8, now);
        assert_eq!(demand.look(now), (2, None), "the tide");
        for (text, number) in [("30\n", 30), (" 0 ", 0), ("7", 7), ("", 7), ("\n", 7)] {
            fs::write(demand.file(), text).unwrap();
            assert_eq!(demand.look(now), (number, None), "{text:?}");
        }
        fs::remove_file(demand.file()).unwrap();
        assert_eq!(demand.look(now), (2, None), "the tide again");
    }

    #[test]
    fn nonsense_is_said_once_and_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let mut demand = Demand::new(directory.path(), 8, now);
        fs::write(demand.file(), "30").unwrap();
        demand.look(now);
        let path = demand.file().display().to_string();
        for text in ["many", "-1", "1.5", "30 40", "99999999999", "NaN"] {
            fs::write(demand.file(), format!("{text}\n")).unwrap();
            let complaint = format!("{path}: {text:?} is not a number of players, and is ignored");
            assert_eq!(demand.look(now), (30, Some(complaint)));
            assert_eq!(demand.look(now), (30, None), "once is enough");
        }
        fs::write(demand.file(), [0xff; 100_000]).unwrap();
        let (number, complaint) = demand.look(now);
        assert_eq!(number, 30);
        assert!(complaint.unwrap().len() < 1_000, "as much as a line can show");
        fs::write(demand.file(), "31").unwrap();
        assert_eq!(demand.look(now), (31, None));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_said_once() {
        let directory = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let mut demand = Demand::new(directory.path(), 8, now);
        fs::create_dir(demand.file()).unwrap();
        let (number, complaint) = demand.look(now);
        assert_eq!(number, 2);
        assert!(complaint.unwrap().contains("players: "));
        assert_eq!(demand.look(now), (2, None));
    }
}
