//! `maestro export` and `maestro import`.

use expect_test::expect;
use serde_json::{Value, json};

use crate::server::{Answer, ok, refusal};
use crate::{check, check_stdin};

fn recipe(version: &str, image: &str) -> Value {
    json!({
        "name": "arena", "game": "brawl", "maxSurge": "25%", "roomsReplicas": 3,
        "portRange": {"start": 40000, "end": 40100},
        "spec": {
            "version": version, "terminationGracePeriod": "5s",
            "containers": [{
                "name": "room", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["./room"],
                "requests": {"memory": "10Mi", "cpu": "10m"}, "limits": {"memory": "10Mi", "cpu": "10m"},
                "ports": [{"name": "game", "protocol": "udp", "port": 7777}],
            }],
        },
    })
}

fn scheduler(version: &str, image: &str) -> Answer {
    let mut scheduler = recipe(version, image);
    scheduler["state"] = "in-sync".into();
    scheduler["createdAt"] = "2026-11-15T09:06:47Z".into();
    ok(&json!({"scheduler": scheduler}).to_string())
}

fn versions() -> Answer {
    ok(r#"{"versions":[
        {"version":"v3.0.0","isActive":false,"createdAt":"2026-11-15T09:08:00Z","status":"validating","cause":""},
        {"version":"v2.0.0","isActive":true,"createdAt":"2026-11-15T09:07:00Z","status":"deployed","cause":""},
        {"version":"v1.0.0","isActive":false,"createdAt":"2026-11-15T09:06:47Z","status":"superseded","cause":"v2.0.0 came"}]}"#)
}

