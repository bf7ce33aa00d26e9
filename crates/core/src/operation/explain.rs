//! Why an operation does not move, and what will happen to it next, in words. Pure: what was seen goes in, an
//! explanation comes out.
//!
//! Nothing here decides what is done; it says what the queue, the locks and the leases will do by their own rules.

#[cfg(test)]
mod tests;

use crate::lock::{Locks, Obstacle, Waiter};
use crate::plan::SilentRooms;
use crate::text::count_of;
use crate::time::{Millis, Timestamp, after, age};

use super::{Activity, Lease, Operation, OperationId, OperationStatus, Wait};

/// What was seen of a scheduler: all that its operations depend on.
#[derive(Debug, Clone)]
pub struct Scene {
    pub now: Timestamp,
    /// The operations that have not ended, in the order in which they were enqueued.
    pub unfinished: Vec<Operation>,
    pub locks: Locks,
    /// Who owns the scheduler, also if that has run out; `None`: nobody does.
    pub ownership: Option<Lease>,
    /// How many workers have lately said that they are there.
    pub workers: usize,
    /// Rooms that are still there although an operation asked them to go: which one, and when they are killed.
    pub leaving: Vec<(OperationId, Timestamp)>,
    /// Rooms of the fleet that fell silent together.
    pub silent: Vec<SilentRooms>,
    /// How often workers look for what nobody works on.
    pub sweep: Millis,
    /// Why this build leaves the scheduler alone, if it does: it cannot read what is stored of it.
    pub unreadable: Option<String>,
}

/// One operation in it.
struct Snapshot<'a> {
    scene: &'a Scene,
    operation: &'a Operation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Since when it has been as it is: of one that waits for a lock, since it has its place in the order; of any
    /// other one in progress, since the last event of its history.
    pub since: Timestamp,
    /// What has to happen before it goes on. `None`: it is at work, or has ended.
    pub waits_for: Option<String>,
    /// What will happen without anybody doing anything; nothing more if it has ended.
    pub next: Vec<Expectation>,
    /// Why it has not moved for longer than it should; `None`: all is well.
    pub stuck: Option<String>,
}

/// Something that will happen, and when if that can be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub what: String,
    pub at: Option<Timestamp>,
}

pub fn explain(scene: &Scene, operation: &Operation) -> Explanation {
    let seen = &Snapshot { scene, operation };
    if let Some(why) = scene.unreadable.as_deref().filter(|_| !operation.status.is_final()) {
        return unreadable(seen, why);
    }
    Explanation { since: since(seen), waits_for: waits_for(seen), next: next(seen), stuck: stuck(seen) }
}

/// Nothing that is stored is lost; somebody has to do something.
fn unreadable(seen: &Snapshot<'_>, why: &str) -> Explanation {
    let what = "it goes on when the version of Maestro that wrote the scheduler is started; until then the scheduler \
                and its rooms are left alone";
    Explanation {
        since: since(seen),
        waits_for: Some("a Maestro that can read its scheduler".to_owned()),
        next: vec![Expectation { what: what.to_owned(), at: None }],
        stuck: Some(format!("its scheduler cannot be read: {why}")),
    }
}

fn waits_for(seen: &Snapshot<'_>) -> Option<String> {
    const A_WORKER: &str = "a worker to pick it up";
    let slot = |other: &Operation| format!("{} to finish or park", other.holder());
    let operation = seen.operation;
    if operation.status.is_final() {
        return None;
    }
    if !seen.is_owned() {
        return Some(A_WORKER.to_owned());
    }
    if operation.status == OperationStatus::Pending {
        return Some(match (seen.at_work(), seen.before_it()) {
            (Some(other), _) => slot(other),
            (None, 0) => A_WORKER.to_owned(),
            (None, before) => format!("{} before it", count_of(before, "operation")),
        });
    }
    let wait = seen.wait()?;
    Some(match (seen.obstacle(), seen.at_work()) {
        (Some(obstacle), _) => obstacle.to_string(),
        (None, Some(other)) if wait.until <= seen.scene.now => slot(other),
        // Something outside, in the words of its executor: rooms to be gone, a validation room to be ready.
        (None, _) => wait.what.clone(),
    })
}

fn since(seen: &Snapshot<'_>) -> Timestamp {
    let operation = seen.operation;
    match operation.status.is_final() {
        true => operation.ended_at.unwrap_or(operation.created_at),
        false => seen.place().map_or_else(|| last_moved(operation), |place| place.since),
    }
}

/// A pending one has not moved since it was created; that is its first event.
fn last_moved(operation: &Operation) -> Timestamp {
    operation.history.last().map_or(operation.created_at, |event| event.at)
}

