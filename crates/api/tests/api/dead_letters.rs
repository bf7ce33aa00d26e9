//! Events that cannot be delivered for now.

use std::sync::mpsc;
use std::time::Duration;

use maestro_core::event::{EventId, Message, MessageRoom};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after};
use maestro_engine::Parts;
use maestro_engine::ports::store::{Change, IfEnded, NewEvent};
use serde_json::json;

use crate::support::{World, recipe};

/// It has expired, and its next attempt would be due in an hour. Nobody waits for that, nor looks at it in a loop.
#[test]
fn an_event_expires_before_its_next_attempt() {
    let (done, is_done) = mpsc::channel();
    // A loop without a pause lets no virtual time pass, so it is real time that ends it.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(an_event_expires_that_was_tried_before());
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(60)).expect("the event did not become a dead letter");
}

async fn an_event_expires_that_was_tried_before() {
    let mut world = World::standing();
    let mut fleet = recipe("arena", 1);
    let options = json!({"timeout": 1000, "delivery": "queued"});
    let (kind, address) = ("gRPC", "receiver.example:9090");
    fleet["forwarders"] = json!([{"name": "matchmaker", "enable": false, "type": kind, "address": address, "options": options}]);
    world.post("/schedulers", &fleet).await.ok();
    let scheduler = SchedulerName::parse("arena").unwrap();
    let event = EventId::from_u128(1);
    let long_ago = NewEvent {
        id: event,
        scheduler: scheduler.clone(),
        forwarder: "matchmaker".into(),
        room: RoomId::new("arena-1"),
        message: Message::RoomEvent { room: MessageRoom::default(), event_type: "matchStarted".into() },
        waiting_max: None,
        if_ended: IfEnded::Queue,
        at: Timestamp::UNIX_EPOCH,
    };
    world.write(vec![Change::QueueEvent(Box::new(long_ago))]).await;
    let queue = world.engine.ports().store.event_queues(&scheduler).await.unwrap()[0].id;
    let (error, next_at) = ("Unavailable: down".into(), after(world.now(), Millis::from_seconds(60)));
    world.write(vec![Change::EventFailed { scheduler, queue, event, error, next_at }]).await;
    world.start(Parts::ALL).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let events = world.get("/schedulers/arena/events?dead=true").await.ok();
    assert_eq!(events["events"][0]["error"], "forwarder matchmaker is not enabled", "{events}");
}
