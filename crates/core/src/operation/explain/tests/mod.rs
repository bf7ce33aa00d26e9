mod waiting;

use expect_test::{Expect, expect};

use super::super::{CancelRequest, HistoryEvent, Rollback, RollbackEnd, Token};
use super::*;
use crate::lock::{Holder, Lock, LockKind};
use crate::operation::testing::{at, lease, operation};
use crate::room::Region;
use crate::scheduler::Version;

/// When the snapshots are taken, in seconds.
const NOW: i64 = 1000;
const SWEEP: Millis = Millis::from_seconds(10);

/// A snapshot that a case can change: a removal that was created at 900, and a worker that is well.
struct Case {
    operation: Operation,
    others: Vec<Operation>,
    locks: Locks,
    ownership: Option<Lease>,
    workers: usize,
    rooms_killed_at: Option<i64>,
    silent: Vec<SilentRooms>,
    unreadable: Option<&'static str>,
}

fn parked(what: &str, until: i64) -> Activity {
    Activity::Parked(Wait { what: what.into(), until: at(until), unanswered: false })
}

fn of(number: u128) -> Holder {
    operation(number, OperationStatus::Pending, 0).holder()
}

fn held(by: Holder, expires_at: Option<i64>) -> Lock {
    Lock {
        kind: LockKind::Downscaling,
        holder: by,
        reason: "-3".into(),
        token: Token(7),
        acquired_at: at(950),
        expires_at: expires_at.map(at),
    }
}

fn place(of: Holder, since: i64, until: i64) -> Waiter {
    Waiter { kind: LockKind::Downscaling, holder: of, since: at(since), until: at(until) }
}

fn pending() -> Case {
    Case {
        operation: operation(1, OperationStatus::Pending, 900),
        others: Vec::new(),
        locks: Locks::default(),
        ownership: Some(lease("worker-1", NOW + 10)),
        workers: 1,
        rooms_killed_at: None,
        silent: Vec::new(),
        unreadable: None,
    }
}

fn in_progress() -> Case {
    Case { operation: operation(1, OperationStatus::InProgress, 900), ..pending() }
}

fn waiting_for_lock(since: i64, until: i64) -> Case {
    let mut case = in_progress();
    case.operation.activity = parked("the lock", until);
    case.locks.waiters = vec![place(of(1), since, until)];
    case
}

fn check(case: Case, expected: &Expect) {
    let mut unfinished = case.others;
    unfinished.push(case.operation.clone());
    let kills = case.rooms_killed_at.map(|killed_at| (case.operation.id, at(killed_at)));
    // Rooms that another operation asked to go are not this one's.
    let leaving = kills.into_iter().chain([(OperationId::from_u128(99), at(NOW + 500))]).collect();
    let scene = Scene {
        now: at(NOW),
        unfinished,
        locks: case.locks,
        ownership: case.ownership,
        workers: case.workers,
        leaving,
        silent: case.silent,
        sweep: SWEEP,
        unreadable: case.unreadable.map(str::to_owned),
    };
    let Explanation { since, waits_for, next, stuck } = explain(&scene, &case.operation);
    let mut text = format!("since {since}\n");
    text += &waits_for.map(|what| format!("waits for {what}\n")).unwrap_or_default();
    for Expectation { what, at } in next {
        let at = at.map(|at| format!("{at:.3}: ")).unwrap_or_default();
        text += &format!("next {at}{what}\n");
    }
    text += &stuck.map(|why| format!("stuck: {why}\n")).unwrap_or_default();
    let text = text.replace("1970-01-01T00:", "").replace("00000000-0000-0000-0000-00000000000", "op");
    expected.assert_eq(&text);
}

