//! Events on their way from rooms to a real receiver, which is killed, slow, or refuses them; and a server that is killed.

mod kills;
mod wrong;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use maestro_e2e::{Answer, Maestro, Room, checks, send_signal};
use maestro_forwarder::receiver::{Behaviour, Received, Receiver};
use rustix::process::Signal;
use serde_json::{Value, json};
use tonic::Code;

/// A forwarder of the recipe.
pub(super) fn forwarder(name: &str, address: SocketAddr, delivery: &str) -> Value {
    let options =
        json!({"timeout": 2000, "delivery": delivery, "metadata": {"roomType": "red", "tier": 1_500_000}});
    json!({"name": name, "enable": true, "type": "gRPC", "address": address.to_string(), "options": options})
}

pub(super) fn fleet(maestro: &Maestro, rooms: u32, forwarders: &[Value]) -> anyhow::Result<Vec<Room>> {
    let mut recipe = maestro.recipe("arena", rooms)?.json();
    recipe["forwarders"] = forwarders.into();
    maestro.api().create(&recipe)?.expect(200)?;
    maestro.until("a fleet", || checks::settled(maestro, "arena", rooms as usize))
}

pub(super) fn send(maestro: &Maestro, room: &str, what: &str, body: &Value) -> anyhow::Result<Answer> {
    let path = format!("/scheduler/arena/rooms/{room}/{what}");
    maestro.rooms_api().post(&path, "room", &body.to_string())
}

pub(super) fn room_event(maestro: &Maestro, room: &str, event: &str) -> anyhow::Result<Value> {
    send(maestro, room, "roomevent", &json!({"event": event, "metadata": {"map": "lava"}}))?
        .expect(200)?
        .json()
}

/// The types of the events of a room, in the order in which they came.
pub(super) fn heard(events: &[Received], room: &str) -> Vec<String> {
    events.iter().filter(|event| event.room_id == room).map(|event| event.what.clone()).collect()
}

fn success() -> Value {
    json!({"success": true, "message": ""})
}

#[test]
fn direct_events_reach_their_receiver_while_the_room_waits() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[])?;
    let rooms = fleet(&maestro, 1, &[forwarder("mm", receiver.address(), "direct")])?;
    let room = &rooms[0];

    assert_eq!(room_event(&maestro, &room.id, "matchStarted")?, success());
    let player = json!({"event": "playerJoin", "timestamp": "1", "metadata": {"playerId": "p1", "level": 7}});
    assert_eq!(send(&maestro, &room.id, "playerevent", &player)?.expect(200)?.json()?, success());
    let path = format!("/scheduler/arena/rooms/{}/status", room.id);
    let status = maestro.rooms_api().put(&path, &json!({"status": "Occupied"}))?.expect(200)?.json()?;
    assert_eq!(status, json!({"success": true}));

    let events = receiver.events();
    let told: Vec<_> = events.iter().map(|event| (event.method, event.what.as_str())).collect();
    let expected = [
        ("SendRoomEvent", "matchStarted"),
        ("SendPlayerEvent", "PLAYER_JOINED"),
        ("SendRoomStatus", "occupied"),
    ];
    assert_eq!(told, expected);
    let ids: std::collections::BTreeSet<_> = events.iter().map(|event| &event.event_id).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| id.len() == 36), "{ids:?}");
    let [event, player, status] = events.as_slice() else { unreachable!("three") };
    assert_eq!((event.room_id.as_str(), event.port), (room.id.as_str(), i32::from(room.ports[0].port)));
    assert_eq!((event.metadata["map"].as_str(), event.metadata["tier"].as_str()), ("lava", "1.5e+06"));
    assert_eq!((event.room_type.as_str(), status.room_type.as_str()), ("", "red"));
    assert_eq!((player.player_id.as_str(), player.metadata["level"].as_str()), ("p1", "7"));

    receiver.behave(Behaviour::Fail(Code::FailedPrecondition));
    let refused = room_event(&maestro, &room.id, "x")?;
    let message = refused["message"].as_str().unwrap_or_default();
    let expected = "failed to forward event room at \"mm\" with code FailedPrecondition: ";
    assert!(refused["success"] == false && message.starts_with(expected), "{refused}");
    // A reply is a success, whatever it says.
    receiver.behave(Behaviour::Reply(500));
    assert_eq!(room_event(&maestro, &room.id, "y")?, success());
    receiver.behave(Behaviour::Silent);
    let refused = room_event(&maestro, &room.id, "z")?;
    assert!(refused["message"].to_string().contains("with code DeadlineExceeded"), "{refused}");
    drop(receiver);
    let refused = room_event(&maestro, &room.id, "w")?;
    assert!(refused["message"].to_string().contains("with code Unavailable"), "{refused}");
    Ok(())
}