fn next(seen: &Snapshot<'_>) -> Vec<Expectation> {
    let mut next = match seen.operation.status {
        OperationStatus::Evicted
        | OperationStatus::Finished
        | OperationStatus::Error
        | OperationStatus::Canceled => return Vec::new(),
        // Nothing of its own happens before somebody works on it.
        OperationStatus::Pending | OperationStatus::InProgress if !seen.is_owned() => Vec::new(),
        OperationStatus::Pending => vec![beginning(seen)],
        OperationStatus::InProgress => progress(seen),
    };
    next.extend(rolling_back(seen.operation));
    next.extend(seen.scene.silent.iter().map(silence_ends));
    next.push(taking_over(seen));
    // What has no time of its own comes first.
    next.sort_by_key(|expectation| expectation.at);
    next
}

fn beginning(seen: &Snapshot<'_>) -> Expectation {
    let at_work = seen.at_work().map(|other| other.holder().to_string());
    let before = match seen.before_it() {
        0 => None,
        more => Some(format!("{} before it", count_of(more, "operation"))),
    };
    let after: Vec<String> = [at_work, before].into_iter().flatten().collect();
    Expectation::some_time(match after.is_empty() {
        true => "begins as soon as a worker looks".into(),
        false => format!("begins after {}", after.join(" and ")),
    })
}

/// Of one in progress.
fn progress(seen: &Snapshot<'_>) -> Vec<Expectation> {
    let Some(wait) = seen.wait() else {
        return vec![Expectation::some_time("goes on with its next step")];
    };
    if let Some(place) = seen.place() {
        return lock_comes(seen, place);
    }
    let asked = seen.scene.leaving.iter().filter(|(operation, _)| *operation == seen.operation.id);
    let kills_come = asked.map(|(_, killed_at)| *killed_at).max().filter(|at| *at > seen.scene.now);
    let kills = kills_come.map(|at| Expectation::at(at, "rooms that are still there are killed"));
    let looks = match seen.at_work() {
        _ if wait.until > seen.scene.now && wait.unanswered => Expectation::at(wait.until, "asks again"),
        _ if wait.until > seen.scene.now => {
            Expectation::at(wait.until, "looks again, or earlier if something happens")
        }
        Some(other) => Expectation::some_time(format!("looks again after {}", other.holder())),
        None => Expectation::some_time("looks again as soon as a worker comes to it"),
    };
    kills.into_iter().chain([looks]).collect()
}

fn lock_comes(seen: &Snapshot<'_>, place: &Waiter) -> Vec<Expectation> {
    let kind = place.kind;
    let gives_up = Expectation::at(
        place.until,
        format!("ends as error if it has not got the lock {kind} by then (locks.waitTimeout)"),
    );
    let mut next = match seen.obstacle() {
        None => vec![Expectation::some_time(format!("takes the lock {kind}: it is free"))],
        Some(Obstacle::Promised(first)) => {
            vec![Expectation::some_time(format!("takes the lock {kind} after {}", first.holder))]
        }
        Some(Obstacle::Held(lock)) => {
            let before = match seen.waiters_before(place) {
                0 => String::new(),
                more => format!(", after {more} who came first"),
            };
            let takes = format!("takes the lock {kind} when {} gives it up{before}", lock.holder);
            let runs_out = lock
                .expires_at
                .map(|at| Expectation::at(at, format!("the lock {kind} runs out, unless it is renewed")));
            [Some(Expectation::some_time(takes)), runs_out].into_iter().flatten().collect()
        }
    };
    next.push(gives_up);
    next
}

fn rolling_back(operation: &Operation) -> Option<Expectation> {
    let what = match (&operation.rollback, &operation.cancel) {
        (Some(rollback), _) => {
            let end = rollback.then.status();
            format!("ends as {end} when what it did is undone: {}", rollback.why)
        }
        (None, Some(cancel)) => format!("rolls back at its next step: canceled by {}", cancel.by),
        (None, None) => return None,
    };
    Some(Expectation::some_time(what))
}

fn silence_ends(silent: &SilentRooms) -> Expectation {
    let how = format!("unless they ping, or before that by `maestro region confirm-lost {}`", silent.region);
    Expectation::at(silent.until, format!("{silent} are removed, {how}"))
}

/// What happens if its worker is gone, or was never there.
fn taking_over(seen: &Snapshot<'_>) -> Expectation {
    if seen.scene.workers == 0 && !seen.is_owned() {
        return Expectation::some_time("nothing more happens before a worker is started");
    }
    let from = seen
        .scene
        .ownership
        .as_ref()
        .map_or(seen.scene.now, |ownership| ownership.expires_at.max(seen.scene.now));
    let what = match &seen.scene.ownership {
        None => "a worker takes its scheduler, at the latest".to_owned(),
        Some(Lease { owner, .. }) if seen.is_owned() => {
            format!("is taken over by another worker, at the latest, if {owner} stops now")
        }
        Some(Lease { owner, .. }) => {
            format!("is taken over from {owner} by another worker, at the latest")
        }
    };
    Expectation::at(after(from, seen.scene.sweep), what)
}

