//! Clients that send requests slowly, or never to the end, and a server without descriptors: rooms are heard all the
//! same, and none is taken for dead.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use jiff::{SignedDuration, Timestamp};
use maestro_e2e::{Maestro, PATIENCE, Room};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// More than the requests that the rooms API works on at once.
const HALF_SENT: usize = 4_200;

const PING_TIMEOUT_MS: &str = "4000";
/// Whoever is silent for so long is gone.
const LONG_ENOUGH: SignedDuration = SignedDuration::from_secs(9);

/// Of a ping: nearly all of its headers, and the beginning of its body.
const HEAD: &[u8] =
    b"PUT /scheduler/arena/rooms/nobody/ping HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000";
const BODY: &[u8] = b"\r\n\r\n{\"status\"";

#[test]
fn thousands_of_half_sent_requests_cost_no_room() -> anyhow::Result<()> {
    raise_own_limit()?;
    let maestro = Maestro::started(&[("SERVICES_ROOMMANAGER_ROOMPINGTIMEOUTMILLIS", PING_TIMEOUT_MS)])?;
    let before = maestro.fleet("arena", 3)?;
    let (begun, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let port = maestro.api_ports()[1];
    let after = thread::scope(|scope| {
        scope.spawn(|| attack(port, &begun, &over));
        let all_begun = || {
            let begun = begun.load(Ordering::Relaxed);
            ensure!(begun >= HALF_SENT, "{begun} requests are begun");
            Ok(())
        };
        let after =
            maestro.until("all to be begun", all_begun).and_then(|()| heard_for_long_enough(&maestro));
        over.store(true, Ordering::Relaxed);
        after
    })?;
    assert_eq!(ids(&after), ids(&before), "a healthy room was removed; {}", maestro.log_tail());
    Ok(())
}

#[test]
fn a_slow_sender_is_cut_off_at_every_listener() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[("API_REQUESTREADTIMEOUT", "1s")])?;
    for port in maestro.api_ports() {
        for beginning in
            [&b""[..], b"GET /", b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n{"]
        {
            drip(port, beginning)
                .with_context(|| format!("{port}: {}", String::from_utf8_lossy(beginning)))?;
        }
    }
    Ok(())
}

#[test]
fn a_server_without_descriptors_hears_rooms_again_when_there_are_some() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[
        ("SERVICES_ROOMMANAGER_ROOMPINGTIMEOUTMILLIS", PING_TIMEOUT_MS),
        ("API_REQUESTREADTIMEOUT", "1s"),
    ])?;
    let before = maestro.fleet("arena", 3)?;
    let pid = i32::try_from(maestro.pid()?)?;
    let used = fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64;
    let pid = Pid::from_raw(pid).context("no pid")?;
    let usual = prlimit(Some(pid), Resource::Nofile, limit(used + 4))?;
    let mut held = Vec::new();
    for _ in 0..64 {
        held.extend(begin(maestro.api_ports()[1], HEAD));
    }
    // Their deadline ends them, and whoever waited is heard.
    let after = heard_for_long_enough(&maestro)?;
    assert_eq!(ids(&after), ids(&before), "a healthy room was removed; {}", maestro.log_tail());
    prlimit(Some(pid), Resource::Nofile, usual)?;
    maestro.until("a server that works as ever", || {
        maestro.api().add("arena", 1, "e2e")?.expect(200).map(drop)
    })?;
    let log = fs::read_to_string(maestro.log())?;
    let told = log.lines().filter(|line| line.contains("connections are refused")).count();
    ensure!((1..10).contains(&told), "told {told} times that connections are refused");
    Ok(())
}

/// The rooms, once each has pinged so long after now.
fn heard_for_long_enough(maestro: &Maestro) -> anyhow::Result<Vec<Room>> {
    let then = Timestamp::now() + LONG_ENOUGH;
    maestro.until("pings to go on", || {
        let rooms = maestro.api().rooms("arena")?;
        ensure!(rooms.len() >= 3, "{} rooms", rooms.len());
        for room in &rooms {
            let heard_at = room.last_ping_at.with_context(|| format!("{} did not ping", room.id))?;
            ensure!(heard_at.0 >= then, "{} pinged last at {}", room.id, heard_at.0);
        }
        Ok(rooms)
    })
}

fn ids(rooms: &[Room]) -> Vec<&str> {
    let mut ids: Vec<&str> = rooms.iter().map(|room| room.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

/// Begins requests, sends a part of the body of all of them at once, and never ends one.
fn attack(port: u16, begun: &AtomicUsize, over: &AtomicBool) {
    let mut held = Vec::new();
    while held.len() < HALF_SENT && !over.load(Ordering::Relaxed) {
        held.extend(begin(port, HEAD));
    }
    for stream in &mut held {
        // The server may have closed it.
        let _ = stream.write_all(BODY);
        begun.fetch_add(1, Ordering::Relaxed);
    }
    while !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
}

fn begin(port: u16, beginning: &[u8]) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok()?;
    stream.set_nonblocking(true).ok()?;
    stream.write_all(beginning).ok()?;
    Some(stream)
}

/// Sends a byte now and then, until the server closes the connection.
fn drip(port: u16, beginning: &[u8]) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    stream.write_all(beginning)?;
    let started = Instant::now();
    loop {
        ensure!(started.elapsed() < PATIENCE, "it is not cut off");
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => ensure!(false, "it is answered"),
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return Ok(()),
        }
        if stream.write_all(b"x").is_err() {
            return Ok(());
        }
    }
}

fn raise_own_limit() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let enough = limit.maximum.is_none_or(|most| most > HALF_SENT as u64 + 500);
    ensure!(enough, "this test opens {HALF_SENT} connections: `ulimit -Hn` must be higher than that");
    Ok(())
}

fn limit(descriptors: u64) -> Rlimit {
    Rlimit { current: Some(descriptors), maximum: getrlimit(Resource::Nofile).maximum }
}
