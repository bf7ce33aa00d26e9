//! Maestro on one machine, with rooms and players: what `make run` starts.

mod api;
mod arguments;
mod demand;
mod demo;
mod maestro;
mod players;
mod recipe;
mod screen;
mod status;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

fn main() -> ExitCode {
    match Arguments::parse().resolve().and_then(|settings| demo::run(&settings)) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "maestro-demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
