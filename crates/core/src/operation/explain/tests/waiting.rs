//! What an operation says that waits: for a lock, or for something that does not answer.

use super::*;

#[test]
fn waiting_for_a_lock() {
    let mut case = waiting_for_lock(960, 1260);
    case.locks.held = vec![held(of(2), Some(NOW + 25))];
    check(
        case,
        &expect![[r#"
            since 16:00Z
            waits for downscaling held by remove_rooms op2 since 15:50.000Z
            next takes the lock downscaling when remove_rooms op2 gives it up
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
            next 17:05.000Z: the lock downscaling runs out, unless it is renewed
            next 21:00.000Z: ends as error if it has not got the lock downscaling by then (locks.waitTimeout)
        "#]],
    );

    // Behind another one, whose place counts, and one whose place does not.
    let mut case = waiting_for_lock(960, 1260);
    case.locks.held = vec![held(Holder::Rollout(Version::FIRST), None)];
    case.locks.waiters.insert(0, place(of(3), 940, 1240));
    case.locks.waiters.insert(0, place(of(4), 600, 900));
    check(
        case,
        &expect![[r#"
            since 16:00Z
            waits for downscaling held by rollout v1.0.0 since 15:50.000Z
            next takes the lock downscaling when rollout v1.0.0 gives it up, after 1 who came first
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
            next 21:00.000Z: ends as error if it has not got the lock downscaling by then (locks.waitTimeout)
        "#]],
    );

    let mut case = waiting_for_lock(960, 1260);
    case.locks.waiters.insert(0, place(Holder::HealthController, 940, 1240));
    check(
        case,
        &expect![[r#"
            since 16:00Z
            waits for downscaling promised to the health controller
            next takes the lock downscaling after the health controller
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
            next 21:00.000Z: ends as error if it has not got the lock downscaling by then (locks.waitTimeout)
        "#]],
    );

    // It is free, and its turn.
    check(
        waiting_for_lock(960, 1260),
        &expect![[r#"
            since 16:00Z
            waits for the lock
            next takes the lock downscaling: it is free
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
            next 21:00.000Z: ends as error if it has not got the lock downscaling by then (locks.waitTimeout)
        "#]],
    );

    let mut case = waiting_for_lock(840, 1140);
    case.locks.held = vec![held(of(2), Some(NOW + 25))];
    check(
        case,
        &expect![[r#"
            since 14:00Z
            waits for downscaling held by remove_rooms op2 since 15:50.000Z
            next takes the lock downscaling when remove_rooms op2 gives it up
            next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
            next 17:05.000Z: the lock downscaling runs out, unless it is renewed
            next 19:00.000Z: ends as error if it has not got the lock downscaling by then (locks.waitTimeout)
            stuck: it has waited for the lock downscaling since 14:00.000Z
        "#]],
    );
}

/// The last word of it was heard at `since`.
fn unanswered(since: i64) -> Case {
    let mut case = in_progress();
    let what = "the runtime is not available: connection refused".into();
    case.operation.activity = Activity::Parked(Wait { what, until: at(NOW + 4), unanswered: true });
    case.operation.history.push(HistoryEvent { at: at(since), event: "waiting".into() });
    case
}

#[test]
fn waiting_for_an_answer() {
    check(
        unanswered(NOW - 5),
        &expect![[r#"
        since 16:35Z
        waits for the runtime is not available: connection refused
        next 16:44.000Z: asks again
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
    "#]],
    );
    // For longer than anybody should wait.
    check(
        unanswered(NOW - 50),
        &expect![[r#"
        since 15:50Z
        waits for the runtime is not available: connection refused
        next 16:44.000Z: asks again
        next 17:00.000Z: is taken over by another worker, at the latest, if worker-1 stops now
        stuck: what it waits for has not answered since 15:50.000Z
    "#]],
    );
}
