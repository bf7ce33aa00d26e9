//! What is printed: lines that stay, and on a terminal one last line that is kept current.

use std::io::{self, Write};

const CLEAR_LINE: &str = "\r\x1b[K";

pub(crate) struct Screen<W> {
    output: W,
    is_terminal: bool,
    /// What the status line says at present.
    shown: String,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(output: W, is_terminal: bool) -> Self {
        Self { output, is_terminal, shown: String::new() }
    }

    /// A line that stays.
    pub(crate) fn say(&mut self, line: &str) -> io::Result<()> {
        self.end_status()?;
        writeln!(self.output, "{line}")?;
        self.output.flush()
    }

    /// The status line. A terminal that is `width` wide shows no more than that, as a line that wraps could not be
    /// overwritten; elsewhere each change is a line.
    pub(crate) fn show(&mut self, line: &str, width: Option<usize>) -> io::Result<()> {
        let width = width.unwrap_or(usize::MAX);
        let line: String = line.chars().take(width.saturating_sub(1)).collect();
        if line == self.shown {
            return Ok(());
        }
        if self.is_terminal {
            write!(self.output, "{CLEAR_LINE}{line}")?;
        } else {
            writeln!(self.output, "{line}")?;
        }
        self.shown = line;
        self.output.flush()
    }

    /// Leaves the last status where it is.
    fn end_status(&mut self) -> io::Result<()> {
        if self.is_terminal && !self.shown.is_empty() {
            writeln!(self.output)?;
        }
        self.shown.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(is_terminal: bool) -> String {
        let mut output = Vec::new();
        let mut screen = Screen::new(&mut output, is_terminal);
        screen.say("serving").unwrap();
        screen.show("1 ready", None).unwrap();
        screen.show("1 ready", None).unwrap();
        screen.show("2 ready", None).unwrap();
        screen.say("ended").unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_terminal_has_one_status_line() {
        assert_eq!(printed(true), "serving\n\r\x1b[K1 ready\r\x1b[K2 ready\nended\n");
    }

    #[test]
    fn a_file_has_a_line_for_each_change() {
        assert_eq!(printed(false), "serving\n1 ready\n2 ready\nended\n");
    }

    #[test]
    fn a_narrow_terminal_shows_the_beginning() {
        let mut output = Vec::new();
        Screen::new(&mut output, true).show("12 rooms: 12 ready", Some(10)).unwrap();
        assert_eq!(String::from_utf8(output).unwrap(), "\r\x1b[K12 rooms:");
    }
}
