//! The load: a thread of its own, many connections, one request at a time on each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, yield_now};

use crate::cpu::{self, ThreadTimes};

use super::connection::Connection;
use super::traffic::Traffic;

#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
    pub(super) pace: Pace,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// The next request follows the answer.
    AsFastAsAnswered,
    /// So many on all connections together, whether the server keeps up or not.
    PerSecond(u32),
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Those of the warm-up included.
    pub(super) answers: usize,
    /// From the moment when a request should have been sent to the end of its answer, if that was measured time. Never
    /// empty.
    pub(super) latencies: Vec<Duration>,
    /// What the generator itself needed.
    pub(super) cpu: Duration,
}

/// Puts the load on the server, from this core.
pub(super) fn run(
    load: &Load,
    server: SocketAddr,
    traffic: &Arc<Traffic>,
    core: Option<usize>,
) -> anyhow::Result<Outcome> {
    let (load, traffic) = (load.clone(), Arc::clone(traffic));
    let generator = thread::spawn(move || {
        if let Some(core) = core {
            cpu::pin(core);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(load_all(load, server, traffic))?;
        Ok(Outcome { cpu: ThreadTimes::now()?.ran, ..outcome })
    });
    let outcome = generator.join();
    outcome.unwrap_or_else(|_| Err(anyhow::anyhow!("the load generator panicked")))
}

async fn load_all(load: Load, server: SocketAddr, traffic: Arc<Traffic>) -> anyhow::Result<Outcome> {
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        connections.push(Connection::open(server, traffic.answer_end).await?);
    }
    let load = Arc::new(load);
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for (index, connection) in connections.into_iter().enumerate() {
        let (load, traffic) = (Arc::clone(&load), Arc::clone(&traffic));
        tasks.spawn(async move { load_one(&load, begin, index, connection, &traffic).await });
    }
    let mut total = Outcome::default();
    while let Some(ended) = tasks.join_next().await {
        let Outcome { answers, latencies, cpu: _ } = ended??;
        total.answers += answers;
        total.latencies.extend(latencies);
    }
    Ok(total)
}

async fn load_one(
    load: &Load,
    begin: Instant,
    index: usize,
    mut connection: Connection,
    traffic: &Traffic,
) -> anyhow::Result<Outcome> {
    let warm = begin + load.warm_up;
    let end = warm + load.measured;
    let rooms = traffic.rooms_of(index, load.connections);
    let mut outcome = Outcome::default();
    let mut now = Instant::now();
    // On a busy machine the time may be over before the first answer: one of each connection counts in any case.
    while now < end || outcome.latencies.is_empty() {
        let due = match load.pace {
            Pace::AsFastAsAnswered => now,
            Pace::PerSecond(rate) => begin + turn(load, index, outcome.answers) / rate,
        };
        // Timers are too coarse for this, and the generator's core has nothing else to do.
        while Instant::now() < due {
            yield_now().await;
        }
        connection.exchange(traffic.request(&rooms, outcome.answers)).await?;
        now = Instant::now();
        outcome.answers += 1;
        if now >= warm && (now < end || outcome.latencies.is_empty()) {
            outcome.latencies.push(now - due);
        }
    }
    Ok(outcome)
}

/// When a connection's `number`-th request is due, if there was one request a second: they take turns.
fn turn(load: &Load, index: usize, number: usize) -> Duration {
    Duration::from_secs((number * load.connections + index) as u64)
}
