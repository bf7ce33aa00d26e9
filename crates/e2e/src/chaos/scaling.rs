//! One fleet that grows and shrinks, and a kill in each round.
//!
//! After each restart the rooms that were there must be the same processes, those that are gone must have been asked
//! to go, the fleet must come to its size, and every request that was answered must have had its effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fastrand::Rng;

use crate::{Client, Maestro, Operation, Recipe, RoomProcess, checks, until};

#[derive(Debug, Clone)]
pub struct Options {
    pub rounds: u32,
    /// About so many rooms are up: requests take the fleet up to a quarter away from it, and a step more.
    pub rooms: u32,
    pub seed: u64,
}

/// What one round came to. `Display` is a line of the report.
#[derive(Debug)]
pub struct Round {
    number: u32,
    requests: Vec<Request>,
    killed_after: Duration,
    rooms_at_kill: usize,
    /// Of the operations that were asked for, those that were under way at the kill.
    taken_over: usize,
    /// Rooms that were there at the kill and are there after it, as the same processes.
    adopted: usize,
    /// Rooms that were there at the kill and that an operation asked to go.
    asked_to_go: usize,
    fleet_size: u32,
    serving_after: Duration,
    settled_after: Duration,
}

/// One change of the fleet size.
#[derive(Debug, Clone)]
struct Request {
    /// Who asks: by this name the operation is found again when the answer was lost.
    user: String,
    delta: i64,
    /// After the request before it.
    pause: Duration,
    /// Otherwise it may have had its effect or not.
    answered: bool,
}

const SCHEDULER: &str = "chaos";
const REQUESTS_MAX: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// From the first request on. About as long as the requests of a round take to be carried out, so that each is met at
/// every stage, its answer included.
const KILL_WITHIN: Duration = Duration::from_millis(600);
/// Rooms do not end before they are killed: a removal is under way for so long.
const GRACE: &str = "0.4s";
/// Rooms are added in several steps.
const ADD_BATCH: &str = "3";
/// Rooms are many and start together.
const SETTLE_WITHIN: Duration = Duration::from_secs(120);

/// Runs all rounds and tells each; the first that does not end as it must is the error.
pub fn run(options: &Options, mut tell: impl FnMut(&Round)) -> anyhow::Result<()> {
    let mut random = Rng::with_seed(options.seed);
    let mut maestro = Maestro::started(&[("OPERATIONS_ROOMS_ADD_BATCHSIZE", ADD_BATCH)])?;
    // All rooms of a large fleet ping one small server that must also work.
    let recipe = maestro
        .recipe(SCHEDULER, options.rooms)?
        .with("ROOM_PING_INTERVAL_MS", 500)
        .with("ROOM_IGNORE_SIGTERM", 1)
        .with_grace(GRACE);
    fits(&recipe, options.rooms)?;
    maestro.api().create(&recipe.json())?.expect(200)?;
    let mut chaos = Chaos { usual: options.rooms, size: options.rooms };
    until("the first fleet", SETTLE_WITHIN, || chaos.settled(&maestro, &[]))
        .with_context(|| maestro.log_tail())?;
    for number in 1..=options.rounds {
        let round = chaos
            .round(&mut maestro, &mut random, number)
            .with_context(|| format!("round {number} with seed {}", options.seed))
            .with_context(|| maestro.log_tail())?;
        tell(&round);
    }
    Ok(())
}

fn fits(recipe: &Recipe, rooms: u32) -> anyhow::Result<()> {
    let (ports, needed) = (recipe.ports.len(), rooms as usize * 3 / 2);
    ensure!(
        needed <= ports,
        "{rooms} rooms are too many for {ports} ports: rooms that come and go at once need {needed}"
    );
    Ok(())
}

struct Chaos {
    /// What the size of the fleet is kept near to.
    usual: u32,
    /// When the round began.
    size: u32,
}

impl Chaos {
    fn round(&mut self, maestro: &mut Maestro, random: &mut Rng, number: u32) -> anyhow::Result<Round> {
        let planned = self.plan(random, number);
        let killed_after = KILL_WITHIN.mul_f64(random.f64());
        let client = maestro.api().clone();
        let requests = thread::scope(|scope| {
            let asking = scope.spawn(move || ask(&client, planned));
            thread::sleep(killed_after);
            maestro.kill()?;
            asking.join().unwrap_or_else(|panic| resume_unwind(panic))
        })?;
        let before = maestro.processes()?;
        let restarted = Instant::now();
        maestro.start()?;
        let serving_after = restarted.elapsed();
        let settle = || self.settled(maestro, &requests);
        let fleet_size = until("the fleet to settle", SETTLE_WITHIN, settle)?;
        let settled_after = restarted.elapsed();
        self.size = fleet_size;
        let (adopted, asked_to_go) = account_for(maestro, &before)?;
        Ok(Round {
            number,
            taken_over: count_taken_over(maestro.api(), &requests)?,
            requests,
            killed_after,
            rooms_at_kill: before.len(),
            adopted,
            asked_to_go,
            fleet_size,
            serving_after,
            settled_after,
        })
    }

