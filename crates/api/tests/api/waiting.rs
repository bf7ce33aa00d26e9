//! Who waits for a room, in which order rooms come, and who waits in vain.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use maestro_engine::Parts;
use maestro_simulation::MemoryStore;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::{Reply, TestClock, World, recipe};

const ALLOCATIONS: &str = "/schedulers/arena/allocations";

async fn arena(rooms: u32) -> World {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", rooms)).await.ok();
    world.settle("arena").await;
    world
}

async fn ask(world: &World, request: Value) -> Reply {
    world.post(ALLOCATIONS, &request).await
}

/// Asks a moment after those that were asked for before in the same test.
async fn ask_later(world: &World, moment: u64, request: Value) -> (Reply, Instant) {
    tokio::time::sleep(Duration::from_millis(100 * moment)).await;
    (ask(world, request).await, Instant::now())
}

async fn give_back(world: &World, allocation: &Value) {
    let path = format!("{ALLOCATIONS}/{}", allocation["id"].as_str().unwrap());
    assert_eq!(world.ask("DELETE", &path, Body::empty()).await.status, 204);
}

fn allocations(reply: &Reply) -> Vec<Value> {
    reply.json()["allocations"].as_array().cloned().unwrap_or_default()
}

/// What is handed out is demand at once, not only when a room says that its players are there.
#[tokio::test(start_paused = true)]
async fn a_fleet_grows_when_its_rooms_are_handed_out() {
    let world = World::running().await;
    let mut fleet = recipe("arena", 2);
    fleet["autoscaling"] = json!({"enabled": true, "min": 2, "max": 8,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}}});
    world.post("/schedulers", &fleet).await.ok();
    world.settle("arena").await;
    // A scheduled cycle is far away, and early ones keep a distance.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(allocations(&ask(&world, json!({"count": 2})).await).len(), 2);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.room_ids("arena").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_rooms_that_cannot_be() {
    let world = arena(2).await;
    let began = Instant::now();
    let unknown = world.post("/schedulers/nowhere/allocations", &json!({"waitMillis": 30000})).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
    let too_many = ask(&world, json!({"count": 3, "waitMillis": 30000})).await;
    assert_eq!(too_many.status, 429, "{}", too_many.text);
    assert!(began.elapsed() < Duration::from_secs(5), "they were not kept waiting");
}

/// Who asks for more than there will ever be does not keep rooms from those that ask for one.
#[tokio::test(start_paused = true)]
async fn a_request_for_too_many_holds_back_nobody() {
    let world = arena(2).await;
    let too_many = ask_later(&world, 0, json!({"count": 3, "waitMillis": 30000}));
    let one = ask_later(&world, 1, json!({}));
    let ((too_many, _), (one, _)) = tokio::join!(too_many, one);
    assert_eq!((too_many.status, one.status), (429, 200));
}

