//! What people type: lists, and what is hidden in them.

use expect_test::expect;

use crate::schedulers::arena;
use crate::server::{Answer, ok, refusal};
use crate::{check, long_ago};

pub(crate) const ID: &str = "01a1e37a-3bc9-7123-b0c1-18cc2bff41a0";
pub(crate) const OTHER_ID: &str = "01a1e37a-3bc9-7df4-b5e0-5ee61b2f4043";

pub(crate) fn operations(found: &[(&str, &str, &str)]) -> Answer {
    let operation = |(id, name, status): &(&str, &str, &str)| serde_json::json!({"id": id, "definitionName": name, "status": status, "createdAt": long_ago(), "reason": "x"});
    let operations: Vec<_> = found.iter().map(operation).collect();
    ok(&serde_json::json!({"page": 1, "pageSize": 15, "total": found.len(), "operations": operations})
        .to_string())
}

pub(crate) fn rooms(found: &[(&str, &str)]) -> Answer {
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
            stderr: http://SERVER closed the connection without answering; trying again
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
