//! What fleets do under other recipes, players and misfortunes.

use maestro_core::time::Millis;
use maestro_whatif::{Report, RolloutOutcome};

use crate::{document, half_ready, simulated};

fn surges(report: &Report) -> Vec<u32> {
    report.rows.iter().map(|row| row.to_surge).collect()
}

fn deletions(report: &Report) -> Vec<u32> {
    report.rows.iter().map(|row| row.to_be_deleted).collect()
}

#[test]
fn an_add_limit_takes_its_cycles() {
    let report = simulated(&document("  roomsReplicas: 1000\nlimits: { addRooms: 150 }\n")).unwrap();
    assert_eq!(surges(&report), [150, 150, 150, 150, 150, 150, 100, 0]);
    assert!(report.summary.at_rest);
    assert_eq!(report.summary.rooms_started, 1000);
}

#[test]
fn a_remove_limit_takes_its_cycles() {
    let report =
        simulated(&document("  roomsReplicas: 1\nrooms: { ready: 11 }\nlimits: { removeRooms: 4 }\n"))
            .unwrap();
    assert_eq!(deletions(&report), [4, 4, 2, 0]);
}

#[test]
fn players_who_wait_are_counted() {
    let report = simulated(&half_ready("demand: 10\ncycle: 10s\n")).unwrap();
    // Nobody is in a room that is not there: the fleet doubles until all have one.
    assert_eq!(surges(&report)[..5], [1, 1, 2, 4, 4 + 4]);
    assert_eq!(report.rows.last().unwrap().available, 20);
    assert_eq!(report.summary.matches_waiting_max, 10);
    assert_eq!(report.summary.matches_waited, Millis::from_seconds(50));
}

#[test]
fn several_matches_in_a_room() {
    let recipe = "  matchAllocation: { maxMatches: 4 }\n";
    let report =
        simulated(&half_ready(&format!("{recipe}rooms: {{ occupied: 3, ready: 9 }}\ndemand: 14\n"))).unwrap();
    // 14 matches need 7 rooms at half, and fill 3 and a half.
    let [_, ready, occupied, available, _, desired, desired_ready, ..] = report.rows[0].numbers();
    assert_eq!([ready, occupied, available, desired, desired_ready], [8, 4, 12, 7, 3]);
    assert_eq!(deletions(&report), [5, 0]);
}

#[test]
fn a_fixed_buffer() {
    let policy = "  autoscaling: { enabled: true, min: 1, max: 100, policy: { type: fixedBuffer, parameters: { fixedBuffer: { amount: 7 } } } }\n";
    let report = simulated(&document(&format!("{policy}rooms: {{ occupied: 3 }}\n"))).unwrap();
    assert_eq!(surges(&report), [7, 0]);
}

#[test]
fn a_cooldown_holds_back_scale_downs() {
    let policy = "  autoscaling: { enabled: true, min: 1, max: -1, cooldown: 60, policy: { type: roomOccupancy, parameters: { roomOccupancy: { readyTarget: 0.5 } } } }\n";
    let demand = "demand: { csv: players.csv }\ncycle: 10s\n";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("players.csv"), "time,occupied\n0s,10\n10s,8\n").unwrap();
    let path = directory.path().join("simulation.yaml");
    std::fs::write(&path, document(&format!("{policy}rooms: {{ occupied: 10, ready: 20 }}\n{demand}")))
        .unwrap();
    let report = crate::run(&path).unwrap();
    assert_eq!(deletions(&report), [10, 0, 0, 0, 0, 0, 4, 0]);
}

#[test]
fn a_down_threshold_holds_back_scale_downs() {
    let policy = |threshold| {
        let parameters = format!("{{ readyTarget: 0.5, downThreshold: {threshold} }}");
        document(&format!(
            "  autoscaling: {{ enabled: true, min: 1, max: -1, policy: {{ type: roomOccupancy, parameters: {{ roomOccupancy: {parameters} }} }} }}\nrooms: {{ occupied: 10, ready: 14 }}\n"
        ))
    };
    assert_eq!(deletions(&simulated(&policy("0.5")).unwrap()), [0]);
    assert_eq!(deletions(&simulated(&policy("0.9")).unwrap()), [4, 0]);
}

