//! A web page that somebody has open, in a real Chromium, against a real server: it can neither read nor change
//! anything.

mod site;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use maestro_e2e::{Maestro, checks};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use site::{Attempt, Site};

/// A browser is slow to start where others are busy; it never takes longer.
const BROWSER_PATIENCE: Duration = Duration::from_secs(240);

/// A name that is not this machine's, for addresses that are: what an attacker's own DNS server would do.
const FOREIGN_NAME: &str = "evil.test";

#[test]
fn a_page_of_another_origin_can_neither_read_nor_change_anything() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 2)?;
    let site = Site::open()?;
    let port = site.port();
    // Another port, another name for the same machine, a name that an attacker made up, and no origin at all (`null`).
    let pages = [
        ("port", format!("http://127.0.0.1:{port}/"), "127.0.0.1"),
        ("name", format!("http://localhost:{port}/"), "127.0.0.1"),
        ("rebound", format!("http://{FOREIGN_NAME}:{port}/"), FOREIGN_NAME),
        ("sandboxed", format!("http://127.0.0.1:{port}/sandboxed/"), "localhost"),
    ];
    for (index, (prefix, url, host)) in pages.iter().enumerate() {
        let next = pages.get(index + 1).map(|(next, url, _)| format!("{url}{next}"));
        site.add(prefix, &attack(&maestro, prefix, host, &rooms[0].id, next.as_deref())?);
        ensure!(url.ends_with('/'), "{url}");
    }
    let before = all(&maestro)?;

    let browser = Browser::open(maestro.home(), &format!("{}{}", pages[0].1, pages[0].0), &[])?;
    let reports = site.reports(pages.len(), BROWSER_PATIENCE).with_context(|| browser.log())?;
    drop(browser);

    assert_eq!(all(&maestro)?, before, "a page changed something");
    for (prefix, attempts) in &reports {
        check_report(prefix, attempts)?;
    }
    check_refusals(&maestro)?;

    // The recipe itself is good: it is the page that is refused.
    let recipe = maestro.recipe("by-its-user", 0)?.json();
    maestro.api().create(&recipe)?.expect(200)?;
    checks::settled(&maestro, "arena", 2)?;
    Ok(())
}

/// DNS rebinding: the page's own name, which led to its own server a moment ago, now leads here. To the browser the
/// answer is then the page's own, which it may read.
#[test]
fn a_name_that_is_not_this_servers_reads_nothing() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    let port = maestro.api_ports()[0];
    for (host, is_read) in [("127.0.0.1", true), (FOREIGN_NAME, false)] {
        let url = format!("http://{host}:{port}/schedulers");
        let mut browser = Browser::open(maestro.home(), &url, &["--dump-dom"])?;
        let seen = browser.output()?;
        assert_eq!(seen.contains("arena"), is_read, "{host}: {seen}\n{}", browser.log());
        assert_eq!(seen.contains("api.allowedHosts"), !is_read, "{host}: {seen}");
    }
    Ok(())
}

/// All that pages might change.
fn all(maestro: &Maestro) -> anyhow::Result<Vec<Value>> {
    let read = |path: &str| maestro.api().get(path)?.expect(200)?.json();
    let mut rooms = read("/schedulers/arena/rooms")?;
    for room in rooms["rooms"].as_array_mut().context("no rooms")? {
        room["lastPingAt"] = Value::Null;
    }
    // Maestro's own come when they must.
    let mut operations = maestro.api().operations("arena")?;
    operations.retain(|operation| operation.reason.contains("asked for by"));
    let asked_for: Vec<String> = operations.into_iter().map(|operation| operation.id).collect();
    Ok(vec![
        rooms,
        read("/schedulers")?,
        asked_for.into(),
        read("/regions")?["regions"][0]["cordoned"].take(),
    ])
}

