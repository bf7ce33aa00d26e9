//! The event stream of the real binary: over connections that break, restarts and shutdowns.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use maestro_e2e::{Maestro, PATIENCE, STOP_ROOMS, checks, send_signal};
use rustix::process::Signal;
use serde_json::Value;

/// One connection that reads events.
struct Reader {
    lines: BufReader<TcpStream>,
    last_id: String,
}

impl Reader {
    fn open(port: u16, query: &str, last_id: Option<&str>) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let last_id = last_id.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        // Without chunks, so that lines can be read as they are.
        write!(stream, "GET /events{query} HTTP/1.0\r\nhost: localhost\r\n{last_id}\r\n")?;
        let mut lines = BufReader::new(stream);
        let mut status = String::new();
        lines.read_line(&mut status)?;
        ensure!(status.contains(" 200 "), "{status}");
        Ok(Self { lines, last_id: String::new() })
    }

    /// `None`: the stream has ended.
    fn event(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error).context("reading the next event"),
            }
            if let Some(id) = line.strip_prefix("id: ") {
                id.trim().clone_into(&mut self.last_id);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Ok(Some(serde_json::from_str(data)?));
            }
        }
    }

    /// The data of the next event about this subject, which must have this type.
    fn next_of(&mut self, kind: &str, subject: &str) -> anyhow::Result<Value> {
        loop {
            let event = self.event()?.context("the stream has ended")?;
            if event["type"] == kind && event["subject"] == subject {
                return Ok(event["data"].clone());
            }
            ensure!(event["type"] != "reset" || kind == "reset", "reset: {event}");
        }
    }
}

#[test]
fn a_room_that_dies_is_told_and_a_lost_connection_misses_nothing() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 2)?;
    let [management, rooms_api, _] = maestro.api_ports();
    let mut reader = Reader::open(management, "?scheduler=arena", None)?;
    reader.next_of("reset", "")?;
    let victim = &rooms[0];
    send_signal(victim.pids[0], Signal::KILL)?;
    let end = loop {
        let data = reader.next_of("room", &victim.id)?;
        if data["ended"].is_object() {
            break data;
        }
    };
    let how = end["ended"]["how"].as_str().context("it does not say how")?;
    ensure!(how.contains("killed by signal 9 (SIGKILL)"), "{how}");

    // The connection breaks; another room dies meanwhile, and the fleet is mended.
    let last_id = reader.last_id.clone();
    drop(reader);
    send_signal(rooms[1].pids[0], Signal::KILL)?;
    let after = maestro.until("replacements", || {
        let settled = checks::settled(&maestro, "arena", 2)?;
        ensure!(settled.iter().all(|room| room.id != rooms[1].id), "the dead one is still there");
        Ok(settled)
    })?;
    let mut again = Reader::open(rooms_api, "?scheduler=arena&follow=false", Some(&last_id))?;
    let mut missed = Vec::new();
    while let Some(event) = again.event()? {
        ensure!(event["type"] != "reset", "{event}");
        missed.push(event);
    }
    let of = |subject: &str| -> Vec<&Value> {
        missed.iter().filter(|event| event["subject"] == subject).map(|event| &event["data"]).collect()
    };
    ensure!(of(&rooms[1].id).iter().any(|data| data["ended"].is_object()), "{missed:?}");
    for room in &after {
        let statuses: Vec<_> = of(&room.id).iter().filter_map(|data| data["status"].as_str()).collect();
        ensure!(statuses.last() == Some(&"ready"), "{}: {statuses:?}", room.id);
    }
    // Each status follows from the one before: nothing is missing, and nothing is out of order.
    for room in &after {
        for pair in of(&room.id).windows(2) {
            if let Some(before) = pair[1]["before"].as_str() {
                ensure!(pair[0]["status"] == before, "{}: {pair:?}", room.id);
            }
        }
    }
    let listed = maestro.cli(&["events", "arena", "--types", "room"])?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(listed.contains("SIGKILL") && listed.contains(&after[0].id), "{listed}");
    Ok(())
}

#[test]
fn a_restart_begins_anew_and_a_shutdown_ends_streams_at_once() -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    maestro.fleet("arena", 1)?;
    let [management, rooms_api, _] = maestro.api_ports();
    let mut readers = [Reader::open(management, "", None)?, Reader::open(rooms_api, "", None)?];
    for reader in &mut readers {
        reader.next_of("reset", "")?;
    }
    // And one that never reads.
    let mut deaf = TcpStream::connect(("127.0.0.1", management))?;
    deaf.write_all(b"GET /events?lastEventId=oldest HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let asked = Instant::now();
    let status = maestro.stop(Signal::TERM)?;
    println!("ended after {} ms with three streams", asked.elapsed().as_millis());
    ensure!(status.code() == Some(0), "{}", maestro.log_tail());
    ensure!(!maestro.log_tail().contains("dropping requests"), "{}", maestro.log_tail());
    for reader in &mut readers {
        while reader.event()?.is_some() {}
    }
    deaf.set_read_timeout(Some(PATIENCE))?;
    let mut rest = Vec::new();
    if let Err(error) = deaf.read_to_end(&mut rest) {
        ensure!(error.kind() == ErrorKind::ConnectionReset, "{error}");
    }

    maestro.start()?;
    let last_id = readers[0].last_id.clone();
    let mut again = Reader::open(management, "", Some(&last_id))?;
    let reset = again.event()?.context("the stream has ended")?;
    if reset["type"] != "reset" {
        bail!("events of another ring: {reset}");
    }
    ensure!(again.last_id != last_id, "the new ring has another id");
    Ok(())
}
