use expect_test::expect;

use crate::schedulers::arena;
use crate::server::{Answer, ok, refusal};
use crate::{check, long_ago};

fn operations(total: u32, page_size: u32, items: &[(&str, &str, &str)]) -> Answer {
    let items: Vec<_> = items
        .iter()
        .map(|(id, status, created_at)| {
            serde_json::json!({
                "id": id, "status": status, "definitionName": "add_rooms", "schedulerName": "arena", "createdAt": created_at,
                "reason": "room arena-1 ended: killed by signal 9",
            })
        })
        .collect();
    ok(&serde_json::json!({"page": 1, "pageSize": page_size, "total": total, "operations": items})
        .to_string())
}

#[test]
fn all_stages_together_newest_first() {
    let pending = operations(1, 1, &[("op-moving", "pending", "2020-01-01T00:00:00.25Z")]);
    let active = operations(1, 1, &[("op-active", "in_progress", "2020-01-01T00:00:00Z")]);
    let finals = operations(
        40,
        15,
        &[
            ("op-final", "finished", "2026-11-13T05:49:07Z"),
            ("op-moving", "finished", "2020-01-01T00:00:00.25Z"),
            ("op-early", "error", "2020-01-01T00:00:00.5Z"),
        ],
    );
    check(
        vec![pending, active, finals],
        "operation list arena -o json",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=pending&view=full
            > GET /schedulers/arena/operations?stage=active&view=full
            > GET /schedulers/arena/operations?stage=final&view=full
            {
              "page": 1,
              "pageSize": 15,
              "total": 40,
              "operations": [
                {
                  "createdAt": "2026-11-13T05:49:07Z",
                  "definitionName": "add_rooms",
                  "id": "op-final",
                  "reason": "room arena-1 ended: killed by signal 9",
                  "schedulerName": "arena",
                  "status": "finished"
                },
                {
                  "createdAt": "2020-01-01T00:00:00.5Z",
                  "definitionName": "add_rooms",
                  "id": "op-early",
                  "reason": "room arena-1 ended: killed by signal 9",
                  "schedulerName": "arena",
                  "status": "error"
                },
                {
                  "createdAt": "2020-01-01T00:00:00.25Z",
                  "definitionName": "add_rooms",
                  "id": "op-moving",
                  "reason": "room arena-1 ended: killed by signal 9",
                  "schedulerName": "arena",
                  "status": "finished"
                },
                {
                  "createdAt": "2020-01-01T00:00:00Z",
                  "definitionName": "add_rooms",
                  "id": "op-active",
                  "reason": "room arena-1 ended: killed by signal 9",
                  "schedulerName": "arena",
                  "status": "in_progress"
                }
              ]
            }
        "#]],
    );
    check(
        vec![
            operations(0, 0, &[]),
            operations(0, 0, &[]),
            operations(40, 15, &[("op-final", "finished", &long_ago())]),
        ],
        "operation list arena",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=pending&view=full
            > GET /schedulers/arena/operations?stage=active&view=full
            > GET /schedulers/arena/operations?stage=final&view=full
            ID        OPERATION  STATUS    AGE   REASON
            op-final  add_rooms  finished  2d4h  room arena-1 ended: killed by signal 9
            stderr: page 1 of 40 final operations; next: --page 2
        "#]],
    );
}

