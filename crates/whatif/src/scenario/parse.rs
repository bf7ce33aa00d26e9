//! From a document to a scenario. All errors are reported at once.

use std::path::Path;

use maestro_core::plan::Limits;
use maestro_core::scheduler::{Fraction, Recipe, Version, WHOLE};
use maestro_core::time::Millis;
use maestro_core::violation::{Violation, Violations};
use maestro_proto::document::{name, without_place};
use maestro_proto::v1::CreateSchedulerRequest;
use serde_json::{Map, Value};

use super::demand::{Demand, SpikeTimes};
use super::document::{Draft, read_object, read_text};
use super::{CYCLES_MAX, Length, MATCHES_MAX, ROOMS_MAX, Scenario, ScenarioError, Share, Start, csv};
use crate::fields::{Fields, Findings};

/// The loop of the two reference scenarios, in which rooms with players may go at each cycle.
const CYCLE: Millis = Millis::from_seconds(30);
/// What a server does that nobody told otherwise.
const LIMITS: Limits = Limits {
    initialization_timeout: Millis::from_seconds(120),
    ping_timeout: Millis::from_seconds(240),
    deletion_timeout: Millis::from_seconds(120),
    add_max: 1000,
    remove_max: 1000,
};

const HOUR: Millis = Millis::from_seconds(3600);

/// A scenario, and the fields of its recipe that no schema knows.
#[derive(Debug)]
pub struct Parsed {
    pub scenario: Scenario,
    pub unknown_fields: Vec<String>,
}

impl Draft {
    pub fn parse(self) -> Result<Parsed, ScenarioError> {
        let findings = Findings::default();
        let values = Value::Object(self.values).to_string();
        let mut root = Fields::none(String::new(), &findings);
        root.read(&values, 1).map_err(|reason| Violations(vec![Violation::new("", reason)]))?;
        let prefix = if self.is_recipe { "" } else { "scheduler." };
        let recipe = recipe(&root, prefix, &self.directory, &findings)?;
        let start = start(&root);
        let demand = demand(&root, &self.directory)?;
        let cycle = root.time_above_zero("cycle").unwrap_or(CYCLE);
        let length = length(&root, cycle);
        let room_start = root.time("roomStart").unwrap_or(Millis(0));
        let failures = root.parsed("failures", share).unwrap_or(Share { millionths: 0 });
        let new_version_at = new_version_at(&root);
        let match_length = root.time_above_zero("matchLength");
        let seed = root.whole("seed", 0..=u64::MAX).unwrap_or(0);
        let limits = limits(&root);
        root.refuse_unknown();

        // None of them is missing without a finding.
        let (Some((recipe, unknown_fields)), Some(start), Some(limits)) = (recipe, start, limits) else {
            return Err(Violations(findings.into_violations()).into());
        };
        let matches = u64::from(start.occupied) * u64::from(recipe.match_allocation.max_matches);
        let matches = u32::try_from(matches).unwrap_or(u32::MAX);
        if matches > MATCHES_MAX {
            let reason = format!("{} full rooms hold more than {MATCHES_MAX} matches", start.occupied);
            findings.add(Violation::new("rooms.occupied", reason));
        }
        if !findings.is_empty() {
            return Err(Violations(findings.into_violations()).into());
        }
        let demand = demand.unwrap_or_else(|| Demand::constant(matches));
        let scenario = Scenario {
            length: length.unwrap_or_else(|| default_length(&demand, cycle)),
            recipe,
            start,
            demand,
            cycle,
            room_start,
            failures,
            new_version_at,
            match_length,
            seed,
            limits,
        };
        Ok(Parsed { scenario, unknown_fields })
    }
}

