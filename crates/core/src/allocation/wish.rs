//! Which rooms a matchmaker accepts, and which of them it gets first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::region::Region;
use crate::scheduler::Version;

/// So many rooms are looked at for one allocation whose wishes no index answers.
pub const CANDIDATES_MAX: usize = 256;

/// One wish of a request. What it does not name may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// The first is preferred.
    pub regions: Vec<Region>,
    pub version: Option<Version>,
    /// What the room must say in the metadata of its pings, by key.
    pub metadata: BTreeMap<String, Value>,
}

/// What decides which rooms of a scheduler matchmakers get, as its worker says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllocationRules {
    /// Versions whose rooms are to be replaced: they are handed out last.
    pub old_versions: Vec<Version>,
    /// Regions that are drained: their rooms are handed out last.
    pub draining_regions: Vec<Region>,
    /// Regions that cannot be reached: their rooms are not handed out.
    pub unreachable_regions: Vec<Region>,
    /// `None`: nobody knows yet.
    pub version_of_new_rooms: Option<Version>,
    /// Regions that may get more rooms; `None`: nobody knows yet.
    pub growing_regions: Option<Vec<Region>>,
}

impl Wish {
    /// How much a room of this version in this region is preferred: the lowest rank first. `None`: it does not fit.
    pub fn rank(&self, version: Version, region: &Region, rules: &AllocationRules) -> Option<(usize, bool)> {
        if self.version.is_some_and(|wanted| wanted != version) || rules.unreachable_regions.contains(region)
        {
            return None;
        }
        let preference = match self.regions.is_empty() {
            true => 0,
            false => self.regions.iter().position(|wanted| wanted == region)?,
        };
        let is_to_be_replaced =
            rules.old_versions.contains(&version) || rules.draining_regions.contains(region);
        Some((preference, is_to_be_replaced))
    }

    /// Whether what the room says of itself fits: a JSON object, or nothing.
    pub fn accepts(&self, metadata: Option<&str>) -> bool {
        if self.metadata.is_empty() {
            return true;
        }
        let Some(Ok(said)) = metadata.map(serde_json::from_str::<Value>) else { return false };
        self.metadata.iter().all(|(key, wanted)| said.get(key) == Some(wanted))
    }

    /// The same text for the same wish, in every release: what is stored of a request depends on it.
    pub(super) fn canonical(&self) -> String {
        let Self { regions, version, metadata } = self;
        let regions: Vec<&str> = regions.iter().map(Region::as_str).collect();
        let version = version.map(|version| version.to_string());
        json!({"regions": regions, "version": version, "metadata": metadata}).to_string()
    }

    /// Whether one room can fit both.
    fn overlaps(&self, other: &Self) -> bool {
        let versions = match (self.version, other.version) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        let regions = self.regions.is_empty()
            || other.regions.is_empty()
            || self.regions.iter().any(|region| other.regions.contains(region));
        let differs = |(key, value)| other.metadata.get(key).is_some_and(|other| other != value);
        versions && regions && !self.metadata.iter().any(differs)
    }
}

/// Whether a new room might be accepted. What metadata new rooms will have is not known.
pub fn fits_new_room(wishes: &[Wish], rules: &AllocationRules) -> bool {
    let grows = |region: &Region| rules.growing_regions.as_ref().is_none_or(|all| all.contains(region));
    let fits = |wish: &Wish| {
        let version =
            wish.version.is_none_or(|wanted| rules.version_of_new_rooms.is_none_or(|new| new == wanted));
        let region = wish.regions.is_empty() || wish.regions.iter().any(grows);
        wish.metadata.is_empty() && version && region
    };
    wishes.is_empty() || wishes.iter().any(fits)
}

