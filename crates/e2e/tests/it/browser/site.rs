//! A web site of somebody else: it serves the pages that attack, and hears from them what they could read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

const PAGE: &str = include_str!("page.html");

/// A report is a few kilobytes.
const BODY_MAX: usize = 1 << 20;

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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let pages = Pages::default();
        let (sender, reports) = channel();
        let served = Arc::clone(&pages);
        // It ends with the test program.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (pages, sender) = (Arc::clone(&served), sender.clone());
                thread::spawn(move || {
                    // Browsers open connections that they do not use.
                    let _ = answer(&stream, &pages, &sender);
                });
            }
        });
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

fn answer(stream: &TcpStream, pages: &Pages, reports: &Sender<Report>) -> anyhow::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>()?.min(BODY_MAX);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    if path == "/report" {
        reports.send(serde_json::from_slice(&body).context("reading a report")?)?;
    }
    let pages = pages.lock();
    let page = path.rsplit('/').next().and_then(|name| pages.get(name)).map_or("", String::as_str);
    let policy = match path.starts_with("/sandboxed/") {
        true => "Content-Security-Policy: sandbox allow-scripts allow-forms\r\n",
        false => "",
    };
    let mut writer = stream;
    write!(
        writer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{policy}Content-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )?;
    Ok(())
}
