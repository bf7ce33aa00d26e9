//! A request that only reads changes nothing: browsers send those for anybody.

use std::collections::BTreeSet;

use prost_reflect::{DescriptorPool, Value};
use serde_json::json;

use crate::support::{World, recipe};

/// All that can be seen of a world in which nobody works.
async fn all(world: &World) -> Vec<serde_json::Value> {
    let mut seen = Vec::new();
    for path in [
        "/schedulers",
        "/schedulers/arena?view=full",
        "/schedulers/arena/versions?view=full",
        "/schedulers/arena/rollout",
        "/schedulers/arena/locks",
        "/schedulers/arena/operations?stage=pending&view=full",
        "/schedulers/arena/operations?stage=active&view=full",
        "/schedulers/arena/operations?stage=final&noAction=true&view=full",
        "/schedulers/arena/rooms",
        "/regions",
    ] {
        seen.push(world.get(path).await.ok());
    }
    seen
}

/// Every path of the schema, whatever its method is. Another test sees to it that these are the ones that are served.
fn paths() -> BTreeSet<String> {
    let pool = DescriptorPool::decode(maestro_proto::FILE_DESCRIPTOR_SET).unwrap();
    let annotation = pool.get_extension_by_name("google.api.http").unwrap();
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let mut paths = BTreeSet::new();
    for method in methods {
        let rule = method.options().get_extension(&annotation).into_owned();
        let Value::Message(rule) = rule else { panic!("{} has no path", method.full_name()) };
        let others = rule.get_field_by_name("additional_bindings").unwrap().into_owned();
        let others = others.as_list().unwrap().iter().map(|other| other.as_message().unwrap().clone());
        for rule in others.chain([rule.clone()]) {
            let verbs = ["get", "put", "post", "delete", "patch"];
            let verb = verbs.into_iter().find(|verb| rule.has_field_by_name(verb)).unwrap();
            paths.insert(rule.get_field_by_name(verb).unwrap().as_str().unwrap().to_owned());
        }
    }
    paths
}

/// What stands after `rooms` is the name of a room, and so on.
fn with_names(path: &str, names: &[(&str, &str)]) -> String {
    let mut before = "";
    let mut segments = Vec::new();
    for segment in path.split('/') {
        let name = match before {
            "schedulers" | "scheduler" => "arena",
            "locks" => "config",
            "regions" => "default",
            other => names.iter().find(|(known, _)| *known == other).map_or("x", |(_, name)| name),
        };
        segments.push(if segment.starts_with('{') { name } else { segment });
        before = segment;
    }
    segments.join("/")
}

#[tokio::test(start_paused = true)]
async fn no_get_changes_anything() {
    let mut world = World::running().await;
    world.post("/schedulers", &recipe("arena", 2)).await.ok();
    world.settle("arena").await;
    world.stop_working().await;
    world.post("/schedulers/arena/add-rooms", &json!({"amount": 1})).await.ok();
    let room = world.room_ids("arena").await[0].clone();
    let pending = world.get("/schedulers/arena/operations?stage=pending").await.ok();
    let operation = pending["operations"][0]["id"].as_str().unwrap().to_owned();

    let before = all(&world).await;
    let paths = paths();
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        let path = with_names(&path, &[("rooms", &room), ("operations", &operation)]);
        for method in ["GET", "HEAD"] {
            let body = r#"{"amount":1,"status":"occupied"}"#;
            let reply = world.ask(method, &format!("{path}?stage=pending&follow=false"), body).await;
            let seen = matches!(reply.status, 200 | 404 | 405);
            assert!(seen, "{method} {path}: {} {}", reply.status, reply.text);
        }
    }
    assert_eq!(all(&world).await, before);
}
