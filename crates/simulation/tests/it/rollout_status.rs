//! What a scheduler says about its rollout: the version that was submitted last, what has become of it, and why.

use std::time::Duration;

use maestro_core::operation::OperationStatus;
use maestro_core::rollout::VersionOutcome;
use maestro_core::scheduler::VersionStatus;
use maestro_engine::Settings;
use maestro_engine::ports::store::RolloutState;
use maestro_engine::services::{RolloutPhase, RolloutView};
use maestro_simulation::{Exit, Habits, Span, World};

use super::common::*;
use super::rollouts::*;

async fn rollout(world: &World) -> RolloutView {
    world.engine().rollout(ARENA, None).await.unwrap()
}

async fn rollout_of(world: &World, version: &str) -> RolloutView {
    world.engine().rollout(ARENA, Some(version)).await.unwrap()
}

/// The number, status and outcome of the version that it is about.
fn said(view: &RolloutView) -> (String, VersionStatus, VersionOutcome) {
    let version = view.version.map(|version| version.to_string()).unwrap_or_default();
    (version, view.status, view.outcome)
}

fn is(
    version: &str,
    status: VersionStatus,
    outcome: VersionOutcome,
) -> (String, VersionStatus, VersionOutcome) {
    (version.to_owned(), status, outcome)
}

#[test]
fn a_good_version_is_followed_from_its_submission_to_its_end() {
    run(async {
        let world = world_with_fleet(7, 6).await;
        let before = rollout(&world).await;
        assert_eq!(before.state, RolloutPhase::None);
        assert_eq!(said(&before), is("v1.0.0", VersionStatus::Deployed, VersionOutcome::Deployed));

        let id = submit(&world, another_command(recipe(6))).await;
        // Never "none" before it is deployed: whoever watches would take it for done.
        let mut states = Vec::new();
        let deployed = async |world: &World| {
            let view = rollout(world).await;
            assert_eq!(
                view.outcome == VersionOutcome::Deployed,
                view.state == RolloutPhase::None,
                "{view:?}"
            );
            (view.outcome == VersionOutcome::Deployed, view)
        };
        for _ in 0..7200 {
            let (done, view) = deployed(&world).await;
            if states.last() != Some(&view.state) {
                states.push(view.state);
            }
            if done {
                break;
            }
            assert_ne!(view.waiting_for, "");
            world.advance(Duration::from_millis(500)).await;
        }
        let rolling = RolloutPhase::Replacing(RolloutState::Rolling);
        assert_eq!(states, [RolloutPhase::Validating, rolling, RolloutPhase::None]);
        let after = rollout(&world).await;
        assert_eq!(said(&after), is("v2.0.0", VersionStatus::Deployed, VersionOutcome::Deployed));
        assert_eq!((after.cause.as_str(), after.percent), ("", 100));
        ended_as(&world, id, OperationStatus::Finished).await;
    });
}

