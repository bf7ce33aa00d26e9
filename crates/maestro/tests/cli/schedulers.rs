use expect_test::expect;

use crate::server::{answer, ok, refusal};
use crate::{check, check_stdin, long_ago};

const ARENA: &str = r#"{"scheduler":{"name":"arena","game":"brawl","state":"STATE","portRange":{"start":20000,"end":29999},"createdAt":"2026-11-15T09:06:47.339752Z","maxSurge":"25%","roomsReplicas":3,"spec":{"version":"v1.0.0","terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:1","imagePullPolicy":"IfNotPresent","command":["/room","--map","lava"],"environment":[],"requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{"team":"a"},"matchAllocation":{"maxMatches":1}}}"#;

pub(crate) fn arena(state: &str) -> String {
    ARENA.replace("STATE", state)
}

#[test]
fn list() {
    let schedulers = r#"{"schedulers":[
        {"name":"arena","game":"brawl","state":"in-sync","version":"v1.0.0","portRange":{"start":1,"end":2},"createdAt":"AGO","maxSurge":"25%","roomsReplicas":3},
        {"name":"a-much-longer-name","game":"brawl","state":"creating","version":"v12.0.0","portRange":null,"createdAt":"0001-01-01T00:00:00Z","maxSurge":"5","roomsReplicas":100}]}"#;
    let schedulers = schedulers.replace("AGO", &long_ago());
    check(
        vec![ok(&schedulers)],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            NAME                GAME   STATE     VERSION  REPLICAS  MAX SURGE  AGE
            arena               brawl  in-sync   v1.0.0   3         25%        2d4h
            a-much-longer-name  brawl  creating  v12.0.0  100       5          -
        "#]],
    );
    check(
        vec![ok(r#"{"schedulers":[]}"#)],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            NAME  GAME  STATE  VERSION  REPLICAS  MAX SURGE  AGE
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
fn info() {
    let info = r#"{"schedulers":[
        {"name":"arena","game":"brawl","state":"in-sync","roomsReplicas":3,"roomsReady":3,"roomsOccupied":0,"roomsPending":0,"roomsTerminating":0,"autoscaling":null},
        {"name":"races","game":"brawl","state":"in-sync","roomsReplicas":3,"roomsReady":7,"roomsOccupied":2,"roomsPending":1,"roomsTerminating":0,"autoscaling":{"enabled":true,"min":1,"max":20,"cooldown":0}},
        {"name":"open","game":"brawl","state":"in-sync","roomsReplicas":3,"roomsReady":7,"roomsOccupied":2,"roomsPending":1,"roomsTerminating":0,"autoscaling":{"enabled":true,"min":5,"max":-1,"cooldown":0}}]}"#;
    check(
        vec![ok(info)],
        "scheduler info --game brawl",
        &expect![[r#"
            > GET /schedulers/info?game=brawl&view=full
            NAME   GAME   STATE    REPLICAS  READY  OCCUPIED  PENDING  TERMINATING  AUTOSCALING
            arena  brawl  in-sync  3         3      0         0        0            off
            races  brawl  in-sync  3         7      2         1        0            1 to 20
            open   brawl  in-sync  3         7      2         1        0            5 and up
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
            stderr: error: Validation Error:
            stderr: colour: unknown field
            stderr: spec.size: unknown field
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
    check_stdin(
        vec![ok(&arena("creating")), ok(none), ok(listed), ok(none), ok(ended), ok(&arena("in-sync"))],
        "scheduler create -f - --wait",
        "name: arena",
        &expect![[r#"
            > POST /schedulers?view=full {"name":"arena"}
            > GET /schedulers/arena/operations?stage=pending&view=full
            > GET /schedulers/arena/operations?stage=active&view=full
            > GET /schedulers/arena/operations?stage=final&view=full
            > GET /schedulers/arena/operations/op-new?view=full
            > GET /schedulers/arena?view=full
            scheduler arena v1.0.0 created (in-sync)
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:48Z Operation finished
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
            stderr: last event: Created
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
