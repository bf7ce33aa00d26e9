//! `maestro plan …`: the pure planners as filters, one JSON line in, one out. No server is asked.

use std::io::{self, BufWriter};

use clap::Subcommand;
use maestro_whatif::cases::{LinesError, Tally, answer_lines, autoscaling};

use super::failure::{Exit, Failure};
use super::output::unwritten;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// How many rooms a fleet should have: id, occupied, total, min, max, readyTarget give desired, decision, reason
    #[command(after_help = "\
Examples:
  maestro plan autoscaling < cases.jsonl > answers.jsonl
  echo '{\"id\": 1, \"occupied\": 80, \"total\": 100, \"readyTarget\": 0.5}' | maestro plan autoscaling

min is 1 and max is -1 (no limit) where a case does not say. A line that cannot be answered
gets its error as its answer, the others are answered, and the exit code is 2.")]
    Autoscaling,
}

pub(super) fn run(command: &Command) -> Result<(), Failure> {
    let input = io::stdin().lock();
    let output = BufWriter::new(io::stdout().lock());
    let tally = match command {
        Command::Autoscaling => answer_lines(input, output, autoscaling::answer),
    };
    match tally {
        Ok(Tally { refused: 0, .. }) => Ok(()),
        Ok(Tally { answered, refused }) => {
            Err(Failure::invalid(format!("{refused} of {} lines could not be answered", answered + refused)))
        }
        Err(LinesError::Read(error)) => {
            Err(Failure::new(Exit::Failed, format!("cannot read stdin: {error}")))
        }
        Err(LinesError::Write(error)) => Err(unwritten(&error)),
    }
}
