use expect_test::expect;

use crate::server::{answer, ok, refusal, text};
use crate::{check, check_stdin, long_ago};

const ARENA: &str = r#"{"scheduler":{"name":"arena","game":"brawl","state":"STATE","portRange":{"start":20000,"end":29999},"createdAt":"2026-11-15T09:06:47.339752Z","maxSurge":"25%","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:1","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}}"#;

pub(crate) fn arena(state: &str) -> String {
    ARENA.replace("STATE", state)
}

#[test]
fn list() {
    let schedulers = r#"{"schedulers":[
        {"name":"arena","game":"brawl","state":"in-sync","version":"v1.0.0","portRange":{"start":1,"end":2},"createdAt":"AGO","maxSurge":"25%","roomsReplicas":12,"roomsReady":8,"roomsOccupied":4,"roomsPending":0,"roomsTerminating":0,"roomsWanted":12},
        {"name":"broken","game":"brawl","state":"in-sync","version":"v1.0.0","portRange":{"start":1,"end":2},"createdAt":"AGO","maxSurge":"25%","roomsReplicas":3,"roomsReady":0,"roomsOccupied":0,"roomsPending":1,"roomsTerminating":0,"roomsWanted":3,"problem":{"word":"crashing","reason":"rooms end before they are ready; the latest, broken-1: container room exited with code 1","room":"broken-1"}},
        {"name":"races","game":"brawl","state":"in-sync","version":"v1.0.0","createdAt":"AGO","roomsReplicas":3,"roomsReady":7,"roomsOccupied":2,"roomsPending":1,"roomsTerminating":0,"roomsWanted":9,"autoscaling":{"enabled":true,"min":1,"max":20,"cooldown":0}},
        {"name":"open","game":"brawl","state":"in-sync","version":"v1.0.0","createdAt":"AGO","roomsReplicas":3,"roomsReady":7,"roomsOccupied":2,"roomsPending":1,"roomsTerminating":0,"roomsWanted":9,"autoscaling":{"enabled":true,"min":5,"max":-1,"cooldown":0}},
        {"name":"a-much-longer-name","game":"brawl","state":"creating","version":"v12.0.0","portRange":null,"createdAt":"0001-01-01T00:00:00Z","maxSurge":"5","roomsReplicas":100}]}"#;
    let schedulers = schedulers.replace("AGO", &long_ago());
    check(
        vec![ok(&schedulers)],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            NAME                GAME   STATE     VERSION  READY  OCCUPIED  REPLICAS  AUTOSCALING  AGE   PROBLEM
            arena               brawl  in-sync   v1.0.0   8/8    4         12        off          2d4h  -
            broken              brawl  in-sync   v1.0.0   0/3    0         3         off          2d4h  crashing: rooms end before they are ready; the latest, broken-1: container room exited with code 1
            races               brawl  in-sync   v1.0.0   7/7    2         3         1 to 20      2d4h  -
            open                brawl  in-sync   v1.0.0   7/7    2         3         5 and up     2d4h  -
            a-much-longer-name  brawl  creating  v12.0.0  -      -         100       off          -     -
        "#]],
    );
    check(
        vec![ok(r#"{"schedulers":[]}"#)],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            NAME  GAME  STATE  VERSION  READY  OCCUPIED  REPLICAS  AUTOSCALING  AGE  PROBLEM
            stderr: no schedulers; create one: maestro scheduler create -f FILE
        "#]],
    );
    check(
        vec![ok(r#"{"schedulers":[]}"#)],
        "scheduler list -o json",
        &expect![[r#"
            > GET /schedulers?view=full
            {
              "schedulers": []
            }
        "#]],
    );
}

#[test]
fn get() {
    check(
        vec![ok(&arena("in-sync"))],
        "scheduler get arena",
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
        vec![ok(&arena("in-sync"))],
        "scheduler get arena --version v1.0.0 -o yaml",
        &expect![[r#"
            > GET /schedulers/arena?version=v1.0.0&view=full
            scheduler:
              name: arena
              game: brawl
              state: in-sync
              portRange:
                start: 20000
                end: 29999
              createdAt: "2026-11-15T09:06:47.339752Z"
              maxSurge: 25%
              roomsReplicas: 3
              spec:
                version: v1.0.0
                terminationGracePeriod: 5s
                containers:
                - name: room
                  image: room:1
                  imagePullPolicy: IfNotPresent
                  command:
                  - /room
                  - --map
                  - lava
                  environment: []
                  requests:
                    memory: 16Mi
                    cpu: 5m
                  limits:
                    memory: 64Mi
                    cpu: 100m
                  ports:
                  - name: game
                    protocol: udp
                    port: 7777
                    hostPort: 0
                toleration: ""
                affinity: ""
                restartPolicy: Never
              forwarders: []
              annotations: {}
              labels:
                team: a
              matchAllocation:
                maxMatches: 1
        "#]],
    );
    check(
        vec![ok(&arena("in-sync"))],
        "-o json scheduler get a/b",
        &expect![[r#"
            > GET /schedulers/a%2Fb?view=full
            {
              "scheduler": {
                "name": "arena",
                "game": "brawl",
                "state": "in-sync",
                "portRange": {
                  "start": 20000,
                  "end": 29999
                },
                "createdAt": "2026-11-15T09:06:47.339752Z",
                "maxSurge": "25%",
                "roomsReplicas": 3,
                "spec": {
                  "version": "v1.0.0",
                  "terminationGracePeriod": "5s",
                  "containers": [
                    {
                      "name": "room",
                      "image": "room:1",
                      "imagePullPolicy": "IfNotPresent",
                      "command": [
                        "/room",
                        "--map",
                        "lava"
                      ],
                      "environment": [],
                      "requests": {
                        "memory": "16Mi",
                        "cpu": "5m"
                      },
                      "limits": {
                        "memory": "64Mi",
                        "cpu": "100m"
                      },
                      "ports": [
                        {
                          "name": "game",
                          "protocol": "udp",
                          "port": 7777,
                          "hostPort": 0
                        }
                      ]
                    }
                  ],
                  "toleration": "",
                  "affinity": "",
                  "restartPolicy": "Never"
                },
                "forwarders": [],
                "annotations": {},
                "labels": {
                  "team": "a"
                },
                "matchAllocation": {
                  "maxMatches": 1
                }
              }
            }
        "#]],
    );
}

#[test]
fn info_is_the_same_list() {
    check(
        vec![ok(
            r#"{"schedulers":[{"name":"arena","game":"brawl","state":"in-sync","roomsReady":3,"roomsWanted":3}]}"#,
        )],
        "scheduler info --game brawl",
        &expect![[r#"
            > GET /schedulers?game=brawl&view=full
            NAME   GAME   STATE    VERSION  READY  OCCUPIED  REPLICAS  AUTOSCALING  AGE  PROBLEM
            arena  brawl  in-sync  -        3/3    -         -         off          -    -
        "#]],
    );
}

#[test]
fn versions() {
    let versions = r#"{"versions":[{"version":"v2.0.0","isActive":false,"createdAt":"AGO","status":"validating"},{"version":"v1.0.0","isActive":true,"createdAt":"AGO","status":"deployed"}]}"#;
    let versions = versions.replace("AGO", &long_ago());
    check(
        vec![ok(&versions)],
        "scheduler versions arena",
        &expect![[r#"
            > GET /schedulers/arena/versions?view=full
            VERSION  ACTIVE  STATUS      AGE
            v2.0.0           validating  2d4h
            v1.0.0   active  deployed    2d4h
        "#]],
    );
}

#[test]
fn create() {
    let recipe = "name: arena\ngame: brawl\nroomsReplicas: 3\n";
    check_stdin(
        vec![ok(&arena("creating"))],
        "scheduler create -f -",
        recipe,
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena","game":"brawl","roomsReplicas":3}
            scheduler arena v1.0.0 created (creating)
        "#]],
    );
    check_stdin(
        vec![ok(&arena("creating"))],
        "scheduler create -f -",
        r#"{"scheduler": {"name": "arena"}}"#,
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena"}
            scheduler arena v1.0.0 created (creating)
        "#]],
    );
}

#[test]
fn create_with_unknown_fields() {
    let recipe = "name: arena\ncolour: red\n";
    let warnings = "Content-Type: application/json\r\nWarning: 299 maestro \"unknown field colour\", 299 maestro \"unknown field spec.size\"";
    let warned = answer(200, warnings, &arena("creating"));
    check_stdin(
        vec![warned],
        "scheduler create -f - --lenient",
        recipe,
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena","colour":"red"}
            scheduler arena v1.0.0 created (creating)
            stderr: warning: unknown field colour
            stderr: warning: unknown field spec.size
        "#]],
    );
    let refused = refusal(400, "Validation Error:\ncolour: unknown field\nspec.size: unknown field");
    check_stdin(
        vec![refused],
        "scheduler create -f - --strict --lenient",
        recipe,
        &expect![[r#"
            > POST /schedulers?strict=true&view=full {"name":"arena","colour":"red"}
            stderr: error: stdin:2:1: colour: unknown field
            stderr: stdin: spec.size: unknown field
            exit 2
        "#]],
    );
}

#[test]
fn create_and_wait() {
    let none = r#"{"page":1,"pageSize":0,"total":0,"operations":[]}"#;
    let listed = r#"{"page":1,"pageSize":2,"total":2,"operations":[
        {"id":"op-new","status":"in_progress","definitionName":"create_scheduler","createdAt":"2026-11-15T09:06:47Z"},
        {"id":"op-old","status":"finished","definitionName":"create_scheduler","createdAt":"2026-11-14T09:06:47Z"},
        {"id":"op-other","status":"finished","definitionName":"health_controller","createdAt":"2026-11-15T09:07:47Z"}]}"#;
    let ended = r#"{"operation":{"id":"op-new","status":"finished","definitionName":"create_scheduler","executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"Created"},{"createdAt":"2026-11-15T09:06:48Z","event":"Operation finished"}]}}"#;
    let fleet = |ready: u32, problem: &str| {
        let problem: serde_json::Value = serde_json::from_str(problem).unwrap();
        let row = serde_json::json!({"name": "arena", "roomsReady": ready, "roomsOccupied": 0, "roomsWanted": 3, "problem": problem});
        ok(&serde_json::json!({ "schedulers": [row] }).to_string())
    };
    let starting = r#"{"word":"starting","reason":"not pinged yet: 3 rooms","room":""}"#;
    let found = || vec![ok(&arena("creating")), ok(none), ok(listed), ok(none), ok(ended)];
    check_stdin(
        [found(), vec![fleet(0, starting), fleet(2, "null"), fleet(3, "null"), ok(&arena("in-sync"))]]
            .concat(),
        "scheduler create -f - --wait",
        "name: arena",
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena"}
            > GET /schedulers/arena/operations?stage=pending&view=full
            > GET /schedulers/arena/operations?stage=active&view=full
            > GET /schedulers/arena/operations?stage=final&view=full
            > GET /schedulers/arena/operations/op-new?view=full
            > GET /schedulers?name=arena&view=full
            > GET /schedulers/arena?view=full
            scheduler arena v1.0.0 created (3 of 3 rooms are ready)
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:48Z Operation finished
            stderr: 0 of 3 rooms are ready; starting: not pinged yet: 3 rooms
            stderr: 2 of 3 rooms are ready
            stderr: 3 of 3 rooms are ready
        "#]],
    );
    let crashing = |room: &str| {
        fleet(
            0,
            &format!(
                r#"{{"word":"crashing","reason":"rooms end before they are ready; the latest, {room}: exit code 3","room":"{room}"}}"#
            ),
        )
    };
    check_stdin(
        [
            found(),
            vec![crashing("arena-1"), crashing("arena-1"), crashing("arena-2"), crashing("arena-3")],
            vec![text("cannot load the map\n")],
        ]
        .concat(),
        "scheduler create -f - --wait",
        "name: arena",
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena"}
            > GET /schedulers/arena/operations?stage=pending&view=full
            > GET /schedulers/arena/operations?stage=active&view=full
            > GET /schedulers/arena/operations?stage=final&view=full
            > GET /schedulers/arena/operations/op-new?view=full
            > GET /schedulers?name=arena&view=full
            > GET /schedulers/arena/rooms/arena-3/logs?tail=5
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:48Z Operation finished
            stderr: 0 of 3 rooms are ready; crashing: rooms end before they are ready; the latest, arena-1: exit code 3
            stderr: 0 of 3 rooms are ready; crashing: rooms end before they are ready; the latest, arena-2: exit code 3
            stderr: 0 of 3 rooms are ready; crashing: rooms end before they are ready; the latest, arena-3: exit code 3
            stderr: error: scheduler arena: 0 of 3 rooms are ready: rooms end before they are ready; the latest, arena-3: exit code 3
            stderr:   | cannot load the map
            stderr: its log: maestro room logs arena arena-3
            stderr: the scheduler keeps trying; change it with maestro scheduler apply, or remove it: maestro scheduler delete arena
            exit 1
        "#]],
    );
    let gone = vec![ok(r#"{"schedulers":[]}"#)];
    check_stdin(
        [found(), gone].concat(),
        "scheduler create -f - --wait",
        "name: arena",
        &expect![[r#"
        > POST /schedulers?view=full {"name":"arena"}
        > GET /schedulers/arena/operations?stage=pending&view=full
        > GET /schedulers/arena/operations?stage=active&view=full
        > GET /schedulers/arena/operations?stage=final&view=full
        > GET /schedulers/arena/operations/op-new?view=full
        > GET /schedulers?name=arena&view=full
        stderr: 2026-11-15T09:06:47Z Created
        stderr: 2026-11-15T09:06:48Z Operation finished
        stderr: error: scheduler arena is gone
        exit 3
    "#]],
    );
}

#[test]
fn a_server_that_names_the_creation_is_believed() {
    let named = arena("creating").replacen('{', r#"{"operationId":"op-1","#, 1);
    let failed = r#"{"operation":{"id":"op-1","status":"error","definitionName":"create_scheduler","reason":"no port is left in 20000 to 29999","executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"Created"}]}}"#;
    check_stdin(
        vec![ok(&named), ok(failed)],
        "scheduler create -f - --wait",
        "name: arena",
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena"}
            > GET /schedulers/arena/operations/op-1?view=full
            stderr: 2026-11-15T09:06:47Z Created
            stderr: error: create_scheduler op-1 ended as error: no port is left in 20000 to 29999
            exit 1
        "#]],
    );
}

#[test]
fn delete() {
    let started = r#"{"operationId":"op-9"}"#;
    let ended = r#"{"operation":{"id":"op-9","status":"finished","definitionName":"delete_scheduler","reason":"3 rooms removed","executionHistory":[]}}"#;
    check(
        vec![ok(started)],
        "scheduler delete arena",
        &expect![[r#"
            > DELETE /schedulers/arena?view=full
            operation op-9 enqueued: delete scheduler arena
        "#]],
    );
    check(
        vec![ok(started), ok(ended)],
        "scheduler delete arena --wait",
        &expect![[r#"
            > DELETE /schedulers/arena?view=full
            > GET /schedulers/arena/operations/op-9?view=full
            operation op-9 finished: 3 rooms removed
        "#]],
    );
    check(
        vec![ok(started), ok(ended)],
        "scheduler delete arena --wait -o yaml",
        &expect![[r#"
            > DELETE /schedulers/arena?view=full
            > GET /schedulers/arena/operations/op-9?view=full
            operation:
              id: op-9
              status: finished
              definitionName: delete_scheduler
              reason: 3 rooms removed
              executionHistory: []
        "#]],
    );
    check(
        vec![refusal(404, "scheduler nope not found")],
        "scheduler delete nope",
        &expect![[r#"
            > DELETE /schedulers/nope?view=full
            stderr: error: scheduler nope not found
            exit 3
        "#]],
    );
}
