//! The pure planners as filters: one JSON object per line in, one answer per line out, in the same order.
//!
//! A line that cannot be answered gets its error as its answer, and the other lines are answered. Whatever the input is, no
//! more than one line is held in memory.

pub mod autoscaling;
pub mod placement;
pub mod resize;

use std::io::{self, BufRead, BufReader, Read, Write};

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

pub use crate::fields::Fields;
use crate::fields::Findings;

/// No case comes near it; a file that is no list of cases must not fill the memory.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// How many lines there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub answered: u64,
    pub refused: u64,
}

/// Why not all lines were answered.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    #[error("cases cannot be read: {0}")]
    Read(#[source] io::Error),
    #[error("answers cannot be written: {0}")]
    Write(#[source] io::Error),
}

/// Answers every line that is not blank.
pub fn answer_lines<A: Serialize>(
    input: impl Read,
    mut output: impl Write,
    answer: impl Fn(&Fields<'_>) -> Option<A>,
) -> Result<Tally, LinesError> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    let mut tally = Tally::default();
    let mut number = 0_u64;
    while let Some(is_whole) = read_line(&mut input, &mut line).map_err(LinesError::Read)? {
        number += 1;
        if !line.trim_ascii().is_empty() {
            let is_answered =
                write_answer(&mut output, &line, is_whole, number, &answer).map_err(LinesError::Write)?;
            tally.answered += u64::from(is_answered);
            tally.refused += u64::from(!is_answered);
        }
        // Who asks one question and waits for its answer gets it; a file is not flushed line by line.
        if input.buffer().is_empty() {
            output.flush().map_err(LinesError::Write)?;
        }
    }
    output.flush().map_err(LinesError::Write)?;
    Ok(tally)
}

/// `None` at the end; otherwise whether the line was short enough to be read whole.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    let read = input.by_ref().take(limit).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(None);
    }
    let is_whole = line.len() <= LINE_BYTES_MAX || line.ends_with(b"\n");
    if !is_whole {
        input.skip_until(b'\n')?;
    }
    Ok(Some(is_whole))
}

#[derive(Serialize)]
struct Answered<'a, A> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(flatten)]
    answer: A,
}

fn write_answer<A: Serialize>(
    output: &mut impl Write,
    line: &[u8],
    is_whole: bool,
    number: u64,
    answer: &impl Fn(&Fields<'_>) -> Option<A>,
) -> io::Result<bool> {
    let text = match std::str::from_utf8(line) {
        _ if !is_whole => Err(format!("line {number}: is longer than {LINE_BYTES_MAX} bytes")),
        Ok(text) => Ok(text),
        Err(_) => Err(format!("line {number}: is not UTF-8")),
    };
    let findings = Findings::default();
    let mut fields = Fields::none(String::new(), &findings);
    let outcome = text.and_then(|text| fields.read(text.trim(), number)).and_then(|()| {
        let answer = answer(&fields).and_then(|answer| fields.unless_refused(answer));
        answer.ok_or_else(|| findings.to_string())
    });
    let id = fields.raw("id");
    let is_answered = outcome.is_ok();
    match outcome {
        Ok(answer) => serde_json::to_writer(&mut *output, &Answered { id, answer })?,
        Err(error) => {
            serde_json::to_writer(&mut *output, &Answered { id, answer: json!({ "error": error }) })?;
        }
    }
    output.write_all(b"\n")?;
    Ok(is_answered)
}
