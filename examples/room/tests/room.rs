//! The room program as Maestro runs it: a process, its environment, its signals, its pings.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use maestro_sdk::testing::{FakeRoomsApi, ReceivedPing};
use maestro_testkit::{Lines, PATIENCE, PortSlice, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

struct RunningRoom {
    api: FakeRoomsApi,
    process: Child,
    port: u16,
    /// Nobody else has the port.
    ports: Option<PortSlice>,
}

impl RunningRoom {
    fn start(switches: &[(&str, &str)]) -> Self {
        let ports = PortSlice::take().expect("a slice of ports");
        let mut room = Self::start_on(*ports.room_ports().start(), switches);
        room.ports = Some(ports);
        room
    }

    fn start_on(port: u16, switches: &[(&str, &str)]) -> Self {
        let api = FakeRoomsApi::start().expect("a fake rooms API");
        let process = Command::new(env!("CARGO_BIN_EXE_maestro-example-room"))
            .env_clear()
            .env("MAESTRO_SCHEDULER_NAME", "example")
            .env("MAESTRO_ROOM_ID", "example-1")
            .env("MAESTRO_ROOMS_API_URL", api.url())
            .env("MAESTRO_HOST_PORT_GAME", port.to_string())
            .env("ROOM_START_DELAY_MS", "1")
            .envs(switches.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the room program runs");
        Self { api, process, port, ports: None }
    }

    fn wait_pings(&self, enough: impl Fn(&[ReceivedPing]) -> bool) -> Vec<ReceivedPing> {
        self.api.wait_for(PATIENCE, enough).unwrap_or_else(|pings| panic!("only {:?}", said(&pings)))
    }

    fn wait_ready(&self) {
        self.wait_pings(|pings| said(pings) == [("ready", 0)]);
    }

    fn wait_listening(&self) {
        let connect = || Ok(TcpStream::connect(("127.0.0.1", self.port))?);
        until("the room to listen", PATIENCE, connect).expect("the room listens");
    }

    fn says(&self, line: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the room listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        writeln!(stream, "{line}").expect("the room reads");
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).expect("the room answers");
        reply.trim_end().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("the room can be signalled");
    }

    fn wait_end(&mut self) -> ExitStatus {
        let ended = || self.process.try_wait()?.context("it runs");
        until("the room to end", PATIENCE, ended).expect("the room ends")
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        let stderr = self.process.stderr.take().expect("stderr is piped");
        BufReader::new(stderr).read_to_string(&mut text).expect("stderr is text");
        text
    }
}

impl Drop for RunningRoom {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn said(pings: &[ReceivedPing]) -> Vec<(&str, u64)> {
    pings.iter().map(|ping| (ping.status(), ping.running_matches())).collect()
}

#[test]
fn a_match_comes_and_goes() {
    let mut room = RunningRoom::start(&[]);
    room.wait_ready();
    assert_eq!(room.says("STATUS"), "ready 0/1");
    assert_eq!(room.says("JOIN 3"), "OK 1");
    assert_eq!(room.says("JOIN 3"), "FULL");
    room.wait_pings(|pings| said(pings) == [("ready", 0), ("occupied", 1), ("ready", 0)]);

    room.signal(Signal::TERM);
    assert_eq!(room.wait_end().code(), Some(0));
    let pings = room.api.pings();
    assert_eq!(said(&pings)[3..], [("terminating", 0), ("terminated", 0)]);
}

#[test]
fn several_matches_at_once() {
    let room = RunningRoom::start(&[("ROOM_MAX_MATCHES", "2")]);
    room.wait_ready();
    for (reply, matches) in [("OK 1", 1), ("OK 2", 2)] {
        assert_eq!(room.says("JOIN 60"), reply);
        room.wait_pings(|pings| said(pings).last() == Some(&("occupied", matches)));
    }
    assert_eq!(room.says("JOIN 60"), "FULL");
}

#[test]
fn players_of_an_allocation() {
    let mut room = RunningRoom::start(&[("ROOM_MAX_MATCHES", "2"), ("ROOM_PING_INTERVAL_MS", "50")]);
    room.wait_pings(|pings| !pings.is_empty());
    room.api.allocate("a-1", &json!({"map": "lava"}));
    let lines = Lines::of(room.process.stdout.take().expect("stdout is piped"));
    lines.wait(|line| line == r#"allocated: a-1 {"map":"lava"}"#).expect("the room says for whom it waits");
    assert_eq!(room.says("JOIN 60 a-1"), "OK 1");
    room.wait_pings(|pings| pings.iter().any(|ping| ping.begun() == ["a-1"] && ping.running_matches() == 1));
}

#[test]
fn a_match_may_end_before_the_room_does() {
    let mut room = RunningRoom::start(&[("ROOM_DRAIN_MS", "600000")]);
    room.wait_ready();
    room.says("JOIN 2");
    room.signal(Signal::TERM);
    room.wait_pings(|pings| pings.last().is_some_and(|ping| ping.status() == "terminating"));
    assert_eq!(room.says("JOIN 3"), "FULL");
    assert_eq!(room.wait_end().code(), Some(0));
}

#[test]
fn a_match_that_is_too_long_is_cut_off() {
    let mut room = RunningRoom::start(&[("ROOM_DRAIN_MS", "50")]);
    room.wait_ready();
    room.says("JOIN 3600");
    room.signal(Signal::TERM);
    assert_eq!(room.wait_end().code(), Some(0));
    let pings = room.api.pings();
    assert_eq!(said(&pings)[pings.len() - 2..], [("terminating", 1), ("terminated", 1)]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut room = RunningRoom::start_on(port, &[]);
    assert_eq!(room.wait_end().code(), Some(1));
    let complaint = room.complaint();
    assert!(complaint.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{complaint}");
    assert_eq!(room.api.pings(), []);
}

#[test]
fn a_variable_that_is_missing_is_named() {
    let mut room = RunningRoom::start(&[("MAESTRO_ROOM_ID", "")]);
    assert_eq!(room.wait_end().code(), Some(1));
    assert!(room.complaint().contains("MAESTRO_ROOM_ID is not set"));
}

#[test]
fn nobody_has_to_read_what_the_room_prints() {
    let mut room = RunningRoom::start(&[("ROOM_START_DELAY_MS", "200")]);
    drop((room.process.stdout.take(), room.process.stderr.take()));
    room.wait_ready();
    assert_eq!(room.says("JOIN 60"), "OK 1");
    assert_eq!(room.says("STATUS"), "occupied 1/1");
}

#[test]
fn fault_crash() {
    let mut room = RunningRoom::start(&[("ROOM_CRASH_AFTER_MS", "1000")]);
    room.wait_ready();
    assert_eq!(room.wait_end().code(), Some(3));
    assert_eq!(said(&room.api.pings()), [("ready", 0)]);
}

#[test]
fn fault_never_ready() {
    let mut room = RunningRoom::start(&[("ROOM_NEVER_READY", "1"), ("ROOM_PING_INTERVAL_MS", "50")]);
    room.wait_listening();
    room.api.wait_for(Duration::from_millis(300), |pings| !pings.is_empty()).unwrap_err();
    assert_eq!(room.says("STATUS"), "starting 0/1");
    room.signal(Signal::TERM);
    assert_eq!(room.wait_end().code(), Some(0));
}

#[test]
fn fault_stop_pinging() {
    let room = RunningRoom::start(&[("ROOM_STOP_PINGING_AFTER_MS", "400"), ("ROOM_PING_INTERVAL_MS", "100")]);
    room.wait_pings(|pings| !pings.is_empty());
    let pings = room.api.wait_for(Duration::from_millis(1500), |pings| pings.len() > 8);
    assert!(pings.is_err(), "400 ms have no room for more than 8 pings");
    assert_eq!(room.says("STATUS"), "ready 0/1");
}

#[test]
fn fault_ignore_sigterm() {
    let mut room = RunningRoom::start(&[("ROOM_IGNORE_SIGTERM", "1")]);
    room.wait_ready();
    room.signal(Signal::TERM);
    assert_eq!(room.says("JOIN 60"), "OK 1");
    room.wait_pings(|pings| said(pings) == [("ready", 0), ("occupied", 1)]);
    assert_eq!(room.process.try_wait().unwrap(), None);
}
