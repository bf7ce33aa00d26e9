//! What the next cycle of the health controller would do with a recipe: the server's planner, run here on what the
//! server shows of its rooms and regions.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::plan::{
    Counted, FleetSnapshot, Limits, OldVersions, Place, Places, Plan, ReplacementRules, RoomFact, Scaling,
    plan,
};
use maestro_core::policy::PlacementPolicy;
use maestro_core::rollout::replacement_rules;
use maestro_core::room::{Region, RoomId, RoomStatus};
use maestro_core::scheduler::{OccupiedRooms, Recipe, RecipeChange, Version};
use maestro_core::text::count_of;
use maestro_core::time::{Millis, Timestamp};

use super::proposal::{Current, Proposal, recipe_of};
use crate::cli::{Client, Failure, Json, Resource};

/// Only the server knows its limits and its clock: here nothing is too much and nobody is late.
const NO_LIMITS: Limits = Limits {
    initialization_timeout: Millis(u64::MAX),
    ping_timeout: Millis(u64::MAX),
    deletion_timeout: Millis(u64::MAX),
    add_max: u32::MAX,
    remove_max: u32::MAX,
};

/// How the reason begins of a region that answers, and whose rooms nobody has looked for since the server started. The
/// list calls it unreachable; its rooms count all the same until the server has looked.
const NOT_ADOPTED: &str = "is not adopted yet";

/// One sentence a line.
#[derive(Default)]
pub(super) struct Forecast {
    first: Vec<String>,
    cycle: Vec<String>,
    /// What becomes of rooms with players; empty if none of them is replaced.
    pub(super) players: Vec<String>,
}

impl Forecast {
    pub(super) fn lines(self) -> Vec<String> {
        [self.first, self.cycle, self.players].concat()
    }
}

pub(super) fn forecast(client: &Client, proposal: &Proposal) -> Result<Forecast, Failure> {
    let recipe = &proposal.recipe;
    let now = Timestamp::now();
    let regions = Regions::read(client, recipe)?;
    let (change, version) = match &proposal.current {
        None => (None, Version::FIRST),
        Some(current) => (Some(current.difference.change()), current.next),
    };
    let first = match first(change, version, &regions.places) {
        Ok(lines) => lines,
        Err(line) => return Ok(Forecast { first: vec![line], ..Forecast::default() }),
    };
    let (rooms, versions) = match &proposal.current {
        None => (Vec::new(), OldVersions::Counted),
        Some(current) => {
            (rooms(client, recipe, current, &regions, now)?, old_versions(client, recipe, current)?)
        }
    };
    let (scaling, matches_max) = (Scaling::of(recipe, None), recipe.match_allocation.max_matches);
    // What the next scheduled cycle may do.
    let replacement = ReplacementRules { versions, ..replacement_rules(None, recipe, now, true) };
    let snapshot = FleetSnapshot {
        places: Some(&regions.places),
        ..FleetSnapshot::at_rest(now, scaling, matches_max, replacement, &rooms, NO_LIMITS)
    };
    let plan = plan(&snapshot);
    let players = players(&snapshot, &plan, recipe);
    Ok(Forecast { first, cycle: cycle(&snapshot, &plan, version), players })
}

/// What happens before the cycle; an error is why nothing happens at all.
fn first(change: Option<RecipeChange>, version: Version, places: &Places) -> Result<Vec<String>, String> {
    Ok(match change {
        None | Some(RecipeChange::None) => Vec::new(),
        Some(RecipeChange::Minor) => vec![format!("first: {version} becomes active")],
        Some(RecipeChange::Major) => {
            places.for_validation().map_err(|why| {
                format!("first: no room of {version} can be tried, and nothing is changed: {why}")
            })?;
            vec![format!("first: a room of {version} is tried; once it is ready, {version} becomes active")]
        }
    })
}

