//! The SDK over real sockets. What depends on time alone is tested without them, beside the code.

use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context;
use maestro_sdk::testing::{FakeRoomsApi, ReceivedPing, Reply};
use maestro_sdk::{Answer, Handle, LastPing, Options, Room, Status, Value};
use maestro_testkit::http::{self, serve};
use maestro_testkit::{PATIENCE, until};
use serde_json::json;

/// Far away: what is sent within a test is sent because something changed.
const NEVER: Duration = Duration::from_secs(3600);

fn options(ping_interval: Duration) -> Options {
    Options { ping_interval, handle_sigterm: false, seed: Some(1), ..Options::default() }
}

fn start(url: &str, options: Options) -> Handle {
    let room = Room::new("arena", "arena-1", url).expect("a valid room");
    room.start(options).expect("threads can be started")
}

fn said(pings: &[ReceivedPing]) -> Vec<(&str, u64)> {
    pings.iter().map(|ping| (ping.status(), ping.running_matches())).collect()
}

/// Waits until the latest ping is as described.
fn wait_last_ping(handle: &Handle, is_so: impl Fn(&LastPing) -> bool) -> LastPing {
    let look = || {
        let last = handle.last_ping();
        last.clone().filter(&is_so).with_context(|| format!("still {last:?}"))
    };
    until("the latest ping to be so", PATIENCE, look).expect("a ping that is as described")
}

/// Fails if the work does not come to an end.
fn within_patience(work: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        work();
        ended.send(())
    });
    end.recv_timeout(PATIENCE).expect("it ends");
}

