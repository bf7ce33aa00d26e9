use expect_test::expect;

use crate::check;
use crate::server::{Answer, ok, refusal};

fn rollout(state: &str, active: &str, old: u32, new: u32, waiting_for: &str) -> Answer {
    let total = old + new;
    ok(&serde_json::json!({
        "state": state, "active": active, "roomsByVersion": {"v10.0.0": new, "v9.0.0": old}, "oldRooms": old,
        "newRooms": new, "total": total, "percent": new * 100 / total, "waitingFor": waiting_for,
    })
    .to_string())
}

#[test]
fn status() {
    check(
        vec![rollout("rolling", "v10.0.0", 12, 8, "12 old rooms to be replaced")],
        "rollout status arena",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            State        rolling
            Active       v10.0.0
            Rooms        v9.0.0: 12, v10.0.0: 8
            Old rooms    12
            New rooms    8
            Total        20
            Done         40 %
            Waiting for  12 old rooms to be replaced
        "#]],
    );
    let none = r#"{"state":"none","active":"v1.0.0","roomsByVersion":{},"oldRooms":0,"newRooms":0,"total":0,"percent":100,"waitingFor":""}"#;
    check(
        vec![ok(none)],
        "rollout status arena",
        &expect![[r#"
        > GET /schedulers/arena/rollout?view=full
        State        none
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
    let rolling = |old, new| rollout("rolling", "v10.0.0", old, new, "old rooms to be replaced");
    check(
        vec![
            rolling(3, 1),
            rolling(3, 1),
            Answer::HangUp,
            rolling(1, 3),
            rollout("none", "v10.0.0", 0, 4, ""),
        ],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for old rooms to be replaced
            rolling, v10.0.0: 75 %, 1 old and 3 new rooms; waiting for old rooms to be replaced
            done: v10.0.0 with 4 rooms
            stderr: http://SERVER closed the connection without an answer; trying again
        "#]],
    );
    check(
        vec![rolling(1, 3), rollout("none", "v10.0.0", 0, 4, "")],
        "rollout status arena --watch -o json",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            {
              "active": "v10.0.0",
              "newRooms": 4,
              "oldRooms": 0,
              "percent": 100,
              "roomsByVersion": {
                "v10.0.0": 4,
                "v9.0.0": 0
              },
              "state": "none",
              "total": 4,
              "waitingFor": ""
            }
            stderr: rolling, v10.0.0: 75 %, 1 old and 3 new rooms; waiting for old rooms to be replaced
            stderr: done: v10.0.0 with 4 rooms
        "#]],
    );
}

#[test]
fn watch_what_goes_wrong() {
    check(
        vec![
            rollout("rolling", "v10.0.0", 3, 1, "3 old rooms to be replaced"),
            rollout(
                "rollingBack",
                "v10.0.0",
                3,
                1,
                "1 old room to be replaced on the way back: v10.0.0 failed: it is not done after 1800s",
            ),
        ],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for 3 old rooms to be replaced
            rolling back, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for 1 old room to be replaced on the way back: v10.0.0 failed: it is not done after 1800s
            stderr: error: the rollout of scheduler arena is rolling back: 1 old room to be replaced on the way back: v10.0.0 failed: it is not done after 1800s
            exit 1
        "#]],
    );
    let note = "someone to resume it: 5 new rooms in a row did not become ready";
    check(
        vec![rollout("halted", "v10.0.0", 3, 1, note)],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            halted, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for someone to resume it: 5 new rooms in a row did not become ready
            stderr: error: the rollout of scheduler arena is halted: someone to resume it: 5 new rooms in a row did not become ready
            exit 1
        "#]],
    );
    // Over before the next look: the version's status tells.
    let versions = r#"{"versions":[{"version":"v10.0.0","isActive":false,"status":"error"},{"version":"v9.0.0","isActive":true,"status":"deployed"}]}"#;
    check(
        vec![
            rollout("rolling", "v10.0.0", 3, 1, "3 old rooms to be replaced"),
            rollout("none", "v9.0.0", 0, 3, ""),
            ok(versions),
        ],
        "rollout status arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            > GET /schedulers/arena/versions?view=full
            rolling, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for 3 old rooms to be replaced
            done: v9.0.0 with 3 rooms
            stderr: error: version v10.0.0 of scheduler arena was not deployed: error
            exit 1
        "#]],
    );
    check(
        vec![rollout("paused", "v10.0.0", 3, 1, "someone to resume it: paused by ada")],
        "rollout status arena --watch --timeout 1ms",
        &expect![[r#"
            > GET /schedulers/arena/rollout?view=full
            paused, v10.0.0: 25 %, 3 old and 1 new rooms; waiting for someone to resume it: paused by ada
            stderr: error: the rollout is not done after 1ms; it goes on: maestro rollout status arena --watch
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
