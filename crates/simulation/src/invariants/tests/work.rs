//! Operations, owners, locks, and what they come to.

use maestro_core::guards;

use super::*;

#[test]
fn only_the_owner_works() {
    let step = || vec![Change::UpdateOperation(OperationUpdate::of(operation_id(1)))];
    let begin = async |scene: &Scene| {
        scene.request(vec![Change::Enqueue(fixtures::new_operation(1))]).await;
        scene.work(vec![fixtures::start(1)]).await;
        scene.work(step()).await;
    };
    check(begin, &[]);
    check(
        async |scene| {
            begin(scene).await;
            scene.told("two", &Transaction::of_no_scheduler("step", step())).await;
        },
        &[Invariant::OneExecutor],
    );
    check(
        async |scene| {
            begin(scene).await;
            let guard = Guard { scheduler: arena(), token: Token(0), operation: None, locks: Vec::new() };
            scene.told(NODE, &Transaction::guarded("step", guard, step())).await;
        },
        &[Invariant::OneExecutor],
    );
}

#[test]
fn what_has_ended_does_not_begin_again() {
    let end = async |scene: &Scene| {
        scene.request(vec![Change::Enqueue(fixtures::new_operation(1))]).await;
        scene.work(vec![fixtures::start(1)]).await;
        scene.work(vec![fixtures::end(1, OperationStatus::Finished)]).await;
    };
    check(end, &[]);
    for again in [fixtures::start(1), fixtures::end(1, OperationStatus::Finished)] {
        check(
            async |scene| {
                end(scene).await;
                let guard =
                    Guard { scheduler: arena(), token: scene.token, operation: None, locks: Vec::new() };
                scene.told(NODE, &Transaction::guarded("step", guard, vec![again.clone()])).await;
            },
            &[Invariant::LegalTransitions],
        );
    }
}

#[test]
fn no_more_rooms_than_asked_for() {
    let make = |rooms: u32| {
        async move |scene: &Scene| {
            scene.request(vec![Change::Enqueue(operation(1, add(2), person()))]).await;
            scene.work(vec![fixtures::start(1)]).await;
            for number in 1..=rooms {
                scene.work(vec![Change::IntendRoom(room(number))]).await;
            }
        }
    };
    check(make(2), &[]);
    check(make(3), &[Invariant::EffectOnce]);
}

#[test]
fn the_fleet_size_is_what_people_made_of_it() {
    let ends = |status, delta| {
        async move |scene: &Scene| {
            let asked = NewOperation { fleet_delta: 2, ..operation(1, add(2), person()) };
            let resize = fixtures::set_fleet_size(0, SIZE + 2);
            scene.request(vec![resize, Change::Enqueue(asked)]).await;
            scene.work(vec![fixtures::start(1)]).await;
            scene.work(vec![fixtures::end(1, status), fixtures::adjust_fleet(&arena(), delta)]).await;
            scene.rest(&[]).await;
        }
    };
    // A switch that sets the fleet size, even to what it is, ends all claims to it.
    check(
        async |scene| {
            let asked = NewOperation { fleet_delta: -2, ..operation(1, add(2), person()) };
            let resize = fixtures::set_fleet_size(0, SIZE - 2);
            scene.request(vec![resize, Change::Enqueue(asked)]).await;
            let same = fixtures::set_fleet_size(1, SIZE - 2);
            scene
                .work(vec![
                    same,
                    Change::ForgetFleetDeltas { scheduler: arena(), before: None },
                    fixtures::start(1),
                ])
                .await;
            scene.work(vec![fixtures::end(1, OperationStatus::Canceled)]).await;
            scene.rest(&[]).await;
        },
        &[],
    );
    check(ends(OperationStatus::Finished, 0), &[]);
    check(ends(OperationStatus::Canceled, -2), &[]);
    check(ends(OperationStatus::Canceled, 0), &[Invariant::EffectOnce]);
    check(ends(OperationStatus::Finished, -2), &[Invariant::EffectOnce]);
}

#[test]
fn a_later_owner_has_a_greater_token() {
    check(
        async |scene| {
            scene.own(NODE).await;
            scene.clock.advance(TTL);
            scene.own("two").await;
        },
        &[],
    );
    let same_token = async |scene: &Scene| {
        let now = scene.clock.now();
        scene.inspector.owned("two", &arena(), scene.token, None, now);
    };
    check(same_token, &[Invariant::TokensGrow]);
}

#[test]
fn what_is_renewed_stays() {
    let taken_after = |span: Millis| {
        async move |scene: &Scene| {
            let before = scene.store.workers().await.unwrap().ownerships;
            scene.clock.advance(span);
            let token = Token(scene.token.0 + 1);
            scene.inspector.owned("two", &arena(), token, before.first(), scene.clock.now());
        }
    };
    check(taken_after(TTL), &[]);
    check(taken_after(Millis(TTL.0 - 1)), &[Invariant::RenewedStays]);
}

#[test]
fn who_has_ended_holds_no_lock() {
    let ends = async |scene: &Scene| {
        scene.request(vec![Change::Enqueue(fixtures::new_operation(1))]).await;
        scene.work(vec![fixtures::start(1), lock(1, LockKind::Downscaling)]).await;
        scene.work(vec![fixtures::end(1, OperationStatus::Finished)]).await;
        scene.rest(&[]).await;
    };
    check(ends, &[]);
    guards::take_out(Invariant::NoLockLeft);
    check(ends, &[Invariant::NoLockLeft]);
    guards::put_back();
}

#[test]
fn what_was_accepted_is_there_or_has_ended() {
    let accepted = |number| {
        async move |scene: &Scene| {
            scene.request(vec![Change::Enqueue(fixtures::new_operation(1))]).await;
            scene.inspector.accepted(arena().as_str(), operation_id(number));
            scene.rest(&[]).await;
        }
    };
    check(accepted(1), &[]);
    check(accepted(2), &[Invariant::AcceptedWorkSurvives]);
}

#[test]
fn a_world_at_rest_has_nothing_left() {
    check(
        async |scene| {
            scene.fleet(&[RoomStatus::Ready; 2]).await;
            scene.rest(&[on_host(1), RoomOnHost { phase: Phase::GoingDown, ..on_host(9) }]).await;
        },
        &[],
    );
    check(async |scene| scene.rest(&[on_host(1)]).await, &[Invariant::NoUnwantedRoom]);
    let begins = async |scene: &Scene| {
        scene.request(vec![Change::Enqueue(fixtures::new_operation(1))]).await;
        scene.work(vec![fixtures::start(1)]).await;
    };
    check(
        async |scene| {
            begins(scene).await;
            scene.rest(&[]).await;
        },
        &[Invariant::NothingInProgress],
    );
    check(
        async |scene| {
            begins(scene).await;
            scene.inspector.not_converged("no rest").await;
        },
        &[Invariant::NothingInProgress, Invariant::Converges],
    );
    check(async |scene| scene.inspector.not_converged("no rest").await, &[Invariant::Converges]);
}

#[test]
fn nobody_goes_round_in_circles() {
    let goes_round = async |scene: &Scene, times: u32| {
        let enqueued = Change::Enqueue(operation(1, add(1), person()));
        scene.request(vec![enqueued]).await;
        scene.work(vec![fixtures::start(1)]).await;
        for _ in 0..times {
            scene.work(vec![fixtures::set_activity(1, fixtures::parked("rooms"))]).await;
            scene.work(vec![fixtures::set_activity(1, Activity::Executing)]).await;
        }
    };
    check(async |scene| goes_round(scene, 10).await, &[]);
    check(async |scene| goes_round(scene, 20).await, &[Invariant::Converges]);
}