/// The recipe as written in the document, or in a file of its own.
fn recipe(
    root: &Fields<'_>,
    prefix: &str,
    directory: &Path,
    findings: &Findings,
) -> Result<Option<(Recipe, Vec<String>)>, ScenarioError> {
    let (json, prefix) = match (root.json("scheduler"), root.text("scheduler")) {
        (Some(json), _) if json.starts_with('{') => (json.to_owned(), prefix.to_owned()),
        (Some(json), Some(path)) if json.starts_with('"') => {
            let path = directory.join(&*path);
            let values = unwrapped(read_object(&path, "a scheduler's recipe")?);
            (Value::Object(values).to_string(), format!("{}: ", name(&path)))
        }
        (Some(other), _) => {
            return Ok(root.refuse("scheduler", format!("{other} is neither a recipe nor the path of one")));
        }
        (None, _) => {
            return Ok(root.refuse("scheduler", "is missing; a recipe, or the path of one, is needed"));
        }
    };
    let refuse =
        |field: &str, reason: String| findings.add(Violation::new(format!("{prefix}{field}"), reason));
    match maestro_proto::json::decode::<CreateSchedulerRequest>(json.as_bytes()) {
        Ok(decoded) => match Recipe::try_from(&decoded.message) {
            Ok(recipe) => return Ok(Some((recipe, decoded.unknown_fields))),
            Err(Violations(violations)) => {
                for Violation { field, reason } in violations {
                    refuse(&field, reason);
                }
            }
        },
        Err(error) => {
            // Its position is that in our own text of the recipe, which nobody has seen.
            refuse(&error.field, without_place(&error.reason).to_owned());
        }
    }
    Ok(None)
}

/// What `scheduler get -o yaml` printed has the recipe inside `scheduler`.
fn unwrapped(mut values: Map<String, Value>) -> Map<String, Value> {
    match values.remove("scheduler") {
        Some(Value::Object(recipe)) if values.is_empty() => recipe,
        Some(other) => {
            values.insert("scheduler".to_owned(), other);
            values
        }
        None => values,
    }
}

fn start(root: &Fields<'_>) -> Option<Start> {
    let rooms = root.object("rooms")?;
    let start = Start {
        ready: rooms.whole("ready", 0..=ROOMS_MAX).unwrap_or(0),
        occupied: rooms.whole("occupied", 0..=ROOMS_MAX).unwrap_or(0),
        version: rooms.parsed("version", Version::parse).unwrap_or(Version::FIRST),
    };
    if start.ready + start.occupied > ROOMS_MAX {
        rooms.refuse::<()>("ready", format!("ready and occupied are more than {ROOMS_MAX} rooms"));
    }
    rooms.refuse_unknown();
    Some(start)
}

fn demand(root: &Fields<'_>, directory: &Path) -> Result<Option<Demand>, ScenarioError> {
    if root.json("demand").is_none_or(|json| !json.starts_with('{')) {
        return Ok(root.whole("demand", 0..=MATCHES_MAX).map(Demand::constant));
    }
    let Some(block) = root.object("demand") else { return Ok(None) };
    let constant = block.whole("constant", 0..=MATCHES_MAX);
    let demand = match (constant, block.text("csv"), block.text("curve")) {
        (Some(matches), None, None) => Some(Demand::constant(matches)),
        (None, Some(path), None) => Some(from_file(&directory.join(&*path))?),
        (None, None, Some(curve)) => match built_in(&block, &curve) {
            Ok(demand) => demand,
            // What else is there belongs to a curve that nobody knows.
            Err(UnknownCurve) => return Ok(None),
        },
        (None, None, None) => None,
        (_, _, _) => root.refuse("demand", "must have only one of constant, csv and curve"),
    };
    block.refuse_unknown();
    Ok(demand)
}

fn from_file(path: &Path) -> Result<Demand, ScenarioError> {
    let text = read_text(path)?;
    csv::parse(&text).map_err(|reason| ScenarioError::Content { name: name(path), reason })
}

struct UnknownCurve;

