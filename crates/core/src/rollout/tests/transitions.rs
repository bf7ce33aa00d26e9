//! Every state and every event, one line each: what is written, and every word that people read.

use std::fmt::Write;

use expect_test::{Expect, expect};

use super::super::*;
use crate::lock::{Lock, Locks, Waiter};
use crate::operation::{DefinitionKind, OperationId, Token};
use crate::scheduler::{OnFailure, SchedulerName};

const SIZE: SizeBaseline = SizeBaseline { before: 3, after: 5 };

fn version(major: u32) -> Version {
    Version::parse(&format!("v{major}.0.0")).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn operation(kind: DefinitionKind) -> Holder {
    Holder::Operation { kind, id: OperationId::new(at(0), [7; 10]) }
}

fn switch() -> Holder {
    operation(DefinitionKind::SwitchVersion)
}

fn rollout(state: RolloutState, to: u32, note: &str) -> RolloutRecord {
    let (to, from) = (version(to), version(1));
    let occupied_at = Some(at(7));
    RolloutRecord { state, to, from, since: at(5), fleet_size: SIZE, occupied_at, note: note.into() }
}

/// All that a rollout to v2 can be, and its way back to v1.
fn states() -> Vec<(&'static str, Option<RolloutRecord>)> {
    use RolloutState::{Halted, Paused, Rolling, RollingBack};
    vec![
        ("none", None),
        ("rolling", Some(rollout(Rolling, 2, ""))),
        ("paused", Some(rollout(Paused, 2, "paused by bob"))),
        ("halted", Some(rollout(Halted, 2, "v2.0.0 failed: boom"))),
        ("leaving", Some(rollout(RollingBack, 2, "canceled by bob"))),
        ("back", Some(rollout(RollingBack, 1, "canceled by bob"))),
        ("back, paused", Some(rollout(Paused, 1, "paused by bob"))),
        ("back, halted", Some(rollout(Halted, 1, "v1.0.0 failed: boom"))),
    ]
}

fn lock(kind: LockKind, holder: Holder) -> Lock {
    let (reason, token, acquired_at) = (String::new(), Token(1), at(0));
    Lock { kind, holder, reason, token, acquired_at, expires_at: None }
}

/// As a rollout has them.
fn own_locks(rollout: Option<&RolloutRecord>) -> Locks {
    let held = rollout.into_iter().flat_map(|rollout| {
        let config = lock(LockKind::Config, rollout.holder());
        [Some(config), rollout.is_moving().then(|| lock(LockKind::Downscaling, rollout.holder()))]
    });
    Locks { held: held.flatten().collect(), waiters: Vec::new() }
}

fn happens(rollout: Option<&RolloutRecord>, event: RolloutEvent<'_>, locks: &Locks) -> String {
    let scheduler = SchedulerName::parse("arena").unwrap();
    let active = rollout.map_or(version(1), |rollout| rollout.to);
    let context = RolloutContext { scheduler: &scheduler, active, locks, now: at(100) };
    match transition(rollout, event, &context) {
        Ok(transition) => in_words(rollout, &transition),
        Err(refused) => format!("refused: {refused}"),
    }
}

fn in_words(before: Option<&RolloutRecord>, transition: &Transition) -> String {
    let Transition { rollout, versions, locks, way_back, history } = transition;
    let mut parts = vec![match rollout {
        Some(rollout) if before == Some(rollout) => "as before".to_owned(),
        Some(rollout) => record_in_words(rollout),
        None => "none".to_owned(),
    }];
    parts.extend(versions.iter().map(|change| {
        let VersionChange { version, status, cause } = change;
        format!(
            "{version} {}{}",
            status.as_str(),
            if cause.is_empty() { String::new() } else { format!(": {cause}") }
        )
    }));
    let locks: Vec<String> = locks.iter().filter_map(|change| lock_in_words(change, locks)).collect();
    parts.extend((!locks.is_empty()).then(|| locks.join(" ")));
    parts.extend(way_back.iter().map(|WayBack { switch, origin, reason }| {
        let from = switch.only_from.unwrap();
        format!("{origin:?}: switch to {} if {from} is active ({reason})", switch.to)
    }));
    let replaces = |to| format!("rooms of other major versions are replaced by those of {to} from now on");
    parts.extend(history.iter().map(|event| match rollout {
        Some(rollout) if *event == replaces(rollout.to) => "says so".to_owned(),
        Some(_) | None => format!("\"{event}\""),
    }));
    parts.join(" | ")
}

fn record_in_words(rollout: &RolloutRecord) -> String {
    let RolloutRecord { state, to, from, since, fleet_size, occupied_at, note } = rollout;
    assert_eq!((*from, *fleet_size), (version(1), SIZE));
    let mut text = format!("{} {to}", state.as_str());
    if *since == at(100) {
        text += " since now";
    }
    match occupied_at.map(Timestamp::as_second) {
        Some(7) => {}
        None => text += ", never took players",
        Some(100) => text += ", took players now",
        Some(other) => panic!("{other}"),
    }
    if !note.is_empty() {
        write!(text, " ({note})").unwrap();
    }
    text
}

/// `None`: every rollout does that, or it goes without saying.
fn lock_in_words(change: &LockChange, all: &[LockChange]) -> Option<String> {
    let who = |holder: &Holder| match holder {
        Holder::Operation { kind, .. } => kind.as_str().to_owned(),
        Holder::Rollout(version) => version.to_string(),
        Holder::HealthController => holder.to_string(),
    };
    let is_released = |kind, holder| {
        let is_it = |other: &LockChange| matches!(other, LockChange::Release { kind: k, holder: h } if (*k, *h) == (kind, holder));
        all.iter().any(is_it)
    };
    Some(match change {
        LockChange::Take { kind, taker, reason } => {
            assert_eq!(*reason, format!("rooms are replaced by those of {}", who(&taker.holder)));
            match taker.instead_of.filter(|other| *other != taker.holder) {
                Some(other) => format!("+{kind} (from {})", who(&other)),
                None => format!("+{kind}"),
            }
        }
        LockChange::Release { kind, holder } => format!("-{kind} ({})", who(holder)),
        LockChange::Await { kind, .. } => format!("awaits {kind}"),
        LockChange::StopAwaiting { holder: Holder::HealthController, .. } => return None,
        LockChange::StopAwaiting { kind, holder } if is_released(*kind, *holder) => return None,
        LockChange::StopAwaiting { kind, holder } => format!("no place for {kind} ({})", who(holder)),
    })
}

/// What the event makes of each state.
fn check(event: impl Fn(Option<&RolloutRecord>) -> RolloutEvent<'static>, expected: &Expect) {
    let mut table = String::new();
    for (name, rollout) in states() {
        let mut locks = own_locks(rollout.as_ref());
        let event = event(rollout.as_ref());
        if matches!(event, RolloutEvent::Switched(_)) && rollout.is_none() {
            locks.held.push(lock(LockKind::Config, switch()));
        }
        writeln!(table, "{name}: {}", happens(rollout.as_ref(), event, &locks)).unwrap();
    }
    expected.assert_eq(&table);
}

fn switched(to: u32, is_major: bool) -> impl Fn(Option<&RolloutRecord>) -> RolloutEvent<'static> {
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
            rolling: rolling v3.0.0 since now | v2.0.0 superseded: superseded by v3.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | "supersedes the rollout of v2.0.0" | says so
            paused: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            halted: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            leaving: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            back: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v1.0.0) +downscaling (from v1.0.0) | says so
            back, paused: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v1.0.0) +downscaling (from v1.0.0) | says so
            back, halted: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v1.0.0) +downscaling (from v1.0.0) | says so
        "#]],
    );
}

