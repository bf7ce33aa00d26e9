//! Many who make schedulers and delete them again: what is left to do afterwards, and how long others wait meanwhile.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use maestro_store_embedded::EmbeddedStore;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::Effort;
use crate::bystander::Bystander;
use crate::figure::Figure;
use crate::process::{Answer, Client, Process};
use crate::registry;

const CLIENTS: u32 = 50;

/// A backlog that takes longer is reported as this long.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is looked whether the backlog is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn measure(effort: Effort, maestro: &Path, directory: &Path) -> anyhow::Result<Vec<Figure>> {
    let data = tempfile::tempdir_in(directory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    {
        // Whom the bystander asks about: it stays.
        let store = EmbeddedStore::open(data.path())?;
        runtime.block_on(registry::fill_idle(&store, 1))?;
    }
    let server = Process::start(maestro, data.path())?;
    let lasting = effort.pick(Duration::from_secs(30), Duration::from_secs(1));
    runtime.block_on(churn(&server, effort.pick(CLIENTS, 5), lasting))
}

async fn churn(server: &Process, clients: u32, lasting: Duration) -> anyhow::Result<Vec<Figure>> {
    let address = server.management;
    let before = server.usage()?;
    let bystander = Bystander::begin(address, format!("/schedulers/{}", registry::idle_scheduler(0)));
    let made = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let made = made.clone();
        tasks.spawn(make_and_delete(address, client, begin + lasting, made));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let p99 = bystander.p99().await?;
    let backlog = backlog(address).await?;
    let used = server.usage()?.since(before);
    let made = made.load(Ordering::Relaxed) as f64;
    Ok(vec![
        Figure::new("churn.backlog", backlog.as_secs_f64(), "s"),
        Figure::new("churn.get.p99", p99.as_secs_f64() * 1e3, "ms"),
        Figure::new("churn.schedulers", made / seconds, "1/s"),
        Figure::new("churn.cpu", used.cpu.as_secs_f64() * 1e3 / made.max(1.0), "ms"),
    ])
}

async fn make_and_delete(
    server: SocketAddr,
    client: u32,
    until: Instant,
    made: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    let mut connection = Client::to(server);
    let mut number = 0;
    while Instant::now() < until {
        let name = format!("churn-{client:02}-{number:05}");
        let recipe = registry::document(&name, 0).to_string();
        expect_ok(&connection.request("POST", "/schedulers", &recipe).await?)?;
        expect_ok(&connection.request("DELETE", &format!("/schedulers/{name}"), "").await?)?;
        made.fetch_add(1, Ordering::Relaxed);
        number += 1;
    }
    Ok(())
}

fn expect_ok(answer: &Answer) -> anyhow::Result<()> {
    anyhow::ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    Ok(())
}

/// Until only the scheduler that stays is left.
async fn backlog(server: SocketAddr) -> anyhow::Result<Duration> {
    let mut connection = Client::to(server);
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let answer = connection.request("GET", "/schedulers", "").await?;
        let list: Value = serde_json::from_str(&answer.body).context("the list of schedulers")?;
        if list["schedulers"].as_array().map(Vec::len) == Some(1) {
            return Ok(begin.elapsed());
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    eprintln!("churn: schedulers are left after {PATIENCE:?}");
    Ok(PATIENCE)
}