#[test]
fn one_stage() {
    check(
        vec![operations(3, 2, &[("op-final", "finished", &long_ago())])],
        "operation list arena --stage final --page 2 --page-size 2 --no-action",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=final&page=2&perPage=2&noAction=true&view=full
            ID        OPERATION  STATUS    AGE   REASON
            op-final  add_rooms  finished  2d4h  room arena-1 ended: killed by signal 9
            stderr: page 1 of 3 final operations; next: --page 2
        "#]],
    );
    check(
        vec![operations(0, 0, &[]), ok(&arena("in-sync"))],
        "operation list arena --stage pending",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=pending&view=full
            > GET /schedulers/arena?view=full
            ID  OPERATION  STATUS  AGE  REASON
        "#]],
    );
    check(
        vec![],
        "operation list arena --stage pending --page 2",
        &expect![[r#"
            stderr: error: --page and --page-size go with --stage final, or without --stage
            exit 2
        "#]],
    );
    check(
        vec![],
        "operation list arena --stage wild",
        &expect![[r#"
            stderr: error: invalid value 'wild' for '--stage <STAGE>'
            stderr:   [possible values: pending, active, final]
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        vec![],
        "operation list arena --page-size 101",
        &expect![[r#"
            stderr: error: invalid value '101' for '--page-size <N>': 101 is not in 1..=100
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}

const OPERATION: &str = r#"{"operation":{"id":"op-1","status":"STATUS","definitionName":"add_rooms","lease":{"ttl":"2026-11-15T09:06:58Z"},"schedulerName":"arena","createdAt":"2026-11-15T09:06:53.177742090Z","input":{"amount":3},"executionHistory":[{"createdAt":"2026-11-15T09:06:53Z","event":"Created"},{"createdAt":"2026-11-15T09:06:54Z","event":"Starting 3 rooms\nin two lines"}],"data":{"status":"OK","creation":{"count":3,"regions":{"eu-west":1,"us-east":2}}},"reason":"fleet size 0 → 3","waitingFor":""}}"#;

#[test]
fn get() {
    check(
        vec![ok(&OPERATION.replace("STATUS", "in_progress"))],
        "operation get arena op-1",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1?view=full
            Id           op-1
            Operation    add_rooms
            Scheduler    arena
            Status       in_progress
            Reason       fleet size 0 → 3
            Waiting for  -
            Created      2026-11-15T09:06:53.177742090Z
            Lease until  2026-11-15T09:06:58Z
            Data         +3: eu-west 1, us-east 2

            HISTORY
            2026-11-15T09:06:53Z Created
            2026-11-15T09:06:54Z Starting 3 rooms in two lines
        "#]],
    );
    check(
        vec![refusal(404, "operation op-2 not found in scheduler arena")],
        "operation get arena op-2",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-2?view=full
            stderr: error: operation op-2 not found in scheduler arena
            exit 3
        "#]],
    );
}

#[test]
fn cancel() {
    check(
        vec![ok("{}")],
        "operation cancel arena op-1",
        &expect![[r#"
            > POST /schedulers/arena/operations/op-1/cancel?view=full {}
            operation op-1 is being canceled
        "#]],
    );
    let ended = refusal(409, "cannot cancel operation since status \"finished\" is a final status");
    check(
        vec![ended],
        "operation cancel arena op-1",
        &expect![[r#"
            > POST /schedulers/arena/operations/op-1/cancel?view=full {}
            stderr: error: cannot cancel operation since status "finished" is a final status
            exit 4
        "#]],
    );
}

#[test]
fn watch() {
    let at = |status| ok(&OPERATION.replace("STATUS", status));
    check(
        vec![at("pending"), at("in_progress"), at("finished")],
        "operation watch arena op-1",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1?view=full
            2026-11-15T09:06:53Z Created
            2026-11-15T09:06:54Z Starting 3 rooms in two lines
        "#]],
    );
    check(
        vec![at("canceled")],
        "operation watch arena op-1",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1?view=full
            2026-11-15T09:06:53Z Created
            2026-11-15T09:06:54Z Starting 3 rooms in two lines
            stderr: error: add_rooms op-1 ended as canceled: fleet size 0 → 3
            stderr: more: maestro operation get arena op-1
            exit 1
        "#]],
    );
    check(
        vec![at("in_progress")],
        "operation watch arena op-1 --timeout 300ms",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1?view=full
            2026-11-15T09:06:53Z Created
            2026-11-15T09:06:54Z Starting 3 rooms in two lines
            stderr: error: operation op-1 is still in_progress after 300ms; it continues: maestro operation watch arena op-1
            exit 6
        "#]],
    );
}

#[test]
fn a_restart_of_the_server_does_not_end_the_watch() {
    let at = |status| ok(&OPERATION.replace("STATUS", status));
    check(
        vec![at("in_progress"), Answer::HangUp, at("finished")],
        "operation watch arena op-1",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1?view=full
            2026-11-15T09:06:53Z Created
            2026-11-15T09:06:54Z Starting 3 rooms in two lines
            stderr: http://SERVER closed the connection without answering; trying again
        "#]],
    );
}
