use expect_test::expect;

use crate::check;
use crate::server::{Answer, ok, refusal};

/// Of version v10.0.0, which replaces v9.0.0.
fn rollout(state: &str, status: &str, outcome: &str, old: u32, new: u32, told: (&str, &str)) -> Answer {
    let (total, (waiting_for, cause)) = (old + new, told);
    ok(&serde_json::json!({
        "state": state, "active": "v10.0.0", "roomsByVersion": {"v10.0.0": new, "v9.0.0": old}, "oldRooms": old,
        "newRooms": new, "total": total, "percent": new * 100 / total, "waitingFor": waiting_for,
        "version": "v10.0.0", "status": status, "outcome": outcome, "cause": cause, "logLines": [],
        "operationId": "op-1",
    })
    .to_string())
}

fn rolling(old: u32, new: u32) -> Answer {
    rollout("rolling", "rolling", "inProgress", old, new, ("old rooms to be replaced", ""))
}

fn deployed() -> Answer {
    rollout("none", "deployed", "deployed", 0, 4, ("", ""))
}

/// What a deployed version is asked for too: whether its fleet has the rooms that it should have.
fn fleet(ready: u32, problem: Option<(&str, &str)>) -> Answer {
    let problem = problem.map(|(word, reason)| serde_json::json!({"word": word, "reason": reason}));
    let fleet =
        serde_json::json!({"roomsReady": ready, "roomsOccupied": 0, "roomsWanted": 4, "problem": problem});
    ok(&serde_json::json!({"schedulers": [fleet]}).to_string())
}

