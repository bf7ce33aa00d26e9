//! Deliveries to receivers that are well, slow, dead, or no receivers at all.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use maestro_core::event::{EventId, Message, MessageRoom, PlayerChange, RpcCode};
use maestro_core::room::PingStatus;
use maestro_engine::ports::event_sink::{Delivery, DeliveryError, EventSink};
use maestro_forwarder::GrpcSink;
use maestro_forwarder::receiver::{Behaviour, Receiver};
use tonic::Code;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);
/// Where it must run out.
const SHORT: Duration = Duration::from_millis(200);

fn room() -> MessageRoom {
    MessageRoom {
        game: "brawl".into(),
        id: "arena-1".into(),
        host: "203.0.113.7".into(),
        port: 20_001,
        metadata: BTreeMap::from([("map".into(), "lava".into())]),
        room_type: "red".into(),
    }
}

fn event() -> Message {
    Message::RoomEvent { room: room(), event_type: "matchStarted".into() }
}

async fn deliver(
    sink: &GrpcSink,
    address: &str,
    message: &Message,
    timeout: Duration,
) -> Result<i32, DeliveryError> {
    sink.deliver(Delivery { address, id: EventId::from_u128(7), message, timeout }).await
}

async fn code_of(sink: &GrpcSink, address: &str, timeout: Duration) -> RpcCode {
    deliver(sink, address, &event(), timeout).await.map_or_else(|error| error.code, |_| RpcCode::Ok)
}

#[tokio::test]
async fn messages_arrive_as_they_were_sent() {
    let receiver = Receiver::start().unwrap();
    let (sink, address) = (GrpcSink::default(), receiver.address().to_string());
    let player = Message::PlayerEvent {
        room: MessageRoom { game: "brawl".into(), id: "arena-1".into(), ..MessageRoom::default() },
        player_id: "p1".into(),
        change: PlayerChange::Left,
        metadata: BTreeMap::from([("level".into(), "7".into())]),
    };
    let messages = [
        Message::Resync { room: room(), status: PingStatus::Occupied },
        Message::Status { room: room(), status: PingStatus::Terminated },
        event(),
        player,
    ];
    for message in &messages {
        assert_eq!(deliver(&sink, &address, message, LONG).await, Ok(200));
    }
    let received = receiver.received();
    let told: Vec<_> = received.iter().map(|call| (call.method, call.what.as_str())).collect();
    let expected = [
        ("SendRoomResync", "occupied"),
        ("SendRoomStatus", "terminated"),
        ("SendRoomEvent", "matchStarted"),
        ("SendPlayerEvent", "PLAYER_LEFT"),
    ];
    assert_eq!(told, expected);
    for call in &received[..3] {
        let place = (call.game.as_str(), call.room_id.as_str(), call.host.as_str(), call.port);
        assert_eq!(place, ("brawl", "arena-1", "203.0.113.7", 20_001));
        assert_eq!((call.room_type.as_str(), call.metadata["map"].as_str()), ("red", "lava"));
    }
    let player = &received[3];
    assert_eq!((player.player_id.as_str(), player.metadata["level"].as_str(), player.port), ("p1", "7", 0));
    assert!(received.iter().all(|call| call.event_id == EventId::from_u128(7).to_string()));
}

#[tokio::test]
async fn a_reply_is_a_reply_and_a_status_is_named() {
    let receiver = Receiver::start().unwrap();
    let (sink, address) = (GrpcSink::default(), receiver.address().to_string());
    for code in [0, 200, 404, 500, -1] {
        receiver.behave(Behaviour::Reply(code));
        assert_eq!(deliver(&sink, &address, &event(), LONG).await, Ok(code));
    }
    for (given, expected) in [
        (Code::InvalidArgument, RpcCode::InvalidArgument),
        (Code::Unimplemented, RpcCode::Unimplemented),
        (Code::ResourceExhausted, RpcCode::ResourceExhausted),
        (Code::Unavailable, RpcCode::Unavailable),
    ] {
        receiver.behave(Behaviour::Fail(given));
        let error = deliver(&sink, &address, &event(), LONG).await.unwrap_err();
        assert_eq!(error.code, expected);
        assert!(error.message.contains("told to"), "{error}");
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_is_given_up_and_can_come_back() {
    let receiver = Receiver::start().unwrap();
    let (sink, address) = (GrpcSink::default(), receiver.address().to_string());
    receiver.behave(Behaviour::Silent);
    // More often than a connection is believed in.
    for _ in 0..5 {
        let error = deliver(&sink, &address, &event(), SHORT).await.unwrap_err();
        assert_eq!(error.code, RpcCode::DeadlineExceeded);
        assert_eq!(error.message, format!("{address} did not answer within 200ms"));
    }
    receiver.behave(Behaviour::Reply(200));
    assert_eq!(deliver(&sink, &address, &event(), LONG).await, Ok(200));
}

#[tokio::test]
async fn a_receiver_that_was_killed_is_found_again() {
    let receiver = Receiver::start().unwrap();
    let (sink, at) = (GrpcSink::default(), receiver.address());
    let address = at.to_string();
    assert_eq!(code_of(&sink, &address, LONG).await, RpcCode::Ok);
    drop(receiver);
    maestro_testkit::eventually("the receiver to be gone", async || {
        code_of(&sink, &address, LONG).await == RpcCode::Unavailable
    })
    .await;
    let receiver = Receiver::start_at(at).unwrap();
    maestro_testkit::eventually("the receiver to be back", async || {
        code_of(&sink, &address, LONG).await == RpcCode::Ok
    })
    .await;
    assert!(!receiver.received().is_empty());
}

#[tokio::test]
async fn addresses_that_lead_nowhere_are_named() {
    let sink = GrpcSink::default();
    for (address, message) in [
        ("matchmaker.invalid:9090", "cannot resolve matchmaker.invalid:9090: "),
        ("matchmaker", "\"matchmaker\" is not an address; write it as host:port"),
        ("a b:1", "\"a b:1\" is not an address; write it as host:port"),
        ("http://x:1/path", "\"http://x:1/path\" is not an address; write it as host:port"),
        ("", "\"\" is not an address; write it as host:port"),
        ("127.0.0.1:99999", "\"127.0.0.1:99999\" is not an address; write it as host:port"),
    ] {
        let error = deliver(&sink, address, &event(), LONG).await.unwrap_err();
        assert_eq!(error.code, RpcCode::Unavailable, "{error}");
        assert!(error.message.starts_with(message), "{error}");
    }
}

#[tokio::test]
async fn schemes_that_others_write_are_understood() {
    let receiver = Receiver::start().unwrap();
    let sink = GrpcSink::default();
    for scheme in ["", "dns:///", "passthrough:///", "http://"] {
        let address = format!("{scheme}{}", receiver.address());
        assert_eq!(deliver(&sink, &address, &event(), LONG).await, Ok(200), "{address}");
    }
}

/// It speaks something else, says nothing, or hangs up: an error, in time, and no panic.
#[tokio::test]
async fn what_is_no_receiver_is_an_error() {
    let answers: [&[u8]; 4] = [
        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
        b"\x00\x00\x04\x04\x00\x00\x00\x00\x00garbage garbage garbage garbage garbage",
        &[0xff; 4096],
        b"",
    ];
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { break };
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer);
            }
        });
        let sink = GrpcSink::default();
        for _ in 0..3 {
            let error = deliver(&sink, &address, &event(), Duration::from_secs(2)).await.unwrap_err();
            assert_ne!(error.code, RpcCode::Ok, "{answer:?}");
        }
    }
}
