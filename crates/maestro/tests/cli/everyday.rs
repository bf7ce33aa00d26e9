//! What people type, and what they get wrong.

use expect_test::expect;

use crate::schedulers::arena;
use crate::server::{Answer, json, ok, refusal};
use crate::{check, check_local, long_ago, maestro};

const ID: &str = "01a1e37a-3bc9-7123-b0c1-18cc2bff41a0";
const OTHER_ID: &str = "01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043";

fn operations(found: &[(&str, &str, &str)]) -> Answer {
    let operation = |(id, name, status): &(&str, &str, &str)| serde_json::json!({"id": id, "definitionName": name, "status": status, "createdAt": long_ago(), "reason": "x"});
    let operations: Vec<_> = found.iter().map(operation).collect();
    ok(&serde_json::json!({"page": 1, "pageSize": 15, "total": found.len(), "operations": operations})
        .to_string())
}

fn rooms(found: &[(&str, &str)]) -> Answer {
    let room = |(id, status): &(&str, &str)| serde_json::json!({"id": id, "status": status, "version": "v1.0.0", "createdAt": long_ago()});
    let rooms: Vec<_> = found.iter().map(room).collect();
    ok(&serde_json::json!({ "rooms": rooms }).to_string())
}

#[test]
fn plurals_are_lists() {
    check(
        vec![ok(r#"{"schedulers":[]}"#)],
        "schedulers",
        &expect![[r#"
        > GET /schedulers?view=full
        NAME  GAME  STATE  VERSION  READY  OCCUPIED  REPLICAS  AUTOSCALING  AGE  PROBLEM
        stderr: no schedulers; create one: maestro scheduler create -f FILE
    "#]],
    );
    check(
        vec![rooms(&[("arena-1", "ready")])],
        "rooms arena",
        &expect![[r#"
        > GET /schedulers/arena/rooms?view=full
        ID       STATUS  VERSION  REGION  HOST  PORTS  PIDS  AGE   LAST PING
        arena-1  ready   v1.0.0   -       -     -      -     2d4h  -
    "#]],
    );
    check(
        vec![ok(r#"{"regions":[]}"#)],
        "regions",
        &expect![[r#"
        > GET /regions?view=full
        NAME  REACHABLE  NEW ROOMS  ROOMS  READY  OCCUPIED  CAPACITY  REASON
    "#]],
    );
    check(
        vec![operations(&[(ID, "add_rooms", "error")])],
        "ops arena --status error",
        &expect![[r#"
        > GET /schedulers/arena/operations?stage=final&status=error&view=full
        ID                                    OPERATION  STATUS  AGE   REASON
        01a1e37a-3bc9-7123-b0c1-18cc2bff41a0  add_rooms  error   2d4h  x
    "#]],
    );
    // And whatever else the singular does.
    check(
        vec![ok(&arena("in-sync"))],
        "schedulers describe arena",
        &expect![[r#"
            > GET /schedulers/arena?view=full
            Name          arena
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
        vec![rooms(&[])],
        "rooms ls arena",
        &expect![[r#"
        > GET /schedulers/arena/rooms?view=full
        ID  STATUS  VERSION  REGION  HOST  PORTS  PIDS  AGE  LAST PING
    "#]],
    );
    check(
        vec![ok("{}")],
        "operations cancel arena op-1",
        &expect![[r#"
        > POST /schedulers/arena/operations/op-1/cancel?view=full {}
        operation op-1 is being canceled
    "#]],
    );
}

#[test]
fn a_plural_that_lacks_a_name() {
    check(
        vec![],
        "rooms",
        &expect![[r#"
        stderr: error: the following required arguments were not provided:
        stderr:   <SCHEDULER>
        stderr: 
        stderr: Usage: maestro rooms <SCHEDULER>
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn operations_of_a_kind() {
    check(
        vec![operations(&[(ID, "add_rooms", "error")])],
        "operation list arena --type add_rooms --status error --since 2026-11-15T09:00:00Z",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=final&definitionName=add_rooms&status=error&since=2026-11-15T09%3A00%3A00Z&view=full
            ID                                    OPERATION  STATUS  AGE   REASON
            01a1e37a-3bc9-7123-b0c1-18cc2bff41a0  add_rooms  error   2d4h  x
        "#]],
    );
    check(
        vec![operations(&[(ID, "add_rooms", "in_progress")])],
        "operation list arena --status in_progress",
        &expect![[r#"
            > GET /schedulers/arena/operations?stage=active&status=in_progress&view=full
            ID                                    OPERATION  STATUS       AGE   REASON
            01a1e37a-3bc9-7123-b0c1-18cc2bff41a0  add_rooms  in_progress  2d4h  x
        "#]],
    );
    check(
        vec![],
        "operation list arena --since yesterday",
        &expect![[r#"
            stderr: error: invalid value 'yesterday' for '--since <TIME>': write how long ago, as in 2h, or a time, as in 2026-11-15T09:00:00Z
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        vec![],
        "operation list arena --type add",
        &expect![[r#"
        stderr: error: invalid value 'add' for '--type <TYPE>'
        stderr:   [possible values: create_scheduler, delete_scheduler, create_new_scheduler_version, switch_active_version, add_rooms, remove_rooms, resize, create_room, health_controller, storage_clean_up]
        stderr: 
        stderr:   tip: a similar value exists: 'add_rooms'
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn cycles_that_have_not_ended_are_hidden() {
    let cycle =
        || operations(&[(ID, "health_controller", "in_progress"), (OTHER_ID, "add_rooms", "in_progress")]);
    let nothing = || operations(&[]);
    check(
        vec![nothing(), cycle(), nothing()],
        "operation list arena",
        &expect![[r#"
        > GET /schedulers/arena/operations?stage=pending&view=full
        > GET /schedulers/arena/operations?stage=active&view=full
        > GET /schedulers/arena/operations?stage=final&view=full
        ID                                    OPERATION  STATUS       AGE   REASON
        01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043  add_rooms  in_progress  2d4h  x
    "#]],
    );
    check(
        vec![nothing(), cycle(), nothing()],
        "operation list arena --all",
        &expect![[r#"
        > GET /schedulers/arena/operations?stage=pending&noAction=true&view=full
        > GET /schedulers/arena/operations?stage=active&noAction=true&view=full
        > GET /schedulers/arena/operations?stage=final&noAction=true&view=full
        ID                                    OPERATION          STATUS       AGE   REASON
        01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043  add_rooms          in_progress  2d4h  x
        01a1e37a-3bc9-7123-b0c1-18cc2bff41a0  health_controller  in_progress  2d4h  x
    "#]],
    );
}

#[test]
fn a_scheduler_that_does_not_exist_has_no_operations() {
    let none = || operations(&[]);
    check(
        vec![none(), none(), none(), refusal(404, "scheduler nope not found")],
        "operation list nope",
        &expect![[r#"
            > GET /schedulers/nope/operations?stage=pending&view=full
            > GET /schedulers/nope/operations?stage=active&view=full
            > GET /schedulers/nope/operations?stage=final&view=full
            > GET /schedulers/nope?view=full
            stderr: error: scheduler nope not found
            exit 3
        "#]],
    );
}

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
fn rooms_that_have_ended() {
    let ended = r#"{"rooms":[{"id":"arena-1","status":"terminated","version":"v1.0.0","region":"local","createdAt":"AGO","ended":{"at":"AGO","how":"container room exited with code 1"}}]}"#;
    check(
        vec![ok(&ended.replace("AGO", &long_ago()))],
        "room list arena --ended",
        &expect![[r#"
        > GET /schedulers/arena/rooms?ended=true&view=full
        ID       STATUS      VERSION  REGION  AGE   ENDED  HOW IT ENDED
        arena-1  terminated  v1.0.0   local   2d4h  2d4h   container room exited with code 1
    "#]],
    );
}

#[test]
fn a_list_that_is_watched() {
    let gone = || refusal(404, "scheduler arena not found");
    check(
        vec![
            rooms(&[("arena-1", "pending")]),
            rooms(&[("arena-1", "pending")]),
            rooms(&[("arena-1", "ready")]),
            gone(),
        ],
        "room list arena --watch",
        &expect![[r#"
            > GET /schedulers/arena/rooms?view=full
            ID       STATUS   VERSION  REGION  HOST  PORTS  PIDS  AGE   LAST PING
            arena-1  pending  v1.0.0   -       -     -      -     2d4h  -

            ID       STATUS  VERSION  REGION  HOST  PORTS  PIDS  AGE   LAST PING
            arena-1  ready   v1.0.0   -       -     -      -     2d4h  -
            stderr: error: scheduler arena not found
            exit 3
        "#]],
    );
    check(
        vec![ok(r#"{"rooms":[{"id":"arena-1"}]}"#), Answer::HangUp, rooms(&[]), gone()],
        "rooms arena --watch -o json",
        &expect![[r#"
            > GET /schedulers/arena/rooms?view=full
            {"rooms":[{"id":"arena-1"}]}
            {"rooms":[]}
            stderr: http://SERVER closed the connection without an answer; trying again
            stderr: error: scheduler arena not found
            exit 3
        "#]],
    );
    check(
        vec![ok(r#"{"schedulers":[{"name":"arena"}]}"#), gone()],
        "schedulers -w",
        &expect![[r#"
        > GET /schedulers?view=full
        NAME   GAME  STATE  VERSION  READY  OCCUPIED  REPLICAS  AUTOSCALING  AGE  PROBLEM
        arena  -     -      -        -      -         -         off          -    -
        stderr: error: scheduler arena not found
        exit 3
    "#]],
    );
    check(
        vec![ok(r#"{"regions":[{"name":"eu"}]}"#), gone()],
        "region ls -w",
        &expect![[r#"
        > GET /regions?view=full
        NAME  REACHABLE  NEW ROOMS  ROOMS  READY  OCCUPIED  CAPACITY  REASON
        eu    no         no         0      -      -         -         -
        stderr: error: scheduler arena not found
        exit 3
    "#]],
    );
    let one = operations(&[(ID, "add_rooms", "error")]);
    check(
        vec![one, gone()],
        "ops arena --status error -w",
        &expect![[r#"
        > GET /schedulers/arena/operations?stage=final&status=error&view=full
        ID                                    OPERATION  STATUS  AGE   REASON
        01a1e37a-3bc9-7123-b0c1-18cc2bff41a0  add_rooms  error   2d4h  x
        stderr: error: scheduler arena not found
        exit 3
    "#]],
    );
}

#[test]
fn the_wrong_port() {
    let not_found = || json(404, r#"{"code":5,"message":"Not Found","details":[]}"#);
    let not_allowed = json(405, r#"{"code":12,"message":"Method Not Allowed","details":[]}"#);
    check(
        vec![not_found(), not_allowed],
        "scheduler list",
        &expect![[r#"
        > GET /schedulers?view=full
        > GET /scheduler/x/rooms/x/ping
        stderr: error: http://SERVER is the API that rooms talk to (roomsApi.port); --url takes the management API (managementApi.port, 8080 by default)
        exit 2
    "#]],
    );
    check(
        vec![not_found(), not_found(), ok("ok")],
        "scheduler list",
        &expect![[r#"
        > GET /schedulers?view=full
        > GET /scheduler/x/rooms/x/ping
        > GET /healthz
        stderr: error: http://SERVER is the internal API for health checks and metrics (internalApi.port); --url takes the management API (managementApi.port, 8080 by default)
        exit 2
    "#]],
    );
    check(
        vec![not_found()],
        "scheduler list",
        &expect![[r#"
        > GET /schedulers?view=full
        > GET /scheduler/x/rooms/x/ping
        > GET /healthz
        stderr: error: http://SERVER does not know GET /schedulers; is it an older version of Maestro?
        exit 3
    "#]],
    );
}

#[test]
fn what_has_to_wait_for_something_else_is_a_conflict() {
    let message = "cannot create new scheduler version: operation op-1 is under way";
    let busy = json(400, &serde_json::json!({"code": 9, "message": message, "details": []}).to_string());
    check(
        vec![busy],
        "scheduler switch arena v1.0.0",
        &expect![[r#"
        > PUT /schedulers/arena?view=full {"version":"v1.0.0"}
        stderr: error: cannot create new scheduler version: operation op-1 is under way
        exit 4
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

#[test]
fn no_advice_that_does_not_work() {
    check_local(
        maestro("scheduler get --arena"),
        &expect![[r#"
        stderr: error: unexpected argument '--arena' found
        stderr: 
        stderr: Usage: maestro scheduler get [OPTIONS] <SCHEDULER>
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check_local(
        maestro("room logs arena arena-1 --tail -5"),
        &expect![[r#"
        stderr: error: unexpected argument '-5' found
        stderr: 
        stderr: Usage: maestro room logs [OPTIONS] <SCHEDULER> <ID>
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check_local(
        maestro("scheduler restart arena"),
        &expect![[r#"
        stderr: error: unrecognized subcommand 'restart'
        stderr: 
        stderr: Usage: maestro scheduler [OPTIONS] <COMMAND>
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check_local(
        maestro("operation lst arena"),
        &expect![[r#"
        stderr: error: unrecognized subcommand 'lst'
        stderr: 
        stderr:   tip: a similar subcommand exists: 'ls'
        stderr: 
        stderr: Usage: maestro operation [OPTIONS] <COMMAND>
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check_local(
        maestro("scheduler get arena --ouptut json"),
        &expect![[r#"
        stderr: error: unexpected argument '--ouptut' found
        stderr: 
        stderr:   tip: a similar argument exists: '--output'
        stderr: 
        stderr: Usage: maestro scheduler get --output <OUTPUT> <SCHEDULER>
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}
