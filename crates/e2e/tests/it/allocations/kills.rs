//! The server is killed at every write that an allocation makes, from its answer to its end: the same request gets the
//! same room, every hold ends as it should, and no room stays behind.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, PATIENCE, STOP_ROOMS, checks, until};
use serde_json::{Value, json};

use super::ALLOCATIONS;

/// What becomes of the room that is asked for.
#[derive(Debug, Clone, Copy)]
enum Way {
    Played,
    Returned,
    Expired,
}

/// With the writes that each makes, by their labels.
const WAYS: [(Way, &[&str]); 3] = [
    (Way::Played, &["allocate", "settle hold"]),
    (Way::Returned, &["return allocation"]),
    (Way::Expired, &["settle hold"]),
];
const REQUEST: &str = "cup-final";

#[test]
fn a_kill_at_any_write_of_an_allocation_loses_nothing() -> anyhow::Result<()> {
    let cases = WAYS.into_iter().flat_map(|(way, labels)| {
        let moments = ["before", "after"];
        labels.iter().flat_map(move |label| moments.map(|moment| (way, *label, moment)))
    });
    thread::scope(|scope| {
        let runs: Vec<_> = cases
            .map(|(way, label, moment)| {
                let run = move || killed_at(way, label, moment);
                (scope.spawn(run), format!("{way:?}, killed {moment} {label}"))
            })
            .collect();
        runs.into_iter().try_for_each(|(run, name)| match run.join() {
            Ok(outcome) => outcome.context(name),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// A room whose row could not be written is nobody's: both rooms can be had.
#[test]
fn a_room_whose_row_could_not_be_written_is_free_at_once() -> anyhow::Result<()> {
    let mut case = Case { maestro: Maestro::new(&[])?, has_died: false };
    case.maestro.set_failpoint(Some("full:=allocate"));
    case.maestro.start()?;
    case.maestro.fleet("arena", 2)?;
    let request = json!({"requestId": REQUEST}).to_string();
    let refused = case.maestro.api().post(ALLOCATIONS, "", &request)?.expect(503)?;
    ensure!(refused.message().contains("no room was handed over: ask again"), "{refused:?}");
    let given = case.ask(&request)?;
    assert_eq!(case.ask(&request)?["id"], given["id"], "the same request again");
    assert_ne!(case.ask("{}")?["roomId"], given["roomId"]);
    Ok(())
}

fn killed_at(way: Way, label: &str, moment: &str) -> anyhow::Result<()> {
    let mut case = Case { maestro: Maestro::new(&[])?, has_died: false };
    case.maestro.unset(STOP_ROOMS);
    case.maestro.set_failpoint(Some(&format!("kill:={label}:{moment}")));
    case.maestro.start()?;
    case.maestro.fleet("arena", 2)?;
    case.goes(way).with_context(|| case.maestro.log_tail())?;
    ensure!(case.has_died, "it was not killed");
    Ok(())
}

struct Case {
    maestro: Maestro,
    has_died: bool,
}

impl Case {
    fn goes(&mut self, way: Way) -> anyhow::Result<()> {
        let ttl = if matches!(way, Way::Expired) { 1000 } else { 60_000 };
        let request = json!({"requestId": REQUEST, "ttlMillis": ttl}).to_string();
        let given = self.ask(&request)?;
        let path = format!("{ALLOCATIONS}/{}", given["id"].as_str().context("an id")?);
        let state = match way {
            Way::Played => {
                self.play(&given)?;
                "begun"
            }
            Way::Returned => {
                self.until("the room to be given back", |case| {
                    case.maestro.api().delete(&path)?.expect(204)
                })?;
                "returned"
            }
            Way::Expired => "expired",
        };
        self.until(state, |case| {
            let allocation = case.maestro.api().get(&path)?.expect(200)?.json()?["allocation"].take();
            ensure!(allocation["state"] == state, "{allocation}");
            Ok(())
        })?;
        // Nothing is allocated twice for one request, and what is over is over.
        let listed = self.maestro.api().get(&format!("{ALLOCATIONS}?perPage=100"))?.expect(200)?.json()?;
        let listed = listed["allocations"].as_array().context("a list")?;
        let of_request = listed.iter().filter(|one| one["requestId"] == REQUEST).count();
        ensure!(of_request == 1, "{of_request} allocations of one request: {listed:?}");
        let again = self.maestro.api().post(ALLOCATIONS, "", &request)?.expect(409)?;
        ensure!(again.message().contains(state), "{}", again.text);
        self.rooms_are_free(way)
    }

    fn play(&mut self, given: &Value) -> anyhow::Result<()> {
        let rooms = self.maestro.api().rooms("arena")?;
        let room = rooms.iter().find(|room| given["roomId"] == room.id.as_str()).context("its room")?;
        let id = given["id"].as_str().context("an id")?;
        ensure!(room.join_allocation(Duration::from_secs(60), id)?, "the room has no place");
        Ok(())
    }

    /// All but the one that is played in, and the one that the second request got.
    fn rooms_are_free(&mut self, way: Way) -> anyhow::Result<()> {
        match way {
            Way::Returned | Way::Expired => {
                self.until("two free rooms", |case| checks::settled(&case.maestro, "arena", 2).map(drop))
            }
            Way::Played => self.until("one free room", |case| {
                let rooms = case.maestro.api().rooms("arena")?;
                ensure!(rooms.iter().filter(|room| room.status == "ready").count() == 1, "{rooms:?}");
                Ok(())
            }),
        }
    }

    /// The same request until there is an answer.
    fn ask(&mut self, request: &str) -> anyhow::Result<Value> {
        self.until("an answer", |case| {
            let answer = case.maestro.api().post(ALLOCATIONS, "", request)?.expect(200)?;
            Ok(answer.json()?["allocations"][0].take())
        })
    }

    /// Waits over the death of the server.
    fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        until(what, PATIENCE, || {
            self.has_died |= self.maestro.revive()?;
            look(self)
        })
    }
}
