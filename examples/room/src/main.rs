//! A small game room: what a room program looks like with the SDK, and what Maestro's own tests run by the hundred.
//!
//! Players speak lines over TCP to the host port of the port named `game`:
//! `JOIN <seconds>` starts a match (`OK <matches>` or `FULL`), `STATUS` tells how full the room is. Players whom a
//! matchmaker sends name their allocation: `JOIN <seconds> <allocation>`.
//! One thread serves all players and sleeps while nothing happens, so that many rooms fit on a small machine.

mod configuration;
mod game;
mod lobby;
mod output;
mod protocol;
mod room;

use std::env;
use std::process::ExitCode;

use maestro_sdk::Room;

use crate::configuration::Configuration;
use crate::room::Ending;

/// What `ROOM_CRASH_AFTER_MS` ends with.
const CRASHED: u8 = 3;

fn main() -> ExitCode {
    match run() {
        Ok(Ending::Terminated) => ExitCode::SUCCESS,
        Ok(Ending::Crashed) => ExitCode::from(CRASHED),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<Ending> {
    let configuration = Configuration::from_variables(|name| env::var(name).ok())?;
    room::run(Room::from_env()?, &configuration)
}