#[test]
fn a_switch_to_a_minor_version() {
    check(
        switched(3, false),
        &expect![[r#"
            none: none | v3.0.0 deployed
            rolling: rolling v3.0.0 since now | v2.0.0 superseded: superseded by v3.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | "supersedes the rollout of v2.0.0" | says so
            paused: paused v3.0.0 since now (paused by bob) | v3.0.0 rolling | +config (from v2.0.0) -downscaling (v2.0.0) -downscaling (v3.0.0) | says so
            halted: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            leaving: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            back: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v1.0.0) +downscaling (from v1.0.0) | says so
            back, paused: paused v3.0.0 since now (paused by bob) | v3.0.0 rolling | +config (from v1.0.0) -downscaling (v1.0.0) -downscaling (v3.0.0) | says so
            back, halted: rolling v3.0.0 since now | v3.0.0 rolling | +config (from v1.0.0) +downscaling (from v1.0.0) | says so
        "#]],
    );
}

#[test]
fn the_switch_back() {
    check(
        switched(1, true),
        &expect![[r#"
            none: rolling v1.0.0 since now, never took players | +config (from switch_active_version) +downscaling | says so
            rolling: rollingBack v1.0.0 since now | v2.0.0 superseded: superseded by v1.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | +config (from v2.0.0) +downscaling (from v2.0.0) | "supersedes the rollout of v2.0.0" | says so
            paused: paused v1.0.0 since now (paused by bob) | +config (from v2.0.0) -downscaling (v2.0.0) -downscaling (v1.0.0) | says so
            halted: rollingBack v1.0.0 since now (v2.0.0 failed: boom) | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            leaving: rollingBack v1.0.0 since now (canceled by bob) | +config (from v2.0.0) +downscaling (from v2.0.0) | says so
            back: rollingBack v1.0.0 since now (canceled by bob) | +config +downscaling | says so
            back, paused: paused v1.0.0 since now (paused by bob) | +config -downscaling (v1.0.0) | says so
            back, halted: rollingBack v1.0.0 since now (v1.0.0 failed: boom) | +config +downscaling | says so
        "#]],
    );
}

#[test]
fn no_old_room_is_left() {
    check(
        |_| RolloutEvent::Finished,
        &expect![[r#"
            none: refused: scheduler arena has no rollout that could be finished
            rolling: none | v2.0.0 deployed | -config (v2.0.0) -downscaling (v2.0.0) | "the rollout of v2.0.0 is finished: no old room is left"
            paused: refused: the rollout of scheduler arena is paused, it cannot be finished
            halted: refused: the rollout of scheduler arena is halted, it cannot be finished
            leaving: none | v2.0.0 deployed | -config (v2.0.0) -downscaling (v2.0.0) | "the rollout of v2.0.0 is finished: no old room is left"
            back: none | v1.0.0 deployed | -config (v1.0.0) -downscaling (v1.0.0) | "the rollout of v1.0.0 is finished: no old room is left"
            back, paused: refused: the rollout of scheduler arena is paused, it cannot be finished
            back, halted: refused: the rollout of scheduler arena is halted, it cannot be finished
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
            rolling: rollingBack v2.0.0 (v2.0.0 failed: boom) | v2.0.0 error: boom | +config +downscaling | Controller: switch to v1.0.0 if v2.0.0 is active (the rollout of v2.0.0 failed: boom; back to v1.0.0)
            paused: refused: the rollout of scheduler arena is paused, it cannot be judged
            halted: refused: the rollout of scheduler arena is halted, it cannot be judged
            leaving: halted v2.0.0 (v2.0.0 failed: boom) | v2.0.0 error: boom | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 halts: boom"
            back: halted v1.0.0 (v1.0.0 failed: boom) | v1.0.0 error: boom | +config -downscaling (v1.0.0) | "the rollout of v1.0.0 halts: boom"
            back, paused: refused: the rollout of scheduler arena is paused, it cannot be judged
            back, halted: refused: the rollout of scheduler arena is halted, it cannot be judged
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
            rolling: halted v2.0.0 (v2.0.0 failed: boom) | v2.0.0 error: boom | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 halts: boom"
            paused: refused: the rollout of scheduler arena is paused, it cannot be judged
            halted: refused: the rollout of scheduler arena is halted, it cannot be judged
            leaving: halted v2.0.0 (v2.0.0 failed: boom) | v2.0.0 error: boom | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 halts: boom"
            back: halted v1.0.0 (v1.0.0 failed: boom) | v1.0.0 error: boom | +config -downscaling (v1.0.0) | "the rollout of v1.0.0 halts: boom"
            back, paused: refused: the rollout of scheduler arena is paused, it cannot be judged
            back, halted: refused: the rollout of scheduler arena is halted, it cannot be judged
        "#]],
    );
}

#[test]
fn the_switch_back_is_lost() {
    check(
        |_| RolloutEvent::WayBackLost,
        &expect![[r#"
            none: refused: scheduler arena has no rollout that could be rolled back
            rolling: refused: the rollout of scheduler arena is rolling, it cannot be rolled back
            paused: refused: the rollout of scheduler arena is paused, it cannot be rolled back
            halted: refused: the rollout of scheduler arena is halted, it cannot be rolled back
            leaving: as before | Controller: switch to v1.0.0 if v2.0.0 is active (canceled by bob; back to v1.0.0)
            back: as before | Controller: switch to v1.0.0 if v1.0.0 is active (canceled by bob; back to v1.0.0)
            back, paused: refused: the rollout of scheduler arena is paused, it cannot be rolled back
            back, halted: refused: the rollout of scheduler arena is halted, it cannot be rolled back
        "#]],
    );
}

#[test]
fn a_cycle_acts() {
    check(
        |_| RolloutEvent::CycleActed { took_occupied: false },
        &expect![[r#"
        none: none
        rolling: as before
        paused: as before
        halted: as before
        leaving: as before
        back: as before
        back, paused: as before
        back, halted: as before
    "#]],
    );
    check(
        |_| RolloutEvent::CycleActed { took_occupied: true },
        &expect![[r#"
        none: none
        rolling: rolling v2.0.0, took players now
        paused: paused v2.0.0, took players now (paused by bob)
        halted: halted v2.0.0, took players now (v2.0.0 failed: boom)
        leaving: rollingBack v2.0.0, took players now (canceled by bob)
        back: rollingBack v1.0.0, took players now (canceled by bob)
        back, paused: paused v1.0.0, took players now (paused by bob)
        back, halted: halted v1.0.0, took players now (v1.0.0 failed: boom)
    "#]],
    );
}

#[test]
fn someone_pauses_it() {
    check(
        |_| RolloutEvent::PausedBy("ada"),
        &expect![[r#"
            none: refused: scheduler arena has no rollout that could be paused
            rolling: paused v2.0.0 (paused by ada) | +config -downscaling (v2.0.0)
            paused: refused: the rollout of scheduler arena is paused, it cannot be paused
            halted: refused: the rollout of scheduler arena is halted, it cannot be paused
            leaving: paused v2.0.0 (paused by ada) | +config -downscaling (v2.0.0)
            back: paused v1.0.0 (paused by ada) | +config -downscaling (v1.0.0)
            back, paused: refused: the rollout of scheduler arena is paused, it cannot be paused
            back, halted: refused: the rollout of scheduler arena is halted, it cannot be paused
        "#]],
    );
}

#[test]
fn someone_resumes_it() {
    check(
        |_| RolloutEvent::Resumed,
        &expect![[r#"
            none: refused: scheduler arena has no rollout that could be resumed
            rolling: refused: the rollout of scheduler arena is rolling, it cannot be resumed
            paused: rolling v2.0.0 since now | v2.0.0 rolling | +config +downscaling
            halted: rolling v2.0.0 since now | v2.0.0 rolling | +config +downscaling
            leaving: refused: the rollout of scheduler arena is rollingBack, it cannot be resumed
            back: refused: the rollout of scheduler arena is rollingBack, it cannot be resumed
            back, paused: rollingBack v1.0.0 since now | +config +downscaling
            back, halted: rollingBack v1.0.0 since now | +config +downscaling
        "#]],
    );
}

#[test]
fn someone_cancels_it() {
    check(
        |_| RolloutEvent::CanceledBy("ada"),
        &expect![[r#"
            none: refused: scheduler arena has no rollout that could be canceled
            rolling: rollingBack v2.0.0 (canceled by ada) | v2.0.0 canceled: canceled by ada | +config +downscaling | Person("ada"): switch to v1.0.0 if v2.0.0 is active (rollout of v2.0.0 canceled by ada)
            paused: rollingBack v2.0.0 (canceled by ada) | v2.0.0 canceled: canceled by ada | +config +downscaling | Person("ada"): switch to v1.0.0 if v2.0.0 is active (rollout of v2.0.0 canceled by ada)
            halted: rollingBack v2.0.0 (canceled by ada) | v2.0.0 canceled: canceled by ada | +config +downscaling | Person("ada"): switch to v1.0.0 if v2.0.0 is active (rollout of v2.0.0 canceled by ada)
            leaving: refused: the rollout of scheduler arena is rollingBack, it cannot be canceled
            back: refused: the rollout of scheduler arena is rollingBack, it cannot be canceled
            back, paused: refused: the rollout of scheduler arena is on its way back to v1.0.0 already
            back, halted: refused: the rollout of scheduler arena is on its way back to v1.0.0 already
        "#]],
    );
}

#[test]
fn its_scheduler_is_deleted() {
    check(
        |_| RolloutEvent::DeletionBegan { is_rolling: false },
        &expect![[r#"
            none: none
            rolling: none | -config (v2.0.0) -downscaling (v2.0.0)
            paused: none | -config (v2.0.0) -downscaling (v2.0.0)
            halted: none | -config (v2.0.0) -downscaling (v2.0.0)
            leaving: none | -config (v2.0.0) -downscaling (v2.0.0)
            back: none | -config (v1.0.0) -downscaling (v1.0.0)
            back, paused: none | -config (v1.0.0) -downscaling (v1.0.0)
            back, halted: none | -config (v1.0.0) -downscaling (v1.0.0)
        "#]],
    );
    check(
        |_| RolloutEvent::DeletionBegan { is_rolling: true },
        &expect![[r#"
            none: none
            rolling: none | v2.0.0 canceled: the scheduler is being deleted | -config (v2.0.0) -downscaling (v2.0.0)
            paused: none | v2.0.0 canceled: the scheduler is being deleted | -config (v2.0.0) -downscaling (v2.0.0)
            halted: none | v2.0.0 canceled: the scheduler is being deleted | -config (v2.0.0) -downscaling (v2.0.0)
            leaving: none | v2.0.0 canceled: the scheduler is being deleted | -config (v2.0.0) -downscaling (v2.0.0)
            back: none | v1.0.0 canceled: the scheduler is being deleted | -config (v1.0.0) -downscaling (v1.0.0)
            back, paused: none | v1.0.0 canceled: the scheduler is being deleted | -config (v1.0.0) -downscaling (v1.0.0)
            back, halted: none | v1.0.0 canceled: the scheduler is being deleted | -config (v1.0.0) -downscaling (v1.0.0)
        "#]],
    );
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

/// Of the config lock and of the other alike.
#[test]
fn its_lock_is_released_by_force() {
    let mut table = String::new();
    for (name, rollout) in states() {
        let holder = Holder::Rollout(version(2));
        let says = [LockKind::Config, LockKind::Downscaling].map(|kind| {
            let event = RolloutEvent::LockReleased(&lock(kind, holder), "wrong build");
            happens(rollout.as_ref(), event, &own_locks(rollout.as_ref()))
        });
        assert_eq!(says[0], says[1]);
        writeln!(table, "{name}: {}", says[0]).unwrap();
    }
    expect![[r#"
        none: none | -downscaling (v2.0.0)
        rolling: paused v2.0.0 (paused: wrong build) | -downscaling (v2.0.0)
        paused: paused v2.0.0 (paused: wrong build) | -downscaling (v2.0.0)
        halted: halted v2.0.0 (v2.0.0 failed: boom; wrong build) | -downscaling (v2.0.0)
        leaving: paused v2.0.0 (paused: wrong build) | -downscaling (v2.0.0)
        back: paused v1.0.0 (paused: wrong build) | -downscaling (v2.0.0)
        back, paused: paused v1.0.0 (paused: wrong build) | -downscaling (v2.0.0)
        back, halted: halted v1.0.0 (v1.0.0 failed: boom; wrong build) | -downscaling (v2.0.0)
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_deletion_is_taken_back() {
    let mut table = String::new();
    let deletion = operation(DefinitionKind::DeleteScheduler);
    for (name, ended) in states() {
        let Some(ended) = ended else { continue };
        for (was_rolling, by) in [(false, None), (true, Some(deletion))] {
            let mut locks = Locks::default();
            locks.held.extend(by.map(|by| lock(LockKind::Downscaling, by)));
            let scheduler = SchedulerName::parse("arena").unwrap();
            let context =
                RolloutContext { scheduler: &scheduler, active: ended.to, locks: &locks, now: at(100) };
            let event = || RolloutEvent::DeletionTakenBack { rollout: ended.clone(), was_rolling, by };
            let back = transition(None, event(), &context).unwrap();
            writeln!(table, "{name}: {}", in_words(None, &back)).unwrap();
            // Another version, or another rollout, came first.
            let elsewhere = RolloutContext { active: version(4), ..context };
            assert_eq!(in_words(None, &transition(None, event(), &elsewhere).unwrap()), "none");
            let other = rollout(RolloutState::Rolling, 2, "");
            let stays = transition(Some(&other), event(), &context).unwrap();
            assert_eq!(in_words(Some(&other), &stays), "as before");
        }
    }
    expect![[r#"
        rolling: rolling v2.0.0 since now, never took players | +config +downscaling | "the rollout of v2.0.0 is restored, rolling"
        rolling: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config +downscaling (from delete_scheduler) | "the rollout of v2.0.0 is restored, rolling"
        paused: paused v2.0.0 since now, never took players (paused by bob) | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 is restored, paused"
        paused: paused v2.0.0 since now, never took players (paused by bob) | v2.0.0 rolling | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 is restored, paused"
        halted: halted v2.0.0 since now, never took players (v2.0.0 failed: boom) | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 is restored, halted"
        halted: halted v2.0.0 since now, never took players (v2.0.0 failed: boom) | v2.0.0 rolling | +config -downscaling (v2.0.0) | "the rollout of v2.0.0 is restored, halted"
        leaving: rollingBack v2.0.0 since now, never took players (canceled by bob) | +config +downscaling | "the rollout of v2.0.0 is restored, rollingBack"
        leaving: rollingBack v2.0.0 since now, never took players (canceled by bob) | v2.0.0 rolling | +config +downscaling (from delete_scheduler) | "the rollout of v2.0.0 is restored, rollingBack"
        back: rollingBack v1.0.0 since now, never took players (canceled by bob) | +config +downscaling | "the rollout of v1.0.0 is restored, rollingBack"
        back: rollingBack v1.0.0 since now, never took players (canceled by bob) | v1.0.0 rolling | +config +downscaling (from delete_scheduler) | "the rollout of v1.0.0 is restored, rollingBack"
        back, paused: paused v1.0.0 since now, never took players (paused by bob) | +config -downscaling (v1.0.0) | "the rollout of v1.0.0 is restored, paused"
        back, paused: paused v1.0.0 since now, never took players (paused by bob) | v1.0.0 rolling | +config -downscaling (v1.0.0) | "the rollout of v1.0.0 is restored, paused"
        back, halted: halted v1.0.0 since now, never took players (v1.0.0 failed: boom) | +config -downscaling (v1.0.0) | "the rollout of v1.0.0 is restored, halted"
        back, halted: halted v1.0.0 since now, never took players (v1.0.0 failed: boom) | v1.0.0 rolling | +config -downscaling (v1.0.0) | "the rollout of v1.0.0 is restored, halted"
    "#]].assert_eq(&table);
}

#[test]
fn locks_that_others_have() {
    use LockKind::{Config, Downscaling};
    let removal = operation(DefinitionKind::RemoveRooms);
    let waits = |kind, holder| Waiter { kind, holder, since: at(0), until: at(200) };
    let locks = |held: &[(LockKind, Holder)], waiters: &[(LockKind, Holder)]| Locks {
        held: held.iter().map(|(kind, holder)| lock(*kind, *holder)).collect(),
        waiters: waiters.iter().map(|(kind, holder)| waits(*kind, *holder)).collect(),
    };
    let (v2, cycles) = (Holder::Rollout(version(2)), Holder::HealthController);
    let begun = |locks: Locks| happens(None, switched(2, true)(None), &locks);
    let paused = rollout(RolloutState::Paused, 2, "paused by bob");
    let resumed = |locks: Locks| happens(Some(&paused), RolloutEvent::Resumed, &locks);
    let superseded = |locks: Locks| {
        let rolling = rollout(RolloutState::Rolling, 2, "");
        happens(Some(&rolling), switched(3, true)(Some(&rolling)), &locks)
    };
    let table = [
        ("begins beside a removal", begun(locks(&[(Config, switch()), (Downscaling, removal)], &[]))),
        ("begins before a cycle that waits", begun(locks(&[(Config, switch())], &[(Downscaling, cycles)]))),
        ("begins after a removal that waits", begun(locks(&[(Config, switch())], &[(Downscaling, removal)]))),
        (
            "resumed while someone has both",
            resumed(locks(&[(Config, switch()), (Downscaling, removal)], &[])),
        ),
        (
            "superseded while it waits",
            superseded(locks(&[(Config, v2), (Downscaling, removal)], &[(Downscaling, v2)])),
        ),
    ]
    .map(|(case, is)| format!("{case}: {is}\n"));
    expect![[r#"
        begins beside a removal: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config (from switch_active_version) awaits downscaling | says so
        begins before a cycle that waits: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config (from switch_active_version) +downscaling | says so
        begins after a removal that waits: rolling v2.0.0 since now, never took players | v2.0.0 rolling | +config (from switch_active_version) awaits downscaling | says so
        resumed while someone has both: rolling v2.0.0 since now | v2.0.0 rolling | awaits downscaling
        superseded while it waits: rolling v3.0.0 since now | v2.0.0 superseded: superseded by v3.0.0 (switch_active_version 00000000-0000-7707-8707-070707070707) | v3.0.0 rolling | +config (from v2.0.0) no place for downscaling (v2.0.0) awaits downscaling | "supersedes the rollout of v2.0.0" | says so
    "#]].assert_eq(&table.concat());
}

#[test]
fn what_becomes_of_old_rooms() {
    let mut table = String::new();
    for (name, rollout) in states() {
        let Some(rollout) = rollout else { continue };
        let moving = if rollout.is_moving() { "removals are its own" } else { "others remove" };
        let go = rollout.versions_to_replace(vec![version(9)]);
        let made = rollout.version_to_make();
        let old = rollout.old_versions();
        writeln!(table, "{name}: old rooms {old:?}, of {}; new ones of {made}; {moving}", go[0]).unwrap();
    }
    expect![[r#"
        rolling: old rooms Replaced, of v9.0.0; new ones of v2.0.0; removals are its own
        paused: old rooms Kept, of v9.0.0; new ones of v2.0.0; others remove
        halted: old rooms Counted, of v2.0.0; new ones of v1.0.0; others remove
        leaving: old rooms Counted, of v9.0.0; new ones of v2.0.0; removals are its own
        back: old rooms Replaced, of v9.0.0; new ones of v1.0.0; removals are its own
        back, paused: old rooms Kept, of v9.0.0; new ones of v1.0.0; others remove
        back, halted: old rooms Counted, of v1.0.0; new ones of v1.0.0; others remove
    "#]]
    .assert_eq(&table);
}