    /// Up and down at random, but never far from the usual size.
    fn plan(&self, random: &mut Rng, number: u32) -> Vec<Request> {
        let (usual, mut size) = (i64::from(self.usual), i64::from(self.size));
        let requests = 0..random.u32(1..=REQUESTS_MAX);
        let request = |index| {
            let step = i64::from(random.u32(1..=(self.usual / 5).max(1)));
            let grows = size <= usual * 3 / 4 || (size < usual * 5 / 4 && random.bool());
            let delta = if grows { step } else { -step };
            size += delta;
            Request {
                user: format!("chaos-{number}-{index}"),
                delta,
                pause: PAUSE_MAX.mul_f64(random.f64()),
                answered: false,
            }
        };
        requests.map(request).collect()
    }

    /// The fleet size, if the fleet has come to what the accepted requests make of it.
    fn settled(&self, maestro: &Maestro, requests: &[Request]) -> anyhow::Result<u32> {
        let operations = maestro.api().operations(SCHEDULER)?;
        checks::none_stuck(&operations)?;
        let mut size = i64::from(self.size);
        for request in requests {
            let Some(operation) = find(&operations, request) else {
                ensure!(!request.answered, "the request of {} was answered and is not there", request.user);
                continue;
            };
            ensure!(
                operation.status == "finished",
                "what {} asked for is {}: {}",
                request.user,
                operation.status,
                operation.reason
            );
            size += request.delta;
        }
        let size = u32::try_from(size).context("fewer rooms than none")?;
        checks::settled(maestro, SCHEDULER, size as usize)?;
        Ok(size)
    }
}

/// Asks for one after the other; the server may die at any of them.
fn ask(client: &Client, mut requests: Vec<Request>) -> anyhow::Result<Vec<Request>> {
    for request in &mut requests {
        thread::sleep(request.pause);
        let amount = u32::try_from(request.delta.unsigned_abs())?;
        let answer = if request.delta > 0 {
            client.add(SCHEDULER, amount, &request.user)
        } else {
            client.remove(SCHEDULER, amount, &request.user)
        };
        if let Ok(answer) = answer {
            answer.expect(200)?;
            request.answered = true;
        }
    }
    Ok(requests)
}

fn find<'a>(operations: &'a [Operation], request: &Request) -> Option<&'a Operation> {
    let reason = format!("asked for by {};", request.user);
    operations.iter().find(|operation| operation.reason.contains(&reason))
}

/// Of the rooms that ran at the kill, how many run on, and how many were asked to go. Any other fate is an error.
fn account_for(maestro: &Maestro, before: &[RoomProcess]) -> anyhow::Result<(usize, usize)> {
    let ids: BTreeSet<&str> = before.iter().map(|process| process.room.as_str()).collect();
    ensure!(ids.len() == before.len(), "a room had two processes at the kill");
    let rooms = maestro.api().rooms(SCHEDULER)?;
    let now: BTreeMap<&str, &[u32]> =
        rooms.iter().map(|room| (room.id.as_str(), room.pids.as_slice())).collect();
    let (mut adopted, mut asked_to_go) = (0, 0);
    for process in before {
        if let Some(pids) = now.get(process.room.as_str()) {
            ensure!(
                *pids == [process.pid],
                "room {} was process {} and is {pids:?}",
                process.room,
                process.pid
            );
            adopted += 1;
            continue;
        }
        let room = maestro.api().room(SCHEDULER, &process.room)?;
        let ended = room.and_then(|room| room.ended);
        let how = ended.map(|ended| ended.how).unwrap_or_default();
        ensure!(how.contains("operation"), "room {} ran at the kill, and then: {how:?}", process.room);
        asked_to_go += 1;
    }
    Ok((adopted, asked_to_go))
}

fn count_taken_over(client: &Client, requests: &[Request]) -> anyhow::Result<usize> {
    let mut taken_over = 0;
    for request in requests {
        if let Some(operation) = client.operation_of(SCHEDULER, &request.user)? {
            let story = client.operation(SCHEDULER, &operation.id)?.story();
            taken_over += usize::from(story.contains("Taken over by"));
        }
    }
    Ok(taken_over)
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests.iter().map(|request| {
            let lost = if request.answered { "" } else { "?" };
            format!("{:+}{lost}", request.delta)
        });
        write!(
            f,
            "round {:>2}: {:<12} killed after {:>3} ms with {:>3} rooms; serving in {:>3} ms, settled in {:>5} ms: \
             {:>3} rooms, {:>3} adopted, {:>2} asked to go, {} operations taken over",
            self.number,
            requests.collect::<Vec<_>>().join(" "),
            self.killed_after.as_millis(),
            self.rooms_at_kill,
            self.serving_after.as_millis(),
            self.settled_after.as_millis(),
            self.fleet_size,
            self.adopted,
            self.asked_to_go,
            self.taken_over,
        )
    }
}