fn attack(
    maestro: &Maestro,
    prefix: &str,
    host: &str,
    room: &str,
    next: Option<&str>,
) -> anyhow::Result<Value> {
    let [management, rooms, internal] = maestro.api_ports().map(|port| format!("http://{host}:{port}"));
    let arena = format!("{management}/schedulers/arena");
    let ping = format!("{rooms}/scheduler/arena/rooms/{room}");
    Ok(json!({
        "prefix": prefix,
        "next": next,
        // Its rooms would run this command.
        "recipe": maestro.recipe("evil", 1)?.json(),
        "reads": {
            "management": ["/schedulers", "/schedulers/arena/rooms"],
            "rooms": [format!("/scheduler/arena/rooms/{room}/address")],
            "internal": ["/metrics", "/readyz"],
        },
        "changes": [
            ["POST", format!("{arena}/add-rooms"), r#"{"amount":1}"#],
            ["POST", format!("{arena}/remove-rooms"), r#"{"amount":1}"#],
            ["POST", format!("{management}/regions/default/cordon"), ""],
            ["DELETE", arena, ""],
            ["PUT", format!("{ping}/ping"), r#"{"status":"occupied"}"#],
            ["PUT", format!("{ping}/status"), r#"{"status":"terminating"}"#],
            ["POST", format!("{ping}/ping"), r#"{"status":"occupied"}"#],
        ],
        "targets": {"management": management, "rooms": rooms, "internal": internal},
    }))
}

fn check_report(prefix: &str, attempts: &[Attempt]) -> anyhow::Result<()> {
    ensure!(attempts.len() > 40, "{prefix}: the page gave up: {attempts:?}");
    for attempt in attempts {
        let read = attempt.read.as_deref().unwrap_or_default();
        ensure!(read.is_empty(), "{prefix}: {} read {read:?}", attempt.name);
        // Elements that load what they are given say whether they got it.
        let is_element = attempt.name.contains(" img ") || attempt.name.contains(" script ");
        let refused = attempt.error.is_some();
        if is_element && !attempt.name.starts_with("internal") {
            ensure!(refused, "{prefix}: {} was answered", attempt.name);
        }
    }
    Ok(())
}

/// It was the server that refused them: they came, and none got through.
fn check_refusals(maestro: &Maestro) -> anyhow::Result<()> {
    let internal = format!("http://127.0.0.1:{}/metrics", maestro.api_ports()[2]);
    let metrics = ureq::get(internal).call()?.body_mut().read_to_string()?;
    let refused = |service: &str| -> u64 {
        let of_service = |line: &&str| {
            line.starts_with("http_request_duration_seconds_count{")
                && line.contains(&format!("service=\"{service}\""))
                && line.contains("code=\"403\"")
        };
        metrics
            .lines()
            .filter(of_service)
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    };
    for (service, at_least) in [("management-api", 20), ("rooms-api", 10)] {
        let refused = refused(service);
        ensure!(refused >= at_least, "{service} refused {refused} requests of pages, not {at_least}");
    }
    Ok(())
}

/// A Chromium without a window and without a past. It ends with this.
struct Browser {
    child: Child,
    log: std::path::PathBuf,
    output: std::path::PathBuf,
}

impl Browser {
    fn open(home: &Path, url: &str, flags: &[&str]) -> anyhow::Result<Self> {
        let profile = tempfile::tempdir_in(home)?.keep();
        let (log, output) = (profile.join("log"), profile.join("output"));
        let child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--no-proxy-server"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--host-resolver-rules=MAP {FOREIGN_NAME} 127.0.0.1"))
            .args(flags)
            .arg(url)
            .env("HOME", &profile)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&output)?)
            .stderr(fs::File::create(&log)?)
            .process_group(0)
            .spawn()
            .context("starting chromium; `scripts/install chromium` installs it")?;
        Ok(Self { child, log, output })
    }

    /// What it prints until it ends.
    fn output(&mut self) -> anyhow::Result<String> {
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            if started.elapsed() > BROWSER_PATIENCE {
                bail!("the browser does not end; {}", self.log());
            }
            thread::sleep(Duration::from_millis(50));
        }
        fs::read_to_string(&self.output).context("reading what the browser printed")
    }

    fn log(&self) -> String {
        format!("the browser says\n{}", fs::read_to_string(&self.log).unwrap_or_default())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Fails only if all of it has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