fn cycle(snapshot: &FleetSnapshot<'_>, plan: &Plan, version: Version) -> Vec<String> {
    let mut acts = Vec::new();
    if plan.add > 0 {
        acts.push(format!("starts {} of {version}", count_of(plan.add, "room")));
    }
    acts.extend(replacements(snapshot, plan));
    let too_many = plan.remove as usize + plan.rollout.as_ref().map_or(0, |rollout| rollout.surplus.len());
    if too_many > 0 {
        acts.push(format!("removes {too_many} above the wanted number"));
    }
    if !plan.expired.is_empty() {
        acts.push(format!("removes {} in error", plan.expired.len()));
    }
    if acts.is_empty() {
        acts.push("changes nothing".to_owned());
    }
    let Counted { total, ready, occupied, unreachable, .. } = plan.seen;
    let elsewhere = match unreachable {
        0 => String::new(),
        rooms => format!(", and {rooms} in regions that cannot be reached"),
    };
    let mut lines = vec![format!(
        "next cycle: {} ({ready} ready, {occupied} occupied{elsewhere}), {} wanted ({}): {}",
        count_of(total, "room"),
        plan.decision.desired,
        plan.decision.reason(),
        acts.join(", ")
    )];
    lines.extend(plan.held_back.iter().map(|held| format!("held back: {held}")));
    lines
}

/// What is removed of rooms whose version is old, and of rooms that are only in a drained region.
fn replacements(snapshot: &FleetSnapshot<'_>, plan: &Plan) -> Vec<String> {
    let Some(cycle) = &plan.rollout else { return Vec::new() };
    let old: BTreeSet<&RoomId> = replaced_rooms(snapshot).map(|room| &room.id).collect();
    let Counted { old: replaced, draining, .. } = plan.seen;
    let kinds = [(true, replaced - draining, "older versions"), (false, draining, "drained regions")];
    let mut acts = Vec::new();
    for (of_old, rooms, what) in kinds.into_iter().filter(|(_, rooms, _)| *rooms > 0) {
        let going = || cycle.replaced.iter().filter(|room| old.contains(&room.room) == of_old);
        let (gone, with_players) = (going().count(), going().filter(|room| room.serves_players).count());
        let of = format!("of {} of {what}", count_of(rooms, "room"));
        acts.push(match (gone, with_players) {
            (0, _) => format!("removes none {of} yet"),
            (gone, 0) => format!("removes {gone} {of}"),
            (gone, with_players) => format!("removes {gone} {of}, {with_players} with players in them"),
        });
    }
    acts
}

/// The rooms that are replaced because their version is old.
fn replaced_rooms<'a>(snapshot: &FleetSnapshot<'a>) -> impl Iterator<Item = &'a RoomFact> {
    let are_replaced = snapshot.replacement.versions == OldVersions::Replaced;
    snapshot.rooms.iter().filter(move |room| room.old && are_replaced)
}

/// What becomes of players whose rooms are replaced: how many rooms they are in, and when those are ended.
fn players(snapshot: &FleetSnapshot<'_>, plan: &Plan, recipe: &Recipe) -> Vec<String> {
    let Some(cycle) = &plan.rollout else { return Vec::new() };
    let with_players = match replaced_rooms(snapshot).filter(|room| room.status.serves_players()).count() {
        0 => return Vec::new(),
        1 => "1 room with players is of an older version".to_owned(),
        rooms => format!("{rooms} rooms with players are of older versions"),
    };
    let rules = recipe.rollout();
    let what = match (rules.occupied, rules.match_end_deadline) {
        (OccupiedRooms::WaitForMatchEnd, None) => "and stay until their matches end".to_owned(),
        (OccupiedRooms::WaitForMatchEnd, Some(deadline)) => {
            format!("and stay until their matches end, for {deadline} at most")
        }
        (OccupiedRooms::DeleteLast, _) => {
            let pace = match rules.occupied_interval {
                Millis(0) => String::new(),
                interval => format!(" every {interval}"),
            };
            format!(
                "and will be ended, after all others and at most {}{pace} (rollout.occupied: waitForMatchEnd lets their matches end first)",
                cycle.surge_max
            )
        }
    };
    vec![format!("players: {with_players} {what}")]
}

/// Whether rooms of older versions are replaced. A major version begins a rollout of its own, any other one takes over the
/// one that is there, paused or not.
fn old_versions(client: &Client, recipe: &Recipe, current: &Current) -> Result<OldVersions, Failure> {
    if current.difference.change() == RecipeChange::Major {
        return Ok(OldVersions::Replaced);
    }
    let resource = Resource::new(&["schedulers", recipe.name.as_str(), "rollout"]);
    Ok(match client.get(&resource, "state")?.get("state").as_str() {
        Some("paused") => OldVersions::Kept,
        // A rollout that was halted moves again.
        Some(_) | None => OldVersions::Replaced,
    })
}

