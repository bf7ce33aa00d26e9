//! Every table of the seed, row by row, from the examples that ship.

use std::path::PathBuf;

use expect_test::expect;

use crate::run;

/// ready, occupied, available, new, desired, desiredReady, toSurge, toBeDeleted
type SeedRow = [u32; 8];

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/simulate").join(name)
}

fn check(name: &str, rows: &[SeedRow]) {
    let report = run(&example(name)).unwrap();
    let numbers: Vec<[u32; 9]> = report.rows.iter().map(|row| row.numbers()).collect();
    let expected = rows.iter().zip(1..).map(|(row, number)| {
        let mut whole = [number; 9];
        whole[1..].copy_from_slice(row);
        whole
    });
    assert_eq!(numbers, expected.collect::<Vec<_>>(), "{name}");
}

#[test]
fn downscale() {
    check(
        "downscale.yaml",
        &[
            [20, 5, 25, 0, 10, 5, 0, 15],
            [5, 5, 10, 0, 10, 5, 2, 0],
            [7, 5, 12, 2, 10, 5, 0, 2],
            [5, 5, 10, 2, 10, 5, 2, 0],
            [7, 5, 12, 4, 10, 5, 0, 2],
            [5, 5, 10, 4, 10, 5, 2, 0],
            [7, 5, 12, 6, 10, 5, 0, 2],
            [5, 5, 10, 6, 10, 5, 2, 0],
            [7, 5, 12, 8, 10, 5, 0, 2],
            [5, 5, 10, 8, 10, 5, 2, 0],
            [7, 5, 12, 10, 10, 5, 0, 2],
            [5, 5, 10, 10, 10, 5, 0, 0],
        ],
    );
}

#[test]
fn upscale() {
    check(
        "upscale.yaml",
        &[
            [5, 20, 25, 0, 40, 20, 10, 0],
            [15, 20, 35, 10, 40, 20, 10, 0],
            [25, 20, 45, 20, 40, 20, 5, 5],
            [25, 20, 45, 25, 40, 20, 5, 5],
            [25, 20, 45, 30, 40, 20, 5, 5],
            // The seed prints 35 here; 45 − 20 is 25.
            [25, 20, 45, 35, 40, 20, 5, 5],
            [25, 20, 45, 40, 40, 20, 0, 5],
            [20, 20, 40, 40, 40, 20, 0, 0],
        ],
    );
}

#[test]
fn as_a_table() {
    let mut table = Vec::new();
    run(&example("upscale.yaml")).unwrap().write_table(&mut table).unwrap();
    expect![[r#"
        loop  ready  occupied  available    desired  desiredReady  toSurge  toBeDeleted
        1     5      20        25 (0 new)   40       20            10       0
        2     15     20        35 (10 new)  40       20            10       0
        3     25     20        45 (20 new)  40       20            5        5
        4     25     20        45 (25 new)  40       20            5        5
        5     25     20        45 (30 new)  40       20            5        5
        6     25     20        45 (35 new)  40       20            5        5
        7     25     20        45 (40 new)  40       20            0        5
        8     20     20        40 (40 new)  40       20            0        0

        simulated               8 loops, 4m, then at rest
        under the ready target  1m
        room-hours              2.83
        churn                   40 rooms started, 25 stopped
        matches moved           20
        matches without a room  none
        rollout                 v2.0.0 finished after 3m30s (7 loops)
    "#]]
    .assert_eq(&String::from_utf8(table).unwrap());
}

#[test]
fn as_csv() {
    let mut csv = Vec::new();
    run(&example("upscale.yaml")).unwrap().write_csv(&mut csv).unwrap();
    expect![[r#"
        loop,ready,occupied,available,new,desired,desiredReady,toSurge,toBeDeleted
        1,5,20,25,0,40,20,10,0
        2,15,20,35,10,40,20,10,0
        3,25,20,45,20,40,20,5,5
        4,25,20,45,25,40,20,5,5
        5,25,20,45,30,40,20,5,5
        6,25,20,45,35,40,20,5,5
        7,25,20,45,40,40,20,0,5
        8,20,20,40,40,40,20,0,0
    "#]]
    .assert_eq(&String::from_utf8(csv).unwrap());
}

#[test]
fn as_json() {
    let mut report = run(&example("downscale.yaml")).unwrap();
    report.rows.truncate(1);
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    expect![[r#"
        {
          "loops": [
            {
              "loop": 1,
              "ready": 20,
              "occupied": 5,
              "available": 25,
              "new": 0,
              "desired": 10,
              "desiredReady": 5,
              "toSurge": 0,
              "toBeDeleted": 15
            }
          ],
          "summary": {
            "scheduler": "arena",
            "loops": 12,
            "seconds": 360,
            "atRest": true,
            "secondsUnderReadyTarget": 0,
            "roomHours": 1.08,
            "roomsStarted": 10,
            "roomsStopped": 25,
            "matchesMoved": 5,
            "secondsWithMatchesWaiting": 0,
            "matchesWaitingMax": 0,
            "rollout": {
              "loops": 11,
              "reason": null,
              "seconds": 330,
              "state": "finished",
              "version": "v2.0.0"
            }
          }
        }
    "#]]
    .assert_eq(&String::from_utf8(json).unwrap());
}