#[tokio::test(start_paused = true)]
async fn rooms_come_in_the_order_of_the_requests() {
    let world = arena(2).await;
    let held = allocations(&ask(&world, json!({"count": 2})).await);
    let wait = |more: Value| {
        let mut request = json!({"waitMillis": 30000});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let several = ask_later(&world, 0, wait(json!({"count": 2})));
    let first = ask_later(&world, 1, wait(json!({"requestId": "first"})));
    let second = ask_later(&world, 2, wait(json!({})));
    let third = ask_later(&world, 3, wait(json!({"requestId": "third"})));
    let giving_back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        give_back(&world, &held[0]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        give_back(&world, &held[1]).await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let open = world.get(&format!("{ALLOCATIONS}?state=held")).await;
            give_back(&world, &allocations(&open)[0]).await;
        }
    };
    let (several, first, second, third, ()) = tokio::join!(several, first, second, third, giving_back);
    let answers = [several, first, second, third];
    assert!(
        answers.iter().all(|(reply, _)| reply.status == 200),
        "{:?}",
        answers.map(|(reply, _)| reply.text)
    );
    assert_eq!(allocations(&answers[0].0).len(), 2, "nobody took one of them while it waited for both");
    let times: Vec<Instant> = answers.iter().map(|(_, at)| *at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// A room that somebody would get who is held back goes to nobody behind it.
#[tokio::test(start_paused = true)]
async fn who_is_held_back_is_not_overtaken() {
    let world = World::running_with_regions(&["east", "west"]).await;
    world.post("/schedulers", &recipe("arena", 4)).await.ok();
    world.settle("arena").await;
    let held = allocations(&ask(&world, json!({"count": 4})).await);
    let of = |region: &str| held.iter().find(|one| one["region"] == region).unwrap().clone();
    let several = json!({"count": 2, "wishes": [{"regions": ["east"]}], "waitMillis": 20000});
    let either = json!({"wishes": [{"regions": ["east", "west"]}], "waitMillis": 30000});
    let west = json!({"wishes": [{"regions": ["west"]}], "waitMillis": 5000});
    let giving_back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        give_back(&world, &of("west")).await;
    };
    let (several, either, west, ()) = tokio::join!(
        ask_later(&world, 0, several),
        ask_later(&world, 1, either),
        ask_later(&world, 2, west),
        giving_back
    );
    assert_eq!([several.0.status, either.0.status, west.0.status], [429, 200, 429]);
    assert_eq!(allocations(&either.0)[0]["region"], "west");
}

/// At whatever moment: before the request is looked at, while it is written down, or when the answer is on its way.
#[tokio::test(start_paused = true)]
async fn who_hangs_up_leaves_no_room_held() {
    let world = arena(1).await;
    for moment in 0..20 {
        let request = Request::post(ALLOCATIONS).body(Body::from("{}")).unwrap();
        let mut asking = Box::pin(world.send("management", request));
        let answer = timeout(Duration::ZERO, &mut asking).await;
        assert!(answer.is_err(), "nobody was there to hang up");
        // Others work, and the caller does not hear of it.
        for _ in 0..moment {
            tokio::task::yield_now().await;
        }
        drop(asking);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let held = world.get(&format!("{ALLOCATIONS}?state=held")).await;
        assert_eq!(allocations(&held), [] as [Value; 0], "at moment {moment}");
    }
}

/// Without a room to spare, the ones that come later have to wait for what becomes of the first; with some, they claim rooms
/// that nobody may get.
#[tokio::test(start_paused = true)]
async fn the_same_request_again_before_the_first_is_written_down() {
    for spare in [0, 1, 2] {
        let store = Arc::new(MemoryStore::new(TestClock::begin()));
        let mut world = World::standing_on(store.clone());
        world.start(Parts::ALL).await;
        world.post("/schedulers", &recipe("arena", 1 + spare)).await.ok();
        world.settle("arena").await;
        store.hold_back(Some("allocate"));
        let request = json!({"requestId": "cup-final", "metadata": {"map": "lava"}});
        let other = json!({"requestId": "cup-final", "metadata": {"map": "ice"}});
        let writing = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let written = allocations(&world.get(ALLOCATIONS).await);
            store.hold_back(None);
            (written, Instant::now())
        };
        let ((first, _), (again, again_at), (other, other_at), (written, written_at)) = tokio::join!(
            ask_later(&world, 0, request.clone()),
            ask_later(&world, 1, request),
            ask_later(&world, 2, other),
            writing
        );
        assert_eq!(written, [] as [Value; 0], "the commit is pending");
        assert_eq!(
            (first.status, again.status),
            (200, 200),
            "{spare} to spare: {} {}",
            first.text,
            again.text
        );
        assert_eq!(again.text, first.text, "{spare} to spare");
        let message = other.json()["message"].as_str().unwrap().to_owned();
        assert_eq!(other.status, 409, "{spare} to spare: {message}");
        assert!(message.contains("cup-final") && message.contains("metadata"), "{message}");
        assert!(again_at >= written_at && other_at >= written_at, "they waited for it");
        // One allocation, and nothing stays claimed for the others.
        assert_eq!(allocations(&world.get(ALLOCATIONS).await), allocations(&first));
        if spare > 0 {
            assert_eq!(ask(&world, json!({"count": spare})).await.status, 200, "{spare} to spare");
        }
    }
}
