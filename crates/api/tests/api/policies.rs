//! Policies over the wire. Those that nobody could mean are refused when they are submitted, by field, and nothing is
//! changed; the others outlive a rollout.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Reply, World, recipe};

const PLACEMENT: &str = "senlin.policy.region_placement";

fn with_placement(regions: &Value) -> Value {
    let mut recipe = recipe("arena", 2);
    recipe["placement"] = json!({"regions": regions});
    recipe
}

fn with_policy(policy_type: &str, version: &str, properties: &Value) -> Value {
    let mut recipe = recipe("arena", 2);
    recipe["policies"] = json!([{"type": policy_type, "version": version, "properties": properties}]);
    recipe
}

fn in_region(region: &str) -> Value {
    let mut recipe = recipe("arena", 2);
    recipe["spec"]["region"] = json!(region);
    recipe
}

/// Recipes that nobody could mean, and the field that their refusal begins with.
fn nonsense() -> Vec<(Value, String)> {
    let lists = lists_of_regions();
    let short =
        lists.iter().map(|(regions, field)| (with_placement(regions), format!("placement.{field}: ")));
    let documents = lists.iter().map(|(regions, field)| {
        let recipe = with_policy(PLACEMENT, "1.0", &json!({"regions": regions}));
        // Which regions there are is asked when it has become a recipe, which has the short form only.
        let within =
            if regions.to_string().contains("mars") { "placement" } else { "policies[0].properties" };
        (recipe, format!("{within}.{field}: "))
    });
    let good = json!({"regions": [{"name": "RegionOne"}]});
    let others = [
        (with_policy(PLACEMENT, "1.0", &json!({})), "policies[0].properties.regions: "),
        (with_policy(PLACEMENT, "2.0", &good), "policies[0].version: "),
        (with_policy("senlin.policy.region", "1.0", &good), "policies[0].type: "),
        (
            with_policy("senlin.policy.deletion", "1.0", &json!({"criteria": "BIGGEST_FIRST"})),
            "policies[0].properties.criteria: ",
        ),
        (in_region("mars"), "spec.region: "),
    ];
    let others = others.map(|(recipe, field)| (recipe, field.to_owned()));
    short.chain(documents).chain(others).collect()
}

fn lists_of_regions() -> Vec<(Value, &'static str)> {
    vec![
        (json!([{"name": "RegionOne", "weight": -1}]), "regions[0].weight"),
        (json!([{"name": "RegionOne", "weight": 0}, {"name": "RegionTwo", "weight": 0}]), "regions"),
        (json!([{"name": "RegionOne", "cap": -2}]), "regions[0].cap"),
        (json!([]), "regions"),
        (json!([{"weight": 1}]), "regions[0].name"),
        (json!([{"name": "RegionOne"}, {"name": "RegionOne"}]), "regions[1].name"),
        (json!([{"name": "RegionOne"}, {"name": "mars"}]), "regions[1].name"),
        (json!([{"name": "RegionOne", "weight": "heavy"}]), "regions[0].weight"),
        (json!([{"name": "RegionOne", "cap": [1]}]), "regions[0].cap"),
        (json!([{"name": 7}]), "regions[0].name"),
        (json!("everywhere"), "regions"),
    ]
}

/// What the message says, without the first line that v10's clients cut off.
#[track_caller]
fn check_refused(reply: &Reply, field: &str) {
    let answer = reply.json();
    let message = answer["message"].as_str().unwrap();
    let said = message.strip_prefix("Validation Error:\n").unwrap_or(message);
    assert_eq!((reply.status, &answer["code"]), (400, &json!(3)), "{field}{}", reply.text);
    assert!(said.starts_with(field), "{field} in {said}");
}

#[tokio::test(start_paused = true)]
async fn no_scheduler_comes_of_nonsense() {
    let world = World::with_regions(&["RegionOne", "RegionTwo"]);
    for (recipe, field) in nonsense() {
        check_refused(&world.post("/schedulers", &recipe).await, &field);
        let listed = world.get("/schedulers").await.ok();
        assert_eq!(listed, json!({"schedulers": []}), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_version_comes_of_nonsense() {
    let world = World::running_with_regions(&["RegionOne", "RegionTwo"]).await;
    world.post("/schedulers", &recipe("arena", 2)).await.ok();
    world.settle("arena").await;
    let kept = async || {
        let scheduler = world.get("/schedulers/arena").await.ok();
        let operations = world.get("/schedulers/arena/operations?stage=final").await.ok();
        (scheduler, operations["total"].clone(), world.get("/schedulers/arena/versions").await.ok())
    };
    let before = kept().await;
    for (recipe, field) in nonsense() {
        check_refused(&world.post("/schedulers/arena", &recipe).await, &field);
        let patch: Value = ["placement", "policies", "spec"]
            .into_iter()
            .filter(|block| recipe.get(block).is_some_and(|_| *block != "spec" || field.starts_with("spec")))
            .map(|block| (block.to_owned(), recipe[block].clone()))
            .collect();
        check_refused(&world.ask("PATCH", "/schedulers/arena", patch.to_string()).await, &field);
    }
    assert_eq!(kept().await, before);
}

async fn by_region(world: &World, scheduler: &str) -> BTreeMap<String, usize> {
    let rooms = world.get(&format!("/schedulers/{scheduler}/rooms")).await.ok();
    let mut counted = BTreeMap::new();
    for room in rooms["rooms"].as_array().unwrap() {
        *counted.entry(room["region"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counted
}

/// Between two cycles nothing is under way, and much is left to do.
async fn rolled_out(world: &World, scheduler: &str) {
    for _ in 0..600 {
        world.settle(scheduler).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let rollout = world.get(&format!("/schedulers/{scheduler}/rollout")).await.ok();
        if rollout["state"] == "none" && rollout["active"] == "v2.0.0" {
            return;
        }
    }
    panic!("{scheduler} is not rolled out");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_the_distribution() {
    let world = World::running_with_regions(&["ap", "eu", "us"]).await;
    // Which old room goes first is by its id, so several fleets tell more than one.
    for name in ["arena", "brawl", "chase", "duel"] {
        let mut recipe = recipe(name, 6);
        recipe["placement"] = json!({"regions": [{"name": "us", "weight": 3}, {"name": "eu", "weight": 2}, {"name": "ap", "weight": 1}]});
        world.post("/schedulers", &recipe).await.ok();
        world.settle(name).await;
        let planned = by_region(&world, name).await;
        assert_eq!(planned, BTreeMap::from([("ap".into(), 1), ("eu".into(), 2), ("us".into(), 3)]));
        recipe["spec"]["containers"][0]["image"] = json!("room:2");
        world.enqueue(&format!("/schedulers/{name}"), &recipe).await;
        rolled_out(&world, name).await;
        assert_eq!(by_region(&world, name).await, planned, "{name}");
    }
}