#[test]
fn queued_events_survive_a_receiver_that_is_down_and_come_in_order() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let at = receiver.address();
    let mut maestro = Maestro::started(&[])?;
    let rooms = fleet(&maestro, 3, &[forwarder("mm", at, "queued")])?;
    drop(receiver);
    let numbers = |from: usize| (from..from + 20).map(|number| number.to_string());
    for event in numbers(0) {
        for room in &rooms {
            assert_eq!(room_event(&maestro, &room.id, &event)?, success());
        }
    }
    maestro.until("a failed attempt", || {
        let queued =
            maestro.api().get("/schedulers/arena/events?dead=false&pageSize=100")?.expect(200)?.json()?;
        ensure!(queued["total"] == 60, "{}", queued["total"]);
        let event = &queued["events"][0];
        ensure!(event["attempts"] != 0 && event["error"].to_string().contains("Unavailable"), "{event}");
        Ok(())
    })?;
    let metrics = maestro.internal().get("/metrics")?.expect(200)?.text;
    assert!(metrics.contains("maestro_worker_grpc_request_latency_bucket"), "{metrics}");
    maestro.kill()?;
    maestro.start()?;
    for event in numbers(20) {
        for room in &rooms {
            assert_eq!(room_event(&maestro, &room.id, &event)?, success());
        }
    }
    let receiver = Receiver::start_at(at)?;
    let expected: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    maestro.until("all events", || {
        let events = receiver.events();
        for room in &rooms {
            let heard = heard(&events, &room.id);
            ensure!(heard == expected, "{} heard {heard:?}", room.id);
        }
        Ok(())
    })?;
    maestro.until("an empty queue", || {
        let queued = maestro.api().get("/schedulers/arena/events")?.expect(200)?.json()?;
        ensure!(queued["total"] == 0, "{queued}");
        Ok(())
    })?;
    let metrics = maestro.internal().get("/metrics")?.expect(200)?.text;
    let delivered = "maestro_event_delivery_seconds_count{scheduler=\"arena\",forwarder=\"mm\"} 120";
    assert!(metrics.contains(delivered), "{metrics}");
    Ok(())
}

#[test]
fn a_full_queue_says_so() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[("EVENTS_QUEUEMAX", "3")])?;
    let rooms = fleet(&maestro, 1, &[forwarder("mm", receiver.address(), "queued")])?;
    receiver.behave(Behaviour::Fail(Code::Unavailable));
    for event in ["1", "2", "3"] {
        assert_eq!(room_event(&maestro, &rooms[0].id, event)?, success());
    }
    let refused = room_event(&maestro, &rooms[0].id, "4")?;
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(refused["success"] == false && message.contains("(events.queueMax)"), "{refused}");
    // The end of a room is queued all the same, and comes last.
    send_signal(rooms[0].pids[0], Signal::KILL)?;
    maestro.until("the end to be queued", || {
        let queued = maestro.api().get("/schedulers/arena/events")?.expect(200)?.json()?;
        ensure!(queued["total"] == 4, "{queued}");
        Ok(())
    })?;
    receiver.behave(Behaviour::Reply(200));
    maestro.until("all events", || {
        let taken: Vec<_> = receiver.events().into_iter().filter(|event| event.taken).collect();
        let heard = heard(&taken, &rooms[0].id);
        ensure!(heard == ["1", "2", "3", "terminated"], "{heard:?}");
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_room_that_is_gone_is_the_last_that_is_heard_of_it() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[])?;
    let rooms = fleet(&maestro, 2, &[forwarder("mm", receiver.address(), "direct")])?;
    receiver.behave(Behaviour::Slow(Duration::from_millis(50)));
    send_signal(rooms[0].pids[0], Signal::KILL)?;
    maestro.until("the end", || {
        ensure!(heard(&receiver.received(), &rooms[0].id).contains(&"terminated".to_owned()));
        Ok(())
    })?;
    maestro.until("the replacement", || checks::settled(&maestro, "arena", 2))?;
    let calls = receiver.received();
    let heard = heard(&calls, &rooms[0].id);
    assert_eq!(heard.iter().filter(|what| *what == "terminated").count(), 1, "{heard:?}");
    assert_eq!(heard.last().map(String::as_str), Some("terminated"), "{heard:?}");
    assert!(heard.contains(&"ready".to_owned()), "{heard:?}");
    let end = calls.iter().find(|call| call.what == "terminated" && call.room_id == rooms[0].id);
    let end = end.map(|call| (call.method, call.metadata["roomEvent"].as_str(), call.port));
    assert_eq!(end, Some(("SendRoomStatus", "terminated", i32::from(rooms[0].ports[0].port))));
    Ok(())
}

