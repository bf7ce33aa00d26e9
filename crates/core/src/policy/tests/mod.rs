//! The chain, as an operation's `data` shows it: JSON in, JSON out.

mod deletion;
mod scenarios;

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

fn name(text: &str) -> Region {
    Region::parse(text).unwrap()
}

/// Rooms by region; all of them may go.
fn standing(rooms: &[(&str, u64)]) -> BTreeMap<Region, Standing> {
    let standing = |(region, counted): &(&str, u64)| {
        (name(region), Standing { counted: *counted, ..Standing::default() })
    };
    rooms.iter().map(standing).collect()
}

fn fleet(regions: &BTreeMap<Region, Standing>) -> Fleet<'_> {
    Fleet { regions, bound_to: None, candidates: &[], seed: 7 }
}

/// Two regions that are alike.
fn one_and_two() -> PlacementPolicy {
    PlacementPolicy::even([name("RegionOne"), name("RegionTwo")])
}

/// What the chain makes of `data`.
fn checked(policies: &[Policy<'_>], action: &Action, fleet: &Fleet<'_>, data: &Value) -> Value {
    let outcome = check(policies, action, fleet, Data::from_json(data));
    if let Ok(data) = &outcome {
        assert_eq!(&Data::from_json(&to_json(&outcome)), data);
    }
    to_json(&outcome)
}
