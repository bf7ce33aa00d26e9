//! Every state and every event: what is written, and every word that people read.

use expect_test::{Expect, expect};

use super::super::*;
use super::scene::*;
use crate::lock::Locks;
use crate::operation::DefinitionKind;
use crate::scheduler::OnFailure;

/// What the event makes of each state.
fn check(event: impl Fn(Option<&RolloutRecord>) -> RolloutEvent<'static>, expected: &Expect) {
    expected.assert_eq(&table(|rollout| {
        let mut locks = own_locks(rollout);
        let event = event(rollout);
        if matches!(event, RolloutEvent::Switched(_)) && rollout.is_none() {
            locks.held.push(lock(LockKind::Config, switch()));
        }
        happens(rollout, event, &locks)
    }));
}

pub(super) fn switched(to: u32, is_major: bool) -> impl Fn(Option<&RolloutRecord>) -> RolloutEvent<'static> {
    move |rollout| {
        let is_rolling = rollout.is_some_and(|rollout| rollout.state == RolloutState::Rolling);
        RolloutEvent::Switched(Switched {
            to: version(to),
            is_major,
            fleet_size: SIZE,
            is_rolling,
            by: switch(),
        })
    }
}

#[test]
fn a_switch_to_a_major_version() {
    check(
        switched(3, true),
        &expect![[r#"
        none: rolling v3.0.0 since now, never took players | v3.0.0 rolling | +config (from switch_active_version) +downscaling | says so
        rolling: rolling v3.0.0 since now | TO superseded: superseded by v3.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | v3.0.0 rolling | +config (from TO) +downscaling (from TO) | "supersedes the rollout of TO" | says so
        paused, halted, leaving, back, back-paused, back-halted: rolling v3.0.0 since now | v3.0.0 rolling | +config (from TO) +downscaling (from TO) | says so
    "#]],
    );
}

#[test]
fn a_switch_to_a_minor_version() {
    check(
        switched(3, false),
        &expect![[r#"
        none: none | v3.0.0 deployed
        rolling: rolling v3.0.0 since now | TO superseded: superseded by v3.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | v3.0.0 rolling | +config (from TO) +downscaling (from TO) | "supersedes the rollout of TO" | says so
        paused, back-paused: paused v3.0.0 since now (NOTE) | v3.0.0 rolling | +config (from TO) -downscaling (TO) -downscaling (v3.0.0) | says so
        halted, leaving, back, back-halted: rolling v3.0.0 since now | v3.0.0 rolling | +config (from TO) +downscaling (from TO) | says so
    "#]],
    );
}

#[test]
fn the_switch_back() {
    check(
        switched(1, true),
        &expect![[r#"
        none: rolling v1.0.0 since now, never took players | +config (from switch_active_version) +downscaling | says so
        rolling: rollingBack v1.0.0 since now | TO superseded: superseded by v1.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | +config (from TO) +downscaling (from TO) | "supersedes the rollout of TO" | says so
        paused: paused v1.0.0 since now (NOTE) | +config (from TO) -downscaling (TO) -downscaling (v1.0.0) | says so
        halted, leaving: rollingBack v1.0.0 since now (NOTE) | +config (from TO) +downscaling (from TO) | says so
        back, back-halted: rollingBack TO since now (NOTE) | +config +downscaling | says so
        back-paused: paused TO since now (NOTE) | +config -downscaling (TO) | says so
    "#]],
    );
}

#[test]
fn no_old_room_is_left() {
    check(
        |_| RolloutEvent::Finished,
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be finished
        rolling, leaving, back: none | TO deployed | -config (TO) -downscaling (TO) | "the rollout of TO is finished: no old room is left"
        paused, halted, back-paused, back-halted: refused: the rollout of scheduler arena is STATE, it cannot be finished
    "#]],
    );
}

#[test]
fn a_failure_leads_back() {
    let failed = RolloutEvent::Failed("boom", OnFailure::Rollback);
    check(
        move |_| failed.clone(),
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be judged
        rolling: rollingBack TO (TO failed: boom) | TO error: boom | +config +downscaling | Controller: switch to v1.0.0 if TO is active (the rollout of TO failed: boom; back to v1.0.0)
        paused, halted, back-paused, back-halted: refused: the rollout of scheduler arena is STATE, it cannot be judged
        leaving, back: halted TO (TO failed: boom) | TO error: boom | +config -downscaling (TO) | "the rollout of TO halts: boom"
    "#]],
    );
}

#[test]
fn a_failure_halts() {
    let failed = RolloutEvent::Failed("boom", OnFailure::Halt);
    check(
        move |_| failed.clone(),
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be judged
        rolling, leaving, back: halted TO (TO failed: boom) | TO error: boom | +config -downscaling (TO) | "the rollout of TO halts: boom"
        paused, halted, back-paused, back-halted: refused: the rollout of scheduler arena is STATE, it cannot be judged
    "#]],
    );
}

#[test]
fn the_switch_back_is_lost() {
    check(
        |_| RolloutEvent::SwitchBackLost,
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be rolled back
        rolling, paused, halted, back-paused, back-halted: refused: the rollout of scheduler arena is STATE, it cannot be rolled back
        leaving: as before | Controller: switch to v1.0.0 if TO is active (NOTE; back to v1.0.0)
        back: as before | Controller: switch to TO if TO is active (NOTE; back to TO)
    "#]],
    );
}

#[test]
fn a_cycle_acts() {
    check(
        |_| RolloutEvent::CycleActed { took_occupied: false },
        &expect![[r#"
        none: none
        rolling, paused, halted, leaving, back, back-paused, back-halted: as before
    "#]],
    );
    check(
        |_| RolloutEvent::CycleActed { took_occupied: true },
        &expect![[r#"
        none: none
        rolling: rolling TO, took players now
        paused, back-paused: paused TO, took players now (NOTE)
        halted, back-halted: halted TO, took players now (NOTE)
        leaving, back: rollingBack TO, took players now (NOTE)
    "#]],
    );
}

#[test]
fn someone_pauses_it() {
    check(
        |_| RolloutEvent::PausedBy("ada"),
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be paused
        rolling, leaving, back: paused TO (paused by ada) | +config -downscaling (TO)
        paused, halted, back-paused, back-halted: refused: the rollout of scheduler arena is STATE, it cannot be paused
    "#]],
    );
}

#[test]
fn someone_resumes_it() {
    check(
        |_| RolloutEvent::Resumed,
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be resumed
        rolling, leaving, back: refused: the rollout of scheduler arena is STATE, it cannot be resumed
        paused, halted: rolling TO since now | TO rolling | +config +downscaling
        back-paused, back-halted: rollingBack TO since now | +config +downscaling
    "#]],
    );
}

#[test]
fn someone_cancels_it() {
    check(
        |_| RolloutEvent::CanceledBy("ada"),
        &expect![[r#"
        none: refused: scheduler arena has no rollout that could be canceled
        rolling, paused, halted: rollingBack TO (canceled by ada) | TO canceled: canceled by ada | +config +downscaling | Person("ada"): switch to v1.0.0 if TO is active (rollout of TO canceled by ada)
        leaving, back: refused: the rollout of scheduler arena is STATE, it cannot be canceled
        back-paused, back-halted: refused: the rollout of scheduler arena is on its way back to TO already
    "#]],
    );
}

#[test]
fn its_scheduler_is_deleted() {
    check(
        |_| RolloutEvent::DeletionBegan { is_rolling: false },
        &expect![[r#"
        none: none
        rolling, paused, halted, leaving, back, back-paused, back-halted: none | -config (TO) -downscaling (TO)
    "#]],
    );
    check(
        |_| RolloutEvent::DeletionBegan { is_rolling: true },
        &expect![[r#"
        none: none
        rolling, paused, halted, leaving, back, back-paused, back-halted: none | TO canceled: the scheduler is being deleted | -config (TO) -downscaling (TO)
    "#]],
    );
}

/// Of the config lock and of the other alike.
#[test]
fn its_lock_is_released_by_force() {
    let released = |kind| {
        let lock = lock(kind, Holder::Rollout(version(2)));
        table(|rollout| {
            happens(rollout, RolloutEvent::LockReleased(&lock, "wrong build"), &own_locks(rollout))
        })
    };
    let expected = released(LockKind::Config);
    assert_eq!(released(LockKind::Downscaling), expected);
    expect![[r#"
        none: none | -downscaling (v2.0.0)
        rolling, paused, leaving: paused TO (paused: wrong build) | -downscaling (TO)
        halted: halted TO (NOTE; wrong build) | -downscaling (TO)
        back, back-paused: paused TO (paused: wrong build) | -downscaling (v2.0.0)
        back-halted: halted TO (NOTE; wrong build) | -downscaling (v2.0.0)
    "#]]
    .assert_eq(&expected);
}

#[test]
fn a_deletion_is_taken_back() {
    let deletion = operation(DefinitionKind::DeleteScheduler);
    let back = |was_rolling, by: Option<Holder>| {
        let held = by.map(|by| lock(LockKind::Downscaling, by)).into_iter().collect();
        let locks = Locks { held, waiters: Vec::new() };
        table(|ended| {
            let Some(ended) = ended else { return "nothing to take back".to_owned() };
            let event = || RolloutEvent::DeletionTakenBack { rollout: ended.clone(), was_rolling, by };
            // Another version, or another rollout, came first.
            assert_eq!(happens_at(None, event(), &locks, version(4)), "none");
            let other = rollout(RolloutState::Rolling, 2, "");
            assert_eq!(happens_at(Some(&other), event(), &locks, ended.to), "as before");
            happens_at(None, event(), &locks, ended.to)
        })
    };
    expect![[r#"
        none: nothing to take back
        rolling: rolling TO since now, never took players | +config +downscaling | "the rollout of TO is restored, rolling"
        paused, back-paused: paused TO since now, never took players (NOTE) | +config -downscaling (TO) | "the rollout of TO is restored, paused"
        halted, back-halted: halted TO since now, never took players (NOTE) | +config -downscaling (TO) | "the rollout of TO is restored, halted"
        leaving, back: rollingBack TO since now, never took players (NOTE) | +config +downscaling | "the rollout of TO is restored, rollingBack"
    "#]].assert_eq(&back(false, None));
    expect![[r#"
        none: nothing to take back
        rolling: rolling TO since now, never took players | TO rolling | +config +downscaling (from delete_scheduler) | "the rollout of TO is restored, rolling"
        paused, back-paused: paused TO since now, never took players (NOTE) | TO rolling | +config -downscaling (TO) | "the rollout of TO is restored, paused"
        halted, back-halted: halted TO since now, never took players (NOTE) | TO rolling | +config -downscaling (TO) | "the rollout of TO is restored, halted"
        leaving, back: rollingBack TO since now, never took players (NOTE) | TO rolling | +config +downscaling (from delete_scheduler) | "the rollout of TO is restored, rollingBack"
    "#]].assert_eq(&back(true, Some(deletion)));
}

#[test]
fn what_becomes_of_old_rooms() {
    expect![[r#"
        none: no rollout
        rolling, back: old rooms Replaced, of v9.0.0; new ones of TO; removals are its own
        paused, back-paused: old rooms Kept, of v9.0.0; new ones of TO; others remove
        halted: old rooms Counted, of TO; new ones of v1.0.0; others remove
        leaving: old rooms Counted, of v9.0.0; new ones of TO; removals are its own
        back-halted: old rooms Counted, of TO; new ones of TO; others remove
    "#]]
    .assert_eq(&table(|rollout| {
        let Some(rollout) = rollout else { return "no rollout".to_owned() };
        let moving = if rollout.is_moving() { "removals are its own" } else { "others remove" };
        let go = rollout.versions_to_replace(vec![version(9)]);
        let (made, old) = (rollout.version_to_make(), rollout.old_versions());
        format!("old rooms {old:?}, of {}; new ones of {made}; {moving}", go[0])
    }));
}

#[test]
fn rooms_with_players_go_after_the_deadline() {
    let mut recipe = crate::scheduler::tests::recipe();
    let (occupied, match_end_deadline) = (OccupiedRooms::WaitForMatchEnd, Some(Millis::from_seconds(60)));
    recipe.rollout_rules =
        Some(crate::scheduler::Rollout { occupied, match_end_deadline, ..recipe.rollout() });
    let occupied =
        |rollout: Option<&RolloutRecord>, now| replacement_rules(rollout, &recipe, at(now), false).occupied;
    let rolling = rollout(RolloutState::Rolling, 2, "");
    assert_eq!(occupied(Some(&rolling), 64), OccupiedRooms::WaitForMatchEnd);
    assert_eq!(occupied(Some(&rolling), 65), OccupiedRooms::DeleteLast);
    // Where nothing is replaced, nothing has waited.
    assert_eq!(occupied(Some(&rollout(RolloutState::Paused, 2, "")), 65), OccupiedRooms::WaitForMatchEnd);
    assert_eq!(occupied(None, 65), OccupiedRooms::WaitForMatchEnd);
}
