//! What people get wrong, and what they are told.

use expect_test::expect;

use crate::server::{json, ok};
use crate::{check, check_local, maestro};

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
fn the_wrong_port() {
    let not_found = || json(404, r#"{"code":5,"message":"Not Found","details":[]}"#);
    let not_allowed = json(405, r#"{"code":12,"message":"Method Not Allowed","details":[]}"#);
    check(
        vec![not_found(), not_allowed],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            > GET /scheduler/x/rooms/x/ping
            stderr: error: http://SERVER is the API that rooms talk to (roomsApi.port); --url must name the management API (managementApi.port, 8080 by default)
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
            stderr: error: http://SERVER is the internal API for health checks and metrics (internalApi.port); --url must name the management API (managementApi.port, 8080 by default)
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
