use expect_test::expect;

use crate::schedulers::arena;
use crate::server::{ok, refusal};
use crate::versions::{VERSIONS, recipe};
use crate::{check, check_stdin};

/// As many digits as a recipe may have, from a file to what is shown.
#[test]
fn digits_of_decimals() {
    let occupancy = |target: &str| {
        let policy =
            format!(r#""type":"roomOccupancy","parameters":{{"roomOccupancy":{{"readyTarget":{target}}}}}"#);
        let autoscaling =
            format!(r#""autoscaling":{{"enabled":true,"min":1,"max":9,"policy":{{{policy}}}}},"labels""#);
        recipe(&[(r#""labels""#, &autoscaling)])
    };
    let known = || vec![ok(&occupancy("0.123456789012345678")), ok(VERSIONS)];
    for (target, expected) in [
        (
            "0.123456789012345678",
            expect![[r#"
                > GET /schedulers/arena?view=full
                > GET /schedulers/arena/versions?view=full
                scheduler arena v1.0.0 is unchanged
            "#]],
        ),
        (
            "0.123456789012345679",
            expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            FIELD                                                    CHANGE  FROM                  TO
            autoscaling.policy.parameters.roomOccupancy.readyTarget  minor   0.123456789012345678  0.123456789012345679

            scheduler arena v1.0.0 → v1.1.0: a minor change, rooms stay as they are
            exit 1
        "#]],
        ),
    ] {
        check_stdin(known(), "scheduler diff -f -", &occupancy(target), &expected);
    }
    check(
        known(),
        "scheduler get arena -o yaml",
        &expect![[r#"
        > GET /schedulers/arena?view=full
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
          autoscaling:
            enabled: true
            min: 1
            max: 9
            policy:
              type: roomOccupancy
              parameters:
                roomOccupancy:
                  readyTarget: "0.123456789012345678"
          labels:
            team: a
          matchAllocation:
            maxMatches: 1
    "#]],
    );
}

#[test]
fn diff() {
    let known = || vec![ok(&arena("in-sync")), ok(VERSIONS)];
    check_stdin(
        known(),
        "scheduler diff -f -",
        &arena("in-sync"),
        &expect![[r#"
        > GET /schedulers/arena?view=full
        > GET /schedulers/arena/versions?view=full
        scheduler arena v1.0.0 is unchanged
    "#]],
    );
    let changed = recipe(&[
        ("room:1", "room:2"),
        ("25%", "5"),
        (r#""team":"a""#, r#""team":"a","example.com/tier":"gold""#),
        (r#""forwarders":[]"#, r#""rollout":{"maxFailures":2}"#),
    ]);
    check_stdin(
        known(),
        "scheduler diff -f -",
        &changed,
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            FIELD                       CHANGE  FROM    TO
            maxSurge                    minor   25%     5
            rollout.maxFailures         minor   5       2
            spec.containers[0].image    major   room:1  room:2
            labels["example.com/tier"]  major   -       gold

            scheduler arena v1.0.0 → v2.0.0: a major change, rooms are replaced
            exit 1
        "#]],
    );
    let minor = recipe(&[("25%", "5")]);
    check_stdin(
        known(),
        "scheduler diff -f - -o json",
        &minor,
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            {
              "scheduler": "arena",
              "change": "minor",
              "from": "v1.0.0",
              "to": "v1.1.0",
              "fields": [
                {
                  "path": "maxSurge",
                  "change": "minor",
                  "from": "25%",
                  "to": "5"
                }
              ]
            }
            exit 1
        "#]],
    );
    check_stdin(
        vec![refusal(404, "scheduler arena not found")],
        "scheduler diff -f -",
        &minor,
        &expect![[r#"
            > GET /schedulers/arena?view=full
            scheduler arena does not exist: it would be created as v1.0.0
            exit 1
        "#]],
    );
}

/// Senlin's documents are compared as what they say, like everything else in a recipe.
#[test]
fn diff_of_policy_documents() {
    let documents = r#""policies":[{"type":"senlin.policy.deletion","version":1.0,"properties":{"criteria":"RANDOM"}}],"labels""#;
    check_stdin(
        vec![ok(&arena("in-sync")), ok(VERSIONS)],
        "scheduler diff -f -",
        &recipe(&[(r#""labels""#, documents)]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            FIELD     CHANGE  FROM  TO
            deletion  minor   -     {"criteria":"RANDOM"}

            scheduler arena v1.0.0 → v1.1.0: a minor change, rooms stay as they are
            exit 1
        "#]],
    );
}

#[test]
fn diff_of_what_is_wrong() {
    let wrong = recipe(&[("25%", "0%"), (r#""game":"brawl""#, r#""game":"""#)]);
    check_stdin(
        vec![],
        "scheduler diff -f -",
        &wrong,
        &expect![[r#"
            stderr: error: stdin:1:30: game: is missing; the name of the game that the rooms run is needed
            stderr: stdin:1:140: maxSurge: "0%" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1
            exit 2
        "#]],
    );
    let wrong_type = recipe(&[(r#""25%""#, "true")]);
    check_stdin(
        vec![],
        "scheduler diff -f -",
        &wrong_type,
        &expect![[r#"
            stderr: error: stdin:1:145: maxSurge: invalid type: boolean `true`, expected a string
            exit 2
        "#]],
    );
    let unknown = recipe(&[(r#""game":"brawl""#, r#""game":"brawl","colour":"red""#)]);
    check_stdin(
        vec![ok(&arena("in-sync")), ok(VERSIONS)],
        "scheduler diff -f -",
        &unknown,
        &expect![[r#"
            stderr: error: stdin:1:45: unknown field colour
            stderr: nothing was changed; --lenient submits a recipe with unknown fields
            exit 2
        "#]],
    );
    check_stdin(
        vec![ok(&arena("in-sync")), ok(VERSIONS)],
        "scheduler diff -f - --lenient",
        &unknown,
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            scheduler arena v1.0.0 is unchanged
            stderr: warning: unknown field colour
        "#]],
    );
}
