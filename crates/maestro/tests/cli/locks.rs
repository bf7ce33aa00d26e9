use expect_test::expect;

use crate::server::{Answer, answer, ok, refusal};
use crate::{check, long_ago};

fn locks() -> Answer {
    let free = |kind: &str| {
        serde_json::json!({
            "key": format!("maestro-lock-key-arena-{kind}"), "ttlInSec": 0, "isLocked": false, "kind": kind,
            "owner": null, "operationId": null, "reason": null, "fencingToken": null, "acquiredAt": null,
        })
    };
    let mut rollout = free("config");
    rollout["isLocked"] = true.into();
    rollout["ttlInSec"] = (-1).into();
    rollout["owner"] = "rollout v2.0.0".into();
    rollout["acquiredAt"] = long_ago().into();
    rollout["reason"] = "rooms are replaced".into();
    let mut removal = free("downscaling");
    removal["isLocked"] = true.into();
    removal["ttlInSec"] = 27.into();
    removal["owner"] = "remove_rooms op-1".into();
    removal["acquiredAt"] = long_ago().into();
    removal["reason"] = "-3".into();
    removal["waiters"] = serde_json::json!([{"owner": "remove_rooms op-2"}, {"owner": "remove_rooms op-3"}]);
    ok(&serde_json::json!([rollout, free("scale"), free("termination"), removal]).to_string())
}

fn released() -> Answer {
    answer(204, "X-Request-Id: 1", "")
}

#[test]
fn list() {
    check(
        vec![locks()],
        "lock list arena",
        &expect![[r#"
        > GET /schedulers/arena/locks?view=full
        KIND         LOCKED  OWNER              SINCE  TTL     WAITING  REASON
        config       yes     rollout v2.0.0     2d4h   no end  -        rooms are replaced
        scale        no      -                  -      -       -        -
        termination  no      -                  -      -       -        -
        downscaling  yes     remove_rooms op-1  2d4h   27s     2        -3
    "#]],
    );
    check(
        vec![ok("[]")],
        "lock list arena -o json",
        &expect![[r#"
        > GET /schedulers/arena/locks?view=full
        []
    "#]],
    );
    check(
        vec![ok(r#"[{"key":"maestro-lock-key-arena-config","ttlInSec":0,"isLocked":false,"owner":null}]"#)],
        "lock list arena -o yaml",
        &expect![[r#"
            > GET /schedulers/arena/locks?view=full
            - key: maestro-lock-key-arena-config
              ttlInSec: 0
              isLocked: false
              owner: null
        "#]],
    );
    check(
        vec![refusal(404, "scheduler nope not found")],
        "lock list nope",
        &expect![[r#"
        > GET /schedulers/nope/locks?view=full
        stderr: error: scheduler nope not found
        exit 3
    "#]],
    );
    check(
        vec![ok("{}")],
        "lock list arena",
        &expect![[r#"
        > GET /schedulers/arena/locks?view=full
        stderr: error: the server's answer is not a list; is this a Maestro management API?
        exit 1
    "#]],
    );
}

#[test]
fn release() {
    check(
        vec![released()],
        "lock release arena downscaling --reason it-hangs",
        &expect![[r#"
        > DELETE /schedulers/arena/locks/downscaling?reason=it-hangs
        lock downscaling of scheduler arena released
    "#]],
    );
    check(
        vec![released()],
        "lock release arena config --reason a&b --token 1841 -o json",
        &expect![[r#"
        > DELETE /schedulers/arena/locks/config?reason=a%26b&token=1841
        {}
    "#]],
    );
    check(
        vec![refusal(409, "the lock downscaling of scheduler arena now has the fencing token 9")],
        "lock release arena downscaling --reason it-hangs --token 7",
        &expect![[r#"
            > DELETE /schedulers/arena/locks/downscaling?reason=it-hangs&token=7
            stderr: error: the lock downscaling of scheduler arena now has the fencing token 9
            exit 4
        "#]],
    );
    check(
        vec![refusal(404, "scheduler nope not found")],
        "lock release nope scale --reason it-hangs",
        &expect![[r#"
            > DELETE /schedulers/nope/locks/scale?reason=it-hangs
            stderr: error: scheduler nope not found
            exit 3
        "#]],
    );
}

#[test]
fn release_needs_a_lock_and_a_reason() {
    check(
        vec![],
        "lock release arena downscaling",
        &expect![[r#"
            stderr: error: the following required arguments were not provided:
            stderr:   --reason <REASON>
            stderr: 
            stderr: Usage: maestro lock release --reason <REASON> <SCHEDULER> <KIND>
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        vec![],
        "lock release arena downscaling --reason=",
        &expect![[r#"
        stderr: error: a value is required for '--reason <REASON>' but none was supplied
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check(
        vec![],
        "lock release arena panic --reason it-hangs",
        &expect![[r#"
        stderr: error: invalid value 'panic' for '<KIND>'
        stderr:   [possible values: config, scale, termination, downscaling]
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check(
        vec![],
        "lock release arena scale --reason it-hangs --token new",
        &expect![[r#"
        stderr: error: invalid value 'new' for '--token <N>': invalid digit found in string
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}
