//! What a ping costs in a fleet with forwarders, beside one in a fleet without: three of them, one of which is down. The
//! receivers are real ones. What it costs to tell them is not the ping's: that is done on another thread.

mod path;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::scheduler::{Delivery, Forwarder};
use maestro_forwarder::receiver::Receiver;

use crate::cpu::Cores;
use crate::figure::Figure;
use crate::load::{self, Extent, Load, Pace};
use crate::ping::Traffic;
use crate::server::{Server, Setup, Worker};
use crate::statistics::{in_turns, median, percentile_us};
use crate::{Effort, instructions};

pub(crate) use path::repeat;

const ROOMS: u32 = 1000;
const CONNECTIONS: usize = 64;

/// What a hundred thousand rooms send that ping every ten seconds.
const PINGS_PER_SECOND: u32 = 10_000;

const WITHOUT: &str = "a ping without forwarders";

/// What one of the servers came to.
struct Measured {
    cpu_seconds_per_ping: f64,
    latencies: Vec<Duration>,
}

pub(crate) fn measure(effort: Effort, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut figures = with_receivers(effort, directory)?;
    figures.extend(counted(effort)?);
    Ok(figures)
}

fn with_receivers(effort: Effort, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let cores = Cores::choose();
    let (one, other) = (Receiver::start()?, Receiver::start()?);
    let forwarders = vec![
        forwarder("matchmaker".into(), one.address().to_string()),
        forwarder("statistics".into(), other.address().to_string()),
        forwarder("down".into(), nobody()?),
    ];
    let server = |forwarders| {
        Server::start(&Setup { rooms: ROOMS, cores, directory, worker: Worker::Beside, forwarders })
    };
    let (with, without) = (server(forwarders)?, server(Vec::new())?);
    let traffic = Arc::new(Traffic::pings(ROOMS));
    let load = Load {
        connections: CONNECTIONS,
        extent: Extent::Time {
            warm_up: effort.pick(Duration::from_millis(300), Duration::from_millis(20)),
            measured: effort.pick(Duration::from_secs(1), Duration::from_millis(100)),
        },
        pace: Pace::PerSecond(PINGS_PER_SECOND),
    };
    let run = |server: &Server| {
        let before = server.times()?;
        let outcome = load::run(&load, server.address, &traffic, cores.map(|cores| cores.load))?;
        let times = server.times()?.since(before);
        let cpu_seconds_per_ping = times.ran.as_secs_f64() / outcome.answers as f64;
        Ok(Measured { cpu_seconds_per_ping, latencies: outcome.latencies })
    };
    // The first ping of a room is always a change, and the address of a room is read once.
    run(&with)?;
    let mut pairs = in_turns(effort.pick(15, 1), || run(&with), || run(&without))?;
    anyhow::ensure!(!one.received().is_empty(), "nobody was told what rooms say");
    let mut compared = |name: &str, of: fn(&mut Measured) -> f64| {
        let values: Vec<(f64, f64)> =
            pairs.iter_mut().map(|(with, without)| (of(with), of(without))).collect();
        let ratio = median(values.iter().map(|(with, without)| with / without));
        Figure::new(name, median(values.iter().map(|(with, _)| *with)), "us").compared(WITHOUT, ratio)
    };
    Ok(vec![
        compared("events.ping.cpu", |measured| measured.cpu_seconds_per_ping * 1e6),
        compared("events.ping.latency.p50", |measured| percentile_us(&mut measured.latencies, 50)),
        compared("events.ping.latency.p99", |measured| percentile_us(&mut measured.latencies, 99)),
    ])
}

/// The instructions of a ping, if there is valgrind.
fn counted(effort: Effort) -> anyhow::Result<Option<Figure>> {
    let times = effort.pick(10_000, 100);
    let of = |forwarders: u32| {
        let count = |sent: u32| {
            instructions::count(&[
                "pings".into(),
                forwarders.to_string(),
                times.to_string(),
                sent.to_string(),
            ])
        };
        let Some((none, all)) = count(0)?.zip(count(times)?) else { return Ok(None) };
        anyhow::Ok(Some(all.saturating_sub(none) as f64 / f64::from(times)))
    };
    let figure = |(with, without): (f64, f64)| {
        Figure::new("events.ping.instructions", with, "instructions").compared(WITHOUT, with / without)
    };
    Ok(of(3)?.zip(of(0)?).map(figure))
}

/// An address where nobody listens.
fn nobody() -> anyhow::Result<String> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.to_string())
}

fn forwarder(name: String, address: String) -> Forwarder {
    Forwarder {
        name,
        enabled: true,
        address,
        timeout_ms: 1000,
        delivery: Delivery::Direct,
        metadata: serde_json::Map::new(),
    }
}
