//! `maestro-bench`: figures of this machine, one JSON line each. What they mean is in `docs/benchmarks.md`.
//!
//! A number alone says more about the machine than about Maestro. So most figures come with a ratio to something
//! that is measured in the same run, in turns with it: what disturbs one of them disturbs the other too.

mod allocate;
mod bystander;
mod churn;
mod cpu;
mod events;
mod figure;
mod fleet;
mod idle;
mod instructions;
mod load;
mod memory;
mod ping;
mod placement;
mod plan;
mod process;
mod registry;
mod server;
mod start;
mod statistics;
mod store;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Parser, Subcommand, ValueEnum};

use figure::Figure;

/// That of the program whose parts are measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(name = "maestro-bench", about = "Figures of this machine, one JSON line each")]
#[command(disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    measured: Option<Measured>,
    /// What to measure; everything if nothing is named
    #[arg(value_enum)]
    benches: Vec<Bench>,
    /// A smoke run: everything is done, nothing long enough to mean anything
    #[arg(long)]
    quick: bool,
    /// The server that is measured as a process [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    maestro: Option<PathBuf>,
    /// Where data directories are made, so on which disk [default: beside this program]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// A directory in memory, for what is measured without a disk [default: /dev/shm, if it is a tmpfs]
    #[arg(long, value_name = "DIR")]
    tmpfs: Option<PathBuf>,
}

/// What this program does when it is itself what is measured.
#[derive(Debug, Subcommand)]
enum Measured {
    /// Makes a fleet in a rollout and plans it so many times
    #[command(hide = true)]
    Plans { rooms: u32, times: u32 },
    /// Makes so many pings of a fleet with so many forwarders, and sends some of them
    #[command(hide = true)]
    Pings { forwarders: u32, made: u32, sent: u32 },
}

/// In the order in which they run. Memory first: it looks at the whole process, which is small only then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Bench {
    /// Memory per room in the room table
    Memory,
    /// The plan of large fleets
    Plan,
    /// Where rooms go in many regions
    Placement,
    /// Pings over HTTP, beside a handler that does nothing
    Ping,
    /// Rooms for matchmakers, beside the bare rows and beside a handler that does nothing
    Allocate,
    /// Pings in a fleet with forwarders, beside one without
    Events,
    /// Durable commits, beside bare syncs of the same disk
    Store,
    /// The room table in Redis, beside its script alone
    Table,
    /// From the start of the process to serving
    Start,
    /// A thousand schedulers that have nothing to do
    Idle,
    /// The first half minute of a server with five hundred of them
    Restart,
    /// Many who make and delete schedulers
    Churn,
}

/// How much to do for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Full,
    Quick,
}

impl Effort {
    fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.measured {
        Some(Measured::Plans { rooms, times }) => return plan::repeat(rooms, times),
        Some(Measured::Pings { forwarders, made, sent }) => return events::repeat(forwarders, made, sent),
        None => {}
    }
    let effort = match arguments.quick {
        true => Effort::Quick,
        false => Effort::Full,
    };
    let program = std::env::current_exe().context("finding this program")?;
    let beside = program.parent().unwrap_or(Path::new(".")).to_path_buf();
    let maestro = arguments.maestro.unwrap_or_else(|| beside.join("maestro"));
    let directory = arguments.directory.unwrap_or(beside);
    let tmpfs = arguments.tmpfs.or_else(default_tmpfs);
    let chosen: BTreeSet<Bench> = match arguments.benches.as_slice() {
        [] => Bench::value_variants().iter().copied().collect(),
        named => named.iter().copied().collect(),
    };
    for bench in chosen {
        let figures = match bench {
            Bench::Memory => memory::measure(effort),
            Bench::Plan => plan::measure(effort),
            Bench::Placement => placement::measure(effort),
            Bench::Ping => ping::measure(effort, &directory),
            Bench::Allocate => allocate::measure(effort, &directory, tmpfs.as_deref()),
            Bench::Events => events::measure(effort, &directory),
            Bench::Store => store::measure(effort, &directory),
            Bench::Table => table::measure(effort),
            Bench::Start => start::measure(effort, &maestro, &directory),
            Bench::Idle => idle::measure(effort, &maestro, &directory),
            Bench::Restart => idle::measure_restart(effort, &maestro, &directory),
            Bench::Churn => churn::measure(effort, &maestro, &directory),
        };
        let figures = figures.with_context(|| format!("measuring {bench:?}"))?;
        figures.iter().try_for_each(Figure::print)?;
    }
    Ok(())
}

/// Where Linux usually has one.
fn default_tmpfs() -> Option<PathBuf> {
    const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
    let shared_memory = PathBuf::from("/dev/shm");
    let found = rustix::fs::statfs(&shared_memory).ok()?;
    (found.f_type == TMPFS_MAGIC).then_some(shared_memory)
}
