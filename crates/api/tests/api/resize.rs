//! Another size, or one room more, asked for over the wire: what is accepted, what is refused, and that a refusal
//! changes nothing.

use maestro_engine::Parts;
use serde_json::{Value, json};

use crate::support::{Reply, World, recipe};

const RESIZE: &str = "/schedulers/arena/resize";
const ROOMS: &str = "/schedulers/arena/rooms";

/// A fleet of 4 with nobody at work, so that what was asked for can be seen before anything is done.
async fn arena() -> World {
    let world = World::with_regions(&["RegionOne", "RegionTwo"]);
    world.post("/schedulers", &recipe("arena", 4)).await.ok();
    world
}

async fn operation(world: &World, id: &str) -> Value {
    let path = format!("/schedulers/arena/operations/{id}?view=full");
    world.get(&path).await.ok()["operation"].clone()
}

/// All that a request could have changed.
async fn recorded(world: &World) -> Vec<Value> {
    let mut recorded = Vec::new();
    for path in ["/schedulers/info", "/schedulers/arena/operations?stage=pending&view=full"] {
        recorded.push(world.get(path).await.ok());
    }
    recorded
}

async fn check_refused(world: &World, path: &str, body: &str, message: &str) {
    let before = recorded(world).await;
    let reply: Reply = world.ask("POST", path, body.to_owned()).await;
    reply.refused(400, 3, message);
    assert_eq!(recorded(world).await, before, "{body}");
}