#[test]
fn beside_rooms_that_stopped_pinging() {
    let silent = SilentRooms { region: Region::default_region(), rooms: 6, until: at(NOW + 60) };
    let case = Case { silent: vec![silent], ..pending() };
    check(
        case,
        &expect![[r#"
        since 15:00Z
        waits for a worker to pick it up
        next begins as soon as a worker looks
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
        next 17:40.000Z: 6 rooms in region default that stopped pinging together are removed, unless they ping, or before that by `maestro region confirm-lost default`
        stuck: it is the next one, the slot is free, and no worker took it for 100s
    "#]],
    );
}

#[test]
fn of_a_scheduler_that_cannot_be_read() {
    let unreadable = Some("stored recipe cannot be read: spec: is missing");
    for case in [pending(), in_progress()] {
        check(
            Case { unreadable, ..case },
            &expect![[r#"
                since 15:00Z
                waits for a Maestro that can read its scheduler
                next it goes on when the version of Maestro that wrote the scheduler is started; until then the scheduler and its rooms are left alone
                stuck: its scheduler cannot be read: stored recipe cannot be read: spec: is missing
            "#]],
        );
    }
    let mut ended = Case { unreadable, ..pending() };
    ended.operation = operation(1, OperationStatus::Finished, 900);
    check(
        ended,
        &expect![[r#"
        since 15:00Z
    "#]],
    );
}

#[test]
fn pending_behind_others() {
    let mut case = pending();
    case.others = vec![operation(2, OperationStatus::InProgress, 800)];
    check(
        case,
        &expect![[r#"
        since 15:00Z
        waits for remove_rooms op2 to finish or park
        next begins after remove_rooms op2
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );

    let mut case = pending();
    let mut urgent = operation(3, OperationStatus::Pending, 990);
    urgent.priority = true;
    case.others = vec![operation(2, OperationStatus::Pending, 800), urgent];
    check(
        case,
        &expect![[r#"
        since 15:00Z
        waits for 2 operations before it
        next begins after 2 operations before it
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );

    let mut case = pending();
    case.operation.priority = true;
    case.others =
        vec![operation(2, OperationStatus::InProgress, 800), operation(3, OperationStatus::Pending, 990)];
    check(
        case,
        &expect![[r#"
        since 15:00Z
        waits for remove_rooms op2 to finish or park
        next begins after remove_rooms op2
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );
}

#[test]
fn pending_and_next() {
    let mut fresh = pending();
    fresh.operation = operation(1, OperationStatus::Pending, NOW - 1);
    check(
        fresh,
        &expect![[r#"
        since 16:39Z
        waits for a worker to pick it up
        next begins as soon as a worker looks
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );
    check(
        pending(),
        &expect![[r#"
        since 15:00Z
        waits for a worker to pick it up
        next begins as soon as a worker looks
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
        stuck: it is the next one, the slot is free, and no worker took it for 100s
    "#]],
    );
    // Somebody was at work a moment ago: the slot may just have become free.
    let mut case = pending();
    let mut other = operation(2, OperationStatus::InProgress, NOW - 3);
    other.activity = parked("2 rooms to be gone", NOW + 5);
    case.others = vec![other];
    check(
        case,
        &expect![[r#"
        since 15:00Z
        waits for a worker to pick it up
        next begins as soon as a worker looks
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );
}

#[test]
fn nobody_works_on_it() {
    for (ownership, workers, expected) in [
        (
            None,
            0,
            expect![[r#"
                since 15:00Z
                waits for a worker to pick it up
                next nothing more happens before a worker is started
                stuck: no worker is running
            "#]],
        ),
        (
            None,
            2,
            expect![[r#"
                since 15:00Z
                waits for a worker to pick it up
                next 16:50.000Z: a worker takes its scheduler, at the latest
                stuck: no worker owns its scheduler
            "#]],
        ),
        (
            Some(lease("worker-1", NOW - 4)),
            1,
            expect![[r#"
                since 15:00Z
                waits for a worker to pick it up
                next 16:50.000Z: is taken over from worker-1 by another worker, at the latest
                stuck: worker-1's ownership of the scheduler expired at 16:36.000Z
            "#]],
        ),
    ] {
        check(Case { ownership, workers, ..pending() }, &expected);
    }
    let fresh = operation(1, OperationStatus::Pending, NOW - 1);
    check(
        Case { operation: fresh, ownership: None, ..pending() },
        &expect![[r#"
            since 16:39Z
            waits for a worker to pick it up
            next 16:50.000Z: a worker takes its scheduler, at the latest
        "#]],
    );
}

#[test]
fn at_work() {
    check(
        in_progress(),
        &expect![[r#"
        since 15:00Z
        next goes on with its next step
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );

    let mut case = in_progress();
    case.operation.cancel = Some(CancelRequest { by: "ada".into(), at: at(990) });
    check(
        case,
        &expect![[r#"
        since 15:00Z
        next goes on with its next step
        next rolls back at its next step: canceled by ada
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );

    let mut case = in_progress();
    let why = "the lock downscaling was released by ada: stuck".into();
    case.operation.rollback = Some(Rollback { then: RollbackEnd::Error, why });
    check(
        case,
        &expect![[r#"
        since 15:00Z
        next goes on with its next step
        next ends as error when what it did is undone: the lock downscaling was released by ada: stuck
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );
}

#[test]
fn without_a_lease() {
    let mut case = in_progress();
    case.operation.lease = None;
    check(
        case,
        &expect![[r#"
        since 15:00Z
        next goes on with its next step
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
        stuck: it is in progress, and nobody has a lease on it
    "#]],
    );

    let mut case = in_progress();
    case.operation.lease = Some(lease("worker-0", NOW - 2));
    check(
        case,
        &expect![[r#"
        since 15:00Z
        next goes on with its next step
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
        stuck: worker-0's lease expired at 16:38.000Z
    "#]],
    );

    let mut case = in_progress();
    case.operation.lease = Some(lease("worker-1", NOW - 7));
    case.ownership = Some(lease("worker-1", NOW - 2));
    check(
        case,
        &expect![[r#"
            since 15:00Z
            waits for a worker to pick it up
            next 16:50.000Z: is taken over from worker-1 by another worker, at the latest
            stuck: worker-1's ownership of the scheduler expired at 16:38.000Z
        "#]],
    );
}

#[test]
fn parked_for_the_outside() {
    let mut case = in_progress();
    case.operation.activity = parked("3 rooms to be gone", NOW + 20);
    case.rooms_killed_at = Some(NOW + 15);
    check(
        case,
        &expect![[r#"
        since 15:00Z
        waits for 3 rooms to be gone
        next 16:55.000Z: rooms that are still there are killed
        next 17:00.000Z: looks again, or earlier if something happens
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );

    // Its time is up, and another one has the slot.
    let mut case = in_progress();
    case.operation.activity = parked("3 rooms to be gone", NOW - 60);
    case.others = vec![operation(2, OperationStatus::InProgress, 800)];
    check(
        case,
        &expect![[r#"
            since 15:00Z
            waits for remove_rooms op2 to finish or park
            next looks again after remove_rooms op2
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
        "#]],
    );

    let mut case = in_progress();
    case.operation.activity = parked("validation room arena-1 to be ready", NOW - 60);
    check(
        case,
        &expect![[r#"
            since 15:00Z
            waits for validation room arena-1 to be ready
            next looks again as soon as a worker comes to it
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
            stuck: it should have looked again at 15:40.000Z
        "#]],
    );
}

#[test]
fn ended() {
    let mut case = pending();
    case.operation = operation(1, OperationStatus::Finished, 900);
    case.operation.ended_at = Some(at(930));
    case.ownership = None;
    case.workers = 0;
    check(
        case,
        &expect![[r#"
        since 15:30Z
    "#]],
    );
}
