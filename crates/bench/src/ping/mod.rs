//! Pings over HTTP, beside a handler that does nothing: in the same server, through the same edge, under the same
//! load, in turns.

mod at_work;
mod connection;
mod load;
mod server;
mod still;
mod traffic;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Effort;
use crate::cpu::Cores;
use crate::figure::Figure;
use crate::statistics::{median, percentile_us};

use load::{Load, Pace};
use server::{Server, Worker};
use traffic::Traffic;

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

/// Both kinds, one right after the other.
struct Pair {
    ping: Measured,
    empty: Measured,
}

pub(crate) fn measure(effort: Effort, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let cores = Cores::choose();
    if cores.is_none() {
        eprintln!("ping: one core for server and load generator together; ratios look better than they are");
    }
    let bench = Bench {
        server: Server::start(ROOMS, cores, directory, Worker::Away)?,
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
        let load = Load {
            connections: CONNECTIONS,
            warm_up: effort.pick(Duration::from_millis(300), Duration::from_millis(20)),
            measured: effort.pick(Duration::from_secs(1), Duration::from_millis(50)),
            pace: Pace::AsFastAsAnswered,
        };
        let pairs = self.pairs(&load, effort.pick(15, 1))?;
        let busy = median(pairs.iter().map(|pair| pair.ping.busy.min(pair.empty.busy)));
        if busy < BUSY_MIN {
            eprintln!(
                "ping: the server had work only {busy:.2} of the time; look at ping.cpu, not at the throughput"
            );
        }
        let of = |number: fn(&Measured) -> f64| {
            let value = median(pairs.iter().map(|pair| number(&pair.ping)));
            let ratio = median(pairs.iter().map(|pair| number(&pair.ping) / number(&pair.empty)));
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
        let load = Load {
            connections: CONNECTIONS,
            warm_up: effort.pick(Duration::from_millis(300), Duration::from_millis(20)),
            measured: effort.pick(Duration::from_secs(1), Duration::from_millis(50)),
            pace: Pace::PerSecond(PINGS_PER_SECOND),
        };
        let mut pairs = self.pairs(&load, effort.pick(5, 1))?;
        let mut of = |percent: usize| {
            let (mut values, mut ratios) = (Vec::new(), Vec::new());
            for Pair { ping, empty } in &mut pairs {
                let value = percentile_us(&mut ping.latencies, percent);
                values.push(value);
                ratios.push(value / percentile_us(&mut empty.latencies, percent));
            }
            Figure::new(format!("ping.latency.p{percent}"), median(values), "us")
                .compared(EMPTY, median(ratios))
        };
        Ok(vec![of(50), of(99)])
    }

    /// Which of the two goes first changes from pair to pair: what slowly gets better or worse favours neither.
    fn pairs(&self, load: &Load, pairs: usize) -> anyhow::Result<Vec<Pair>> {
        let pair = |index: usize| {
            if index.is_multiple_of(2) {
                let ping = self.run(load, &self.pings)?;
                let empty = self.run(load, &self.empty)?;
                Ok(Pair { ping, empty })
            } else {
                let empty = self.run(load, &self.empty)?;
                let ping = self.run(load, &self.pings)?;
                Ok(Pair { ping, empty })
            }
        };
        (0..pairs).map(pair).collect()
    }

    fn run(&self, load: &Load, traffic: &Arc<Traffic>) -> anyhow::Result<Measured> {
        let (times_before, begin) = (self.server.times()?, Instant::now());
        let core = self.cores.map(|cores| cores.load);
        let outcome = load::run(load, self.server.address, traffic, core)?;
        let times = self.server.times()?.since(times_before);
        let had_work = (times.ran + times.waited).as_secs_f64();
        Ok(Measured {
            answers_per_second: outcome.latencies.len() as f64 / load.measured.as_secs_f64(),
            cpu_seconds_per_answer: times.ran.as_secs_f64() / outcome.answers as f64,
            busy: had_work / begin.elapsed().as_secs_f64(),
            latencies: outcome.latencies,
        })
    }
}
