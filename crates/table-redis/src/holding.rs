//! Rooms for matchmakers.
//!
//! Which groups of rooms a wish prefers is decided by [`Wish::rank`], here. A script gets the ranks, and what they were
//! made of: if rules or groups are others by then, it says so, and they are made again. What a room says of itself is
//! compared here too: a script lists candidates, and another one holds those that were found to fit, if they still say so.

use std::sync::Arc;

use maestro_core::allocation::{AllocationRules, CANDIDATES_MAX, ClaimNumber, Wish};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_engine::ports::room_table::{HeldRoom, HoldAnswer, HoldRequest};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::record::{address, version};
use crate::rules::parse_rules;
use crate::scripts::{HOLD_STALE, Script, WISH_LISTED, WISH_RANKED};
use crate::table::Table;

/// For so many allocations, rooms are held in one script.
const ALLOCATIONS_MAX: usize = 256;

/// How often one call asks again: because rules or groups have changed meanwhile, or because hundreds of rooms were found
/// silent at once.
const ROUNDS_MAX: usize = 1000;

/// More schedulers than one process allocates rooms of. Beyond that, everything is looked up again.
const KNOWN_MAX: usize = 10_000;

/// What ranks are made of, as Redis had it last.
#[derive(Default)]
pub(crate) struct KnownGroups {
    rules_text: String,
    rules: AllocationRules,
    /// In their order, which decides among equals.
    pairs: Vec<(Version, Region)>,
}

/// A room, and what it says if that fits.
type Listed = (String, Option<String>);

/// A wish as groups.lua reads it.
#[derive(Serialize)]
#[serde(untagged)]
enum WishAsked {
    /// The rank of each pair; below 0: it does not fit.
    Ranked(u8, Vec<i64>),
    /// Rooms in their order.
    Listed(u8, Vec<Listed>),
}

/// As hold.lua reads it.
#[derive(Serialize)]
struct RequestAsked {
    /// Those that want the same have the same.
    class: usize,
    now: i64,
    expires_at: i64,
    heard_since: i64,
    latest: i64,
    metadata: String,
    /// The draw is in two halves.
    allocations: Vec<(String, u64, u64)>,
    wishes: Vec<WishAsked>,
}

#[derive(Deserialize)]
struct Answer<T> {
    word: u8,
    rules: String,
    pairs: Vec<(String, String)>,
    answers: Vec<T>,
}

/// What was held, and how many rooms were found silent.
#[derive(Deserialize)]
struct HeldAnswer(Vec<HeldRecord>, usize);

#[derive(Deserialize)]
struct HeldRecord {
    room: String,
    number: u64,
    version: String,
    region: String,
    address: String,
    matches_max: u32,
}