#[tokio::test(start_paused = true)]
async fn what_a_resize_comes_to() {
    for (asked, change, reason) in [
        (json!({"adjustment_type": "EXACT_CAPACITY", "number": 7}), json!({"create": 3}), "fleet size 4 → 7"),
        (json!({"adjustment_type": "EXACT_CAPACITY", "number": 0}), json!({"delete": 4}), "fleet size 4 → 0"),
        (
            json!({"adjustment_type": "CHANGE_IN_CAPACITY", "number": -3}),
            json!({"delete": 3}),
            "fleet size 4 → 1",
        ),
        (
            json!({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 62.5, "min_step": 1}),
            json!({"create": 2}),
            "fleet size 4 → 6",
        ),
        (
            json!({"adjustment_type": "CHANGE_IN_CAPACITY", "number": "5", "max_size": 6, "strict": false}),
            json!({"create": 2}),
            "fleet size 4 → 6",
        ),
        (json!({"min_size": 6, "strict": false}), json!({"create": 2}), "fleet size 4 → 6"),
        // Without `strict`, and where it is null, what is beyond the bounds of the request is not carried out.
        (
            json!({"adjustment_type": "EXACT_CAPACITY", "number": 9, "max_size": 6, "strict": null}),
            json!({"invalid": "The target capacity (9) is greater than the specified max_size (6)."}),
            "fleet size 4 → 4",
        ),
        (
            json!({"adjustment_type": "EXACT_CAPACITY", "number": 9, "max_size": 6}),
            json!({"invalid": "The target capacity (9) is greater than the specified max_size (6)."}),
            "fleet size 4 → 4",
        ),
    ] {
        let world = arena().await;
        let id = world.enqueue(RESIZE, &asked).await;
        let operation = operation(&world, &id).await;
        assert_eq!(operation["definitionName"], "resize");
        assert_eq!(operation["input"], json!({"asked": asked, "change": change}));
        assert_eq!(operation["reason"], format!("asked for by anonymous; {reason}"), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn both_spellings_of_a_name_are_read() {
    let world = arena().await;
    let body = json!({"adjustmentType": "CHANGE_IN_PERCENTAGE", "number": 50, "minStep": 3});
    let id = world.enqueue(RESIZE, &body).await;
    assert_eq!(operation(&world, &id).await["input"]["change"], json!({"create": 3}));
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_makes_no_sense_is_refused_by_field() {
    let world = arena().await;
    let types = "EXACT_CAPACITY, CHANGE_IN_CAPACITY, CHANGE_IN_PERCENTAGE";
    for (body, reason) in [
        ("{}", "number: is missing, and no other field gives a size".to_owned()),
        (r#"{"number":5}"#, format!("adjustment_type: is missing; one of {types} is needed")),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY"}"#,
            "number: is missing; adjustment_type needs one".to_owned(),
        ),
        (
            r#"{"adjustment_type":"TWICE","number":5}"#,
            format!("adjustment_type: \"TWICE\" is not one of {types}"),
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":-1}"#,
            "number: -1 is not at least 0".to_owned(),
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":1.5}"#,
            "number: 1.5 is not a whole number, which it must be unless adjustment_type is CHANGE_IN_PERCENTAGE"
                .to_owned(),
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":true,"strict":"yes"}"#,
            "number: true is not a number\nstrict: \"yes\" is not true, false or null".to_owned(),
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":"many"}"#,
            "number: \"many\" is not a decimal number; write it as 12 or 12.5".to_owned(),
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":5,"min_step":2}"#,
            "min_step: goes with adjustment_type CHANGE_IN_PERCENTAGE only".to_owned(),
        ),
        (
            r#"{"adjustment_type":"CHANGE_IN_PERCENTAGE","number":5,"min_step":-2}"#,
            "min_step: -2 is not at least 0".to_owned(),
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":5,"min_size":-1,"max_size":-2}"#,
            "min_size: -1 is not at least 0\nmax_size: -2 is not at least 0; -1 means no limit".to_owned(),
        ),
    ] {
        check_refused(&world, RESIZE, body, &format!("Validation Error:\n{reason}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_types_and_too_many_are_refused_too() {
    let world = arena().await;
    for (body, message) in [
        (
            r#"{"min_size":"few"}"#,
            "min_size: invalid value: string \"few\", expected a whole number of 32 bits at line 1 column 17",
        ),
        (
            r#"{"adjustment_type":7,"number":5}"#,
            "adjustment_type: invalid type: integer `7`, expected a string at line 1 column 20",
        ),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":5,"force":"no"}"#,
            "force: invalid type: string \"no\", expected a boolean at line 1 column 59",
        ),
        ("[]", "body: invalid type: sequence, expected an object at line 1 column 2"),
        (
            r#"{"adjustment_type":"EXACT_CAPACITY","number":5000}"#,
            "number: 4996 is above the limit of 1000 (operations.rooms.add.limit)",
        ),
    ] {
        check_refused(&world, RESIZE, body, message).await;
    }
    let reply = world.post("/schedulers/nope/resize", &json!({"min_size": 1})).await;
    reply.refused(404, 5, "scheduler nope not found");
}

#[tokio::test(start_paused = true)]
async fn a_room_in_a_region_of_ones_choice() {
    let mut world = arena().await;
    world.start(Parts::ALL).await;
    world.settle("arena").await;
    let id = world.enqueue(ROOMS, &json!({"region": "RegionTwo"})).await;
    world.settle("arena").await;
    let named = operation(&world, &id).await;
    assert_eq!((&named["status"], &named["input"]), (&json!("finished"), &json!({"region": "RegionTwo"})));
    let expected = json!({"status": "OK", "creation": {"count": 1, "regions": {"RegionTwo": 1}}});
    assert_eq!(named["data"], expected);
    // Without one the policies say where.
    let id = world.enqueue(ROOMS, &json!({})).await;
    world.settle("arena").await;
    let expected = json!({"status": "OK", "creation": {"count": 1, "regions": {"RegionOne": 1}}});
    assert_eq!(operation(&world, &id).await["data"], expected);
    assert_eq!(world.runtimes["RegionOne"].rooms().len(), 3);
    assert_eq!(world.runtimes["RegionTwo"].rooms().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_region_by_name_keeps_its_cap() {
    let world = World::running_with_regions(&["RegionOne", "RegionTwo"]).await;
    let mut recipe = recipe("arena", 4);
    recipe["placement"] =
        json!({"regions": [{"name": "RegionOne", "cap": 3}, {"name": "RegionTwo", "cap": 2}]});
    world.post("/schedulers", &recipe).await.ok();
    world.settle("arena").await;
    let id = world.enqueue(ROOMS, &json!({"region": "RegionTwo"})).await;
    world.settle("arena").await;
    let refused = json!({"status": "ERROR", "reason": "There is no feasible plan to handle all nodes."});
    assert_eq!(operation(&world, &id).await["data"], refused);
    world.enqueue(ROOMS, &json!({"region": "RegionOne"})).await;
    world.settle("arena").await;
    let standing = ["RegionOne", "RegionTwo"].map(|region| world.runtimes[region].rooms().len());
    assert_eq!(standing, [3, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_region_that_is_closed_gets_no_room_by_name_either() {
    let mut world = arena().await;
    world.start(Parts::ALL).await;
    world.settle("arena").await;
    world.post("/regions/RegionTwo/cordon?reason=slow", &json!({})).await.ok();
    let id = world.enqueue(ROOMS, &json!({"region": "RegionTwo"})).await;
    world.settle("arena").await;
    let operation = operation(&world, &id).await;
    assert_eq!(operation["status"], "error");
    let history = operation["executionHistory"].to_string();
    assert!(history.contains("RegionTwo is cordoned by anonymous: slow"), "{history}");
    assert_eq!(world.room_ids("arena").await.len(), 4);
    assert_eq!(world.get("/schedulers/info").await.ok()["schedulers"][0]["roomsReplicas"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_cannot_be_is_refused_by_field() {
    let world = arena().await;
    let unknown = r#"region: "mars" is not a configured region; there is RegionOne, RegionTwo"#;
    for (body, message) in [
        (r#"{"region":"mars"}"#, format!("Validation Error:\n{unknown}")),
        (
            r#"{"region":7}"#,
            "region: invalid type: integer `7`, expected a string at line 1 column 11".to_owned(),
        ),
    ] {
        check_refused(&world, ROOMS, body, &message).await;
    }
    world.post("/schedulers/nope/rooms", &json!({})).await.refused(404, 5, "scheduler nope not found");
}

#[tokio::test(start_paused = true)]
async fn without_a_number_it_is_one_and_zero_is_none() {
    let world = arena().await;
    for (action, none_given) in [("add-rooms", "fleet size 4 → 5"), ("remove-rooms", "fleet size 5 → 4")]
    {
        let path = format!("/schedulers/arena/{action}");
        let id = world.enqueue(&path, &json!({})).await;
        let operation = operation(&world, &id).await;
        assert_eq!(operation["input"]["amount"], 1);
        assert_eq!(operation["reason"], format!("asked for by anonymous; {none_given}"));
        let message = "amount must be at least 1";
        check_refused(&world, &path, r#"{"amount":0}"#, message).await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_autoscaling_on_it_takes_force() {
    let world = World::with_regions(&["RegionOne", "RegionTwo"]);
    let mut autoscaled = recipe("arena", 0);
    autoscaled["autoscaling"] = json!({
        "enabled": true, "min": 1, "max": 10,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}},
    });
    world.post("/schedulers", &autoscaled).await.ok();
    for (path, mut body) in
        [(RESIZE, json!({"adjustment_type": "EXACT_CAPACITY", "number": 3})), (ROOMS, json!({}))]
    {
        let reply = world.post(path, &body).await;
        let message = "autoscaling is on and would undo this; change autoscaling.min or autoscaling.max, turn it off, or insist \
             with --force (in the API: \"force\": true)";
        reply.refused(409, 10, message);
        body["force"] = json!(true);
        world.enqueue(path, &body).await;
    }
    // Its bounds are the fleet's.
    let body = json!({"adjustment_type": "EXACT_CAPACITY", "number": 11, "force": true});
    let id = world.enqueue(RESIZE, &body).await;
    let invalid = "The target capacity (11) is greater than the cluster's max_size (10).";
    assert_eq!(operation(&world, &id).await["input"]["change"], json!({"invalid": invalid}));
}
