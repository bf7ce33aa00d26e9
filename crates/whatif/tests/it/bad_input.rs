//! What is wrong is said with its field, all of it at once.

use expect_test::{Expect, expect};

use crate::{document, half_ready, simulated};

#[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
fn check(document: &str, expected: Expect) {
    expected.assert_eq(&simulated(document).unwrap_err());
}

#[test]
fn documents() {
    check(
        "",
        expect![
            "simulation.yaml: must contain a simulation (`scheduler: …` and so on) or a scheduler's recipe"
        ],
    );
    check(
        "- 1\n",
        expect![
            "simulation.yaml: must contain a simulation (`scheduler: …` and so on) or a scheduler's recipe"
        ],
    );
    check(
        "a: b: c\n",
        expect![
            "simulation.yaml: not valid YAML or JSON: mapping values are not allowed in this context at line 1, column 5"
        ],
    );
    check("cycle: 30s\n", expect!["scheduler: is missing; a recipe, or the path of one, is needed"]);
    check("scheduler: 5\n", expect!["scheduler: 5 is neither a recipe nor the path of one"]);
    check(
        "scheduler: nowhere.yaml\n",
        expect!["nowhere.yaml: cannot be read: No such file or directory (os error 2)"],
    );
    check(
        "name: arena\n",
        expect![[r#"
            game: is missing; the name of the game that the rooms run is needed
            maxSurge: is missing; write a number of rooms such as 10, or a percentage such as 25%, of at least 1
            spec: is missing; it says what a room is
            portRange: is missing; give the scheduler a portRange, or every port a hostPortRange"#]],
    );
}

#[test]
fn fields() {
    let check = |rest: &str, expected: Expect| check(&document(rest), expected);
    check(
        "rooms: { ready: -1, occupied: 1000001, version: latest, colour: red }\n",
        expect![[r#"
            rooms.ready: -1 is not a whole number from 0 to 1000000
            rooms.occupied: 1000001 is not a whole number from 0 to 1000000
            rooms.version: "latest" is not a version: write it as v1.2.0
            rooms.colour: unknown field; known fields are ready, occupied, version"#]],
    );
    check(
        "rooms: { ready: 600000, occupied: 600000 }\n",
        expect!["rooms.ready: ready and occupied are more than 1000000 rooms"],
    );
    check("rooms: 5\n", expect!["rooms: 5 is not an object"]);
    check(
        "cycle: 0s\nroomStart: soon\nduration: 5\n",
        expect![[r#"
        cycle: 0s is too short; it must be longer than zero
        duration: 5: a number needs a unit: 5s, 5ms, 5m or 5h
        roomStart: soon: must be a duration such as 10s, 500ms, 2m or 1h"#]],
    );
    check("cycles: 0\n", expect!["cycles: 0 is not a whole number from 1 to 1000000"]);
    check("cycles: 1000001\n", expect!["cycles: 1000001 is not a whole number from 1 to 1000000"]);
    check("cycles: 5\nduration: 5s\n", expect!["duration: cannot be combined with cycles"]);
    check("cycle: 1ms\nduration: 1h\n", expect!["duration: is more than 1000000 cycles of 0.001s"]);
    check(
        "failures: 1.5\nseed: -1\nnewVersion: now\n",
        expect![[r#"
            failures: 1.5 is not a decimal from 0 to 1 with at most 6 digits
            newVersion: "now" is not an object
            seed: -1 is not a whole number from 0 to 18446744073709551615"#]],
    );
    check(
        "newVersion: { on: 5s }\nlimits: { addRooms: 0 }\n",
        expect![[r#"
            newVersion.on: unknown field; known fields are at
            limits.addRooms: 0 is not a whole number from 1 to 1000000"#]],
    );
    check(
        "cycel: 5s\n",
        expect![
            "cycel: unknown field; known fields are scheduler, rooms, demand, cycle, cycles, duration, roomStart, failures, newVersion, matchLength, seed, limits"
        ],
    );
}

#[test]
fn demands() {
    let check = |rest: &str, expected: Expect| check(&document(&format!("demand: {rest}\n")), expected);
    check("-5", expect!["demand: -5 is not a whole number from 0 to 1000000"]);
    check("many", expect!["demand: many is not a whole number from 0 to 1000000"]);
    check("{ constant: 5, curve: day }", expect!["demand: must have only one of constant, csv and curve"]);
    check("{ curve: tide, low: 5 }", expect![[r#"demand.curve: "tide" is not day, launch or spike"#]]);
    check(
        "{ curve: day, low: 5, hihg: 9 }",
        expect![[r#"
            demand.high: is missing; a whole number is needed
            demand.hihg: unknown field; known fields are constant, csv, curve, low, high, period"#]],
    );
    check(
        "{ curve: spike, peak: 2000000, at: x }",
        expect![[r#"
            demand.peak: 2000000 is not a whole number from 0 to 1000000
            demand.at: x: must be a duration such as 10s, 500ms, 2m or 1h"#]],
    );
    check(
        "{ csv: nowhere.csv }",
        expect!["nowhere.csv: cannot be read: No such file or directory (os error 2)"],
    );
}

#[test]
fn recipes() {
    check(
        &document("  autoscaling: { enabled: true, min: 0, max: 0 }\n"),
        expect![[r#"
            scheduler.autoscaling.min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0
            scheduler.autoscaling.max: 0 is not above min, which is 0; -1 means no limit
            scheduler.autoscaling.policy: is missing; a type, roomOccupancy or fixedBuffer, is needed"#]],
    );
    check(
        &half_ready("").replace("0.5", "1.5").replace("25%", "0%"),
        expect![[r#"
            scheduler.maxSurge: "0%" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1
            scheduler.autoscaling.policy.parameters.roomOccupancy.readyTarget: 1.5 is not between 0.1 and 0.9"#]],
    );
    check(
        &half_ready("").replace("0.5", "0.999999999999999999"),
        expect![
            "scheduler.autoscaling.policy.parameters.roomOccupancy.readyTarget: 0.999999999999999999 is not between 0.1 and 0.9"
        ],
    );
    check(
        &half_ready("").replace("min: 1", "min: one"),
        expect![[
            r#"scheduler.autoscaling.min: invalid value: string "one", expected a whole number of 32 bits"#
        ]],
    );
}

#[test]
fn sizes() {
    check(
        &document("  roomsReplicas: 2000000\nlimits: { addRooms: 1000000 }\n"),
        expect!["loop 2 would create more than 1000000 rooms"],
    );
    check(
        &half_ready("  matchAllocation: { maxMatches: 35 }\nrooms: { occupied: 100000 }\n"),
        expect!["rooms.occupied: 100000 full rooms hold more than 1000000 matches"],
    );
}