#[test]
fn a_version_that_cannot_start_says_how_its_last_room_failed() {
    let settings = Settings { room_validation_attempts: 2, ..Settings::default() };
    run(async {
        let world = world_with_settings(3, 4, settings).await;
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        let id = submit(&world, another_command(recipe(4))).await;
        world.advance(Duration::from_secs(5)).await;
        let view = rollout(&world).await;
        assert_eq!(view.state, RolloutPhase::Validating);
        assert_eq!(said(&view), is("v2.0.0", VersionStatus::Validating, VersionOutcome::InProgress));
        assert_eq!((view.operation, view.percent), (Some(id), 0));
        assert!(view.waiting_for.contains("validation room "), "{}", view.waiting_for);

        let failed = ended_as(&world, id, OperationStatus::Error).await;
        let attempts = failed.data["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 2);
        let view = rollout(&world).await;
        assert_eq!(view.state, RolloutPhase::None);
        assert_eq!(said(&view), is("v2.0.0", VersionStatus::Error, VersionOutcome::Failed));
        let room = attempts[1]["room"].as_str().unwrap();
        let start =
            format!("version v2.0.0 was not validated: attempt 2 of 2 failed: room {room} was not ready");
        assert!(view.cause.starts_with(&start), "{}", view.cause);
        assert!(view.cause.ends_with("; its last log lines: started"), "{}", view.cause);
        assert_eq!(view.log_lines, ["started"]);
        assert_eq!(said(&rollout_of(&world, "v2.0.0").await), said(&view));
        let of_first = rollout_of(&world, "v1.0.0").await;
        assert_eq!(said(&of_first), is("v1.0.0", VersionStatus::Deployed, VersionOutcome::Deployed));
        let unknown = world.engine().rollout(ARENA, Some("v7.0.0")).await.unwrap_err();
        assert!(unknown.to_string().contains("not found in version \"v7.0.0\""), "{unknown}");
        // In lists too, which are read without histories.
        let listed = world.engine().operation(ARENA, &id.to_string()).await.unwrap();
        assert_eq!(listed.cause.as_deref(), Some(view.cause.as_str()));
    });
}

#[test]
fn a_rollout_that_fails_says_how_its_last_room_ended() {
    run(async {
        let world = world_with_fleet(5, 6).await;
        let id = submit(&world, another_command(recipe(6))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        // The validation room was well; those after it are not.
        let crash = Exit { after: Span::exactly(Duration::from_millis(200)), code: 3 };
        world.host().set_habits(Habits { ready_after: None, exits: Some(crash), ..Habits::default() });
        let failed = async |world: &World| rollout(world).await.outcome != VersionOutcome::InProgress;
        world.run_until("the rollout to fail", HOUR, failed).await;
        let view = rollout(&world).await;
        assert_eq!(said(&view), is("v2.0.0", VersionStatus::Error, VersionOutcome::Failed));
        assert!(
            view.cause.contains("new rooms in a row did not become ready; the last was room "),
            "{}",
            view.cause
        );
        assert!(view.cause.contains("exited with code 3; its last log lines: started"), "{}", view.cause);
        world.host().set_habits(Habits::default());
        rollout_over(&world, HOUR).await;
        // The way back is not what people wanted, and does not make it good.
        let after = rollout(&world).await;
        assert_eq!((after.state, said(&after)), (RolloutPhase::None, said(&view)));
    });
}

#[test]
fn versions_that_are_canceled_or_superseded_say_by_whom() {
    let slow = Span::exactly(Duration::from_secs(20));
    run(async {
        let world = world_with_fleet(5, 8).await;
        world.host().set_habits(Habits { ready_after: Some(slow), ..Habits::default() });
        let canceled = submit(&world, another_command(recipe(8))).await;
        world.advance(Duration::from_secs(2)).await;
        world.engine().cancel_operation(ARENA, &canceled.to_string(), "bob").await.unwrap();
        ended_as(&world, canceled, OperationStatus::Canceled).await;
        let view = rollout(&world).await;
        assert_eq!(
            (view.state, said(&view)),
            (RolloutPhase::None, is("v2.0.0", VersionStatus::Canceled, VersionOutcome::Canceled))
        );
        assert_eq!(view.cause, "canceled by bob");

        let rolling = async |world: &World| rollout(world).await.status == VersionStatus::Rolling;
        submit(&world, another_command(recipe(8))).await;
        world.run_until("v3.0.0 to roll", HOUR, rolling).await;
        let next = submit(&world, another_command(another_command(recipe(8)))).await;
        ended_as(&world, next, OperationStatus::Finished).await;
        world.run_until("v4.0.0 to roll", HOUR, rolling).await;
        let superseded = rollout_of(&world, "v3.0.0").await;
        assert_eq!(said(&superseded), is("v3.0.0", VersionStatus::Superseded, VersionOutcome::Superseded));
        assert!(superseded.cause.starts_with("superseded by v4.0.0 ("), "{}", superseded.cause);
        world.engine().cancel_rollout(ARENA, "eve").await.unwrap();
        rollout_over(&world, HOUR).await;
        let view = rollout(&world).await;
        assert_eq!(said(&view), is("v4.0.0", VersionStatus::Canceled, VersionOutcome::Canceled));
        assert_eq!((view.cause.as_str(), view.active.to_string().as_str()), ("canceled by eve", "v1.0.0"));
    });
}
