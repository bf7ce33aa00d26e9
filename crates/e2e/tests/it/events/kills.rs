//! The server is killed at every write that a queued event makes: what was accepted is delivered, in order.

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, PATIENCE, send_signal, until};
use maestro_forwarder::receiver::{Behaviour, Receiver};
use rustix::process::Signal;
use serde_json::json;
use tonic::Code;

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
        is_dead |= accepted(&mut maestro, &room.id, &number.to_string())?;
    }
    send_signal(room.pids[0], Signal::KILL)?;
    until("all events", PATIENCE, || {
        is_dead |= maestro.revive()?;
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

/// Sends an event until it is accepted: one whose answer is lost is sent again. True: the server was killed meanwhile.
fn accepted(maestro: &mut Maestro, room: &str, event: &str) -> anyhow::Result<bool> {
    let mut is_dead = false;
    until("an accepted event", PATIENCE, || {
        is_dead |= maestro.revive()?;
        let answer = send(maestro, room, "roomevent", &json!({ "event": event }))?.expect(200)?.json()?;
        ensure!(answer["success"] == true, "{answer}");
        Ok(is_dead)
    })
}

/// What the receiver refuses for good is kept, and can be delivered later.
#[test]
fn a_kill_at_any_write_of_a_dead_letter_loses_nothing() -> anyhow::Result<()> {
    for label in ["events delivered", "replay events"] {
        for moment in ["before", "after"] {
            dies_at(label, moment).with_context(|| format!("killed {moment} {label}"))?;
        }
    }
    Ok(())
}

fn dies_at(label: &str, moment: &str) -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let mut maestro = Maestro::new(&[])?;
    maestro.set_failpoint(Some(&format!("kill:={label}:{moment}")));
    maestro.start()?;
    let room = fleet(&maestro, 1, &[forwarder("mm", receiver.address(), "queued")])?.remove(0);
    receiver.behave(Behaviour::Fail(Code::InvalidArgument));
    let expected = ["1", "2", "3"];
    let mut is_dead = false;
    for event in expected {
        is_dead |= accepted(&mut maestro, &room.id, event)?;
    }
    let total = |maestro: &Maestro, query: &str| {
        let listed = maestro.api().get(&format!("/schedulers/arena/events{query}"))?.expect(200)?;
        listed.json()?["total"].as_u64().with_context(|| listed.text)
    };
    until("dead letters", PATIENCE, || {
        is_dead |= maestro.revive()?;
        // One whose answer was lost was sent again.
        let (dead, all) = (total(&maestro, "?dead=true")?, total(&maestro, "")?);
        ensure!(dead >= 3 && all == dead, "{dead} dead letters of {all} events");
        Ok(())
    })?;
    receiver.behave(Behaviour::Reply(200));
    until("the replay", PATIENCE, || {
        is_dead |= maestro.revive()?;
        maestro.api().post("/schedulers/arena/events/replay", "e2e", r#"{"all": true}"#)?.expect(200)
    })?;
    until("all events", PATIENCE, || {
        is_dead |= maestro.revive()?;
        let taken: Vec<_> = receiver.events().into_iter().filter(|event| event.taken).collect();
        let mut heard = heard(&taken, &room.id);
        heard.sort();
        heard.dedup();
        ensure!(heard == expected && total(&maestro, "")? == 0, "{heard:?}");
        Ok(())
    })
    .with_context(|| maestro.log_tail())?;
    ensure!(is_dead, "it was not killed");
    Ok(())
}
