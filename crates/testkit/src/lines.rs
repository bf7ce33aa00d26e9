//! What a program prints, line by line.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::Context;

use crate::PATIENCE;

/// Read by a thread of its own, so that a wait has a bound; it reads on to the end, so that no program meets a closed pipe.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(output: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Fails when the test has seen enough.
                let _ = sender.send(line);
            }
        });
        Self(receiver)
    }

    /// The next line that is as described. An error tells the lines that came instead.
    pub fn wait(&self, is_it: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let mut seen = Vec::new();
        loop {
            let line = self.0.recv_timeout(PATIENCE);
            let line = line.with_context(|| format!("it ended, or took too long, after {seen:#?}"))?;
            if is_it(&line) {
                return Ok(line);
            }
            seen.push(line);
        }
    }
}