fn no_regions() -> Answer {
    ok(r#"{"regions":[{"name":"default","reachable":true,"cordoned":false,"draining":false,"reason":""}]}"#)
}

fn exported() -> String {
    let version = |number: &str, status: &str, image: &str| {
        json!({"version": number, "status": status, "cause": "", "createdAt": "2026-11-15T09:06:47Z",
            "recipe": recipe(number, image)})
    };
    let versions = [version("v2.0.0", "deployed", "room:2"), version("v1.0.0", "superseded", "room:1")];
    json!({
        "maestroExport": 1, "cordonedRegions": [],
        "schedulers": [{"name": "arena", "activeVersion": "v2.0.0", "fleetSize": 3, "versions": versions}],
    })
    .to_string()
}

#[test]
fn an_export_has_all_versions_that_are_over() {
    check(
        vec![versions(), scheduler("v2.0.0", "room:2"), scheduler("v1.0.0", "room:1"), no_regions()],
        "export arena -o yaml",
        &expect![[r#"
            > GET /schedulers/arena/versions?view=full
            > GET /schedulers/arena?version=v2.0.0&view=full
            > GET /schedulers/arena?version=v1.0.0&view=full
            > GET /regions?view=full
            maestroExport: 1
            cordonedRegions: []
            schedulers:
            - name: arena
              activeVersion: v2.0.0
              fleetSize: 3
              versions:
              - version: v2.0.0
                status: deployed
                cause: ""
                createdAt: "2026-11-15T09:07:00Z"
                recipe:
                  game: brawl
                  maxSurge: 25%
                  name: arena
                  portRange:
                    end: 40100
                    start: 40000
                  roomsReplicas: 3
                  spec:
                    containers:
                    - command:
                      - ./room
                      image: room:2
                      imagePullPolicy: IfNotPresent
                      limits:
                        cpu: 10m
                        memory: 10Mi
                      name: room
                      ports:
                      - name: game
                        port: 7777
                        protocol: udp
                      requests:
                        cpu: 10m
                        memory: 10Mi
                    terminationGracePeriod: 5s
                    version: v2.0.0
              - version: v1.0.0
                status: superseded
                cause: v2.0.0 came
                createdAt: "2026-11-15T09:06:47Z"
                recipe:
                  game: brawl
                  maxSurge: 25%
                  name: arena
                  portRange:
                    end: 40100
                    start: 40000
                  roomsReplicas: 3
                  spec:
                    containers:
                    - command:
                      - ./room
                      image: room:1
                      imagePullPolicy: IfNotPresent
                      limits:
                        cpu: 10m
                        memory: 10Mi
                      name: room
                      ports:
                      - name: game
                        port: 7777
                        protocol: udp
                      requests:
                        cpu: 10m
                        memory: 10Mi
                    terminationGracePeriod: 5s
                    version: v1.0.0
            stderr: scheduler arena: version v3.0.0 is validating, and left out
        "#]],
    );
}

#[test]
fn what_the_server_cannot_read_is_not_left_out_silently() {
    check(
        vec![ok(r#"{"schedulers":[{"name":"arena","state":"unreadable"}]}"#)],
        "export",
        &expect![[r#"
        > GET /schedulers?view=full
        stderr: error: the server cannot read scheduler arena; to export the others without it, name them
        exit 1
    "#]],
    );
}

#[test]
fn an_import_creates_what_is_missing() {
    check_stdin(
        vec![refusal(404, "scheduler arena not found"), ok(r#"{"operationId":"831cf1f9"}"#)],
        "import",
        &exported(),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > POST /schedulers/arena/import?view=full {"activeVersion":"v2.0.0","fleetSize":3,"versions":[{"cause":"","createdAt":"2026-11-15T09:06:47Z","recipe":{"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:2","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v2.0.0"}},"status":"deployed","version":"v2.0.0"},{"cause":"","createdAt":"2026-11-15T09:06:47Z","recipe":{"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:1","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v1.0.0"}},"status":"superseded","version":"v1.0.0"}]}
            SCHEDULER  VERSION  OUTCOME   REASON
            arena      v2.0.0   imported  -
        "#]],
    );
    check_stdin(
        vec![refusal(404, "scheduler arena not found")],
        "import --dry-run",
        &exported(),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            SCHEDULER  VERSION  OUTCOME            REASON
            arena      v2.0.0   would be imported  -
        "#]],
    );
}

#[test]
fn an_import_leaves_what_is_there() {
    check_stdin(
        vec![scheduler("v2.0.0", "room:2"), versions()],
        "import",
        &exported(),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        SCHEDULER  VERSION  OUTCOME    REASON
        arena      v2.0.0   unchanged  -
    "#]],
    );
}

#[test]
fn other_content_is_a_conflict() {
    check_stdin(
        vec![scheduler("v2.0.0", "room:7")],
        "import",
        &exported(),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        SCHEDULER  VERSION  OUTCOME   REASON
        arena      v2.0.0   conflict  there, version v2.0.0 is active, which differs by a major change
        stderr: error: nothing was imported: 1 of 1 schedulers are there with other content; with --overwrite, the active version of the file becomes a new version
        exit 4
    "#]],
    );
    check_stdin(
        vec![scheduler("v4.0.0", "room:2")],
        "import",
        &exported(),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        SCHEDULER  VERSION  OUTCOME   REASON
        arena      v2.0.0   conflict  there, version v4.0.0 is active
        stderr: error: nothing was imported: 1 of 1 schedulers are there with other content; with --overwrite, the active version of the file becomes a new version
        exit 4
    "#]],
    );
    let one_version = ok(r#"{"versions":[{"version":"v2.0.0","isActive":true,"status":"deployed"}]}"#);
    check_stdin(
        vec![scheduler("v2.0.0", "room:2"), one_version],
        "import",
        &exported(),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        SCHEDULER  VERSION  OUTCOME   REASON
        arena      v2.0.0   conflict  there, it has no version v1.0.0
        stderr: error: nothing was imported: 1 of 1 schedulers are there with other content; with --overwrite, the active version of the file becomes a new version
        exit 4
    "#]],
    );
}

#[test]
fn other_content_may_be_overwritten() {
    check_stdin(
        vec![scheduler("v2.0.0", "room:7"), ok(r#"{"operationId":"831cf1f9"}"#)],
        "import --overwrite",
        &exported(),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > POST /schedulers/arena?view=full {"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:2","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v2.0.0"}}
            SCHEDULER  VERSION  OUTCOME      REASON
            arena      v2.0.0   overwritten  -
        "#]],
    );
}

#[test]
fn a_refusal_names_the_scheduler() {
    let refused = refusal(400, "Validation Error:\nspec.region: eu-west is not configured here");
    check_stdin(
        vec![refusal(404, "scheduler arena not found"), refused],
        "import",
        &exported(),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > POST /schedulers/arena/import?view=full {"activeVersion":"v2.0.0","fleetSize":3,"versions":[{"cause":"","createdAt":"2026-11-15T09:06:47Z","recipe":{"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:2","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v2.0.0"}},"status":"deployed","version":"v2.0.0"},{"cause":"","createdAt":"2026-11-15T09:06:47Z","recipe":{"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:1","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v1.0.0"}},"status":"superseded","version":"v1.0.0"}]}
            stderr: error: arena: Validation Error:
            stderr: spec.region: eu-west is not configured here
            exit 2
        "#]],
    );
}

#[test]
fn regions_are_cordoned_first() {
    let mut export: Value = serde_json::from_str(&exported()).unwrap();
    export["cordonedRegions"] =
        json!([{"name": "default", "reason": "cordoned by ada"}, {"name": "moon", "reason": ""}]);
    let created = ok(r#"{"operationId":"831cf1f9"}"#);
    check_stdin(
        vec![refusal(404, "scheduler arena not found"), no_regions(), ok("{}"), created],
        "import",
        &export.to_string(),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /regions?view=full
            > POST /regions/default/cordon?reason=imported%3A%20cordoned%20by%20ada&view=full {}
            > POST /schedulers/arena/import?view=full {"activeVersion":"v2.0.0","fleetSize":3,"versions":[{"cause":"","createdAt":"2026-11-15T09:06:47Z","recipe":{"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:2","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v2.0.0"}},"status":"deployed","version":"v2.0.0"},{"cause":"","createdAt":"2026-11-15T09:06:47Z","recipe":{"game":"brawl","maxSurge":"25%","name":"arena","portRange":{"end":40100,"start":40000},"roomsReplicas":3,"spec":{"containers":[{"command":["./room"],"image":"room:1","imagePullPolicy":"IfNotPresent","limits":{"cpu":"10m","memory":"10Mi"},"name":"room","ports":[{"name":"game","port":7777,"protocol":"udp"}],"requests":{"cpu":"10m","memory":"10Mi"}}],"terminationGracePeriod":"5s","version":"v1.0.0"}},"status":"superseded","version":"v1.0.0"}]}
            SCHEDULER  VERSION  OUTCOME   REASON
            arena      v2.0.0   imported  -
            stderr: region default cordoned, as in the file
            stderr: region moon is cordoned in the file, and there is none here: passed over
        "#]],
    );
}

#[test]
fn other_files_are_refused_before_anything_is_asked() {
    for (file, expected) in [
        (
            "{}",
            expect![[r#"
            stderr: error: stdin: is not what maestro export writes: it has no maestroExport
            exit 2
        "#]],
        ),
        (
            r#"{"maestroExport": 2}"#,
            expect![[r#"
            stderr: error: stdin: has the format 2, and this maestro reads 1
            exit 2
        "#]],
        ),
        (
            "nonsense: [",
            expect![[r#"
            stderr: error: stdin:1:11: not valid YAML: unclosed bracket '['
            exit 2
        "#]],
        ),
        (
            r#"{"maestroExport": 1, "schedulers": [{"name": "arena", "activeVersion": "v1.0.0", "versions": []}]}"#,
            expect![[r#"
                stderr: error: stdin: schedulers[0].activeVersion: v1.0.0 is not among the versions
                exit 2
            "#]],
        ),
    ] {
        check_stdin(Vec::new(), "import", file, &expected);
    }
    let without_game = exported().replace("\"game\":\"brawl\",", "");
    check_stdin(
        Vec::new(),
        "import",
        &without_game,
        &expect![[r#"
        stderr: error: stdin: schedulers[0].versions[0].recipe.game: is missing; the name of the game that the rooms run is needed
        exit 2
    "#]],
    );
}
