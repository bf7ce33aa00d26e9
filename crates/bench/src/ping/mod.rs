//! Pings over HTTP, beside a handler that does nothing: in the same server, through the same edge, under the same
//! load, in turns.

mod at_work;
mod traffic;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Effort;
use crate::cpu::Cores;
use crate::figure::Figure;
use crate::load::{self, Extent, Load, Pace};
use crate::server::{Server, Setup, Worker};
use crate::statistics::{in_turns, median, percentile_us};

pub(crate) use traffic::Traffic;

const ROOMS: u32 = 1000;
const CONNECTIONS: usize = 64;

/// What a hundred thousand rooms send that ping every ten seconds.
const PINGS_PER_SECOND: u32 = 10_000;

const EMPTY: &str = "an empty handler";

/// Below this the server waited for the load, and the ratio of throughputs says little.
const BUSY_MIN: f64 = 0.9;

struct Bench {
    server: Server,
    cores: Option<Cores>,
    pings: Arc<Traffic>,
    empty: Arc<Traffic>,
}

/// What one kind of traffic came to.
struct Measured {
    answers_per_second: f64,
    /// Of the server's thread.
    cpu_seconds_per_answer: f64,
    /// For which share of the time the server had something to do, whether it got its core or not.
    busy: f64,
    latencies: Vec<Duration>,
}

pub(crate) fn measure(effort: Effort, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let cores = Cores::choose();
    if cores.is_none() {
        eprintln!("ping: one core for server and load generator together; ratios look better than they are");
    }
    let bench = Bench {
        server: Server::start(&Setup {
            rooms: ROOMS,
            cores,
            directory,
            worker: Worker::Away,
            forwarders: Vec::new(),
        })?,
        cores,
        pings: Arc::new(Traffic::pings(ROOMS)),
        empty: Arc::new(Traffic::empty(ROOMS)),
    };
    let mut figures = bench.throughput(effort)?;
    figures.extend(bench.latency(effort)?);
    drop(bench);
    figures.extend(at_work::measure(effort, cores, directory)?);
    Ok(figures)
}

impl Bench {
    fn throughput(&self, effort: Effort) -> anyhow::Result<Vec<Figure>> {
        let load = steady(effort, Pace::AsFastAsAnswered);
        let pairs = self.pairs(&load, effort.pick(15, 1))?;
        let busy = median(pairs.iter().map(|(ping, empty)| ping.busy.min(empty.busy)));
        if busy < BUSY_MIN {
            eprintln!(
                "ping: the server had work only {busy:.2} of the time; look at ping.cpu, not at the throughput"
            );
        }
        let of = |number: fn(&Measured) -> f64| {
            let value = median(pairs.iter().map(|(ping, _)| number(ping)));
            let ratio = median(pairs.iter().map(|(ping, empty)| number(ping) / number(empty)));
            (value, ratio)
        };
        let (throughput, to_empty) = of(|measured| measured.answers_per_second);
        let (cpu, cpu_to_empty) = of(|measured| measured.cpu_seconds_per_answer);
        Ok(vec![
            Figure::new("ping.throughput", throughput, "1/s").compared(EMPTY, to_empty),
            Figure::new("ping.cpu", cpu * 1e6, "us").compared(EMPTY, cpu_to_empty),
        ])
    }

    /// At a steady rate, from the moment when a ping should have been sent: a server that falls behind shows it.
    fn latency(&self, effort: Effort) -> anyhow::Result<Vec<Figure>> {
        let load = steady(effort, Pace::PerSecond(PINGS_PER_SECOND));
        let mut pairs = self.pairs(&load, effort.pick(5, 1))?;
        let mut of = |percent: usize| {
            let (mut values, mut ratios) = (Vec::new(), Vec::new());
            for (ping, empty) in &mut pairs {
                let value = percentile_us(&mut ping.latencies, percent);
                values.push(value);
                ratios.push(value / percentile_us(&mut empty.latencies, percent));
            }
            Figure::new(format!("ping.latency.p{percent}"), median(values), "us")
                .compared(EMPTY, median(ratios))
        };
        Ok(vec![of(50), of(99)])
    }

    /// Both kinds of traffic.
    fn pairs(&self, load: &Load, pairs: usize) -> anyhow::Result<Vec<(Measured, Measured)>> {
        in_turns(pairs, || self.run(load, &self.pings), || self.run(load, &self.empty))
    }

    fn run(&self, load: &Load, traffic: &Arc<Traffic>) -> anyhow::Result<Measured> {
        let (times_before, begin) = (self.server.times()?, Instant::now());
        let core = self.cores.map(|cores| cores.load);
        let outcome = load::run(load, self.server.address, traffic, core)?;
        let times = self.server.times()?.since(times_before);
        let had_work = (times.ran + times.waited).as_secs_f64();
        Ok(Measured {
            answers_per_second: outcome.answers_per_second(load),
            cpu_seconds_per_answer: times.ran.as_secs_f64() / outcome.answers as f64,
            busy: had_work / begin.elapsed().as_secs_f64(),
            latencies: outcome.latencies,
        })
    }
}

fn steady(effort: Effort, pace: Pace) -> Load {
    let extent = Extent::Time {
        warm_up: effort.pick(Duration::from_millis(300), Duration::from_millis(20)),
        measured: effort.pick(Duration::from_secs(1), Duration::from_millis(50)),
    };
    Load { connections: CONNECTIONS, extent, pace }
}
