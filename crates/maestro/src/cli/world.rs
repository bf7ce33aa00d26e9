//! `maestro simulate --world`: one life of the whole engine in a simulated world, as a story.

use std::fmt::Write as _;

use maestro_simulation::lives::{self, Kind, Outcome};

use super::failure::{Exit, Failure};
use super::output;

/// What is lived.
pub(super) struct Life<'a> {
    pub(super) seed: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
}

/// The same seed tells the same story. A broken invariant is a failure.
pub(super) fn run(life: &Life<'_>) -> Result<(), Failure> {
    let seed = life.seed.unwrap_or("1");
    let seed: u64 =
        seed.parse().map_err(|_| Failure::invalid(format!("--seed {seed}: a world needs a whole number")))?;
    let kind = life.kind.map(kind).transpose()?;
    let outcome = lives::run(seed, &lives::Options { kind, ..lives::Options::default() });
    output::print(&story(seed, &outcome))?;
    if outcome.violations.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(Exit::Failed, outcome.violations.join("\n")))
    }
}

fn kind(text: &str) -> Result<Kind, Failure> {
    let known = || Kind::ALL.map(Kind::as_str).join(", ");
    Kind::parse(text).ok_or_else(|| {
        Failure::invalid(format!("--kind {text}: there is no such life; there are {}", known()))
    })
}

fn story(seed: u64, outcome: &Outcome) -> String {
    let Outcome { kind, on_sqlite, trace, simulated, violations, rare } = outcome;
    let store = if *on_sqlite { "SQLite" } else { "a store in memory" };
    let mut story = format!("seed {seed}: a life of kind {}, on {store}\n", kind.as_str());
    story += "seconds since it began, who, and what happened\n\n";
    for line in trace {
        story += line;
        story.push('\n');
    }
    // Writing to a text cannot fail.
    let _ = write!(story, "\nlived         {} min of simulated time\n", simulated.as_secs() / 60);
    let seen: Vec<_> = rare.iter().map(|(rare, times)| format!("{} ({times})", rare.as_str())).collect();
    let _ =
        writeln!(story, "rare things   {}", if seen.is_empty() { "none".into() } else { seen.join(", ") });
    let held = if violations.is_empty() { "all hold".into() } else { format!("{} broken", violations.len()) };
    let _ = writeln!(story, "invariants    {held}");
    story
}