fn rooms(
    client: &Client,
    recipe: &Recipe,
    current: &Current,
    regions: &Regions,
    now: Timestamp,
) -> Result<Vec<RoomFact>, Failure> {
    let resource = Resource::new(&["schedulers", recipe.name.as_str(), "rooms"]);
    let answer = client.get(&resource, "rooms")?;
    let is_old =
        |recipe_of_room: &Recipe| RecipeChange::between(recipe_of_room, recipe) == RecipeChange::Major;
    let mut old_versions = BTreeMap::from([(current.version, is_old(&current.recipe))]);
    let mut facts = Vec::new();
    for room in answer.get("rooms").items() {
        let Some((version, mut fact)) = fact(room, recipe.match_allocation.max_matches, regions, now) else {
            continue;
        };
        fact.old = match old_versions.get(&version) {
            Some(old) => *old,
            None => {
                // A version that is gone can only be replaced.
                let found = recipe_of(client, &recipe.name, Some(version))?;
                let old = found.is_none_or(|(recipe, _)| is_old(&recipe));
                old_versions.insert(version, old);
                old
            }
        };
        facts.push(fact);
    }
    Ok(facts)
}

/// `None` for rooms that are no part of the fleet.
fn fact(room: &Json, matches_max: u32, regions: &Regions, now: Timestamp) -> Option<(Version, RoomFact)> {
    if room.get("validation").is_true() {
        return None;
    }
    let version = Version::parse(room.get("version").as_str()?).ok()?;
    let status = RoomStatus::parse(room.get("status").as_str()?)?;
    let region = Region(room.get("region").as_str().unwrap_or(Region::DEFAULT).into());
    let place = regions.places.regions.get(&region);
    let fact = RoomFact {
        id: RoomId::new(room.get("id").as_str()?),
        status,
        version,
        old: false,
        draining: place.is_some_and(|place| place.draining),
        // Lists do not say how many matches a room has: all of them if it is occupied, else one.
        matches: match status {
            RoomStatus::Occupied => matches_max,
            _ => u32::from(status.serves_players()),
        },
        created_at: now,
        heard_at: Some(now),
        known: !regions.not_adopted.contains(&region),
        was_ready: true,
        held: false,
        leaving: false,
        reachable: place.is_some_and(|place| place.reachable),
        region,
        reachable_since: None,
        spared_until: room.get("silent").get("until").as_str().and_then(|until| until.parse().ok()),
    };
    Some((version, fact))
}

/// The regions as rooms of one recipe may use them.
struct Regions {
    places: Places,
    /// Regions whose rooms are not known yet.
    not_adopted: Vec<Region>,
}

impl Regions {
    fn read(client: &Client, recipe: &Recipe) -> Result<Self, Failure> {
        let answer = client.get(&Resource::new(&["regions"]), "regions")?;
        let (mut regions, mut not_adopted) = (BTreeMap::new(), Vec::new());
        for listed in answer.get("regions").items() {
            let Some(name) = listed.get("name").as_str().map(|name| Region(name.into())) else { continue };
            if !listed.get("reachable").is_true() && reason(listed).starts_with(NOT_ADOPTED) {
                not_adopted.push(name.clone());
            }
            regions.insert(name.clone(), place(&name, listed));
        }
        let policy = recipe.policies.placement.clone();
        let policy = policy.unwrap_or_else(|| PlacementPolicy::even(regions.keys().cloned()));
        let places = Places { regions, policy, bound_to: recipe.spec.region.clone() };
        Ok(Self { places, not_adopted })
    }
}

/// In the words in which the server says why a region gets no new rooms.
fn place(name: &Region, listed: &Json) -> Place {
    let (answers, reason) = (listed.get("reachable").is_true(), reason(listed));
    let closed = match (answers, listed.get("cordoned").is_true(), reason) {
        (true, false, _) => None,
        (true, true, "") => Some(format!("{name} is cordoned")),
        (true, true, reason) => Some(format!("{name} is {reason}")),
        (false, _, "") => Some(format!("{name} cannot be reached")),
        (false, _, reason) => Some(format!("{name} {reason}")),
    };
    Place {
        reachable: answers || reason.starts_with(NOT_ADOPTED),
        closed,
        draining: listed.get("draining").is_true(),
        // What other fleets have of it is not known here.
        capacity: None,
    }
}

fn reason(listed: &Json) -> &str {
    listed.get("reason").as_str().unwrap_or_default()
}