#[test]
fn dead_letters_are_listed_and_replayed() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[])?;
    let room = fleet(&maestro, 1, &[forwarder("mm", receiver.address(), "queued")])?.remove(0).id;
    receiver.behave(Behaviour::Fail(Code::InvalidArgument));
    for event in ["1", "2", "3"] {
        assert_eq!(room_event(&maestro, &room, event)?, success());
    }
    let letters = maestro.until("dead letters", || {
        let letters = maestro.api().get("/schedulers/arena/events?dead=true")?.expect(200)?.json()?;
        ensure!(letters["total"] == 3, "{letters}");
        Ok(letters)
    })?;
    let first = &letters["events"][0];
    assert_eq!(
        (&first["event"], &first["dead"], &first["forwarder"]),
        (&json!("1"), &json!(true), &json!("mm"))
    );
    assert!(first["error"].to_string().contains("InvalidArgument"), "{first}");
    let cli = |arguments: &[&str]| {
        let output = maestro.cli(arguments)?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        anyhow::Ok((output.status.code(), text))
    };
    let (code, table) = cli(&["event", "list", "arena", "--dead"])?;
    assert!(code == Some(0) && table.contains("InvalidArgument") && table.contains("dead"), "{table}");
    for (arguments, code, message) in [
        (vec!["event", "replay", "arena"], 2, "ID"),
        (vec!["event", "replay", "arena", "nonsense"], 2, "is not the id of an event"),
        (vec!["event", "replay", "arena", "00000000-0000-0000-0000-000000000001"], 3, "not found"),
        (vec!["event", "replay", "nobody", "--all"], 3, "scheduler nobody not found"),
        (vec!["event", "list", "nobody"], 3, "scheduler nobody not found"),
    ] {
        let (actual, text) = cli(&arguments)?;
        assert!(actual == Some(code) && text.contains(message), "{arguments:?}: {actual:?} {text}");
    }
    receiver.behave(Behaviour::Reply(200));
    let second = letters["events"][1]["id"].as_str().unwrap_or_default();
    let (code, text) = cli(&["event", "replay", "arena", second])?;
    assert!(code == Some(0) && text.contains("1 dead letter replayed"), "{text}");
    let taken = || receiver.events().into_iter().filter(|event| event.taken).collect::<Vec<_>>();
    maestro.until("the replayed one", || {
        ensure!(heard(&taken(), &room) == ["2"]);
        Ok(())
    })?;
    assert!(taken()[0].event_id == second, "under the same id");
    let (code, text) = cli(&["event", "replay", "arena", "--forwarder", "mm"])?;
    assert!(code == Some(0) && text.contains("2 dead letters replayed"), "{text}");
    maestro.until("all of them", || {
        ensure!(heard(&taken(), &room) == ["2", "1", "3"], "{:?}", heard(&taken(), &room));
        Ok(())
    })?;
    Ok(())
}

#[test]
fn what_waits_outlives_its_forwarder_and_its_scheduler() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[("WORKERS_SYNCINTERVAL", "200ms")])?;
    let forwarders =
        [forwarder("mm", receiver.address(), "queued"), forwarder("old", receiver.address(), "queued")];
    let room = fleet(&maestro, 1, &forwarders)?.remove(0).id;
    receiver.behave(Behaviour::Fail(Code::Unavailable));
    assert_eq!(room_event(&maestro, &room, "1")?, success());
    let patch = json!({"forwarders": [forwarders[0]]});
    maestro.api().send("PATCH", "/schedulers/arena", "e2e", &patch.to_string())?.expect(200)?;
    maestro.until("the removed forwarder's dead letter", || {
        let letters = maestro.api().get("/schedulers/arena/events?dead=true")?.expect(200)?.json()?;
        ensure!(letters["total"] == 1, "{letters}");
        assert_eq!(letters["events"][0]["error"], "forwarder old was removed from the recipe");
        Ok(())
    })?;
    maestro.api().delete("/schedulers/arena")?.expect(200)?;
    maestro.until("the deletion", || {
        maestro.api().get("/schedulers/arena")?.expect(404)?;
        Ok(())
    })?;
    receiver.behave(Behaviour::Reply(200));
    maestro.until("what the scheduler left", || {
        let taken: Vec<_> = receiver.events().into_iter().filter(|event| event.taken).collect();
        let heard = heard(&taken, &room);
        ensure!(heard == ["1", "terminated"], "{heard:?}");
        Ok(())
    })?;
    Ok(())
}