/// Whether there can be a room that both of two requests accept. No wishes accept every room.
pub fn overlap(one: &[Wish], other: &[Wish]) -> bool {
    let anything = [Wish::default()];
    let or_anything = |wishes| if <[Wish]>::is_empty(wishes) { &anything[..] } else { wishes };
    let (one, other) = (or_anything(one), or_anything(other));
    one.iter().any(|wish| other.iter().any(|other| wish.overlaps(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str) -> Region {
        Region(name.into())
    }

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn in_regions(names: &[&str]) -> Wish {
        Wish { regions: names.iter().map(|name| region(name)).collect(), ..Wish::default() }
    }

    fn saying(metadata: &Value) -> Wish {
        let metadata = metadata.as_object().unwrap().clone();
        Wish { metadata: metadata.into_iter().collect(), ..Wish::default() }
    }

    #[test]
    fn ranks() {
        let rules = AllocationRules {
            old_versions: vec![version("v1.0.0")],
            draining_regions: vec![region("south")],
            unreachable_regions: vec![region("west")],
            ..AllocationRules::default()
        };
        let of_v2 = Wish { version: Some(version("v2.0.0")), ..Wish::default() };
        for (wish, room, expected) in [
            (Wish::default(), ("v2.0.0", "north"), Some((0, false))),
            (Wish::default(), ("v1.0.0", "north"), Some((0, true))),
            (Wish::default(), ("v2.0.0", "south"), Some((0, true))),
            (Wish::default(), ("v2.0.0", "west"), None),
            (in_regions(&["south", "north"]), ("v2.0.0", "north"), Some((1, false))),
            (in_regions(&["south", "north"]), ("v2.0.0", "south"), Some((0, true))),
            (in_regions(&["south"]), ("v2.0.0", "north"), None),
            (of_v2.clone(), ("v2.0.0", "north"), Some((0, false))),
            (of_v2, ("v1.0.0", "north"), None),
        ] {
            assert_eq!(wish.rank(version(room.0), &region(room.1), &rules), expected, "{wish:?} {room:?}");
        }
    }

    #[test]
    fn new_rooms() {
        let rules = AllocationRules {
            version_of_new_rooms: Some(version("v2.0.0")),
            growing_regions: Some(vec![region("north")]),
            ..AllocationRules::default()
        };
        let of = |text| Wish { version: Some(version(text)), ..Wish::default() };
        for (wishes, expected) in [
            (vec![], true),
            (vec![Wish::default()], true),
            (vec![of("v2.0.0")], true),
            (vec![of("v1.0.0")], false),
            (vec![of("v1.0.0"), Wish::default()], true),
            (vec![in_regions(&["south"])], false),
            (vec![in_regions(&["south", "north"])], true),
            // There is no such region.
            (vec![in_regions(&["mars"])], false),
            (vec![in_regions(&["mars"]), Wish::default()], true),
            (vec![saying(&json!({"mode": "duel"}))], false),
        ] {
            assert_eq!(fits_new_room(&wishes, &rules), expected, "{wishes:?}");
        }
    }

    #[test]
    fn metadata() {
        let wish = saying(&json!({"mode": "duel", "level": 3}));
        for (said, expected) in [
            (Some(r#"{"level":3,"mode":"duel","map":"ruins"}"#), true),
            (Some(r#"{"level":"3","mode":"duel"}"#), false),
            (Some(r#"{"mode":"duel"}"#), false),
            (Some("{}"), false),
            (None, false),
        ] {
            assert_eq!(wish.accepts(said), expected, "{said:?}");
            assert!(Wish::default().accepts(said));
        }
    }

    #[test]
    fn overlaps() {
        let v1 = Wish { version: Some(version("v1.0.0")), ..Wish::default() };
        let v2 = Wish { version: Some(version("v2.0.0")), ..Wish::default() };
        let (north, south) = (in_regions(&["north"]), in_regions(&["south"]));
        let (duel, siege) = (saying(&json!({"mode": "duel"})), saying(&json!({"mode": "siege"})));
        let map = saying(&json!({"map": "ruins"}));
        for (one, other, expected) in [
            (vec![], vec![], true),
            (vec![], vec![v1.clone()], true),
            (vec![v1.clone()], vec![v2.clone()], false),
            (vec![v1.clone(), v2.clone()], vec![v2], true),
            (vec![v1], vec![north.clone()], true),
            (vec![north.clone()], vec![south], false),
            (vec![north], vec![in_regions(&["south", "north"])], true),
            (vec![duel.clone()], vec![siege], false),
            (vec![duel], vec![map], true),
        ] {
            assert_eq!(overlap(&one, &other), expected, "{one:?} {other:?}");
            assert_eq!(overlap(&other, &one), expected, "{other:?} {one:?}");
        }
    }
}