fn built_in(block: &Fields<'_>, curve: &str) -> Result<Option<Demand>, UnknownCurve> {
    let matches = |name| block.whole(name, 0..=MATCHES_MAX);
    let required_matches = |name| block.required_whole(name, 0..=MATCHES_MAX);
    let time = |name, seconds| block.time(name).unwrap_or(Millis::from_seconds(seconds));
    Ok(match curve {
        "day" => {
            let (low, high) = (matches("low").unwrap_or(0), required_matches("high"));
            let period = block.time_above_zero("period").unwrap_or(Millis(24 * HOUR.0));
            high.map(|high| Demand::day(low, high, period))
        }
        "launch" => {
            let (peak, settle) = (required_matches("peak"), matches("settle"));
            let (rise, fall) = (time("rise", 3600), time("fall", 6 * 3600));
            peak.map(|peak| Demand::launch(peak, settle.unwrap_or(peak / 2), rise, fall))
        }
        "spike" => {
            let (base, peak) = (matches("base").unwrap_or(0), required_matches("peak"));
            let (at, rise) = (time("at", 600), time("rise", 60));
            let times = SpikeTimes { at, rise, hold: time("hold", 600), fall: time("fall", 300) };
            peak.map(|peak| Demand::spike(base, peak, times))
        }
        unknown => {
            block.refuse::<()>("curve", format!("{unknown:?} is not day, launch or spike"));
            return Err(UnknownCurve);
        }
    })
}

fn length(root: &Fields<'_>, cycle: Millis) -> Option<Length> {
    let cycles = root.whole("cycles", 1..=CYCLES_MAX);
    let duration = root.time_above_zero("duration");
    match (cycles, duration) {
        (Some(cycles), None) => Some(Length::Cycles(cycles)),
        (None, Some(duration)) => match cycles_in(duration, cycle) {
            Some(cycles) => Some(Length::Cycles(cycles)),
            None => root.refuse("duration", format!("is more than {CYCLES_MAX} cycles of {cycle}")),
        },
        (None, None) => None,
        (Some(_), Some(_)) => root.refuse("duration", "cannot be combined with cycles"),
    }
}

fn cycles_in(duration: Millis, cycle: Millis) -> Option<u32> {
    let cycles = u32::try_from(duration.0.div_ceil(cycle.0)).ok()?;
    Some(cycles).filter(|cycles| *cycles <= CYCLES_MAX)
}

/// What repeats has no end of its own: it is shown once.
fn default_length(demand: &Demand, cycle: Millis) -> Length {
    let once = demand.period().map(|period| cycles_in(period, cycle).unwrap_or(CYCLES_MAX));
    once.map_or(Length::UntilRest, Length::Cycles)
}

fn share(text: &str) -> Result<Share, String> {
    let millionths = match text {
        "0" | "0.0" => 0,
        "1" | "1.0" => Share::WHOLE,
        text => Fraction::parse(text)
            .ok()
            .and_then(millionths)
            .ok_or_else(|| format!("{text} is not a decimal from 0 to 1 with at most 6 digits"))?,
    };
    Ok(Share { millionths })
}

/// `None`: it has more digits.
fn millionths(fraction: Fraction) -> Option<u32> {
    let millionth = WHOLE / u64::from(Share::WHOLE);
    let is_exact = fraction.units().is_multiple_of(millionth);
    is_exact.then_some(fraction.units() / millionth).and_then(|count| u32::try_from(count).ok())
}

fn new_version_at(root: &Fields<'_>) -> Option<Millis> {
    root.json("newVersion")?;
    let block = root.object("newVersion")?;
    let at = block.time("at").unwrap_or(Millis(0));
    block.refuse_unknown();
    Some(at)
}

fn limits(root: &Fields<'_>) -> Option<Limits> {
    let block = root.object("limits")?;
    let timeout = block.time_above_zero("initializationTimeout");
    let limits = Limits {
        add_max: block.whole("addRooms", 1..=ROOMS_MAX).unwrap_or(LIMITS.add_max),
        remove_max: block.whole("removeRooms", 1..=ROOMS_MAX).unwrap_or(LIMITS.remove_max),
        initialization_timeout: timeout.unwrap_or(LIMITS.initialization_timeout),
        ..LIMITS
    };
    block.refuse_unknown();
    Some(limits)
}
