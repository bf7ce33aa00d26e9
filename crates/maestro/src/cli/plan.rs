//! `maestro plan …`: the pure planners as filters, one JSON line in, one out, without a server.

use std::io::{self, BufWriter};

use clap::Subcommand;
use maestro_whatif::cases::{LinesError, Tally, answer_lines, autoscaling, placement, resize};

use super::Failure;
use super::output::unwritten;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Number of rooms that a fleet should have: reads id, occupied, total, min, max, readyTarget; answers desired, decision, reason
    #[command(after_help = "\
Examples:
  maestro plan autoscaling < cases.jsonl > answers.jsonl
  echo '{\"id\": 1, \"occupied\": 80, \"total\": 100, \"readyTarget\": 0.5}' | maestro plan autoscaling

If a case does not set them, min is 1 and max is -1 (no limit). A line that cannot be answered
gets its error as its answer, the others are answered, and the exit code is 2.")]
    Autoscaling,
    /// Regions in which rooms would be placed: reads id, regions, current, count, expand; answers plan (name → number) or null, reason
    #[command(after_help = "\
Examples:
  maestro plan placement < cases.jsonl > answers.jsonl
  echo '{\"regions\": [{\"name\": \"us\", \"weight\": 3}, {\"name\": \"eu\", \"cap\": 50}], \"count\": 40}' |
    maestro plan placement

If they are not set, weight is 100, cap is -1 (no limit), current is 0 and expand is true; with false,
the answer is where rooms would be removed. A line that cannot be answered gets its error as its answer,
the others are answered, and the exit code is 2.")]
    Placement,
    /// Number of rooms by which a resize changes a fleet: reads id, inputs, current, cluster; answers status, reason, counts
    #[command(after_help = "\
Examples:
  maestro plan resize < cases.jsonl > answers.jsonl
  echo '{\"inputs\": {\"adjustment_type\": \"CHANGE_IN_PERCENTAGE\", \"number\": 12.5}, \"current\": 40}' |
    maestro plan resize

inputs are adjustment_type, number, min_step, min_size, max_size, strict (false if not set); cluster is
min_size (0), max_size (-1), desired_capacity (0), max_nodes_per_cluster (1000). A line that cannot be
answered gets its error as its answer, the others are answered, and the exit code is 2.")]
    Resize,
}

pub(super) fn run(command: &Command) -> Result<(), Failure> {
    let input = io::stdin().lock();
    let output = BufWriter::new(io::stdout().lock());
    let tally = match command {
        Command::Autoscaling => answer_lines(input, output, autoscaling::answer),
        Command::Placement => answer_lines(input, output, placement::answer),
        Command::Resize => answer_lines(input, output, resize::answer),
    };
    match tally {
        Ok(Tally { refused: 0, .. }) => Ok(()),
        Ok(Tally { answered, refused }) => {
            Err(Failure::invalid(format!("{refused} of {} lines could not be answered", answered + refused)))
        }
        Err(LinesError::Read(error)) => Err(Failure::failed(format!("cannot read stdin: {error}"))),
        Err(LinesError::Write(error)) => Err(unwritten(&error)),
    }
}