impl Table {
    /// All are of one scheduler.
    pub(crate) async fn hold_rooms(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        requests: &[HoldRequest<'_>],
    ) -> Result<Vec<HoldAnswer>, Failure> {
        self.note_holds(scheduler).await?;
        let mut answers: Vec<HoldAnswer> = Vec::with_capacity(requests.len());
        for _ in 0..ROUNDS_MAX {
            let Some(next) = requests.get(answers.len()) else { return Ok(answers) };
            if nobody_found(&requests[..answers.len()], &answers, next) {
                answers.push(HoldAnswer::NotEnough);
            } else if is_for_metadata(next) {
                answers.push(self.hold_by_metadata(scheduler, next).await?);
            } else {
                let together = together(&requests[answers.len()..]);
                let held = self.hold_ranked(scheduler, together).await?;
                answers.extend(held);
            }
        }
        Err(too_many_rounds())
    }

    /// Answers the first of them, and maybe more.
    async fn hold_ranked(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        requests: &[HoldRequest<'_>],
    ) -> Result<Vec<HoldAnswer>, Failure> {
        let ask = |groups: &KnownGroups| {
            let asked = |(place, request): (usize, &HoldRequest<'_>)| {
                let class = requests[..place].iter().position(|other| other.wants_the_same(request));
                let wishes = wishes_of(request).iter().map(|wish| groups.ranked(wish)).collect();
                request_asked(request, class.unwrap_or(place), wishes)
            };
            requests.iter().enumerate().map(asked).collect::<Vec<_>>()
        };
        let held: Vec<HeldAnswer> =
            self.run_ranked(&self.scripts.hold, scheduler, |groups| (ask(groups),)).await?;
        held.into_iter().zip(requests).map(|(HeldAnswer(held, _), request)| answer(request, held)).collect()
    }

    async fn hold_by_metadata(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        request: &HoldRequest<'_>,
    ) -> Result<HoldAnswer, Failure> {
        for _ in 0..ROUNDS_MAX {
            let mut listed: Vec<Option<Vec<Listed>>> = Vec::new();
            for wish in request.wishes {
                listed.push(match wish.metadata.is_empty() {
                    true => None,
                    false => Some(self.candidates(scheduler, request, wish).await?),
                });
            }
            let is_full = listed.iter().flatten().any(|rooms| rooms.len() == CANDIDATES_MAX);
            let ask = |groups: &KnownGroups| {
                let asked = |(wish, listed): (&Wish, &Option<Vec<_>>)| match listed {
                    Some(rooms) => WishAsked::Listed(WISH_LISTED, rooms.clone()),
                    None => groups.ranked(wish),
                };
                let wishes = request.wishes.iter().zip(&listed).map(asked).collect();
                [request_asked(request, 0, wishes)]
            };
            let held: Vec<HeldAnswer> =
                self.run_ranked(&self.scripts.hold, scheduler, |groups| (ask(groups),)).await?;
            let Some(HeldAnswer(held, silent)) = held.into_iter().next() else { continue };
            // Rooms that were found silent are no candidates any more: others may be listed in their place.
            if !held.is_empty() || !is_full || silent == 0 {
                return answer(request, held);
            }
        }
        Err(too_many_rounds())
    }

    async fn candidates(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        request: &HoldRequest<'_>,
        wish: &Wish,
    ) -> Result<Vec<Listed>, Failure> {
        let (high, low) = halves(request.draw);
        let ask = |groups: &KnownGroups| (groups.ranks(wish), high, low, CANDIDATES_MAX);
        let found: Vec<(String, String)> = self.run_ranked(&self.scripts.candidates, scheduler, ask).await?;
        let judged = |(room, said): (String, String)| {
            let fits = wish.accepts(Some(&said));
            (room, fits.then_some(said))
        };
        Ok(found.into_iter().map(judged).collect())
    }

    /// Runs a script that gets rules and pairs, and then what `ask` makes of them.
    async fn run_ranked<T, A>(
        self: &Arc<Self>,
        script: &Script,
        scheduler: &SchedulerName,
        ask: impl Fn(&KnownGroups) -> A,
    ) -> Result<Vec<T>, Failure>
    where
        T: for<'de> Deserialize<'de>,
        A: Serialize,
    {
        let mut groups = self.groups.lock().get(scheduler).cloned().unwrap_or_default();
        for _ in 0..ROUNDS_MAX {
            let pairs: Vec<_> =
                groups.pairs.iter().map(|(version, region)| (version.to_string(), region.as_str())).collect();
            let answer: Answer<T> =
                self.run(script, scheduler, &(&groups.rules_text, pairs, ask(&groups))).await?;
            if answer.word != HOLD_STALE {
                return Ok(answer.answers);
            }
            groups = Arc::new(KnownGroups::read(answer.rules, answer.pairs)?);
            let mut known = self.groups.lock();
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(scheduler.clone(), groups.clone());
        }
        Err(too_many_rounds())
    }
}

impl KnownGroups {
    fn read(rules_text: String, pairs: Vec<(String, String)>) -> Result<Self, Failure> {
        let pair = |(text, region): (String, String)| Ok((version(&text)?, Region(region.into())));
        let mut pairs = pairs.into_iter().map(pair).collect::<Result<Vec<_>, Failure>>()?;
        pairs.sort();
        Ok(Self { rules: parse_rules(&rules_text)?, rules_text, pairs })
    }

    fn ranked(&self, wish: &Wish) -> WishAsked {
        WishAsked::Ranked(WISH_RANKED, self.ranks(wish))
    }

    fn ranks(&self, wish: &Wish) -> Vec<i64> {
        let rank = |(version, region): &(Version, Region)| match wish.rank(*version, region, &self.rules) {
            Some((preference, is_to_be_replaced)) => 2 * preference as i64 + i64::from(is_to_be_replaced),
            None => -1,
        };
        self.pairs.iter().map(rank).collect()
    }
}

fn too_many_rounds() -> Failure {
    Failure::Unavailable(format!("rooms were looked for {ROUNDS_MAX} times"))
}

/// However the search for the first of them ended, nobody behind it is luckier.
fn nobody_found(asked: &[HoldRequest<'_>], answers: &[HoldAnswer], next: &HoldRequest<'_>) -> bool {
    let none = |(other, answer): (&HoldRequest<'_>, &HoldAnswer)| {
        other.allocations.len() == 1 && *answer == HoldAnswer::NotEnough && other.wants_the_same(next)
    };
    asked.iter().zip(answers).any(none)
}

fn is_for_metadata(request: &HoldRequest<'_>) -> bool {
    request.wishes.iter().any(|wish| !wish.metadata.is_empty())
}

/// The first, and those behind it that go in the same script.
fn together<'a, 'b>(requests: &'a [HoldRequest<'b>]) -> &'a [HoldRequest<'b>] {
    let mut allocations = 0;
    let fits = |request: &&HoldRequest<'_>| {
        allocations += request.allocations.len();
        allocations <= ALLOCATIONS_MAX && !is_for_metadata(request)
    };
    let others = requests.iter().skip(1).take_while(fits).count();
    &requests[..=others]
}

