//! Rooms, operations and schedulers by what people call them.

use expect_test::expect;

use crate::everyday::{ID, OTHER_ID, operations, rooms};
use crate::schedulers::arena;
use crate::server::{ok, refusal};
use crate::{check, check_local, maestro};

#[test]
fn operations_by_the_beginning_of_their_id() {
    let operation =
        format!(r#"{{"operation":{{"id":"{ID}","status":"finished","definitionName":"add_rooms"}}}}"#);
    let nothing = || operations(&[]);
    let one = || operations(&[(ID, "add_rooms", "finished")]);
    check(
        vec![nothing(), nothing(), one(), ok(&operation)],
        "operation get arena 01a1e37a-3bc9-71 -o json",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=pending&noAction=true&idPrefix=01a1e37a-3bc9-71&view=full
            > GET /schedulers/arena/operations?stage=active&noAction=true&idPrefix=01a1e37a-3bc9-71&view=full
            > GET /schedulers/arena/operations?stage=final&perPage=100&noAction=true&idPrefix=01a1e37a-3bc9-71&view=full
            > GET /schedulers/arena/operations/01a1e37a-3bc9-7123-b0c1-18cc2bff41a0?view=full
            {
              "operation": {
                "id": "01a1e37a-3bc9-7123-b0c1-18cc2bff41a0",
                "status": "finished",
                "definitionName": "add_rooms"
              }
            }
        "#]],
    );
    check(
        vec![nothing(), nothing(), one(), ok("{}")],
        "operation cancel arena 01A1",
        &expect![[r#"
        > GET /schedulers/arena/operations?stage=pending&noAction=true&idPrefix=01A1&view=full
        > GET /schedulers/arena/operations?stage=active&noAction=true&idPrefix=01A1&view=full
        > GET /schedulers/arena/operations?stage=final&perPage=100&noAction=true&idPrefix=01A1&view=full
        > POST /schedulers/arena/operations/01a1e37a-3bc9-7123-b0c1-18cc2bff41a0/cancel?view=full {}
        operation 01a1e37a-3bc9-7123-b0c1-18cc2bff41a0 is being canceled
    "#]],
    );
    // The whole of it needs no search.
    check(
        vec![ok(&operation)],
        &format!("operation get arena {ID} -o yaml"),
        &expect![[r#"
        > GET /schedulers/arena/operations/01a1e37a-3bc9-7123-b0c1-18cc2bff41a0?view=full
        operation:
          id: 01a1e37a-3bc9-7123-b0c1-18cc2bff41a0
          status: finished
          definitionName: add_rooms
    "#]],
    );
    let two = operations(&[(ID, "add_rooms", "finished"), (OTHER_ID, "remove_rooms", "error")]);
    check(
        vec![nothing(), nothing(), two],
        "operation cancel arena 01a",
        &expect![[r#"
        > GET /schedulers/arena/operations?stage=pending&noAction=true&idPrefix=01a&view=full
        > GET /schedulers/arena/operations?stage=active&noAction=true&idPrefix=01a&view=full
        > GET /schedulers/arena/operations?stage=final&perPage=100&noAction=true&idPrefix=01a&view=full
        stderr: error: 01a is ambiguous, 2 operations have an id that begins with it:
        stderr:   01a1e37a-3bc9-7123-b0c1-18cc2bff41a0 (add_rooms, finished)
        stderr:   01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043 (remove_rooms, error)
        exit 2
    "#]],
    );
    check(
        vec![nothing(), nothing(), nothing(), ok(&arena("in-sync"))],
        "operation watch arena 02",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=pending&noAction=true&idPrefix=02&view=full
            > GET /schedulers/arena/operations?stage=active&noAction=true&idPrefix=02&view=full
            > GET /schedulers/arena/operations?stage=final&perPage=100&noAction=true&idPrefix=02&view=full
            > GET /schedulers/arena?view=full
            stderr: error: no operation of scheduler arena has an id that begins with 02
            exit 3
        "#]],
    );
    check(
        vec![nothing(), nothing(), nothing(), refusal(404, "scheduler nope not found")],
        "operation explain nope 02",
        &expect![[r#"
            > GET /schedulers/nope/operations?stage=pending&noAction=true&idPrefix=02&view=full
            > GET /schedulers/nope/operations?stage=active&noAction=true&idPrefix=02&view=full
            > GET /schedulers/nope/operations?stage=final&perPage=100&noAction=true&idPrefix=02&view=full
            > GET /schedulers/nope?view=full
            stderr: error: scheduler nope not found
            exit 3
        "#]],
    );
}

#[test]
fn rooms_by_the_beginning_of_their_id() {
    let missing = || refusal(404, "room not found in scheduler arena");
    let two = || rooms(&[("arena-4f1c9a", "ready"), ("arena-4faa01", "terminated")]);
    let room = r#"{"id":"arena-4f1c9a","status":"ready"}"#;
    check(
        vec![missing(), two(), ok(room)],
        "room get arena 4f1 -o json",
        &expect![[r#"
        > GET /schedulers/arena/rooms/4f1?view=full
        > GET /schedulers/arena/rooms?ended=true&view=full
        > GET /schedulers/arena/rooms/arena-4f1c9a?view=full
        {
          "id": "arena-4f1c9a",
          "status": "ready"
        }
    "#]],
    );
    check(
        vec![missing(), two()],
        "room logs arena arena-4f",
        &expect![[r#"
        > GET /schedulers/arena/rooms/arena-4f/logs?tail=100
        > GET /schedulers/arena/rooms?ended=true&view=full
        stderr: error: arena-4f is ambiguous, 2 rooms have an id that begins with it:
        stderr:   arena-4f1c9a
        stderr:   arena-4faa01
        exit 2
    "#]],
    );
}

#[test]
fn rooms_removed_by_name() {
    let two = || rooms(&[("arena-4f1c9a", "ready"), ("arena-77aa01", "ready")]);
    let started = || ok(r#"{"operationId":"op-1"}"#);
    check(
        vec![two(), started()],
        "room remove arena 4f1 arena-77aa01 --force",
        &expect![[r#"
            > GET /schedulers/arena/rooms?view=full
            > POST /schedulers/arena/remove-rooms?view=full {"rooms":["arena-4f1c9a","arena-77aa01"],"force":true}
            operation op-1 enqueued: remove rooms arena-4f1c9a, arena-77aa01
        "#]],
    );
    check(
        vec![started()],
        "room rm arena 3",
        &expect![[r#"
        > POST /schedulers/arena/remove-rooms?view=full {"amount":3,"force":false}
        operation op-1 enqueued: remove 3 rooms
    "#]],
    );
    check(
        vec![two()],
        "room remove arena 4f1 ghost",
        &expect![[r#"
        > GET /schedulers/arena/rooms?view=full
        stderr: error: room ghost not found in scheduler arena; see maestro room list arena
        exit 3
    "#]],
    );
    check_local(
        maestro("room remove arena 0"),
        &expect![[r#"
        stderr: error: amount must be at least 1
        exit 2
    "#]],
    );
    check_local(
        maestro("room remove arena"),
        &expect![[r#"
        stderr: error: the following required arguments were not provided:
        stderr:   <N|ID>...
        stderr: 
        stderr: Usage: maestro room remove <SCHEDULER> <N|ID>...
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn a_scheduler_called_info() {
    check(
        vec![ok(&arena("in-sync").replace("arena", "info"))],
        "scheduler describe info",
        &expect![[r#"
            > GET /scheduler/info?view=full
            Name          info
            Game          brawl
            State         in-sync
            Version       v1.0.0
            Created       2026-11-15T09:06:47.339752Z
            Replicas      3
            Autoscaling   off
            Max surge     25%
            Port range    20000 to 29999
            Grace period  5s
            Labels        team=a
            Annotations   -

            CONTAINER  IMAGE   PORTS          COMMAND
            room       room:1  game:7777/udp  /room --map lava
        "#]],
    );
    check(
        vec![ok(r#"{"operationId":"op-1"}"#)],
        "scheduler delete info",
        &expect![[r#"
        > DELETE /scheduler/info?view=full
        operation op-1 enqueued: delete scheduler info
    "#]],
    );
    check(
        vec![ok(r#"{"operationId":"op-1"}"#)],
        "scheduler switch info v1.0.0",
        &expect![[r#"
        > PUT /scheduler/info?view=full {"version":"v1.0.0"}
        operation op-1 enqueued: switch scheduler info to v1.0.0
    "#]],
    );
}
