use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::scheduler::{Delivery, Protocol};

fn port(name: &str, host_port: u16) -> HostPort {
    HostPort { name: name.into(), protocol: Protocol::Udp, container_port: 7777, host_port }
}

fn room(ports: &[(&str, u16)]) -> RoomFacts {
    RoomFacts {
        id: RoomId::new("arena-1"),
        host: "203.0.113.7".into(),
        ports: ports.iter().map(|(name, number)| port(name, *number)).collect(),
        is_gone: false,
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

fn forwarder(metadata: Value) -> Forwarder {
    Forwarder {
        name: "mm".into(),
        enabled: true,
        address: "mm:9090".into(),
        timeout_ms: 1000,
        delivery: Delivery::Direct,
        metadata: object(metadata),
    }
}

fn told(message: &Message) -> String {
    let MessageRoom { game, id, host, port, metadata, room_type } = message.room();
    let mut lines = vec![format!("{} {} of {game} {id} at {host}:{port}", message.method(), message.what())];
    lines.extend((!room_type.is_empty()).then(|| format!("type {room_type}")));
    lines.extend(metadata.iter().map(|(key, value)| format!("{key} = {value}")));
    if let Message::PlayerEvent { player_id, metadata, .. } = message {
        lines.push(format!("player {player_id}"));
        lines.extend(metadata.iter().map(|(key, value)| format!("{key} = {value}")));
    }
    lines.join("\n")
}

fn compose_with(
    kind: &EventKind,
    said: Value,
    configured: Value,
    room: &RoomFacts,
) -> Result<Message, ComposeError> {
    let (scheduler, forwarder) = (SchedulerName::parse("arena").unwrap(), forwarder(configured));
    let to = Addressee { scheduler: &scheduler, game: "brawl", forwarder: &forwarder };
    compose(kind, &object(said), room, to)
}

fn check(kind: &EventKind, said: Value, configured: Value, expected: &Expect) {
    let room = room(&[("game", 20001), (CLIENT_PORT, 20002)]);
    let text = match compose_with(kind, said, configured, &room) {
        Ok(message) => told(&message),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn in_a_status_the_event_wins() {
    check(
        &EventKind::Resync(PingStatus::Occupied),
        json!({"map": "lava", "tier": 2, "eventType": "mine"}),
        json!({"tier": "gold", "roomType": "red", "limits": [1, null]}),
        &expect![[r#"
            SendRoomResync occupied of brawl arena-1 at 203.0.113.7:20002
            type red
            eventType = resync
            limits = [1 <nil>]
            map = lava
            pingType = occupied
            ports = [{"name":"game","port":20001,"protocol":"UDP"},{"name":"clientPort","port":20002,"protocol":"UDP"}]
            roomType = red
            tier = 2"#]],
    );
    check(
        &EventKind::Status(PingStatus::Ready),
        json!({}),
        json!({"roomType": 7}),
        &expect![[r#"
            SendRoomStatus ready of brawl arena-1 at 203.0.113.7:20002
            eventType = status
            pingType = ready
            ports = [{"name":"game","port":20001,"protocol":"UDP"},{"name":"clientPort","port":20002,"protocol":"UDP"}]
            roomType = 7"#]],
    );
}

#[test]
fn in_a_room_event_the_forwarder_wins() {
    check(
        &EventKind::Room("matchStarted".into()),
        json!({"map": "lava", "tier": 2}),
        json!({"tier": "gold", "roomType": "red"}),
        &expect![[r#"
            SendRoomEvent matchStarted of brawl arena-1 at 203.0.113.7:20002
            eventType = roomEvent
            map = lava
            ports = [{"name":"game","port":20001,"protocol":"UDP"},{"name":"clientPort","port":20002,"protocol":"UDP"}]
            roomEvent = matchStarted
            roomType = red
            tier = gold"#]],
    );
}

#[test]
fn a_player_event_has_the_room_type_and_nothing_else_of_the_forwarder() {
    check(
        &EventKind::Player("playerJoin".into()),
        json!({"playerId": "p1", "level": 1_500_000}),
        json!({"tier": "gold", "roomType": 7}),
        &expect![[r#"
            SendPlayerEvent playerJoin of brawl arena-1 at :0
            player p1
            eventType = playerJoin
            level = 1.5e+06
            playerId = p1
            roomType = 7"#]],
    );
}

#[test]
fn what_cannot_be_forwarded_is_told_in_the_words_of_v10() {
    let no_player = r#"eventAttributes must contain key "playerId" in playerEvent events. Forwarder name: "mm", Scheduler: "arena""#;
    for (event, said, error) in [
        ("playerJoin", json!({}), no_player),
        ("playerJoin", json!({"playerId": 7}), no_player),
        ("dance", json!({}), no_player),
        (
            "dance",
            json!({"playerId": "p"}),
            r#"invalid PlayerEventType. Should be "playerLeft" or "playerJoin""#,
        ),
        (
            "PlayerJoin",
            json!({"playerId": "p"}),
            r#"invalid PlayerEventType. Should be "playerLeft" or "playerJoin""#,
        ),
    ] {
        let refused = compose_with(&EventKind::Player(event.into()), said, json!({}), &room(&[("game", 1)]));
        assert_eq!(refused.unwrap_err().to_string(), error);
    }
    let refused = compose_with(&EventKind::Room("x".into()), json!({}), json!({}), &room(&[]));
    let error = r#"no room port found to forward roomEvent. Forwarder name: "mm", Scheduler: "arena""#;
    assert_eq!(refused.unwrap_err().to_string(), error);
}

#[test]
fn a_room_that_is_gone_needs_no_port() {
    let gone = RoomFacts { host: String::new(), is_gone: true, ..room(&[]) };
    let message = compose_with(&EventKind::Gone, json!({}), json!({}), &gone).unwrap();
    assert!(message.is_last());
    let expected = "SendRoomStatus terminated of brawl arena-1 at :0\neventType = status\npingType = terminated\nports = []\nroomEvent = terminated";
    assert_eq!(told(&message), expected);
}

#[test]
fn without_a_port_for_clients_the_first_one_counts() {
    let message = compose_with(&EventKind::Gone, json!({}), json!({}), &room(&[("a", 5), ("b", 6)])).unwrap();
    assert_eq!(message.room().port, 5);
}
