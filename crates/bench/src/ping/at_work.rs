//! What a ping costs while a worker looks after the fleet: rooms that say the same again and again, and rooms that
//! change.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Effort;
use crate::cpu::{Cores, process_time};
use crate::figure::Figure;
use crate::load::{self, Extent, Load, Pace};
use crate::server::{Server, Setup, Worker};
use crate::statistics::median;

use super::{CONNECTIONS, ROOMS, Traffic};

const PINGS_PER_SECOND: u32 = 5_000;

const QUIET: &str = "ping.worker.quiet.cpu";

/// Microseconds of processor time a ping, of everything but the load generator.
struct Round {
    quiet: f64,
    changing5: f64,
    changing50: f64,
}

pub(super) fn measure(effort: Effort, cores: Option<Cores>, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let server = Server::start(&Setup {
        rooms: ROOMS,
        cores,
        directory,
        worker: Worker::AtWork,
        forwarders: Vec::new(),
    })?;
    let load = Load {
        connections: CONNECTIONS,
        extent: Extent::Time {
            warm_up: effort.pick(Duration::from_millis(300), Duration::from_millis(20)),
            measured: effort.pick(Duration::from_secs(3), Duration::from_millis(100)),
        },
        pace: Pace::PerSecond(PINGS_PER_SECOND),
    };
    let run = |traffic: &Arc<Traffic>| {
        let before = process_time();
        let outcome = load::run(&load, server.address, traffic, cores.map(|cores| cores.load))?;
        let used = (process_time() - before).saturating_sub(outcome.cpu);
        anyhow::Ok(used.as_secs_f64() * 1e6 / outcome.answers as f64)
    };
    let [quiet, changing5, changing50] =
        [None, Some(20), Some(2)].map(|repeated| Arc::new(Traffic::changing(ROOMS, repeated)));
    // The first ping of a room is always a change.
    run(&quiet)?;
    let mut rounds = Vec::new();
    for _ in 0..effort.pick(7, 1) {
        rounds.push(Round {
            quiet: run(&quiet)?,
            changing5: run(&changing5)?,
            changing50: run(&changing50)?,
        });
    }
    let compared = |name: &str, of: fn(&Round) -> f64| {
        let ratio = median(rounds.iter().map(|round| of(round) / round.quiet));
        Figure::new(name, median(rounds.iter().map(of)), "us").compared(QUIET, ratio)
    };
    Ok(vec![
        Figure::new(QUIET, median(rounds.iter().map(|round| round.quiet)), "us"),
        compared("ping.worker.changing5.cpu", |round| round.changing5),
        compared("ping.worker.changing50.cpu", |round| round.changing50),
    ])
}
