//! The load: a thread of its own, many connections, one request at a time on each.

mod connection;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, yield_now};

use crate::cpu::{self, ThreadTimes};

use connection::Connection;

/// The handler that does nothing, in every server that is measured.
pub(crate) const EMPTY_PATH: &str = "/bench/empty";
/// How its answers end: they have no body.
pub(crate) const EMPTY_END: &[u8] = b"\r\n\r\n";

#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) extent: Extent,
    pub(crate) pace: Pace,
}

/// How much is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent {
    /// For so long; what comes before the end of the warm-up is not measured.
    Time { warm_up: Duration, measured: Duration },
    /// So many requests on each connection.
    Requests(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// The next request follows the answer.
    AsFastAsAnswered,
    /// So many on all connections together, whether the server keeps up or not.
    PerSecond(u32),
}

/// What is sent: whole requests, made beforehand, because a client that formats would be what is measured.
pub(crate) trait Traffic: Send + Sync + 'static {
    /// How every answer must end.
    fn answer_end(&self) -> &'static [u8];

    /// The `number`-th request of one of so many connections.
    fn request(&self, connection: usize, connections: usize, number: usize) -> &[u8];
}

/// The same request again and again.
pub(crate) struct Repeated {
    pub(crate) request: Vec<u8>,
    pub(crate) answer_end: &'static [u8],
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Those of the warm-up included.
    pub(crate) answers: usize,
    /// From the moment when a request should have been sent to the end of its answer, if that was measured. Never empty.
    pub(crate) latencies: Vec<Duration>,
    /// From the first request to the last answer; connections are opened before.
    pub(crate) took: Duration,
    /// What the generator itself needed.
    pub(crate) cpu: Duration,
}

impl Outcome {
    /// As far as they were measured.
    pub(crate) fn answers_per_second(&self, load: &Load) -> f64 {
        let time = match load.extent {
            Extent::Time { measured, .. } => measured,
            Extent::Requests(_) => self.took,
        };
        self.latencies.len() as f64 / time.as_secs_f64()
    }
}

impl Traffic for Repeated {
    fn answer_end(&self) -> &'static [u8] {
        self.answer_end
    }

    fn request(&self, _connection: usize, _connections: usize, _number: usize) -> &[u8] {
        &self.request
    }
}

/// A request as games and matchmakers send it.
pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:8070\r\nuser-agent: game/1.0\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into()
}

/// Puts the load on the server, from this core.
pub(crate) fn run<T: Traffic>(
    load: &Load,
    server: SocketAddr,
    traffic: &Arc<T>,
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

async fn load_all<T: Traffic>(load: Load, server: SocketAddr, traffic: Arc<T>) -> anyhow::Result<Outcome> {
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        connections.push(Connection::open(server, traffic.answer_end()).await?);
    }
    let load = Arc::new(load);
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for (index, connection) in connections.into_iter().enumerate() {
        let (load, traffic) = (Arc::clone(&load), Arc::clone(&traffic));
        tasks.spawn(async move { load_one(&load, begin, index, connection, &*traffic).await });
    }
    let mut total = Outcome::default();
    while let Some(ended) = tasks.join_next().await {
        let Outcome { answers, latencies, took, cpu: _ } = ended??;
        total.answers += answers;
        total.latencies.extend(latencies);
        total.took = total.took.max(took);
    }
    Ok(total)
}

async fn load_one(
    load: &Load,
    begin: Instant,
    index: usize,
    mut connection: Connection,
    traffic: &impl Traffic,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut now = Instant::now();
    while load.extent.goes_on(begin, now, &outcome) {
        let due = match load.pace {
            Pace::AsFastAsAnswered => now,
            Pace::PerSecond(rate) => begin + turn(load, index, outcome.answers) / rate,
        };
        // Timers are too coarse for this, and the generator's core has nothing else to do.
        while Instant::now() < due {
            yield_now().await;
        }
        connection.exchange(traffic.request(index, load.connections, outcome.answers)).await?;
        now = Instant::now();
        outcome.answers += 1;
        if load.extent.measures(begin, now, &outcome) {
            outcome.latencies.push(now - due);
        }
    }
    Ok(Outcome { took: now - begin, ..outcome })
}

impl Extent {
    fn goes_on(self, begin: Instant, now: Instant, outcome: &Outcome) -> bool {
        match self {
            // On a busy machine the time may be over before the first answer: one of each connection counts in any case.
            Self::Time { warm_up, measured } => {
                now < begin + warm_up + measured || outcome.latencies.is_empty()
            }
            Self::Requests(number) => outcome.answers < number,
        }
    }

    fn measures(self, begin: Instant, now: Instant, outcome: &Outcome) -> bool {
        match self {
            Self::Time { warm_up, .. } => now >= begin + warm_up && self.goes_on(begin, now, outcome),
            Self::Requests(_) => true,
        }
    }
}

/// When a connection's `number`-th request is due, if there was one request a second: they take turns.
fn turn(load: &Load, index: usize, number: usize) -> Duration {
    Duration::from_secs((number * load.connections + index) as u64)
}
