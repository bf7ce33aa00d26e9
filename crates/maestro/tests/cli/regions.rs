use expect_test::expect;

use crate::check;
use crate::server::{Answer, ok, refusal};

fn regions() -> Answer {
    let region = |name: &str, reachable: bool, cordoned: bool, draining: bool, reason: &str| {
        serde_json::json!({
            "name": name, "reachable": reachable, "cordoned": cordoned, "draining": draining, "reason": reason,
            "capacity": null, "rooms": {"ready": 12, "occupied": 30, "pending": 1, "error": 0},
        })
    };
    let mut sized = region("us-west", true, true, true, "drained by ada@host: new machines");
    sized["capacity"] = 200.into();
    let regions = [
        region("eu-west", true, true, false, "cordoned by ada@host: slow network"),
        region("us-east", false, false, false, "cannot be reached: no answer within 10s"),
        sized,
        region("default", true, false, false, ""),
    ];
    ok(&serde_json::json!({"regions": regions}).to_string())
}

#[test]
fn list() {
    check(
        vec![regions()],
        "region list",
        &expect![[r#"
            > GET /regions?view=full
            NAME     REACHABLE  NEW ROOMS  ROOMS  READY  OCCUPIED  CAPACITY  REASON
            eu-west  yes        cordoned   43     12     30        -         cordoned by ada@host: slow network
            us-east  no         no         43     12     30        -         cannot be reached: no answer within 10s
            us-west  yes        draining   43     12     30        200       drained by ada@host: new machines
            default  yes        yes        43     12     30        -         -
        "#]],
    );
    check(
        vec![ok(r#"{"regions":[]}"#)],
        "region list -o json",
        &expect![[r#"
        > GET /regions?view=full
        {
          "regions": []
        }
    "#]],
    );
}

#[test]
fn orders() {
    check(
        vec![ok("{}")],
        "region cordon eu-west --reason slow-network",
        &expect![[r#"
        > POST /regions/eu-west/cordon?reason=slow-network&view=full {}
        region eu-west cordoned
    "#]],
    );
    check(
        vec![ok("{}")],
        "region uncordon eu-west",
        &expect![[r#"
        > POST /regions/eu-west/uncordon?view=full {}
        region eu-west uncordoned
    "#]],
    );
    check(
        vec![ok("{}")],
        "region drain eu-west --reason old -o json",
        &expect![[r#"
        > POST /regions/eu-west/drain?reason=old&view=full {}
        {}
    "#]],
    );
    check(
        vec![ok("{}")],
        "region confirm-lost eu-west --reason gone",
        &expect![[r#"
        > POST /regions/eu-west/confirm-lost?reason=gone&view=full {}
        region eu-west confirmed lost: the rooms that stopped pinging together are being removed
    "#]],
    );
    check(
        vec![refusal(
            409,
            "region eu-west has no rooms that stopped pinging together; there is nothing to confirm",
        )],
        "region confirm-lost eu-west",
        &expect![[r#"
            > POST /regions/eu-west/confirm-lost?view=full {}
            stderr: error: region eu-west has no rooms that stopped pinging together; there is nothing to confirm
            exit 4
        "#]],
    );
    check(
        vec![refusal(404, "region mars not found; there are: eu-west, us-east")],
        "region drain mars",
        &expect![[r#"
            > POST /regions/mars/drain?view=full {}
            stderr: error: region mars not found; there are: eu-west, us-east
            exit 3
        "#]],
    );
    check(
        vec![],
        "region cordon",
        &expect![[r#"
            stderr: error: the following required arguments were not provided:
            stderr:   <NAME>
            stderr: 
            stderr: Usage: maestro region cordon <NAME>
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}