fn stuck(seen: &Snapshot<'_>) -> Option<String> {
    let (operation, now) = (seen.operation, seen.scene.now);
    if operation.status.is_final() {
        return None;
    }
    let waits_long = age(now, since(seen)) > seen.scene.sweep;
    match &seen.scene.ownership {
        None if !waits_long => return None,
        None if seen.scene.workers == 0 => return Some("no worker is running".into()),
        None => return Some("no worker owns its scheduler".into()),
        Some(Lease { owner, expires_at, .. }) if *expires_at <= now => {
            return Some(format!("{owner}'s ownership of the scheduler expired at {expires_at:.3}"));
        }
        Some(_) => {}
    }
    if operation.status == OperationStatus::Pending {
        let waited = age(now, operation.created_at);
        return seen
            .is_forgotten()
            .then(|| format!("it is the next one, the slot is free, and no worker took it for {waited}"));
    }
    match &operation.lease {
        None => return waits_long.then(|| "it is in progress, and nobody has a lease on it".into()),
        Some(Lease { owner, expires_at, .. }) if *expires_at <= now => {
            return Some(format!("{owner}'s lease expired at {expires_at:.3}"));
        }
        Some(_) => {}
    }
    if let Some(Waiter { kind, since, until, .. }) = seen.place() {
        let more_than_half = age(now, *since).0 > age(*until, *since).0 / 2;
        return more_than_half.then(|| format!("it has waited for the lock {kind} since {since:.3}"));
    }
    let wait = seen.wait()?;
    if wait.unanswered && waits_long {
        return Some(format!("what it waits for has not answered since {:.3}", since(seen)));
    }
    let overslept = seen.at_work().is_none() && age(now, wait.until) > seen.scene.sweep;
    overslept.then(|| format!("it should have looked again at {:.3}", wait.until))
}

impl<'a> Snapshot<'a> {
    fn is_owned(&self) -> bool {
        self.scene.ownership.as_ref().is_some_and(|lease| lease.expires_at > self.scene.now)
    }

    /// The other operation that has to make way first.
    fn at_work(&self) -> Option<&'a Operation> {
        self.scene.unfinished.iter().find(|other| other.keeps_others_out() && other.id != self.operation.id)
    }

    /// What it waits for, if it is parked.
    fn wait(&self) -> Option<&'a Wait> {
        match &self.operation.activity {
            Activity::Parked(wait) if self.operation.is_parked() => Some(wait),
            Activity::Parked(_) | Activity::Executing => None,
        }
    }

    /// Its place in the order of a lock.
    fn place(&self) -> Option<&'a Waiter> {
        let is_its = |waiter: &&Waiter| waiter.holder.operation() == Some(self.operation.id);
        self.scene.locks.waiters.iter().filter(|_| self.operation.is_parked()).find(is_its)
    }

    /// What stands between it and the lock that it waits for.
    fn obstacle(&self) -> Option<Obstacle> {
        self.place()?;
        self.scene.locks.obstacle_of(self.operation.id, self.scene.now)
    }

    fn waiters_before(&self, place: &Waiter) -> usize {
        let counting = self.scene.locks.waiters_of(place.kind, self.scene.now);
        counting.take_while(|waiter| waiter.holder != place.holder).count()
    }

    /// How many pending operations begin before this one: those of priority first, else in their order.
    fn before_it(&self) -> usize {
        let pending = |other: &&Operation| other.status == OperationStatus::Pending;
        let mut queue: Vec<&Operation> = self.scene.unfinished.iter().filter(pending).collect();
        queue.sort_by_key(|other| !other.priority);
        queue.iter().position(|other| other.id == self.operation.id).unwrap_or(0)
    }

    /// It is the next one, and for a sweep now there was nothing that could have kept a worker from it.
    fn is_forgotten(&self) -> bool {
        let quiet = |operation: &Operation| age(self.scene.now, last_moved(operation)) > self.scene.sweep;
        let others = self.scene.unfinished.iter().filter(|other| other.status == OperationStatus::InProgress);
        let slot_was_free = self.at_work().is_none() && others.into_iter().all(quiet);
        slot_was_free && quiet(self.operation) && self.before_it() == 0
    }
}

impl Expectation {
    fn at(at: Timestamp, what: impl Into<String>) -> Self {
        Self { what: what.into(), at: Some(at) }
    }

    fn some_time(what: impl Into<String>) -> Self {
        Self { what: what.into(), at: None }
    }
}
