//! `maestro simulate` and `maestro plan`, which need no server.

use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::{check_local, maestro, run, told};

/// From the root of the repository, as the documentation writes it.
fn from_root(arguments: &str) -> Command {
    let mut command = maestro(arguments);
    command.current_dir(maestro_testkit::repository());
    command
}

#[test]
fn both_scenarios_of_the_seed() {
    check_local(
        from_root("simulate -f examples/simulate/downscale.yaml"),
        &expect![[r#"
            loop  ready  occupied  available    desired  desiredReady  toSurge  toBeDeleted
            1     20     5         25 (0 new)   10       5             0        15
            2     5      5         10 (0 new)   10       5             2        0
            3     7      5         12 (2 new)   10       5             0        2
            4     5      5         10 (2 new)   10       5             2        0
            5     7      5         12 (4 new)   10       5             0        2
            6     5      5         10 (4 new)   10       5             2        0
            7     7      5         12 (6 new)   10       5             0        2
            8     5      5         10 (6 new)   10       5             2        0
            9     7      5         12 (8 new)   10       5             0        2
            10    5      5         10 (8 new)   10       5             2        0
            11    7      5         12 (10 new)  10       5             0        2
            12    5      5         10 (10 new)  10       5             0        0

            simulated               12 loops, 6m, then at rest
            under the ready target  0s
            room-hours              1.08
            churn                   10 rooms started, 25 stopped
            matches moved           5
            matches without a room  none
            rollout                 v2.0.0 finished after 5m30s (11 loops)
        "#]],
    );
    check_local(
        from_root("simulate -f examples/simulate/upscale.yaml"),
        &expect![[r#"
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
        "#]],
    );
}

#[test]
fn the_documentation_shows_what_is_printed() {
    let documentation = include_str!("../../../../docs/simulate.md");
    for scenario in ["downscale", "upscale"] {
        let command = format!("maestro simulate -f examples/simulate/{scenario}.yaml");
        let printed = run(from_root(command.trim_start_matches("maestro ")), "");
        let shown = format!("$ {command}\n{}", told(&printed));
        assert!(documentation.contains(&shown), "{shown}");
    }
}

#[test]
fn the_documentation_shows_what_is_answered() {
    let lines: Vec<&str> = include_str!("../../../../docs/placement.md").lines().collect();
    let mut shown = 0;
    for pair in lines.windows(2) {
        let asked = pair[0].strip_prefix("$ echo '").and_then(|rest| rest.split_once("' | maestro "));
        if let Some((case, command)) = asked {
            assert_eq!(told(&run(maestro(command), case)).trim_end(), pair[1]);
            shown += 1;
        }
    }
    assert_eq!(shown, 3);
}

#[test]
fn a_recipe_and_options() {
    check_local(
        from_root("simulate -f examples/scheduler.yaml --add-limit 5 --room-start 15s --cycle 10s -o csv"),
        &expect![[r#"
            loop,ready,occupied,available,new,desired,desiredReady,toSurge,toBeDeleted
            1,0,0,0,0,12,12,5,0
            2,0,0,0,0,12,12,5,0
            3,5,0,5,0,12,12,2,0
            4,10,0,10,0,12,12,0,0
            5,12,0,12,0,12,12,0,0
            stderr: simulated               5 loops, 50s, then at rest
            stderr: under the ready target  40s
            stderr: room-hours              0.14
            stderr: churn                   12 rooms started, 0 stopped
            stderr: matches moved           0
            stderr: matches without a room  none
            stderr: rollout                 none
        "#]],
    );
    check_local(
        from_root(
            "simulate -f examples/simulate/upscale.yaml --demand spike:base=20,peak=40,at=30s,rise=0s,hold=1m,fall=0s --cycles 6 -o csv",
        ),
        &expect![[r#"
            loop,ready,occupied,available,new,desired,desiredReady,toSurge,toBeDeleted
            1,5,20,25,0,40,20,10,0
            2,0,35,35,10,70,35,17,0
            3,12,40,52,27,80,40,20,0
            4,52,20,72,47,40,20,0,25
            5,27,20,47,47,40,20,0,7
            6,20,20,40,40,40,20,0,0
            stderr: simulated               6 loops, 3m
            stderr: under the ready target  1m30s
            stderr: room-hours              2.38
            stderr: churn                   47 rooms started, 32 stopped
            stderr: matches moved           5
            stderr: matches without a room  30s, at most 5 at once
            stderr: rollout                 v2.0.0 finished after 2m (4 loops)
        "#]],
    );
    let yaml = run(from_root("simulate -f examples/simulate/upscale.yaml --cycles 1 -o yaml"), "");
    assert!(told(&yaml).starts_with("loops:\n- loop: 1\n  ready: 5\n"), "{}", told(&yaml));
    let json = run(from_root("simulate -f examples/simulate/upscale.yaml --cycles 2 -o json"), "");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["loops"][1]["available"], 35);
    assert_eq!(json["summary"]["rollout"]["state"], "rolling");
}

#[test]
fn options_that_are_wrong() {
    check_local(
        from_root(
            "simulate -f examples/scheduler.yaml --ready many --cycle 5 --demand tide:x=1 --failures 2",
        ),
        &expect![[r#"
            stderr: error: rooms.ready: many is not a whole number from 0 to 1000000
            stderr: demand.curve: "tide" is not day, launch or spike
            stderr: cycle: 5: a number needs a unit: 5s, 5ms, 5m or 5h
            stderr: failures: 2 is not a decimal from 0 to 1 with at most 6 digits
            exit 2
        "#]],
    );
    check_local(
        from_root("simulate -f no-such-file.yaml"),
        &expect![[r#"
        stderr: error: no-such-file.yaml: cannot be read: No such file or directory (os error 2)
        exit 2
    "#]],
    );
    check_local(
        from_root("version -o csv"),
        &expect![[r#"
        stderr: error: -o csv is for maestro simulate -f alone; write table, json or yaml
        exit 2
    "#]],
    );
}

fn check_plan(cases: &str, expected: &Expect) {
    expected.assert_eq(&told(&run(maestro("plan autoscaling"), cases)));
}

#[test]
fn lines_are_answered() {
    check_plan(
        "{\"id\":\"a\",\"occupied\":80,\"total\":100,\"min\":1,\"max\":-1,\"readyTarget\":0.5}\n",
        &expect![[r#"
            {"id":"a","desired":160,"decision":"Scale Up: +60","reason":"80 occupied at readyTarget 0.5 → 160"}
        "#]],
    );
    check_plan(
        "{\"id\":\"a\",\"occupied\":1,\"total\":1,\"readyTarget\":1.5}\n{\"id\":\"b\",\"occupied\":1,\"total\":10,\"readyTarget\":0.8}\n",
        &expect![[r#"
            {"id":"a","error":"readyTarget: 1.5 is not between 0.1 and 0.9"}
            {"id":"b","desired":5,"decision":"Scale Down: -5","reason":"1 occupied at readyTarget 0.8 → 5"}
            stderr: error: 1 of 2 lines could not be answered
            exit 2
        "#]],
    );
    check_plan("", &expect![[""]]);
}

/// The story of a seed: who did what when, and what came of it. The same each time.
#[test]
fn a_simulated_world_tells_its_story() {
    let life = || told(&run(maestro("simulate --world --seed 7 --kind fleet"), ""));
    let (told_once, told_again) = (life(), life());
    assert_eq!(told_once, told_again);
    for part in [
        "seed 7: a run of kind fleet",
        "engine-1 starts",
        " asks engine-",
        "trouble begins: ",
        "no more faults",
        "invariants    all hold",
    ] {
        assert!(told_once.contains(part), "{part:?} is missing in:\n{told_once}");
    }
    assert!(!told_once.contains("Faults {"), "faults are told in words:\n{told_once}");
}

/// Whoever searches for an operation finds who asked for it, who began it, and how it ended: at rest all have.
#[test]
fn operations_can_be_followed_through_the_story() {
    let story = told(&run(maestro("simulate --world --seed 7 --kind fleet"), ""));
    let accepted = |line: &str| Some(line.split_once(": ok, by ")?.1.to_owned());
    let names: Vec<String> = story.lines().filter_map(accepted).collect();
    assert!(!names.is_empty(), "nobody asked for anything:\n{story}");
    for name in names {
        let about = |part: &str| story.lines().any(|line| line.contains(&name) && line.contains(part));
        for part in [&format!("new {name} (asked for by "), "; ends as "] {
            assert!(about(part), "{name}: {part:?} is missing in:\n{story}");
        }
    }
    for part in ["; takes lock downscaling", ", and gives up lock downscaling", "; waits for "] {
        assert!(story.contains(part), "{part:?} is missing in:\n{story}");
    }
}

/// In a world the seed chooses everything; an option that would be ignored is refused.
#[test]
fn options_that_a_world_does_not_have() {
    check_local(
        maestro("simulate --world --seed 18446744073709551616"),
        &expect![[r#"
            stderr: error: --seed 18446744073709551616: must be a whole number up to 18446744073709551615
            exit 2
        "#]],
    );
    check_local(
        maestro("simulate --world --demand 5"),
        &expect![[r#"
            stderr: error: the argument '--world' cannot be used with '--demand <DEMAND>'
            stderr: 
            stderr: Usage: maestro simulate --world
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    for option in [
        "--file arena.yaml",
        "--ready 1",
        "--occupied 1",
        "--demand 1",
        "--cycle 1s",
        "--cycles 1",
        "--duration 1s",
        "--room-start 1s",
        "--match-length 1s",
        "--failures 0.5",
        "--new-version-at 1s",
        "--add-limit 1",
        "--remove-limit 1",
    ] {
        let refused = told(&run(maestro(&format!("simulate --world {option}")), ""));
        assert!(refused.contains("cannot be used with") && refused.ends_with("exit 2\n"), "{refused}");
    }
}

/// The same life for programs; there is no table of numbers in it.
#[test]
fn a_simulated_world_is_told_to_programs_too() {
    let output = run(maestro("simulate --world --seed 7 --kind fleet -o json"), "");
    let life: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&life["seed"], &life["kind"]), (&Value::from(7), &Value::from("fleet")));
    assert_eq!(life["violations"], Value::Array(Vec::new()));
    assert!(life["trace"].as_array().is_some_and(|trace| trace.len() > 10), "{life}");
    let refused = run(maestro("simulate --world --seed 7 -o csv"), "");
    assert_eq!(refused.status.code(), Some(2));
}

/// Lines of a recording in, answers by id out; the exit code says whether all lines could be answered.
fn planned(command: &str, recording: &str) -> (Vec<Value>, Vec<Value>, Option<i32>) {
    let cases = maestro_testkit::recorded_text(recording);
    let parse =
        |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let output = run(maestro(command), &cases);
    let (cases, answers) = (parse(&cases), parse(&String::from_utf8(output.stdout).unwrap()));
    assert_eq!(cases.len(), answers.len());
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(case["id"], answer["id"]);
    }
    (cases, answers, output.status.code())
}

/// The differences that the README of `testdata` lists: no growth in regions of weight 0, and no policy whose weights
/// are negative or all 0.
#[test]
fn recorded_placements_are_planned() {
    const ONLY_WEIGHT_ZERO: [u64; 2] = [58, 1872];
    const ALL_ZERO: [u64; 6] = [56, 1870, 1886, 1904, 1916, 1940];
    const NEGATIVE: u64 = 62;
    let (cases, answers, exit) = planned("plan placement", "region-placement.jsonl");
    for (case, answer) in cases.iter().zip(&answers) {
        let id = case["id"].as_u64().unwrap();
        let error = answer["error"].as_str();
        if ALL_ZERO.contains(&id) {
            assert!(error.unwrap().starts_with("regions: all weights are 0"), "{answer}");
        } else if id == NEGATIVE {
            assert!(error.unwrap().starts_with("regions[0].weight: -50 is not"), "{answer}");
        } else if case["feasible"] == false || ONLY_WEIGHT_ZERO.contains(&id) {
            assert_eq!(answer["plan"], Value::Null, "{answer}");
            assert_eq!(answer["reason"], "There is no feasible plan to handle all nodes.");
        } else {
            check_plan_of(case, answer);
        }
    }
    assert_eq!((answers.len(), exit), (1078, Some(2)));
}

/// Sums to the count, keeps the caps, and comes as near to the shares as can be.
fn check_plan_of(case: &Value, answer: &Value) {
    let (mut moved, mut rooms, mut weights) = (0, Vec::new(), 0);
    for region in case["regions"].as_array().unwrap() {
        let name = region["name"].as_str().unwrap();
        let current = i128::from(case["current"][name].as_i64().unwrap());
        let planned = i128::from(answer["plan"][name].as_u64().unwrap_or(0));
        let grows = case["expand"] == true;
        let after = if grows { current + planned } else { current - planned };
        let cap = i128::from(region["cap"].as_i64().unwrap());
        assert!(after >= 0 && (!grows || cap < 0 || planned == 0 || after <= cap), "{answer}");
        let weight = i128::from(region["weight"].as_i64().unwrap());
        moved += planned;
        weights += weight;
        rooms.push((after, weight));
    }
    let total: i128 = rooms.iter().map(|(rooms, _)| rooms).sum();
    let deviation: i128 = rooms.iter().map(|(rooms, weight)| (rooms * weights - total * weight).abs()).sum();
    assert_eq!(moved, i128::from(case["count"].as_u64().unwrap()), "{answer}");
    assert_eq!(deviation, i128::from(case["best_deviation_num"].as_u64().unwrap()), "{answer}");
}

/// The differences that the README of `testdata` lists are changes by nothing.
#[test]
fn recorded_resizes_are_planned() {
    const CHANGES_NOTHING: [u64; 2] = [102, 124];
    let (cases, answers, exit) = planned("plan resize", "resize.jsonl");
    for (case, answer) in cases.iter().zip(&answers) {
        let mut expected = serde_json::json!({});
        for key in ["id", "status", "reason", "creation_count", "deletion_count"] {
            expected[key] = case[key].clone();
        }
        if CHANGES_NOTHING.contains(&case["id"].as_u64().unwrap()) {
            (expected["creation_count"], expected["deletion_count"]) = (Value::from(0), Value::Null);
        }
        assert_eq!(*answer, expected);
    }
    assert_eq!((answers.len(), exit), (112, Some(0)));
}
