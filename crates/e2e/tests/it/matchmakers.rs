//! The matchmakers that `docs/matchmakers.md` shows, in Python and in Go, against a server with two rooms: they find rooms
//! for players, through a server that dies and a fleet that is full.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Room, STOP_ROOMS};
use maestro_testkit::Lines;
use serde_json::{Value, json};

use crate::other_languages::{build_go, examples};

struct Matchmaker {
    child: Child,
    players: ChildStdin,
    lines: Lines,
}

/// What a matchmaker prints of a pair of players.
#[derive(Debug, PartialEq, Eq)]
struct Seated {
    players: String,
    port: u16,
    allocation: String,
}

#[test]
fn in_python() -> anyhow::Result<()> {
    finds_rooms(&mut Command::new(examples().join("matchmaker-python/matchmaker.py")))
}

#[test]
fn in_go() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("matchmaker");
    build_go("matchmaker-go", &program)?;
    finds_rooms(&mut Command::new(program))
}

fn finds_rooms(command: &mut Command) -> anyhow::Result<()> {
    let mut maestro = Maestro::new(&[])?;
    maestro.unset(STOP_ROOMS);
    maestro.start()?;
    let rooms = maestro.fleet("arena", 2)?;
    let mut matchmaker = Matchmaker::start(command, maestro.api().url())?;

    let first = matchmaker.seat("ada", "bob")?;
    assert_eq!(first.players, "ada bob");
    let allocation = allocation(&maestro, &first.allocation)?;
    assert_eq!(
        (&allocation["state"], &allocation["roomId"]),
        (&json!("held"), &json!(room(&rooms, &first)?.id))
    );
    assert_eq!(allocation["metadata"], json!({"players": ["ada", "bob"]}));
    assert_ne!(allocation["requestId"], "");

    maestro.kill()?;
    matchmaker.queue("cy", "dee")?;
    maestro.start()?;
    let second = matchmaker.seated()?;
    assert_ne!(second.port, first.port, "the first room is held through the death of the server");

    // Nothing is free. Whoever waits gets what is returned.
    matchmaker.queue("eve", "fay")?;
    maestro.until("a request to wait, or to be refused", || {
        let answer = maestro.api().post("/schedulers/arena/allocations", "", "{}")?;
        ensure!(answer.status == 429, "{}", answer.text);
        Ok(())
    })?;
    let path = format!("/schedulers/arena/allocations/{}", second.allocation);
    maestro.api().delete(&path)?.expect(204)?;
    let third = matchmaker.seated()?;
    assert_eq!((third.players.as_str(), third.port), ("eve fay", second.port));

    ensure!(room(&rooms, &first)?.join_allocation(Duration::from_secs(60), &first.allocation)?);
    for (seated, state) in [(&first, "begun"), (&second, "returned"), (&third, "held")] {
        maestro.until(state, || {
            let allocation = self::allocation(&maestro, &seated.allocation)?;
            ensure!(allocation["state"] == state, "{allocation}");
            Ok(())
        })?;
    }
    Ok(())
}

fn allocation(maestro: &Maestro, id: &str) -> anyhow::Result<Value> {
    let answer = maestro.api().get(&format!("/schedulers/arena/allocations/{id}"))?.expect(200)?;
    Ok(answer.json()?["allocation"].take())
}

/// The room at whose port a pair plays.
fn room<'a>(rooms: &'a [Room], seated: &Seated) -> anyhow::Result<&'a Room> {
    let found = rooms.iter().find(|room| room.ports.iter().any(|port| port.port == seated.port));
    found.with_context(|| format!("{seated:?} is at none of {rooms:?}"))
}

impl Matchmaker {
    fn start(command: &mut Command, url: &str) -> anyhow::Result<Self> {
        command.args([url, "arena"]).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let players = child.stdin.take().context("stdin is piped")?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        Ok(Self { child, players, lines })
    }

    fn queue(&mut self, one: &str, other: &str) -> anyhow::Result<()> {
        Ok(write!(self.players, "{one}\n{other}\n")?)
    }

    fn seat(&mut self, one: &str, other: &str) -> anyhow::Result<Seated> {
        self.queue(one, other)?;
        self.seated()
    }

    fn seated(&self) -> anyhow::Result<Seated> {
        let line = self.lines.wait(|_| true)?;
        let (players, place) = line.split_once(" play at 127.0.0.1:").with_context(|| line.clone())?;
        let (port, allocation) = place.split_once(' ').with_context(|| line.clone())?;
        let (players, allocation) = (players.to_owned(), allocation.to_owned());
        Ok(Seated { players, port: port.parse()?, allocation })
    }
}

impl Drop for Matchmaker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