#[test]
fn a_life_of_a_room() {
    let api = FakeRoomsApi::start().unwrap();
    let handle = start(&api.url(), options(NEVER));
    assert_eq!((handle.status(), handle.last_ping()), (None, None));

    handle.set_metadata("map", "harbour");
    handle.ready();
    api.wait_for(PATIENCE, |pings| pings.len() == 1).unwrap();
    wait_last_ping(&handle, |last| last.status == Status::Ready && last.answer == Answer::Accepted);
    for (matches, expected) in [(1, 2), (2, 3), (0, 4)] {
        handle.occupied(matches);
        api.wait_for(PATIENCE, |pings| pings.len() == expected).unwrap();
    }
    handle.terminating();
    api.wait_for(PATIENCE, |pings| pings.len() == 5).unwrap();
    drop(handle);

    let pings = api.pings();
    let expected =
        [("ready", 0), ("occupied", 1), ("occupied", 2), ("ready", 0), ("terminating", 0), ("terminated", 0)];
    assert_eq!(said(&pings), expected);
    assert_eq!(pings[0].path, "/scheduler/arena/rooms/arena-1/ping");
    assert_eq!(pings[0].body["metadata"]["map"], "harbour");
    assert!(pings[0].body["timestamp"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(api.connections(), 1, "one connection serves a room for life");
}

#[test]
fn pings_go_on_while_nothing_changes() {
    let api = FakeRoomsApi::start().unwrap();
    let handle = start(&api.url(), options(Duration::from_millis(60)));
    handle.ready();
    let pings = api.wait_for(PATIENCE, |pings| pings.len() >= 4).unwrap();
    assert!(pings.iter().all(|ping| ping.status() == "ready"));
}

#[test]
fn a_refusal_can_be_read_and_ends_by_itself() {
    let api = FakeRoomsApi::start().unwrap();
    api.reply_with(Reply::Refuse);
    let handle = start(&api.url(), options(Duration::from_millis(100)));
    handle.ready();
    let refused = wait_last_ping(&handle, |last| last.failures >= 2);
    assert_eq!(refused.answer, Answer::Refused);

    api.reply_with(Reply::Accept);
    let accepted = wait_last_ping(&handle, |last| last.answer == Answer::Accepted);
    assert_eq!(accepted.failures, 0);
}

#[test]
fn what_the_server_does_wrong_is_told_and_outlived() {
    let api = FakeRoomsApi::start().unwrap();
    let request_timeout = Duration::from_millis(200);
    let handle = start(&api.url(), Options { request_timeout, ..options(Duration::from_millis(60)) });
    handle.ready();
    for (reply, words) in [
        (Reply::Error(503), "the rooms API answered 503: as asked"),
        (Reply::Silence, "timeout"),
        (Reply::HangUp, ""),
    ] {
        wait_last_ping(&handle, |last| last.answer == Answer::Accepted);
        api.reply_with(reply);
        let failed = wait_last_ping(&handle, |last| last.answer != Answer::Accepted);
        let Answer::Failed { reason } = failed.answer else { panic!("{reply:?}: {failed:?}") };
        assert!(reason.contains(words), "{reply:?}: {reason}");
        api.reply_with(Reply::Accept);
    }
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let handle = start(&format!("http://{refused}"), options(NEVER));
    handle.ready();
    let failed = wait_last_ping(&handle, |_| true);
    assert!(matches!(failed.answer, Answer::Failed { .. }));
}

/// A handle whose first ping has no answer, and never will.
fn unanswered(api: &FakeRoomsApi) -> Handle {
    api.reply_with(Reply::Silence);
    let farewell_timeout = Duration::from_millis(100);
    let handle = start(&api.url(), Options { farewell_timeout, request_timeout: NEVER, ..options(NEVER) });
    handle.ready();
    api.wait_for(PATIENCE, |pings| pings.len() == 1).expect("a first ping");
    handle
}

#[test]
fn a_server_that_does_not_answer_does_not_hold_up_the_game() {
    let api = FakeRoomsApi::start().unwrap();
    let handle = unanswered(&api);
    within_patience(move || {
        for matches in 0..1000 {
            handle.occupied(matches);
        }
    });
}

#[test]
fn dropping_the_handle_takes_a_bounded_time() {
    let api = FakeRoomsApi::start().unwrap();
    let handle = unanswered(&api);
    within_patience(move || drop(handle));
}

#[test]
fn a_game_that_hangs_falls_silent() {
    let api = FakeRoomsApi::start().unwrap();
    let alive_within = Some(Duration::from_millis(300));
    let handle = start(&api.url(), Options { alive_within, ..options(Duration::from_millis(50)) });
    handle.ready();
    // 300 ms have no room for more than 8 pings at 50 ms each.
    let pings = api.wait_for(Duration::from_secs(1), |pings| pings.len() > 8).unwrap_err();

    handle.alive();
    api.wait_for(PATIENCE, |later| later.len() > pings.len()).unwrap();
}

#[test]
fn a_handle_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Handle>();
}

#[test]
fn a_room_is_told_once_for_whom_it_was_allocated() {
    let api = FakeRoomsApi::start().unwrap();
    let handle = Arc::new(start(&api.url(), options(Duration::from_millis(50))));
    api.allocate("a", &json!({"map": "lava"}));
    handle.ready();
    until("the first to be known", PATIENCE, || ensure_eq(handle.allocations().len(), 1)).unwrap();

    // Those that came before are told at once, and a callback that fails costs nothing but itself.
    let (tell, told) = mpsc::channel();
    let in_callback = Arc::clone(&handle);
    handle.on_allocated(move |allocation| {
        let id = allocation.id.clone();
        tell.send((allocation, in_callback.status())).unwrap();
        assert_ne!(id, "b", "a game that panics in its callback");
    });
    let (first, status) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!((first.id.as_str(), &first.metadata["map"]), ("a", &Value::from("lava")));
    assert!(first.expires_at > std::time::SystemTime::now());
    assert_eq!(status, Some(Status::Ready), "the callback may use the handle");

    let mut ids = Vec::new();
    for id in ["b", "c"] {
        api.allocate(id, &json!({}));
        ids.push(told.recv_timeout(PATIENCE).unwrap().0.id);
    }
    assert_eq!(ids, ["b", "c"]);

    handle.begun("b", 1);
    api.wait_for(PATIENCE, |pings| pings.iter().any(|ping| ping.begun() == ["b"])).unwrap();
    until("it to be gone", PATIENCE, || ensure_eq(handle.allocations().len(), 2)).unwrap();
    let count = api.pings().len();
    let pings = api.wait_for(PATIENCE, |pings| pings.len() > count + 2).unwrap();
    assert_eq!(pings.last().unwrap().begun(), [] as [&str; 0], "it is said until it was heard");
    assert!(told.try_recv().is_err(), "each is told once");
}

#[test]
fn a_server_that_knows_no_allocations_is_understood() {
    for answer in [
        r#"{"success":true}"#,
        r#"{"success":true,"allocations":null}"#,
        r#"{"success":true,"allocations":[7,{}]}"#,
    ] {
        let server = serve(move |_| http::Reply::json(200, answer)).unwrap();
        let handle = start(&format!("http://{server}"), options(NEVER));
        handle.on_allocated(|allocation| panic!("nobody was allocated: {allocation:?}"));
        handle.ready();
        wait_last_ping(&handle, |last| last.answer == Answer::Accepted);
        assert_eq!(handle.allocations(), []);
    }
}

fn ensure_eq(count: usize, expected: usize) -> anyhow::Result<()> {
    anyhow::ensure!(count == expected, "{count} allocations");
    Ok(())
}