#[test]
fn status() {
    check(
        vec![rolling(12, 8)],
        "rollout status arena",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            State        rolling
            Version      v10.0.0
            Status       rolling
            Cause        -
            Active       v10.0.0
            Rooms        v9.0.0: 12, v10.0.0: 8
            Old rooms    12
            New rooms    8
            Total        20
            Done         40 %
            Waiting for  old rooms to be replaced
        "#]],
    );
    let none = r#"{"state":"none","active":"v1.0.0","roomsByVersion":{},"oldRooms":0,"newRooms":0,"total":0,"percent":100,"waitingFor":""}"#;
    check(
        vec![ok(none)],
        "rollout status arena",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            State        none
            Version      -
            Status       -
            Cause        -
            Active       v1.0.0
            Rooms        -
            Old rooms    0
            New rooms    0
            Total        0
            Done         100 %
            Waiting for  -
        "#]],
    );
    check(
        vec![ok(none)],
        "rollout status arena -o yaml",
        &expect![[r#"
        > GET /schedulers/arena/rollout?view=full
        state: none
        active: v1.0.0
        roomsByVersion: {}
        oldRooms: 0
        newRooms: 0
        total: 0
        percent: 100
        waitingFor: ""
    "#]],
    );
    check(
        vec![refusal(404, "scheduler nope not found")],
        "rollout status nope",
        &expect![[r#"
            > GET /schedulers/nope/rollout?view=full
            stderr: error: scheduler nope not found
            exit 3
        "#]],
    );
}

#[test]
fn watch_to_the_end() {
    let unnumbered = ok(
        r#"{"state":"validating","active":"v9.0.0","oldRooms":0,"newRooms":4,"percent":0,"waitingFor":"a worker","version":"","status":"validating","outcome":"inProgress"}"#,
    );
    let validating = rollout("validating", "validating", "inProgress", 4, 0, ("a validation room", ""));
    check(
        vec![
            unnumbered,
            validating,
            rolling(3, 1),
            Answer::HangUp,
            rolling(1, 3),
            deployed(),
            fleet(4, None),
        ],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            validating, a new version; waiting for a worker
            validating, v10.0.0; waiting for a validation room
            rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for old rooms to be replaced
            rolling, v10.0.0: 75 %, 1 old and 3 new rooms; waiting for old rooms to be replaced
            done: v10.0.0 is deployed with 4 rooms
            stderr: http://SERVER closed the connection without answering; trying again
        "#]],
    );
    check(
        vec![rolling(1, 3), deployed(), fleet(4, None)],
        "rollout status arena --watch -o json",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            {
              "active": "v10.0.0",
              "cause": "",
              "logLines": [],
              "newRooms": 4,
              "oldRooms": 0,
              "operationId": "op-1",
              "outcome": "deployed",
              "percent": 100,
              "roomsByVersion": {
                "v10.0.0": 4,
                "v9.0.0": 0
              },
              "state": "none",
              "status": "deployed",
              "total": 4,
              "version": "v10.0.0",
              "waitingFor": ""
            }
            stderr: rolling, v10.0.0: 75 %, 1 old and 3 new rooms; waiting for old rooms to be replaced
            stderr: done: v10.0.0 is deployed with 4 rooms
        "#]],
    );
    check(
        vec![rolling(1, 3), deployed(), fleet(4, None)],
        "rollout status arena --watch --version v10.0.0",
        &expect![[r#"
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            rolling, v10.0.0: 75 %, 1 old and 3 new rooms; waiting for old rooms to be replaced
            done: v10.0.0 is deployed with 4 rooms
        "#]],
    );
}

#[test]
fn a_version_without_old_rooms_is_watched_until_its_rooms_are_ready() {
    let crashing =
        || fleet(0, Some(("crashing", "rooms end before they are ready; the latest, arena-1: exit code 1")));
    let starting = fleet(2, Some(("starting", "not pinged yet: 2 rooms")));
    check(
        vec![deployed(), crashing(), deployed(), starting, deployed(), fleet(4, None)],
        "rollout status arena --watch --version v10.0.0",
        &expect![[r#"
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            deployed, v10.0.0: 0 of 4 rooms are ready; crashing: rooms end before they are ready; the latest, arena-1: exit code 1
            deployed, v10.0.0: 2 of 4 rooms are ready; starting: not pinged yet: 2 rooms
            done: v10.0.0 is deployed with 4 rooms
        "#]],
    );
    check(
        vec![deployed(), crashing()],
        "rollout status arena --watch --version v10.0.0 --timeout 0s",
        &expect![[r#"
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            > GET /schedulers?name=arena&view=full
            deployed, v10.0.0: 0 of 4 rooms are ready; crashing: rooms end before they are ready; the latest, arena-1: exit code 1
            stderr: error: deployed, but 0 of 4 rooms are ready after 0ns; the scheduler keeps trying: maestro rollout status arena --watch
            exit 6
        "#]],
    );
    let other_is_active = ok(
        r#"{"state":"none","active":"v11.0.0","version":"v10.0.0","outcome":"deployed","roomsByVersion":{"v10.0.0":1}}"#,
    );
    check(
        vec![other_is_active],
        "rollout status arena --watch --version v10.0.0",
        &expect![[r#"
        > GET /schedulers/arena/rollout?version=v10.0.0&view=full
        done: v10.0.0 is deployed with 1 room
    "#]],
    );
}

#[test]
fn watch_what_goes_wrong() {
    let cause = "version v10.0.0 was not validated: attempt 3 of 3 failed: room arena-1 ended: exit code 3";
    check(
        vec![rollout("none", "error", "failed", 0, 4, ("", cause))],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            failed: v10.0.0: version v10.0.0 was not validated: attempt 3 of 3 failed: room arena-1 ended: exit code 3
            stderr: error: version v10.0.0 of scheduler arena failed: version v10.0.0 was not validated: attempt 3 of 3 failed: room arena-1 ended: exit code 3
            stderr: more: maestro operation get arena op-1
            exit 1
        "#]],
    );
    let waiting_for = "1 old room to be replaced on the way back: v10.0.0 failed: it is not done after 1800s";
    check(
        vec![
            rolling(3, 1),
            rollout("rollingBack", "error", "failed", 3, 1, (waiting_for, "it is not done after 1800s")),
        ],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for old rooms to be replaced
            failed: v10.0.0: it is not done after 1800s
            stderr: error: version v10.0.0 of scheduler arena failed: it is not done after 1800s
            stderr: more: maestro operation get arena op-1
            exit 1
        "#]],
    );
    let canceled = || rollout("rollingBack", "canceled", "canceled", 3, 1, ("old rooms", "canceled by ada"));
    check(
        vec![rolling(3, 1), canceled()],
        "rollout status arena --watch",
        &expect![[r#"
        > GET /schedulers/arena/rollout?view=full
        > GET /schedulers/arena/rollout?version=v10.0.0&view=full
        rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for old rooms to be replaced
        canceled: v10.0.0: canceled by ada
        stderr: error: version v10.0.0 of scheduler arena was canceled: canceled by ada
        stderr: more: maestro operation get arena op-1
        exit 1
    "#]],
    );
    let superseded =
        || rollout("rolling", "superseded", "superseded", 3, 1, ("old rooms", "superseded by v11.0.0"));
    check(
        vec![rolling(3, 1), superseded()],
        "rollout status arena --watch",
        &expect![[r#"
        > GET /schedulers/arena/rollout?view=full
        > GET /schedulers/arena/rollout?version=v10.0.0&view=full
        rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for old rooms to be replaced
        superseded: v10.0.0: superseded by v11.0.0
        stderr: error: version v10.0.0 of scheduler arena was superseded: superseded by v11.0.0
        stderr: more: maestro operation get arena op-1
        exit 1
    "#]],
    );
    let note = "someone to resume it: 5 new rooms in a row did not become ready";
    check(
        vec![rollout("halted", "rolling", "inProgress", 3, 1, (note, ""))],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            halted, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for someone to resume it: 5 new rooms in a row did not become ready
            stderr: error: version v10.0.0 of scheduler arena halted: waiting for someone to resume it: 5 new rooms in a row did not become ready
            stderr: more: maestro operation get arena op-1
            exit 1
        "#]],
    );
    check(
        vec![rollout("paused", "rolling", "inProgress", 3, 1, ("someone to resume it: paused by ada", ""))],
        "rollout status arena --watch --version v10.0.0 --timeout 0s",
        &expect![[r#"
            > GET /schedulers/arena/rollout?version=v10.0.0&view=full
            paused, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for someone to resume it: paused by ada
            stderr: error: not deployed after 0ns; the rollout continues: maestro rollout status arena --watch
            exit 6
        "#]],
    );
}

#[test]
fn pause_resume_cancel() {
    check(
        vec![ok("{}")],
        "rollout pause arena",
        &expect![[r#"
        > POST /schedulers/arena/rollout/pause?view=full {}
        rollout of scheduler arena paused
    "#]],
    );
    check(
        vec![ok("{}")],
        "rollout resume arena -o json",
        &expect![[r#"
        > POST /schedulers/arena/rollout/resume?view=full {}
        {}
    "#]],
    );
    check(
        vec![ok(r#"{"operationId":"op-3"}"#)],
        "rollout cancel arena",
        &expect![[r#"
            > POST /schedulers/arena/rollout/cancel?view=full {}
            operation op-3 enqueued: switch scheduler arena back to its last deployed version
        "#]],
    );
    check(
        vec![refusal(409, "scheduler arena has no rollout that could be paused")],
        "rollout pause arena",
        &expect![[r#"
            > POST /schedulers/arena/rollout/pause?view=full {}
            stderr: error: scheduler arena has no rollout that could be paused
            exit 4
        "#]],
    );
}
