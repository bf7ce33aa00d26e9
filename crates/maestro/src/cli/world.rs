//! `maestro simulate --world`: one run of the whole engine in a simulated world, as a story.

use std::fmt::Write as _;

use maestro_simulation::scenarios::{self, Kind, Outcome};
use serde_json::{Value, json};

use super::{Failure, Format, output};

/// The same seed tells the same story. A broken invariant is a failure.
pub(super) fn run(format: Format, seed: Option<&str>, kind: Option<&str>) -> Result<(), Failure> {
    let seed = seed.unwrap_or("1");
    let wrong = || format!("--seed {seed}: must be a whole number up to {}", u64::MAX);
    let seed: u64 = seed.parse().map_err(|_| Failure::invalid(wrong()))?;
    let kind = kind.map(parse_kind).transpose()?;
    let outcome = scenarios::run(seed, &scenarios::Options { kind, ..scenarios::Options::default() });
    output::show(format, &document(seed, &outcome), |_| story(seed, &outcome))?;
    if outcome.violations.is_empty() { Ok(()) } else { Err(Failure::failed(outcome.violations.join("\n"))) }
}

fn parse_kind(text: &str) -> Result<Kind, Failure> {
    let known = || Kind::ALL.map(Kind::as_str).join(", ");
    Kind::parse(text)
        .ok_or_else(|| Failure::invalid(format!("--kind {text}: unknown kind; must be one of {}", known())))
}

/// The same for programs.
fn document(seed: u64, outcome: &Outcome) -> Value {
    let Outcome { kind, on_sqlite, trace, simulated, violations, coverage } = outcome;
    let rare: serde_json::Map<String, Value> =
        coverage.iter().map(|(event, times)| (event.as_str().to_owned(), json!(times))).collect();
    json!({
        "seed": seed,
        "kind": kind.as_str(),
        "store": if *on_sqlite { "sqlite" } else { "memory" },
        "simulatedSeconds": simulated.as_secs(),
        "rare": rare,
        "violations": violations,
        "trace": trace,
    })
}

fn story(seed: u64, outcome: &Outcome) -> String {
    let Outcome { kind, on_sqlite, trace, simulated, violations, coverage } = outcome;
    let store = if *on_sqlite { "SQLite" } else { "a store in memory" };
    let mut story = format!("seed {seed}: a run of kind {}, on {store}\n", kind.as_str());
    story += "seconds since it began, which was at midnight; who; and what happened\n";
    story += "an operation is known by its kind and the end of its id; “…” is what its history says\n\n";
    for line in trace {
        story += line;
        story.push('\n');
    }
    // Writing to a text cannot fail.
    let _ = write!(story, "\nran           {} min of simulated time\n", simulated.as_secs() / 60);
    let seen: Vec<_> =
        coverage.iter().map(|(event, times)| format!("{} ({times})", event.as_str())).collect();
    let _ =
        writeln!(story, "rare events   {}", if seen.is_empty() { "none".into() } else { seen.join(", ") });
    let held = if violations.is_empty() { "all hold".into() } else { format!("{} broken", violations.len()) };
    let _ = writeln!(story, "invariants    {held}");
    story
}