#[test]
fn rooms_take_their_time_to_start() {
    let report = simulated(&document("  roomsReplicas: 4\ncycle: 10s\nroomStart: 25s\n")).unwrap();
    let ready: Vec<_> = report.rows.iter().map(|row| row.ready).collect();
    assert_eq!(ready, [0, 0, 0, 4]);
    assert_eq!(surges(&report), [4, 0, 0, 0], "what is on its way is not asked for again");
    assert_eq!(report.summary.under_ready_target, Millis::from_seconds(30));
    // Rooms cost from when they are asked for.
    assert_eq!(report.summary.room_time_ms, 4 * 40_000);
}

#[test]
fn a_version_that_never_becomes_ready_is_rolled_back() {
    let broken = "rooms: { ready: 20, occupied: 20 }\nnewVersion: { at: 20s }\nfailures: 1\n";
    let report = simulated(&half_ready(broken)).unwrap();
    let rollout = report.summary.rollout.unwrap();
    assert_eq!(rollout.outcome, RolloutOutcome::RolledBack);
    assert_eq!(rollout.reason.as_deref(), Some("10 new rooms in a row did not become ready"));
    assert_eq!(report.summary.under_ready_target, Millis(0));
    assert_eq!(report.summary.matches_moved, 0);
    let last = report.rows.last().unwrap();
    assert_eq!((last.ready, last.occupied, last.new), (20, 20, 0));
}

#[test]
fn some_failures_only_delay_a_rollout() {
    let flaky = |seed| {
        format!(
            "rooms: {{ ready: 20, occupied: 20 }}\nnewVersion: {{ at: 0s }}\nfailures: 0.2\nseed: {seed}\n"
        )
    };
    let report = simulated(&half_ready(&flaky(1))).unwrap();
    assert_eq!(report.summary.rollout.as_ref().unwrap().outcome, RolloutOutcome::Finished);
    assert_eq!(report.summary.under_ready_target, Millis(0));
    assert_eq!(simulated(&half_ready(&flaky(1))).unwrap(), report, "the same seed, the same table");
    assert_ne!(simulated(&half_ready(&flaky(2))).unwrap(), report);
}

#[test]
fn a_day_is_shown_once() {
    let day = "rooms: { ready: 10 }\ndemand: { curve: day, low: 10, high: 60, period: 1h }\ncycle: 1m\n";
    let report = simulated(&half_ready(day)).unwrap();
    assert_eq!(report.summary.loops, 60);
    let occupied: Vec<_> = report.rows.iter().step_by(15).map(|row| row.occupied).collect();
    assert_eq!(occupied, [10, 35, 60, 35]);
}

#[test]
fn matches_that_end_let_a_rollout_through() {
    let outcome = |rest: &str| {
        let rules = "  rollout: { occupied: waitForMatchEnd }\n";
        let rooms = "rooms: { ready: 10, occupied: 10 }\nnewVersion: { at: 0s }\n";
        let summary = simulated(&half_ready(&format!("{rules}{rooms}{rest}\n"))).unwrap().summary;
        (summary.rollout.unwrap().outcome, summary.matches_moved)
    };
    assert_eq!(outcome("matchLength: 5m"), (RolloutOutcome::Finished, 0));
    // Without an end of matches they would wait forever.
    assert_eq!(outcome("cycles: 100"), (RolloutOutcome::Rolling, 0));
}

#[test]
fn a_failed_rollout_may_halt() {
    let rules = "  rollout: { onFailure: halt, maxFailures: 2 }\n";
    let broken = "rooms: { ready: 20, occupied: 20 }\nnewVersion: { at: 0s }\nfailures: 1\n";
    let report = simulated(&half_ready(&format!("{rules}{broken}"))).unwrap();
    assert_eq!(report.summary.rollout.unwrap().outcome, RolloutOutcome::Halted);
    assert!(report.summary.at_rest);
}

#[test]
fn a_duration_counts_in_cycles() {
    let loops = |length: &str| {
        let report = simulated(&document(&format!("  roomsReplicas: 1\ncycle: 20s\n{length}\n")));
        report.unwrap().summary.loops
    };
    assert_eq!(loops("duration: 1m"), 3);
    assert_eq!(loops("duration: 61s"), 4);
    assert_eq!(loops("cycles: 5"), 5);
}
