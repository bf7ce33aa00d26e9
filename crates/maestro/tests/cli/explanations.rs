use expect_test::expect;
use serde_json::{Value, json};

use crate::server::{ok, refusal};
use crate::{check, long_ago};

fn explanation(id: &str, since: &str) -> Value {
    json!({
        "id": id, "definitionName": "remove_rooms", "schedulerName": "arena", "status": "in_progress",
        "since": since, "waitingFor": "downscaling held by rollout v2.0.0 since 2026-11-15T09:00:00.000Z",
        "lastEvent": "waiting for downscaling",
        "owner": {"worker": "worker-1", "until": "2026-11-15T09:10:10Z", "fencingToken": 3, "hasRunOut": false},
        "lease": {"worker": "worker-0", "until": "2026-11-15T09:04:00Z", "fencingToken": 2, "hasRunOut": true},
        "next": [
            {"what": "takes the lock downscaling when rollout v2.0.0 gives it up", "at": null},
            {"what": "ends as error if it has not got the lock", "at": "2026-11-15T09:14:00Z"},
        ],
        "stuck": true, "stuckBecause": "worker-0's lease expired at 2026-11-15T09:04:00.000Z",
    })
}

#[test]
fn explain() {
    let since = "2026-11-15T09:09:00Z";
    check(
        vec![ok(&explanation("op-1", since).to_string())],
        "operation explain arena op-1",
        &expect![[r#"
        > GET /schedulers/arena/operations/op-1/explain?view=full
        Id           op-1
        Operation    remove_rooms
        Scheduler    arena
        Status       in_progress
        Since        2026-11-15T09:09:00Z
        Waiting for  downscaling held by rollout v2.0.0 since 2026-11-15T09:00:00.000Z
        Last event   waiting for downscaling
        Owner        worker-1, until 2026-11-15T09:10:10Z (token 3)
        Lease        worker-0, expired at 2026-11-15T09:04:00Z (token 2)
        Stuck        yes: worker-0's lease expired at 2026-11-15T09:04:00.000Z

        NEXT
        takes the lock downscaling when rollout v2.0.0 gives it up
        2026-11-15T09:14:00Z  ends as error if it has not got the lock
    "#]],
    );
    let ended = json!({
        "id": "op-1", "definitionName": "add_rooms", "schedulerName": "arena", "status": "finished",
        "since": since, "waitingFor": "", "lastEvent": "Operation finished", "owner": null, "lease": null,
        "next": [], "stuck": false, "stuckBecause": "",
    });
    check(
        vec![ok(&ended.to_string())],
        "operation explain arena op-1",
        &expect![[r#"
        > GET /schedulers/arena/operations/op-1/explain?view=full
        Id           op-1
        Operation    add_rooms
        Scheduler    arena
        Status       finished
        Since        2026-11-15T09:09:00Z
        Waiting for  -
        Last event   Operation finished
        Owner        -
        Lease        -
        Stuck        no
    "#]],
    );
    check(
        vec![ok(r#"{"id":"op-1","next":[{"what":"goes on with its next step","at":null}],"stuck":false}"#)],
        "operation explain arena op-1 -o json",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1/explain?view=full
            {
              "id": "op-1",
              "next": [
                {
                  "what": "goes on with its next step",
                  "at": null
                }
              ],
              "stuck": false
            }
        "#]],
    );
    check(
        vec![refusal(404, "operation op-9 not found in scheduler arena")],
        "operation explain arena op-9",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-9/explain?view=full
            stderr: error: operation op-9 not found in scheduler arena
            exit 3
        "#]],
    );
}

#[test]
fn stuck_in_one_scheduler() {
    let stuck = json!({"operations": [explanation("op-1", &long_ago())]});
    check(
        vec![ok(&stuck.to_string())],
        "operation list arena --stuck",
        &expect![[r#"
        > GET /schedulers/arena/operations/stuck?view=full
        SCHEDULER  ID    OPERATION     STATUS       SINCE  WAITING FOR                                                        STUCK BECAUSE
        arena      op-1  remove_rooms  in_progress  2d4h   downscaling held by rollout v2.0.0 since 2026-11-15T09:00:00.000Z  worker-0's lease expired at 2026-11-15T09:04:00.000Z
    "#]],
    );
    check(
        vec![ok(r#"{"operations":[]}"#)],
        "operation list arena --stuck -o json",
        &expect![[r#"
        > GET /schedulers/arena/operations/stuck?view=full
        {
          "operations": []
        }
    "#]],
    );
    check(
        vec![refusal(404, "scheduler nope not found")],
        "operation list nope --stuck",
        &expect![[r#"
        > GET /schedulers/nope/operations/stuck?view=full
        stderr: error: scheduler nope not found
        exit 3
    "#]],
    );
    check(
        vec![],
        "operation list arena --stuck --stage final",
        &expect![[r#"
            stderr: error: the argument '--stuck' cannot be used with '--stage <STAGE>'
            stderr: 
            stderr: Usage: maestro operation list --stuck <SCHEDULER>
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        vec![],
        "operation list",
        &expect![[r#"
            stderr: error: the following required arguments were not provided:
            stderr:   <SCHEDULER>
            stderr: 
            stderr: Usage: maestro operation list <SCHEDULER>
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}

#[test]
fn stuck_anywhere() {
    let schedulers = r#"{"schedulers":[{"name":"arena"},{"name":"gone"},{"name":"other"}]}"#;
    let stuck = |id| ok(&json!({"operations": [explanation(id, &long_ago())]}).to_string());
    check(
        vec![ok(schedulers), stuck("op-1"), refusal(404, "scheduler gone not found"), stuck("op-2")],
        "operation list --stuck",
        &expect![[r#"
            > GET /schedulers?view=full
            > GET /schedulers/arena/operations/stuck?view=full
            > GET /schedulers/gone/operations/stuck?view=full
            > GET /schedulers/other/operations/stuck?view=full
            SCHEDULER  ID    OPERATION     STATUS       SINCE  WAITING FOR                                                        STUCK BECAUSE
            arena      op-1  remove_rooms  in_progress  2d4h   downscaling held by rollout v2.0.0 since 2026-11-15T09:00:00.000Z  worker-0's lease expired at 2026-11-15T09:04:00.000Z
            arena      op-2  remove_rooms  in_progress  2d4h   downscaling held by rollout v2.0.0 since 2026-11-15T09:00:00.000Z  worker-0's lease expired at 2026-11-15T09:04:00.000Z
        "#]],
    );
}