fn wishes_of<'a>(request: &'a HoldRequest<'_>) -> &'a [Wish] {
    static ANYTHING: std::sync::LazyLock<[Wish; 1]> = std::sync::LazyLock::new(|| [Wish::default()]);
    if request.wishes.is_empty() { &*ANYTHING } else { request.wishes }
}

fn request_asked(request: &HoldRequest<'_>, class: usize, wishes: Vec<WishAsked>) -> RequestAsked {
    let (heard_since, latest) = request.alive_within();
    let allocations = request.allocations.iter().enumerate().map(|(place, allocation)| {
        let (high, low) = halves(request.draw.wrapping_add(place as u64));
        (allocation.to_string(), high, low)
    });
    RequestAsked {
        class,
        now: request.now.as_millisecond(),
        expires_at: request.expires_at.as_millisecond(),
        heard_since: heard_since.as_millisecond(),
        latest: latest.as_millisecond(),
        metadata: request.metadata.map(|text| text.to_string()).unwrap_or_default(),
        allocations: allocations.collect(),
        wishes,
    }
}

/// A number of 64 bits, in parts that a double holds exactly.
fn halves(number: u64) -> (u64, u64) {
    (number >> 32, number & u64::from(u32::MAX))
}

fn answer(request: &HoldRequest<'_>, held: Vec<HeldRecord>) -> Result<HoldAnswer, Failure> {
    if held.is_empty() && !request.allocations.is_empty() {
        return Ok(HoldAnswer::NotEnough);
    }
    let held = held.into_iter().zip(request.allocations).map(|(held, allocation)| {
        Ok(HeldRoom {
            allocation: *allocation,
            room: RoomId::new(&held.room),
            number: ClaimNumber(held.number),
            version: version(&held.version)?,
            region: Region(held.region.into()),
            address: address(&held.address)?,
            matches_max: held.matches_max,
        })
    });
    held.collect::<Result<_, Failure>>().map(HoldAnswer::Held)
}
