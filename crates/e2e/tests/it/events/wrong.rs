//! Events that cannot be meant, and receivers that cannot be found: an answer that says what is wrong, the same over HTTP
//! and gRPC, and nothing happens.

use anyhow::ensure;
use maestro_e2e::Maestro;
use maestro_forwarder::receiver::Receiver;
use serde_json::{Value, json};
use tonic::Code;

use super::{fleet, forwarder, heard, room_event};
use crate::calls::Calls;

/// A room that sends, both ways.
struct Sender<'a> {
    maestro: &'a Maestro,
    calls: Calls,
}

impl<'a> Sender<'a> {
    fn new(maestro: &'a Maestro) -> anyhow::Result<Self> {
        let calls = Calls::connect(maestro.api_ports()[1])?;
        Ok(Self { maestro, calls })
    }

    /// What was answered.
    fn send(&self, verb: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = body.to_string();
        let answer = self.maestro.rooms_api().send(verb, path, "room", &body)?.expect(200)?;
        self.calls.answer_like((verb, path, &body), &answer)?;
        answer.json()
    }
}

#[test]
fn wrong_events_are_told_what_is_wrong_and_nobody_hears_of_them() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[])?;
    let forwarders =
        [forwarder("queue", receiver.address(), "queued"), forwarder("mm", receiver.address(), "direct")];
    let room = fleet(&maestro, 1, &forwarders)?.remove(0).id;
    let sender = Sender::new(&maestro)?;
    let not_found = "failed to get room nobody from storage: room nobody not found in scheduler arena";
    let join = |metadata: Value| json!({"event": "playerJoin", "metadata": metadata});
    let no_player = "eventAttributes must contain key \"playerId\" in playerEvent events. Forwarder name: \"queue\", \
                     Scheduler: \"arena\"";
    for (of, what, body, message) in [
        (room.as_str(), "playerevent", join(json!({})), no_player),
        (&room, "playerevent", join(json!({"playerId": 7})), no_player),
        (
            &room,
            "playerevent",
            json!({"event": "dance", "metadata": {"playerId": "p"}}),
            "invalid PlayerEventType. Should be \"playerLeft\" or \"playerJoin\"",
        ),
        ("nobody", "playerevent", join(json!({"playerId": "p"})), not_found),
        ("nobody", "roomevent", json!({"event": "x"}), not_found),
    ] {
        let answer = sender.send("POST", &format!("/scheduler/arena/rooms/{of}/{what}"), &body)?;
        assert_eq!(answer, json!({"success": false, "message": message}), "{body}");
    }
    let anothers = sender.send("POST", "/scheduler/nobody/rooms/r/roomevent", &json!({"event": "x"}))?;
    assert_eq!(anothers, json!({"success": false, "message": "scheduler nobody not found"}));
    let status = format!("/scheduler/arena/rooms/{room}/status");
    let wrong = sender.send("PUT", &status, &json!({"status": "dancing"}))?;
    assert_eq!(wrong, json!({"success": false}));
    what_is_no_event(&sender, &room)?;

    assert_eq!(receiver.events(), []);
    let queued = maestro.api().get("/schedulers/arena/events")?.expect(200)?.json()?;
    assert_eq!(queued["total"], 0);
    Ok(())
}

/// JSON that is no message, and messages that are too long.
fn what_is_no_event(sender: &Sender<'_>, room: &str) -> anyhow::Result<()> {
    let path = format!("/scheduler/arena/rooms/{room}");
    let long = json!({"event": "x".repeat(10 << 20)}).to_string();
    for (what, body, status) in [
        ("roomevent", "{", 400),
        ("roomevent", r#"{"event": 7}"#, 400),
        ("playerevent", r#"{"metadata": []}"#, 400),
        ("roomevent", &long, 413),
    ] {
        let answer = sender.maestro.rooms_api().post(&format!("{path}/{what}"), "room", body);
        // Of a body that is too long, the connection may be closed before all of it is sent.
        match answer {
            Ok(answer) => assert_eq!(answer.status, status, "{}", answer.text),
            Err(error) => assert_eq!(status, 413, "{error:#}"),
        }
    }
    let call = sender.calls.of_http("POST", &format!("{path}/roomevent"), &long);
    let refused = call.map(|call| sender.calls.call(&call));
    let code = refused.as_ref().and_then(|called| called.as_ref().err()).map(tonic::Status::code);
    assert_eq!(code, Some(Code::ResourceExhausted), "{refused:?}");
    Ok(())
}

#[test]
fn an_address_that_does_not_resolve_fails_its_own_events_only() -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let maestro = Maestro::started(&[])?;
    let mut nowhere = forwarder("nowhere", receiver.address(), "direct");
    nowhere["address"] = "matchmaker.invalid:9090".into();
    let room = fleet(&maestro, 1, &[forwarder("mm", receiver.address(), "direct"), nowhere])?.remove(0).id;
    let refused = room_event(&maestro, &room, "matchStarted")?;
    let message = refused["message"].as_str().unwrap_or_default();
    let expected = "failed to forward event room at \"nowhere\" with code Unavailable: cannot resolve matchmaker.invalid:9090";
    assert!(message.starts_with(expected), "{refused}");
    assert_eq!(heard(&receiver.events(), &room), ["matchStarted"], "the one before it has it");
    let path = format!("/scheduler/arena/rooms/{room}/roomevent");
    let again = Sender::new(&maestro)?.send("POST", &path, &json!({"event": "matchStarted"}))?;
    assert_eq!(again["success"], false, "over gRPC too");
    // Pings do not care.
    maestro.until("a resync", || {
        let resyncs = receiver.received();
        ensure!(resyncs.iter().any(|call| call.method == "SendRoomResync" && call.what == "ready"));
        Ok(())
    })?;
    Ok(())
}
