//! Someone who wants something else meanwhile: how long do they wait?

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::process::Client;
use crate::statistics::percentile;

const REQUESTS_PER_SECOND: u32 = 20;

pub(crate) struct Bystander {
    stop: watch::Sender<bool>,
    asking: JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl Bystander {
    /// Asks at a steady rate. A request that is due while the one before is not answered counts from when it was due.
    pub(crate) fn begin(server: SocketAddr, path: String) -> Self {
        let (stop, stopped) = watch::channel(false);
        let asking = tokio::spawn(async move {
            let mut client = Client::to(server);
            let mut waited = Vec::new();
            let begin = Instant::now();
            while !*stopped.borrow() {
                let due = begin + Duration::from_secs(1) * waited.len() as u32 / REQUESTS_PER_SECOND;
                tokio::time::sleep_until(due.into()).await;
                let answer = client.request("GET", &path, "").await?;
                anyhow::ensure!(answer.status == 200, "GET {path}: {} {}", answer.status, answer.body);
                waited.push(due.elapsed());
            }
            Ok(waited)
        });
        Self { stop, asking }
    }

    pub(crate) async fn p99(self) -> anyhow::Result<Duration> {
        self.stop.send_replace(true);
        let mut waited = self.asking.await.context("asking meanwhile")??;
        Ok(percentile(&mut waited, 99))
    }
}
