//! What the command line says, and what follows from where this program lies.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, ensure};

/// Runs Maestro with a fleet of example rooms and players who come and go. Ctrl-C ends it all.
#[derive(Debug, clap::Parser)]
pub(crate) struct Arguments {
    /// The maestro program; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    maestro: Option<PathBuf>,
    /// The room program; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    room: Option<PathBuf>,
    /// How many rooms the fleet has at least
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    rooms: u32,
    /// How many players there are at the busiest time, unless DIR/players says how many there are; by default two for
    /// every three rooms
    #[arg(long)]
    players: Option<u32>,
    /// Where Maestro keeps its data, and its log
    #[arg(long, value_name = "DIR", default_value = "demo-data")]
    data_dir: PathBuf,
    /// Kill one room of a demo that is running, and end
    #[arg(long)]
    pub(crate) kill: bool,
    /// Where the demo to kill a room of is serving
    #[arg(long, env = "MAESTRO_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
}

/// Paths of programs are absolute: rooms, and whoever copies a line from the screen, may be in another directory.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) maestro: PathBuf,
    pub(crate) demo: PathBuf,
    pub(crate) room: PathBuf,
    pub(crate) rooms: u32,
    pub(crate) players_max: u32,
    pub(crate) data_dir: PathBuf,
}

impl Arguments {
    pub(crate) fn resolve(self) -> anyhow::Result<Settings> {
        let own = env::current_exe().context("cannot find out where this program lies")?;
        let program = |given: Option<PathBuf>, name: &str| {
            let path = given.unwrap_or_else(|| own.with_file_name(name));
            ensure!(path.is_file(), "there is no program {} (build it, or name it)", path.display());
            Ok(path)
        };
        let room = program(self.room, "maestro-example-room")?;
        Ok(Settings {
            maestro: program(self.maestro, "maestro")?,
            room: room.canonicalize().with_context(|| format!("cannot resolve {}", room.display()))?,
            demo: PathBuf::from(env::args_os().next().unwrap_or_else(|| own.clone().into())),
            rooms: self.rooms,
            players_max: self.players.unwrap_or(self.rooms.div_ceil(3).saturating_mul(2).min(self.rooms)),
            data_dir: self.data_dir,
        })
    }
}
