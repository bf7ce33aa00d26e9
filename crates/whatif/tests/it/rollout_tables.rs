//! The rollout tables of the specification, row by row, from the examples that ship. How they look on a terminal is
//! tested with the command line.

use std::path::PathBuf;

use expect_test::expect;

use crate::run;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/simulate").join(name)
}

fn check(name: &str) {
    let mut csv = Vec::new();
    run(&example(&format!("{name}.yaml"))).unwrap().write_csv(&mut csv).unwrap();
    let table = std::fs::read_to_string(maestro_testkit::path(&format!("rollouts/{name}.csv"))).unwrap();
    assert_eq!(String::from_utf8(csv).unwrap(), table, "{name}");
}

#[test]
fn downscale() {
    check("downscale");
}

#[test]
fn upscale() {
    check("upscale");
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
