//! A web site of somebody else: it serves the pages that attack, and hears from them what they could read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use maestro_testkit::http::{Reply, Request, serve};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

const PAGE: &str = include_str!("page.html");

/// One thing that a page tried.
#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) name: String,
    /// What it read, if the browser let it.
    pub(super) read: Option<String>,
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
struct Report {
    prefix: String,
    results: Vec<Attempt>,
}

type Pages = Arc<Mutex<BTreeMap<String, String>>>;

pub(super) struct Site {
    port: u16,
    pages: Pages,
    reports: Receiver<Report>,
}

impl Site {
    pub(super) fn open() -> anyhow::Result<Self> {
        let pages = Pages::default();
        let (sender, reports) = channel();
        let served = Arc::clone(&pages);
        let port = serve(move |request| answer(&request, &served, &sender))?.port();
        Ok(Self { port, pages, reports })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The page is served at `/<name>` and, without an origin, at `/sandboxed/<name>`.
    pub(super) fn add(&self, name: &str, attack: &Value) {
        let in_quotes = attack.to_string().replace('\\', "\\\\").replace('\'', "\\'");
        let page = PAGE.replace("@ATTACK@", &in_quotes);
        self.pages.lock().insert(name.to_owned(), page);
    }

    /// By page, once so many have told theirs.
    pub(super) fn reports(
        &self,
        pages: usize,
        bound: Duration,
    ) -> anyhow::Result<BTreeMap<String, Vec<Attempt>>> {
        let deadline = Instant::now() + bound;
        let mut reports = BTreeMap::new();
        while reports.len() < pages {
            let left = deadline.saturating_duration_since(Instant::now());
            let report = self.reports.recv_timeout(left);
            let Report { prefix, results } =
                report.with_context(|| format!("only {:?} of {pages} pages reported", reports.keys()))?;
            reports.insert(prefix, results);
        }
        Ok(reports)
    }
}

fn answer(request: &Request, pages: &Pages, reports: &Sender<Report>) -> Reply {
    let path = request.path();
    if path == "/report" {
        let report = serde_json::from_str(&request.body);
        // The test fails without it, and names its page.
        let _ = report.map(|report| reports.send(report));
    }
    let pages = pages.lock();
    let page = path.rsplit('/').next().and_then(|name| pages.get(name)).map_or("", String::as_str);
    let headers = match path.starts_with("/sandboxed/") {
        true => {
            "Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: sandbox allow-scripts allow-forms"
        }
        false => "Content-Type: text/html; charset=utf-8",
    };
    Reply::new(200, headers, page)
}
