use expect_test::expect;

use crate::server::{ok, refusal};
use crate::{check, check_local, maestro};

#[test]
fn sizes_and_changes() {
    let enqueued = || vec![ok(r#"{"operationId":"op-1"}"#)];
    check(
        enqueued(),
        "scheduler resize arena 10",
        &expect![[r#"
        > POST /schedulers/arena/resize?view=full {"adjustment_type":"EXACT_CAPACITY","number":10,"strict":true,"force":false}
        operation op-1 enqueued: resize arena to 10
    "#]],
    );
    check(
        enqueued(),
        "scheduler resize arena +5 --max-size 20 --no-strict",
        &expect![[r#"
        > POST /schedulers/arena/resize?view=full {"adjustment_type":"CHANGE_IN_CAPACITY","number":5,"max_size":20,"strict":false,"force":false}
        operation op-1 enqueued: resize arena by +5
    "#]],
    );
    check(
        enqueued(),
        "scheduler resize arena -3 --min-size 1 --force",
        &expect![[r#"
        > POST /schedulers/arena/resize?view=full {"adjustment_type":"CHANGE_IN_CAPACITY","number":-3,"min_size":1,"strict":true,"force":true}
        operation op-1 enqueued: resize arena by -3
    "#]],
    );
    check(
        enqueued(),
        "scheduler resize arena -12.5% --min-step 2",
        &expect![[r#"
        > POST /schedulers/arena/resize?view=full {"adjustment_type":"CHANGE_IN_PERCENTAGE","number":-12.5,"min_step":2,"strict":true,"force":false}
        operation op-1 enqueued: resize arena by -12.5%
    "#]],
    );
}

#[test]
fn waited_for() {
    let ended = r#"{"operation":{"id":"op-1","status":"error","definitionName":"resize","executionHistory":[{"createdAt":"2026-11-15T09:06:47Z","event":"Created"},{"createdAt":"2026-11-15T09:06:49Z","event":"the end"}],"data":{"status":"ERROR","reason":"There is no feasible plan to handle all nodes."}}}"#;
    check(
        vec![ok(r#"{"operationId":"op-1"}"#), ok(ended)],
        "scheduler resize arena 10 --max-size 5 --wait --timeout 5s",
        &expect![[r#"
            > POST /schedulers/arena/resize?view=full {"adjustment_type":"EXACT_CAPACITY","number":10,"max_size":5,"strict":true,"force":false}
            > GET /schedulers/arena/operations/op-1?view=full
            stderr: 2026-11-15T09:06:47Z Created
            stderr: 2026-11-15T09:06:49Z the end
            stderr: error: resize op-1 ended as error: the end
            stderr: refused: There is no feasible plan to handle all nodes.
            exit 1
        "#]],
    );
}

#[test]
fn what_is_no_size() {
    check_local(
        maestro("scheduler resize arena many"),
        &expect![[r#"
        stderr: error: invalid value 'many' for '<N>': write it as 10, +5, -3, +20% or -12.5%
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check_local(
        maestro("scheduler resize arena 20%"),
        &expect![[r#"
        stderr: error: invalid value '20%' for '<N>': write +20% or -20%
        stderr: 
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    let refused =
        refusal(400, "Validation Error:\nmin_step: goes with adjustment_type CHANGE_IN_PERCENTAGE only");
    check(
        vec![refused],
        "scheduler resize arena 10 --min-step 2",
        &expect![[r#"
        > POST /schedulers/arena/resize?view=full {"adjustment_type":"EXACT_CAPACITY","number":10,"min_step":2,"strict":true,"force":false}
        stderr: error: Validation Error:
        stderr: min_step: goes with adjustment_type CHANGE_IN_PERCENTAGE only
        exit 2
    "#]],
    );
}
