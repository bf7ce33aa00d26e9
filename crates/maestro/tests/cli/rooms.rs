use expect_test::expect;

use crate::server::{ok, refusal, text};
use crate::{check, long_ago};

#[test]
fn list() {
    let rooms = r#"{"rooms":[
        {"id":"arena-4f1c9a","status":"ready","version":"v1.0.0","region":"local","host":"127.0.0.1","ports":[{"name":"game","protocol":"udp","port":20000},{"name":"chat","protocol":"tcp","port":20001}],"pids":[4242,4243],"createdAt":"AGO","lastPingAt":"AGO","validation":false},
        {"id":"arena-77aa01","status":"pending","version":"v2.0.0","region":"local","host":"","ports":[],"pids":[],"createdAt":"AGO","lastPingAt":null,"validation":true}]}"#;
    check(
        vec![ok(&rooms.replace("AGO", &long_ago()))],
        "room list arena",
        &expect![[r#"
            > GET /schedulers/arena/rooms?view=full
            ID            STATUS                VERSION  REGION  HOST       PORTS                          PIDS       AGE   LAST PING
            arena-4f1c9a  ready                 v1.0.0   local   127.0.0.1  game:20000/udp,chat:20001/tcp  4242,4243  2d4h  2d4h
            arena-77aa01  pending (validation)  v2.0.0   local   -          -                              -          2d4h  -
        "#]],
    );
}

#[test]
fn get() {
    let room = r#"{"id":"arena-4f1c9a","status":"terminating","version":"v1.0.0","region":"local","host":"127.0.0.1","ports":[{"name":"game","protocol":"udp","port":20000}],"pids":[4242],"createdAt":"2026-11-15T09:06:47Z","lastPingAt":"2026-11-15T09:16:47Z","validation":false,"ended":{"at":"2026-11-15T09:17:00Z","how":"killed by signal 9"}}"#;
    check(
        vec![ok(room)],
        "room get arena arena-4f1c9a",
        &expect![[r#"
            > GET /schedulers/arena/rooms/arena-4f1c9a?view=full
            Id         arena-4f1c9a
            Status     terminating
            Version    v1.0.0
            Region     local
            Host       127.0.0.1
            Ports      game:20000/udp
            Pids       4242
            Created    2026-11-15T09:06:47Z
            Last ping  2026-11-15T09:16:47Z
            Silent     -
            Metadata   -
            Ended      2026-11-15T09:17:00Z
            How        killed by signal 9
        "#]],
    );
    check(
        vec![refusal(404, "room ghost not found in scheduler arena")],
        "room get arena ghost",
        &expect![[r#"
            > GET /schedulers/arena/rooms/ghost?view=full
            > GET /schedulers/arena/rooms?ended=true&view=full
            stderr: error: room ghost not found in scheduler arena
            exit 3
        "#]],
    );
}

#[test]
fn silent_rooms() {
    let room = r#"{"id":"arena-4f1c9a","status":"ready","version":"v1.0.0","region":"eu-west","host":"127.0.0.1","ports":[],"pids":[4242],"createdAt":"2026-11-15T09:06:47Z","lastPingAt":"2026-11-15T09:16:47Z","validation":false,"silent":{"since":"2026-11-15T09:16:47Z","until":"2026-11-15T09:46:47Z"}}"#;
    check(
        vec![ok(room)],
        "room get arena arena-4f1c9a",
        &expect![[r#"
        > GET /schedulers/arena/rooms/arena-4f1c9a?view=full
        Id         arena-4f1c9a
        Status     ready (silent)
        Version    v1.0.0
        Region     eu-west
        Host       127.0.0.1
        Ports      -
        Pids       4242
        Created    2026-11-15T09:06:47Z
        Last ping  2026-11-15T09:16:47Z
        Silent     since 2026-11-15T09:16:47Z, together with other rooms of eu-west: not counted as ready, removed at 2026-11-15T09:46:47Z unless it pings, or with `maestro region confirm-lost eu-west`
        Metadata   -
        Ended      -
        How        -
    "#]],
    );
    let rooms = format!(
        r#"{{"rooms":[{}]}}"#,
        room.replace("2026-11-15T09:06:47Z", "AGO").replace("2026-11-15T09:16:47Z", "AGO")
    );
    check(
        vec![ok(&rooms)],
        "room list arena",
        &expect![[r#"
        > GET /schedulers/arena/rooms?view=full
        ID            STATUS          VERSION  REGION   HOST       PORTS  PIDS  AGE  LAST PING
        arena-4f1c9a  ready (silent)  v1.0.0   eu-west  127.0.0.1  -      4242  AGO  AGO
    "#]],
    );
}

#[test]
fn what_a_room_writes_cannot_drive_the_terminal() {
    let room = r#"{"id":"arena-4f1c9a","status":"ready","version":"\u001b[31mred\u001b[0m"}"#;
    check(
        vec![ok(room)],
        "room get arena arena-4f1c9a",
        &expect![[r#"
            > GET /schedulers/arena/rooms/arena-4f1c9a?view=full
            Id         arena-4f1c9a
            Status     ready
            Version     [31mred [0m
            Region     -
            Host       -
            Ports      -
            Pids       -
            Created    -
            Last ping  -
            Silent     -
            Metadata   -
            Ended      -
            How        -
        "#]],
    );
}

#[test]
fn logs() {
    check(
        vec![text("one\ntwo\n")],
        "room logs arena arena-4f1c9a --tail 2",
        &expect![[r#"
            > GET /schedulers/arena/rooms/arena-4f1c9a/logs?tail=2
            one
            two
        "#]],
    );
    check(
        vec![text("")],
        "room logs arena arena-4f1c9a",
        &expect![[r#"
            > GET /schedulers/arena/rooms/arena-4f1c9a/logs?tail=100
        "#]],
    );
}

#[test]
fn logs_that_are_followed_to_the_end() {
    let alive = r#"{"id":"r","status":"ready","ended":null}"#;
    let ended =
        r#"{"id":"r","status":"terminating","ended":{"at":"2026-11-15T09:17:00Z","how":"exit code 0"}}"#;
    check(
        vec![ok(alive), text("one\ntwo\nthr"), ok(ended), text("one\ntwo\nthree\nfour")],
        "room logs arena r --follow --tail 1",
        &expect![[r#"
            > GET /schedulers/arena/rooms/r?view=full
            > GET /schedulers/arena/rooms/r/logs?tail=1000
            > GET /schedulers/arena/rooms/r?view=full
            > GET /schedulers/arena/rooms/r/logs?tail=1000
            two
            three
            four
            stderr: room r has ended: exit code 0
        "#]],
    );
}

#[test]
fn create() {
    check(
        vec![ok(r#"{"operationId":"op-1"}"#)],
        "room create arena --region eu-west",
        &expect![[r#"
        > POST /schedulers/arena/rooms?view=full {"region":"eu-west","force":false}
        operation op-1 enqueued: create a room in eu-west
    "#]],
    );
    check(
        vec![ok(r#"{"operationId":"op-1"}"#)],
        "room create arena --force",
        &expect![[r#"
        > POST /schedulers/arena/rooms?view=full {"region":null,"force":true}
        operation op-1 enqueued: create a room
    "#]],
    );
    let unknown = "Validation Error:\nregion: \"mars\" is not a configured region; there is eu-west, us-east";
    check(
        vec![refusal(400, unknown)],
        "room create arena --region mars",
        &expect![[r#"
        > POST /schedulers/arena/rooms?view=full {"region":"mars","force":false}
        stderr: error: Validation Error:
        stderr: region: "mars" is not a configured region; there is eu-west, us-east
        exit 2
    "#]],
    );
}

#[test]
fn add_and_remove() {
    let started = r#"{"operationId":"op-1"}"#;
    check(
        vec![ok(started)],
        "room add arena 3",
        &expect![[r#"
            > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
            operation op-1 enqueued: add 3 rooms
        "#]],
    );
    check(
        vec![ok(started)],
        "room remove arena 1 --force",
        &expect![[r#"
            > POST /schedulers/arena/remove-rooms?view=full {"amount":1,"force":true}
            operation op-1 enqueued: remove 1 room
        "#]],
    );
    check(
        vec![ok(started)],
        "room add arena 3 -o json",
        &expect![[r#"
            > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
            {
              "operationId": "op-1"
            }
        "#]],
    );
    let refused = refusal(409, "autoscaling would undo this; change min or max, or turn it off");
    check(
        vec![refused],
        "room add arena 3",
        &expect![[r#"
            > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
            stderr: error: autoscaling would undo this; change min or max, or turn it off
            exit 4
        "#]],
    );
    check(
        vec![ok("{}")],
        "room add arena 3",
        &expect![[r#"
            > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
            stderr: error: the server's answer names no operation
            exit 1
        "#]],
    );
}

#[test]
fn add_and_wait() {
    let started = ok(r#"{"operationId":"op-1"}"#);
    let running = ok(
        r#"{"operation":{"id":"op-1","status":"in_progress","definitionName":"add_rooms","waitingFor":"2 rooms to be ready","executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"Created"},{"createdAt":"2026-11-15T09:06:48Z","event":"1 of 3 rooms started"}]}}"#,
    );
    let ended = |status: &str| {
        ok(&r#"{"operation":{"id":"op-1","status":"STATUS","definitionName":"add_rooms","executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"Created"},{"createdAt":"2026-11-15T09:06:48Z","event":"1 of 3 rooms started"},{"createdAt":"2026-11-15T09:06:49Z","event":"the end"}]}}"#
            .replace("STATUS", status))
    };
    for (status, expected) in [
        (
            "finished",
            expect![[r#"
                > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
                > GET /schedulers/arena/operations/op-1?view=full
                operation op-1 finished: the end
                stderr: 2026-11-15T09:06:47Z Created
                stderr: 2026-11-15T09:06:48Z 1 of 3 rooms started
                stderr: 2026-11-15T09:06:49Z the end
            "#]],
        ),
        (
            "error",
            expect![[r#"
                > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
                > GET /schedulers/arena/operations/op-1?view=full
                stderr: 2026-11-15T09:06:47Z Created
                stderr: 2026-11-15T09:06:48Z 1 of 3 rooms started
                stderr: 2026-11-15T09:06:49Z the end
                stderr: error: add_rooms op-1 ended as error: the end
                exit 1
            "#]],
        ),
        (
            "canceled",
            expect![[r#"
                > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
                > GET /schedulers/arena/operations/op-1?view=full
                stderr: 2026-11-15T09:06:47Z Created
                stderr: 2026-11-15T09:06:48Z 1 of 3 rooms started
                stderr: 2026-11-15T09:06:49Z the end
                stderr: error: add_rooms op-1 ended as canceled: the end
                exit 1
            "#]],
        ),
        (
            "evicted",
            expect![[r#"
                > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
                > GET /schedulers/arena/operations/op-1?view=full
                stderr: 2026-11-15T09:06:47Z Created
                stderr: 2026-11-15T09:06:48Z 1 of 3 rooms started
                stderr: 2026-11-15T09:06:49Z the end
                stderr: error: add_rooms op-1 ended as evicted: the end
                exit 1
            "#]],
        ),
    ] {
        let script = vec![started.clone(), running.clone(), ended(status)];
        check(script, "room add arena 3 --wait", &expected);
    }
    check(
        vec![started.clone(), ended("error")],
        "room add arena 3 --wait -o json",
        &expect![[r#"
            > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
            > GET /schedulers/arena/operations/op-1?view=full
            {
              "operation": {
                "id": "op-1",
                "status": "error",
                "definitionName": "add_rooms",
                "executionHistory": [
                  {
                    "createdAt": "2026-11-15T09:06:47Z",
                    "event": "Created"
                  },
                  {
                    "createdAt": "2026-11-15T09:06:48Z",
                    "event": "1 of 3 rooms started"
                  },
                  {
                    "createdAt": "2026-11-15T09:06:49Z",
                    "event": "the end"
                  }
                ]
              }
            }
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:48Z 1 of 3 rooms started
            stderr: 2026-11-15T09:06:49Z the end
            stderr: error: add_rooms op-1 ended as error: the end
            exit 1
        "#]],
    );
    check(
        vec![started, running],
        "room add arena 3 --wait --timeout 300ms",
        &expect![[r#"
            > POST /schedulers/arena/add-rooms?view=full {"amount":3,"force":false}
            > GET /schedulers/arena/operations/op-1?view=full
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:48Z 1 of 3 rooms started
            stderr: error: operation op-1 is still in_progress after 300ms; it continues: maestro operation watch arena op-1
            exit 6
        "#]],
    );
}
