//! Rooms for matchmakers over HTTP, from a server whose rooms only pretend to be there: on a disk, beside what the disk
//! can do, and on a tmpfs, beside a handler that does nothing.
//!
//! A burst takes no more rooms than there are. After it, the rooms say that their matches have begun and that they are
//! over, as rooms do; that is not measured.

mod players;
mod rows;

use std::path::Path;
use std::sync::Arc;

use crate::Effort;
use crate::cpu::{Cores, process_time};
use crate::figure::Figure;
use crate::fleet;
use crate::load::{self, EMPTY_END, EMPTY_PATH, Extent, Load, Outcome, Pace, Repeated, request};
use crate::server::{Server, Setup, Worker};
use crate::statistics::{in_turns, median, percentile_us};

use rows::Rows;

const ROWS: &str = "the same rows, written to the store by as many callers";
const EMPTY: &str = "an empty handler";

/// Of so many connections at once, each of which takes so many rooms, one after the other.
#[derive(Debug, Clone, Copy)]
struct Burst {
    callers: usize,
    each: usize,
}

const BURSTS: [Burst; 3] =
    [Burst { callers: 1, each: 2000 }, Burst { callers: 32, each: 250 }, Burst { callers: 256, each: 31 }];

/// For latencies: four seconds of them.
const STEADY: Burst = Burst { callers: 64, each: 125 };
const PER_SECOND: u32 = 2_000;

/// What a burst came to.
#[derive(Clone, Copy)]
struct Measured {
    per_second: f64,
    /// Of the whole process but the load generator.
    cpu_us: f64,
}

/// What is measured on one file system.
struct Bench {
    effort: Effort,
    server: Server,
    cores: Option<Cores>,
    rooms: u32,
    allocations: Arc<Repeated>,
    empty: Arc<Repeated>,
}

pub(crate) fn measure(effort: Effort, directory: &Path, tmpfs: Option<&Path>) -> anyhow::Result<Vec<Figure>> {
    let cores = Cores::choose();
    if cores.is_none() {
        eprintln!("allocate: one core for server and load generator together");
    }
    let mut figures = on_disk(effort, cores, directory)?;
    match tmpfs {
        Some(tmpfs) => figures.extend(on_tmpfs(effort, cores, tmpfs)?),
        None => {
            eprintln!("allocate: /dev/shm is no tmpfs; allocate.tmpfs is left out unless --tmpfs names one");
        }
    }
    Ok(figures)
}

fn on_disk(effort: Effort, cores: Option<Cores>, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let bench = Bench::start(effort, cores, directory)?;
    let mut rows = Rows::prepare(directory, bench.rooms)?;
    let mut figures = Vec::new();
    for burst in BURSTS {
        let size = bench.size(burst);
        let rates = in_turns(effort.pick(9, 1), || bench.allocate(size), || rows.write(size))?;
        figures.extend(compared(&format!("allocate.callers{}", burst.callers), ROWS, &rates));
    }
    figures.extend(bench.latencies()?);
    Ok(figures)
}

fn on_tmpfs(effort: Effort, cores: Option<Cores>, tmpfs: &Path) -> anyhow::Result<Vec<Figure>> {
    let bench = Bench::start(effort, cores, tmpfs)?;
    let measured = |burst: Burst| {
        let size = bench.size(burst);
        let rates = in_turns(effort.pick(9, 1), || bench.allocate(size), || bench.ask_nothing(size))?;
        anyhow::Ok(compared(&format!("allocate.tmpfs.callers{}", burst.callers), EMPTY, &rates))
    };
    let figures: Vec<_> = BURSTS.into_iter().map(measured).collect::<Result<_, _>>()?;
    Ok(figures.into_iter().flatten().collect())
}

/// A rate, and the processor time of each, beside what was measured in turns with them.
fn compared(name: &str, with: &'static str, bursts: &[(Measured, Measured)]) -> [Figure; 2] {
    let figure = |name: String, unit, of: fn(&Measured) -> f64| {
        let value = median(bursts.iter().map(|(burst, _)| of(burst)));
        let ratio = median(bursts.iter().map(|(burst, beside)| of(burst) / of(beside)));
        Figure::new(name, value, unit).compared(with, ratio)
    };
    [
        figure(name.to_owned(), "1/s", |measured| measured.per_second),
        figure(format!("{name}.cpu"), "us", |measured| measured.cpu_us),
    ]
}

impl Bench {
    fn start(effort: Effort, cores: Option<Cores>, directory: &Path) -> anyhow::Result<Self> {
        let rooms = effort.pick(10_000, 600);
        let worker = Worker::AtWork;
        let server = Server::start(&Setup { rooms, cores, directory, worker, forwarders: Vec::new() })?;
        server.block_on(players::leave(&server.engine, rooms))?;
        let path = format!("/schedulers/{}/allocations", fleet::scheduler());
        let allocations = Repeated { request: request("POST", &path, "{}"), answer_end: b"}]}" };
        let empty = Repeated { request: request("PUT", EMPTY_PATH, "{}"), answer_end: EMPTY_END };
        Ok(Self { effort, server, cores, rooms, allocations: Arc::new(allocations), empty: Arc::new(empty) })
    }

    fn allocate(&self, burst: Burst) -> anyhow::Result<Measured> {
        let measured = self.burst(burst, &self.allocations)?;
        self.server.block_on(players::come_and_leave(&self.server.engine, self.rooms))?;
        Ok(measured)
    }

    /// The same requests for the empty handler.
    fn ask_nothing(&self, burst: Burst) -> anyhow::Result<Measured> {
        self.burst(burst, &self.empty)
    }

    fn burst(&self, burst: Burst, traffic: &Arc<Repeated>) -> anyhow::Result<Measured> {
        let load = load(burst, Pace::AsFastAsAnswered);
        let before = process_time();
        let outcome = self.run(&load, traffic)?;
        let cpu = (process_time() - before).saturating_sub(outcome.cpu);
        let cpu_us = cpu.as_secs_f64() * 1e6 / outcome.answers as f64;
        Ok(Measured { per_second: outcome.answers_per_second(&load), cpu_us })
    }

    fn latencies(&self) -> anyhow::Result<Vec<Figure>> {
        let load = load(self.size(STEADY), Pace::PerSecond(PER_SECOND));
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        for _ in 0..self.effort.pick(5, 1) {
            let mut outcome = self.run(&load, &self.allocations)?;
            self.server.block_on(players::come_and_leave(&self.server.engine, self.rooms))?;
            p50.push(percentile_us(&mut outcome.latencies, 50));
            p99.push(percentile_us(&mut outcome.latencies, 99));
        }
        let of =
            |percent: u32, values| Figure::new(format!("allocate.latency.p{percent}"), median(values), "us");
        Ok(vec![of(50, p50), of(99, p99)])
    }

    fn size(&self, burst: Burst) -> Burst {
        Burst { each: self.effort.pick(burst.each, 2), ..burst }
    }

    fn run(&self, load: &Load, traffic: &Arc<Repeated>) -> anyhow::Result<Outcome> {
        load::run(load, self.server.address, traffic, self.cores.map(|cores| cores.load))
    }
}

fn load(Burst { callers, each }: Burst, pace: Pace) -> Load {
    Load { connections: callers, extent: Extent::Requests(each), pace }
}
