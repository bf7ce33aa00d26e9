use expect_test::expect;

use crate::check_stdin;
use crate::forecast::{check_next_cycle, one_region};
use crate::schedulers::arena;
use crate::server::{ok, refusal};
use crate::versions::{VERSIONS, recipe};

#[test]
fn dry_run() {
    let room = |id: u32, status: &str, version: &str| {
        format!(r#"{{"id":"arena-{id}","status":"{status}","version":"{version}","validation":false}}"#)
    };
    let rooms = [
        room(1, "ready", "v1.0.0"),
        room(2, "occupied", "v1.0.0"),
        room(3, "ready", "v1.0.0"),
        room(4, "error", "v1.0.0"),
        r#"{"id":"arena-5","status":"ready","version":"v2.0.0","validation":true}"#.to_owned(),
    ];
    let rooms = format!(r#"{{"rooms":[{}]}}"#, rooms.join(","));
    let known = || vec![ok(&arena("in-sync")), ok(VERSIONS), one_region(), ok(&rooms)];
    let no_rollout = || ok(r#"{"state":"none"}"#);
    check_stdin(
        known(),
        "scheduler apply -f - --dry-run",
        &recipe(&[("room:1", "room:2")]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > GET /regions?view=full
            > GET /schedulers/arena/rooms?view=full
            FIELD                     CHANGE  FROM    TO
            spec.containers[0].image  major   room:1  room:2

            scheduler arena v1.0.0 → v2.0.0: a major change, rooms are replaced
            first: a room of v2.0.0 is tried; once it is ready, v2.0.0 becomes active
            next cycle: 3 rooms (2 ready, 1 occupied), 3 wanted (fleet size 3): starts 1 room of v2.0.0, removes none of 3 rooms of older versions yet, removes 1 in error
            players: 1 room with players is of an older version and will be ended, after all others and at most 1 every 30s (rollout.occupied: waitForMatchEnd lets their matches end first)
        "#]],
    );
    check_stdin(
        [known(), vec![no_rollout()]].concat(),
        "scheduler apply -f - --dry-run",
        &recipe(&[(r#""roomsReplicas":3"#, r#""roomsReplicas":10"#)]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > GET /regions?view=full
            > GET /schedulers/arena/rooms?view=full
            > GET /schedulers/arena/rollout?view=full
            FIELD          CHANGE  FROM  TO
            roomsReplicas  minor   3     10

            scheduler arena v1.0.0 → v1.1.0: a minor change, rooms stay as they are
            first: v1.1.0 becomes active
            next cycle: 3 rooms (2 ready, 1 occupied), 10 wanted (fleet size 10): starts 7 rooms of v1.1.0, removes 1 in error
        "#]],
    );
    let autoscaling = r#""autoscaling":{"enabled":true,"min":1,"max":50,"policy":{"type":"roomOccupancy","parameters":{"roomOccupancy":{"readyTarget":0.5}}}},"labels""#;
    check_stdin(
        [known(), vec![no_rollout()]].concat(),
        "scheduler apply -f - --dry-run -o yaml",
        &recipe(&[(r#""labels""#, autoscaling)]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > GET /regions?view=full
            > GET /schedulers/arena/rooms?view=full
            > GET /schedulers/arena/rollout?view=full
            scheduler: arena
            change: minor
            from: v1.0.0
            to: v1.1.0
            fields:
            - path: autoscaling
              change: minor
              from: null
              to:
                cooldown: 0
                enabled: true
                max: 50
                min: 1
                policy:
                  parameters:
                    roomOccupancy:
                      readyTarget: 0.5
                  type: roomOccupancy
            next:
            - "first: v1.1.0 becomes active"
            - "next cycle: 3 rooms (2 ready, 1 occupied), 2 wanted (1 occupied at readyTarget 0.5 → 2): removes 1 above the wanted number, removes 1 in error"
        "#]],
    );
    check_stdin(
        vec![refusal(404, "scheduler arena not found"), one_region()],
        "scheduler apply -f - --dry-run",
        &arena("in-sync"),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /regions?view=full
            scheduler arena does not exist: it would be created as v1.0.0
            next cycle: 0 rooms (0 ready, 0 occupied), 3 wanted (fleet size 3): starts 3 rooms of v1.0.0
        "#]],
    );
    check_stdin(
        vec![],
        "scheduler apply -f - --dry-run --wait",
        "",
        &expect![[r#"
            stderr: error: the argument '--dry-run' cannot be used with '--wait'
            stderr: 
            stderr: Usage: maestro scheduler apply --file <FILE> --dry-run
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}

#[test]
fn rooms_of_several_versions_in_a_dry_run() {
    let rooms = r#"{"rooms":[{"id":"arena-1","status":"ready","version":"v1.0.0"},{"id":"arena-2","status":"occupied","version":"v0.9.0"},{"id":"arena-3","status":"ready","version":"v0.8.0"}]}"#;
    let script = |state: &str| {
        vec![
            ok(&arena("in-sync")),
            ok(VERSIONS),
            one_region(),
            ok(rooms),
            ok(&recipe(&[("room:1", "room:0"), ("v1.0.0", "v0.9.0")])),
            refusal(404, "scheduler arena not found in version \"v0.8.0\""),
            ok(&format!(r#"{{"state":"{state}"}}"#)),
        ]
    };
    let smaller = recipe(&[(r#""roomsReplicas":3"#, r#""roomsReplicas":2"#)]);
    check_stdin(
        script("rolling"),
        "scheduler apply -f - --dry-run",
        &smaller,
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > GET /regions?view=full
            > GET /schedulers/arena/rooms?view=full
            > GET /schedulers/arena?version=v0.9.0&view=full
            > GET /schedulers/arena?version=v0.8.0&view=full
            > GET /schedulers/arena/rollout?view=full
            FIELD          CHANGE  FROM  TO
            roomsReplicas  minor   3     2

            scheduler arena v1.0.0 → v1.1.0: a minor change, rooms stay as they are
            first: v1.1.0 becomes active
            next cycle: 3 rooms (2 ready, 1 occupied), 2 wanted (fleet size 2): removes 1 of 2 rooms of older versions
            players: 1 room with players is of an older version and will be ended, after all others and at most 1 every 30s (rollout.occupied: waitForMatchEnd lets their matches end first)
        "#]],
    );
    check_next_cycle(
        script("paused"),
        &smaller,
        &expect![[r#"
        next cycle: 3 rooms (2 ready, 1 occupied), 2 wanted (fleet size 2): changes nothing
        held back: surplus of 1 room stays: its rollout is paused
    "#]],
    );
}
