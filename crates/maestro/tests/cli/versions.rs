use expect_test::expect;

use crate::forecast::one_region;
use crate::schedulers::arena;
use crate::server::{ok, refusal};
use crate::{check, check_stdin, long_ago};

/// All that the server has of arena.
pub(crate) const VERSIONS: &str = r#"{"versions":[{"version":"v1.0.0","isActive":true,"status":"deployed"}],"nextMajor":"v2.0.0","nextMinor":"v1.1.0"}"#;

/// What the server has as arena, with changes.
pub(crate) fn recipe(edits: &[(&str, &str)]) -> String {
    let mut text = arena("in-sync");
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

#[test]
fn apply() {
    let started = r#"{"operationId":"op-1"}"#;
    let known = || vec![ok(&arena("in-sync")), ok(VERSIONS)];
    check_stdin(
        known(),
        "scheduler apply -f -",
        &arena("in-sync"),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        scheduler arena v1.0.0 is unchanged
    "#]],
    );
    let rooms = r#"{"rooms":[{"id":"arena-1","status":"occupied","version":"v1.0.0"},{"id":"arena-2","status":"ready","version":"v1.0.0"}]}"#;
    check_stdin(
        [known(), vec![ok(started), one_region(), ok(rooms)]].concat(),
        "scheduler apply -f - --strict",
        &recipe(&[("room:1", "room:2")]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > POST /schedulers/arena?strict=true&view=full {"name":"arena","game":"brawl","portRange":{"start":20000,"end":29999},"maxSurge":"25%","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:2","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}
            > GET /regions?view=full
            > GET /schedulers/arena/rooms?view=full
            operation op-1 enqueued: version v2.0.0 of scheduler arena, a major change
            stderr: players: 1 room with players is of an older version and will be ended, after all others and at most 1 every 30s (rollout.occupied: waitForMatchEnd lets their matches end first)
        "#]],
    );
    check_stdin(
        vec![refusal(404, "scheduler arena not found"), ok(&arena("creating"))],
        "scheduler apply -f -",
        &arena("in-sync"),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > POST /schedulers?view=full {"name":"arena","game":"brawl","portRange":{"start":20000,"end":29999},"maxSurge":"25%","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:1","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}
            scheduler arena v1.0.0 created (creating)
        "#]],
    );
    let busy = "cannot create new scheduler version: there is already an ongoing version operation (id: op-1) for scheduler arena";
    check_stdin(
        [known(), vec![refusal(400, busy)]].concat(),
        "scheduler apply -f -",
        &recipe(&[("25%", "5")]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > POST /schedulers/arena?view=full {"name":"arena","game":"brawl","portRange":{"start":20000,"end":29999},"maxSurge":"5","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:1","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}
            stderr: error: cannot create new scheduler version: there is already an ongoing version operation (id: op-1) for scheduler arena
            exit 2
        "#]],
    );
}

#[test]
fn apply_and_wait() {
    let started = || ok(r#"{"operationId":"op-1"}"#);
    // What becomes of players is said as far as it can be told.
    let known = || vec![ok(&arena("in-sync")), ok(VERSIONS), started(), refusal(503, "no regions")];
    let created = r#"{"operation":{"id":"op-1","status":"finished","definitionName":"create_new_scheduler_version","executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"Created"},{"createdAt":"2026-11-15T09:06:48Z","event":"enqueued switch active version operation with id: op-2"},{"createdAt":"2026-11-15T09:06:48Z","event":"Operation finished"}]}}"#;
    let switched = r#"{"operation":{"id":"op-2","status":"finished","definitionName":"switch_active_version","input":{"newActiveVersion":"v2.0.0"},"executionHistory":[{"createdAt":"2026-11-15T09:06:49Z","event":"Operation finished"}]}}"#;
    check_stdin(
        [known(), vec![ok(created), ok(switched)]].concat(),
        "scheduler apply -f - --wait",
        &recipe(&[("room:1", "room:2")]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > POST /schedulers/arena?view=full {"name":"arena","game":"brawl","portRange":{"start":20000,"end":29999},"maxSurge":"25%","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:2","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}
            > GET /regions?view=full
            > GET /schedulers/arena/operations/op-1?view=full
            > GET /schedulers/arena/operations/op-2?view=full
            scheduler arena v2.0.0 is active
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:48Z enqueued switch active version operation with id: op-2
            stderr: 2026-11-15T09:06:48Z Operation finished
            stderr: 2026-11-15T09:06:49Z Operation finished
            stderr: rooms are being replaced: maestro rollout status arena --watch
        "#]],
    );
    let failed = r#"{"operation":{"id":"op-1","status":"error","definitionName":"create_new_scheduler_version","schedulerName":"arena","reason":"attempt 3 of 3 failed (asked for by ada)","cause":"version v2.0.0 was not validated: attempt 3 of 3 failed: room arena-1 ended: exit code 3; its last log lines: cannot load the map","data":{"attempts":[{"attempt":3,"room":"arena-1"}]},"executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"rollback finished"}]}}"#;
    check_stdin(
        [known(), vec![ok(failed)]].concat(),
        "scheduler apply -f - --wait",
        &recipe(&[("room:1", "room:2")]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > POST /schedulers/arena?view=full {"name":"arena","game":"brawl","portRange":{"start":20000,"end":29999},"maxSurge":"25%","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:2","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}
            > GET /regions?view=full
            > GET /schedulers/arena/operations/op-1?view=full
            stderr: 2026-11-15T09:06:47Z rollback finished
            stderr: error: create_new_scheduler_version op-1 ended as error: version v2.0.0 was not validated: attempt 3 of 3 failed: room arena-1 ended: exit code 3; its last log lines: cannot load the map
            stderr: its log: maestro room logs arena arena-1
            stderr: more: maestro operation get arena op-1
            exit 1
        "#]],
    );
}

#[test]
fn switch() {
    let started = r#"{"operationId":"op-2"}"#;
    check(
        vec![ok(started)],
        "scheduler switch arena v1.0.0",
        &expect![[r#"
        > PUT /schedulers/arena?view=full {"version":"v1.0.0"}
        operation op-2 enqueued: switch scheduler arena to v1.0.0
    "#]],
    );
    let ended = r#"{"operation":{"id":"op-2","status":"finished","definitionName":"switch_active_version","reason":"asked for by ada","executionHistory":[]}}"#;
    check(
        vec![ok(started), ok(ended)],
        "scheduler switch arena v1.0.0 --wait",
        &expect![[r#"
            > PUT /schedulers/arena?view=full {"version":"v1.0.0"}
            > GET /schedulers/arena/operations/op-2?view=full
            operation op-2 finished: asked for by ada
        "#]],
    );
    check(
        vec![refusal(404, "scheduler arena not found in version \"v9.0.0\"")],
        "scheduler switch arena v9.0.0",
        &expect![[r#"
            > PUT /schedulers/arena?view=full {"version":"v9.0.0"}
            stderr: error: scheduler arena not found in version "v9.0.0"
            exit 3
        "#]],
    );
}

#[test]
fn autoscaling() {
    let decisions = r#"{"decisions":[
        {"at":"AGO","total":160,"occupied":80,"ready":80,"desired":160,"desiredReady":80,"decision":"Do Nothing: 0","reason":"80 occupied at readyTarget 0.5 → 160"},
        {"at":"AGO","total":100,"occupied":80,"ready":20,"desired":160,"desiredReady":80,"decision":"Scale Up: +60","reason":"80 occupied at readyTarget 0.5 → 160"}]}"#;
    let decisions = decisions.replace("AGO", &long_ago());
    check(
        vec![ok(&decisions)],
        "scheduler autoscaling arena",
        &expect![[r#"
            > GET /schedulers/arena/autoscaling?view=full
            AGE   TOTAL  OCCUPIED  READY  DESIRED  DESIRED READY  DECISION       REASON
            2d4h  160    80        80     160      80             Do Nothing: 0  80 occupied at readyTarget 0.5 → 160
            2d4h  100    80        20     160      80             Scale Up: +60  80 occupied at readyTarget 0.5 → 160
        "#]],
    );
    check(
        vec![ok(r#"{"decisions":[]}"#)],
        "scheduler autoscaling arena",
        &expect![[r#"
            > GET /schedulers/arena/autoscaling?view=full
            AGE  TOTAL  OCCUPIED  READY  DESIRED  DESIRED READY  DECISION  REASON
            stderr: no decisions yet
        "#]],
    );
}

/// To the API a recipe without a number of rooms has none; whoever leaves it out means that it stays as it is.
#[test]
fn the_number_of_rooms_stays_unless_it_is_written() {
    let resized = arena("in-sync").replace(r#""roomsReplicas":3"#, r#""roomsReplicas":5"#);
    let known = || vec![ok(&resized), ok(VERSIONS)];
    let silent = recipe(&[(r#""roomsReplicas":3,"#, "")]);
    check_stdin(
        known(),
        "scheduler diff -f -",
        &silent,
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        scheduler arena v1.0.0 is unchanged
    "#]],
    );
    check_stdin(
        known(),
        "scheduler diff -f -",
        &recipe(&[]),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        FIELD          CHANGE  FROM  TO
        roomsReplicas  minor   5     3

        scheduler arena v1.0.0 → v1.1.0: a minor change, rooms stay as they are
        exit 1
    "#]],
    );
    let silent_change = recipe(&[(r#""roomsReplicas":3,"#, ""), ("25%", "5")]);
    let enqueued = vec![ok(r#"{"operationId":"op-1"}"#)];
    check_stdin(
        [known(), enqueued].concat(),
        "scheduler apply -f -",
        &silent_change,
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        > POST /schedulers/arena?view=full {"name":"arena","game":"brawl","portRange":{"start":20000,"end":29999},"maxSurge":"5","spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:1","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1},"roomsReplicas":5}
        operation op-1 enqueued: version v1.1.0 of scheduler arena, a minor change
    "#]],
    );
}
