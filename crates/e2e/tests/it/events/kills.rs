//! The server is killed at every write that a queued event makes: what was accepted is delivered, in order.

use std::os::unix::process::ExitStatusExt;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, PATIENCE, send_signal, until};
use maestro_forwarder::receiver::Receiver;
use rustix::process::Signal;
use serde_json::json;

use super::{fleet, forwarder, heard, send};

/// The writes of a queued event, from its acceptance to its delivery, and of the end of a room.
const WRITES: [&str; 3] = ["queue event", "events delivered", "room ended"];
const EVENTS: usize = 12;

#[test]
fn a_kill_at_any_write_of_an_event_loses_nothing() -> anyhow::Result<()> {
    for label in WRITES {
        for moment in ["before", "after"] {
            killed_at(label, moment).with_context(|| format!("killed {moment} {label}"))?;
        }
    }
    Ok(())
}

fn killed_at(label: &str, moment: &str) -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let mut maestro = Maestro::new(&[])?;
    maestro.set_failpoint(Some(&format!("kill:={label}:{moment}")));
    maestro.start()?;
    let room = fleet(&maestro, 1, &[forwarder("mm", receiver.address(), "queued")])?.remove(0);
    let mut is_dead = false;
    for number in 0..EVENTS {
        let event = json!({"event": number.to_string()});
        // Until it is accepted: an answer that is lost is asked for again.
        until("an accepted event", PATIENCE, || {
            is_dead |= revived(&mut maestro)?;
            let answer = send(&maestro, &room.id, "roomevent", &event)?.expect(200)?.json()?;
            ensure!(answer["success"] == true, "{answer}");
            Ok(())
        })?;
    }
    send_signal(room.pids[0], Signal::KILL)?;
    until("all events", PATIENCE, || {
        is_dead |= revived(&mut maestro)?;
        let heard = heard(&receiver.events(), &room.id);
        ensure!(heard.last().is_some_and(|last| last == "terminated"), "{heard:?}");
        Ok(())
    })
    .with_context(|| maestro.log_tail())?;
    ensure!(is_dead, "it was not killed");
    // What is repeated is repeated as a whole, and nothing is missing or out of order.
    let mut first_heard: Vec<String> = Vec::new();
    for what in heard(&receiver.events(), &room.id) {
        if !first_heard.contains(&what) {
            first_heard.push(what);
        }
    }
    let expected: Vec<String> =
        (0..EVENTS).map(|number| number.to_string()).chain(["terminated".to_owned()]).collect();
    assert_eq!(first_heard, expected);
    Ok(())
}

/// Starts the server again if its failpoint has killed it. True: it did.
fn revived(maestro: &mut Maestro) -> anyhow::Result<bool> {
    let Some(status) = maestro.ended()? else { return Ok(false) };
    ensure!(status.signal() == Some(9), "the server ended by itself: {status}");
    maestro.set_failpoint(None);
    maestro.start()?;
    Ok(true)
}
