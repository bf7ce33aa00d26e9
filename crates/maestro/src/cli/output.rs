//! What goes to the terminal: tables for people, the server's own answer as JSON or YAML for programs. Results go
//! to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use clap::ValueEnum;
use jiff::Timestamp;
use serde::Serialize;

use super::sheet::aligned;
use super::{Column, Exit, Failure, Json, Sheet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
    Yaml,
    // Only where the result is a table of numbers; refused elsewhere. No doc comment: it would be part of every help.
    Csv,
}

pub(super) const CSV_REFUSED: &str = "-o csv is for maestro simulate -f alone; write table, json or yaml";

/// Prints an answer: as it is for programs, as `table` makes of it for people.
pub(super) fn show<T: Serialize>(
    format: Format,
    answer: &T,
    table: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    match format {
        Format::Table => print(&table(answer)),
        Format::Json => json(answer),
        Format::Yaml => yaml(answer),
        Format::Csv => Err(Failure::invalid(CSV_REFUSED)),
    }
}

pub(super) fn json(answer: &impl Serialize) -> Result<(), Failure> {
    print_as("JSON", serde_json::to_string_pretty(answer))
}

pub(super) fn json_line(answer: &impl Serialize) -> Result<(), Failure> {
    print_as("JSON", serde_json::to_string(answer))
}

pub(super) fn yaml(answer: &impl Serialize) -> Result<(), Failure> {
    print_as("YAML", serde_saphyr::to_string(answer))
}

fn print_as(language: &str, text: Result<String, impl Display>) -> Result<(), Failure> {
    let failure = |error| Failure::failed(format!("cannot be written as {language}: {error}"));
    print(&text.map_err(failure)?)
}

/// Writes to stdout, ended by one newline. A closed pipe ends the command quietly, where `println!` would panic.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let ending = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    write(|stdout| write!(stdout, "{text}{ending}"))
}

/// Lets something write itself to stdout, piece by piece.
pub(super) fn write(to: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    to(&mut stdout).and_then(|()| stdout.flush()).map_err(|error| unwritten(&error))
}

pub(super) fn unwritten(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new(Exit::PipeClosed, ""),
        _ => Failure::failed(format!("cannot write to stdout: {error}")),
    }
}

/// Lines beside the result. Failing to say them is no reason to fail.
pub(super) fn note(lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(io::stderr(), "{}", plain(line));
    }
}

pub(super) fn warn(warning: &str) {
    note(&format!("warning: {warning}"));
}

pub(super) fn error(message: &str) {
    note(&format!("error: {message}"));
}

/// A table that fits the terminal.
pub(super) fn table(items: &Json, columns: &[Column]) -> String {
    Sheet::of(items.items(), columns).text()
}

/// One `name  value` per line.
pub(super) fn fields(item: &Json, lines: &[Column]) -> String {
    let now = Timestamp::now();
    aligned(lines.iter().map(|(name, shows)| vec![(*name).to_owned(), plain(&shows.cell(item, now))]))
}

/// What rooms and servers write may hold control characters; none of them reaches the terminal as such.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
