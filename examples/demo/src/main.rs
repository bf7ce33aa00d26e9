//! Maestro on one machine, with rooms and players: what `make run` starts.

mod api;
mod arguments;
mod demand;
mod demo;
mod maestro;
mod matchmaker;
mod players;
mod recipe;
mod screen;
mod status;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = if arguments.kill {
        demo::kill_a_room(&arguments.url)
    } else {
        arguments.resolve().and_then(|settings| demo::run(&settings))
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "maestro-demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
