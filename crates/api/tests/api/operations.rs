//! Operations on the management API: lists, one in full, cancel.

use std::time::Duration;

use axum::body::Body;
use serde_json::json;

use crate::support::{World, recipe};

async fn check(world: &World, query: &str, status: u16, message: &str) {
    let reply = world.get(&format!("/schedulers/arena/operations?{query}")).await;
    reply.refused(status, 3, message);
}

#[tokio::test(start_paused = true)]
async fn mistakes_in_a_list_are_told_in_v10s_order() {
    let world = World::standing();
    for (query, message) in [
        (
            "orderBy=a+b+c&page=0",
            "invalid sorting parameters number: write a field and an order, as in createdAt desc",
        ),
        ("order_by=created_at&page=0", "invalid sorting field: created_at; write createdAt"),
        ("orderBy=createdAt+up&page=0", "invalid sorting order: up; write asc or desc"),
        ("page=0&perPage=0", "page must be greater than 0"),
        ("perPage=0", "page size must be between 1 and 100, and is 0"),
        ("per_page=101&stage=final", "page size must be between 1 and 100, and is 101"),
        ("page=1&stage=active", "there is no pagination filter implemented for active stage"),
        ("stage=wild", "invalid stage filter: wild; write one of pending, active, final"),
        ("", "invalid stage filter: ; write one of pending, active, final"),
        (
            "stage=final&page=two",
            r#"query parameter page: invalid value: string "two", expected a whole number of 32 bits, not negative"#,
        ),
    ] {
        check(&world, query, 400, message).await;
    }
    for (query, message) in [
        (
            "status=done",
            r#"query parameter status: "done" must be one of pending, in_progress, evicted, finished, error, canceled"#,
        ),
        (
            "since=yesterday",
            r#"query parameter since: "yesterday" must be a time such as 2026-11-15T09:00:00Z"#,
        ),
        ("idPrefix=op-1", r#"query parameter idPrefix: "op-1" must be hexadecimal digits"#),
    ] {
        check(&world, &format!("stage=final&{query}"), 400, message).await;
    }
    let reply = world.get("/schedulers/arena/operations?stage=final&definitionName=add").await;
    assert!(
        reply.text.contains(r#"query parameter definitionName: \"add\" must be one of create_scheduler, "#),
        "{}",
        reply.text
    );
    let empty = json!({"page": 1, "pageSize": 0, "total": 0, "operations": []});
    world.get("/schedulers/nope/operations?stage=pending").await.check(200, &empty);
}

#[tokio::test(start_paused = true)]
async fn pages_of_final_operations() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let names = async |query: &str| -> Vec<String> {
        let list = world.get(&format!("/schedulers/arena/operations?stage=final{query}")).await.ok();
        let operations = list["operations"].as_array().unwrap().iter();
        operations.map(|operation| operation["definitionName"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("").await, ["add_rooms", "health_controller", "create_scheduler"]);
    assert_eq!(names("&order_by=createdAt%20asc&per_page=1").await, ["create_scheduler"]);
    assert_eq!(names("&page=2&pageSize=2").await, ["create_scheduler"]);

    // A period later a cycle has looked and found nothing to do: not listed unless asked for.
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(names("").await.len(), 3);
    assert!(names("&noAction=true").await.len() > 3);
    let list = world.get("/schedulers/arena/operations?stage=final&noAction=true").await.ok();
    let id = list["operations"][0]["id"].as_str().unwrap();
    let cycle = world.get(&format!("/schedulers/arena/operations/{id}")).await.ok();
    assert_eq!(cycle["operation"]["input"], json!({"took_action": false}));
}

#[tokio::test(start_paused = true)]
async fn lists_of_what_is_asked_for() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let created = world.now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = world.enqueue("/schedulers/arena/add-rooms", &json!({"amount": 1})).await;
    world.settle("arena").await;
    let listed = async |query: &str| -> Vec<String> {
        let list = world.get(&format!("/schedulers/arena/operations?stage=final&{query}")).await.ok();
        let operations = list["operations"].as_array().unwrap().iter();
        assert_eq!(list["total"], operations.len(), "{query}");
        operations.map(|operation| operation["definitionName"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("definitionName=create_scheduler").await, ["create_scheduler"]);
    assert_eq!(listed("definition_name=add_rooms&status=finished").await, ["add_rooms", "add_rooms"]);
    assert_eq!(listed("status=error").await, Vec::<String>::new());
    assert_eq!(listed(&format!("since={created}")).await, ["add_rooms"]);
    assert_eq!(listed(&format!("idPrefix={}", &id[..20])).await, ["add_rooms"]);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_scheduler_is_not_blamed_on_the_operation() {
    let world = World::standing();
    let id = "831cf1f9-298d-4f3c-a0e2-ea08ac6d3398";
    let path = format!("/schedulers/nope/operations/{id}");
    world.get(&path).await.refused(404, 5, "scheduler nope not found");
    world.get(&format!("{path}/explain")).await.refused(404, 5, "scheduler nope not found");
    world.post(&format!("{path}/cancel"), &json!({})).await.refused(404, 5, "scheduler nope not found");
    world.post("/schedulers", &recipe("nope", 1)).await.ok();
    world.get(&path).await.refused(404, 5, &format!("operation {id} not found in scheduler nope"));
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_is_shown_as_v10_does() {
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    for (path, amount, input) in [
        ("add-rooms", 3, json!({"amount": 3})),
        ("remove-rooms", 2, json!({"amount": 2, "rooms_ids": null, "reason": "scale_down"})),
    ] {
        let asked = world.post(&format!("/schedulers/arena/{path}"), &json!({"amount": amount})).await.ok();
        let id = asked["operationId"].as_str().unwrap();
        let operation = world.get(&format!("/schedulers/arena/operations/{id}")).await.ok();
        let operation = &operation["operation"];
        assert_eq!(operation["input"], input);
        let keys: Vec<_> = operation.as_object().unwrap().keys().collect();
        let v10 =
            ["createdAt", "definitionName", "executionHistory", "id", "input", "schedulerName", "status"];
        assert_eq!(keys, v10);
        assert_eq!(operation["executionHistory"][0]["event"], "Created");
    }
}

#[tokio::test(start_paused = true)]
async fn the_full_view_says_why_and_what_for() {
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    let list = world.get("/schedulers/arena/operations?stage=pending&view=full").await.ok();
    let operation = &list["operations"][0];
    assert_eq!(operation["reason"], "asked for by anonymous");
    assert_eq!(operation["data"], json!({}));
    assert_eq!(operation["waitingFor"], "a worker to pick it up");
}

#[tokio::test(start_paused = true)]
async fn an_operation_in_progress_shows_its_lease() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("slow", 1)).await.ok();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let active = world.get("/schedulers/slow/operations?stage=active").await.ok();
    let operation = &active["operations"][0];
    assert_eq!(operation["definitionName"], "add_rooms", "{active}");
    let ttl = operation["lease"]["ttl"].as_str().unwrap();
    assert_eq!(ttl.len(), "2026-11-15T09:06:47Z".len());
    ttl.parse::<maestro_core::time::Timestamp>().unwrap();
    let id = operation["id"].as_str().unwrap();
    let one = world.get(&format!("/schedulers/slow/operations/{id}")).await.ok();
    assert_eq!(one["operation"]["lease"], operation["lease"]);
}

#[tokio::test(start_paused = true)]
async fn a_pending_operation_can_be_canceled_once() {
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    let asked = world.post("/schedulers/arena/add-rooms", &json!({})).await.ok();
    let id = asked["operationId"].as_str().unwrap();
    let path = format!("/schedulers/arena/operations/{id}");
    world.ask("POST", &format!("{path}/cancel"), Body::empty()).await.check(200, &json!({}));
    let operation = world.get(&path).await.ok();
    assert_eq!(operation["operation"]["status"], "canceled");
    let again = world.ask("POST", &format!("{path}/cancel"), Body::empty()).await;
    again.refused(409, 10, r#"cannot cancel operation since status "canceled" is a final status"#);
    let unknown = world.ask("POST", "/schedulers/arena/operations/what/cancel", Body::empty()).await;
    unknown.refused(404, 5, "operation what not found in scheduler arena");
}
