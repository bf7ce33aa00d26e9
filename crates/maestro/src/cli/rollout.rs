//! `maestro rollout …`

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use maestro_core::scheduler::Version;

use super::client::Client;
use super::context::{Context, WaitOptions};
use super::failure::{Exit, Failure};
use super::json::Json;
use super::output::{Format, fields, note, plain, print};
use super::poll::{self, Observer, Poll};
use super::resource::Resource;
use super::watch::spinner;
use crate::config::duration;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show how far the replacement of rooms is
    #[command(after_help = "\
Examples:
  maestro rollout status arena
  maestro rollout status arena --watch
  maestro rollout status arena --watch --timeout 30m && echo deployed")]
    Status(StatusOptions),

    /// Replace no more rooms for now; autoscaling goes on
    #[command(after_help = "\
Examples:
  maestro rollout pause arena")]
    Pause(SchedulerName),

    /// Go on with a rollout that is paused or halted
    #[command(after_help = "\
Examples:
  maestro rollout resume arena")]
    Resume(SchedulerName),

    /// Go back to the last version that was deployed
    #[command(after_help = "\
Examples:
  maestro rollout cancel arena
  maestro rollout cancel arena --wait")]
    Cancel {
        #[command(flatten)]
        name: SchedulerName,
        #[command(flatten)]
        wait: WaitOptions,
    },
}

#[derive(Debug, Args)]
pub(super) struct SchedulerName {
    /// Name of the scheduler
    scheduler: String,
}

#[derive(Debug, Args)]
pub(super) struct StatusOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Follow it until it has ended; exit code 1 if it halts or goes back
    #[arg(long)]
    watch: bool,
    /// Stop watching after this long; without it, watch to the end
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "watch")]
    timeout: Option<Duration>,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Status(options) if options.watch => watch(context, options),
        Command::Status(options) => {
            let answer = context.client()?.get(&rollout(&options.scheduler), "state")?;
            context.show(&answer, rollout_fields)
        }
        Command::Pause(name) => change(context, name, "pause", "paused"),
        Command::Resume(name) => change(context, name, "resume", "resumed"),
        Command::Cancel { name, wait } => {
            let scheduler = &name.scheduler;
            let resource = Resource::new(&["schedulers", scheduler, "rollout", "cancel"]);
            let answer = context.client()?.post(&resource, &Json::object([]))?;
            let what = format!("switch scheduler {scheduler} back to its last deployed version");
            context.operation_started(scheduler, &what, &answer, wait)
        }
    }
}

fn change(context: &Context, name: &SchedulerName, action: &str, done: &str) -> Result<(), Failure> {
    let scheduler = &name.scheduler;
    let resource = Resource::new(&["schedulers", scheduler, "rollout", action]);
    let answer = context.client()?.post(&resource, &Json::object([]))?;
    context.show(&answer, |_| format!("rollout of scheduler {scheduler} {done}"))
}

fn rollout(scheduler: &str) -> Resource {
    Resource::new(&["schedulers", scheduler, "rollout"])
}

fn rollout_fields(answer: &Json) -> String {
    fields([
        ("State", answer.get("state").cell()),
        ("Active", answer.get("active").cell()),
        ("Rooms", rooms_by_version(answer)),
        ("Old rooms", answer.get("oldRooms").cell()),
        ("New rooms", answer.get("newRooms").cell()),
        ("Total", answer.get("total").cell()),
        ("Done", format!("{} %", answer.get("percent").cell())),
        ("Waiting for", answer.get("waitingFor").cell()),
    ])
}

/// `v1.0.0: 12, v2.0.0: 8`, the oldest first.
fn rooms_by_version(answer: &Json) -> String {
    let Json::Object(entries) = answer.get("roomsByVersion") else {
        return "-".to_owned();
    };
    let mut versions: Vec<_> = entries.iter().collect();
    versions.sort_by_key(|(version, _)| Version::parse(version).ok());
    let versions: Vec<_> =
        versions.into_iter().map(|(version, rooms)| format!("{version}: {}", rooms.cell())).collect();
    if versions.is_empty() { "-".to_owned() } else { versions.join(", ") }
}

fn watch(context: &Context, options: &StatusOptions) -> Result<(), Failure> {
    let client = context.client()?;
    let resource = rollout(&options.scheduler);
    let ask = |client: &Client| client.get(&resource, "state");
    let poll = Poll { client: &client, ask: &ask, timeout: options.timeout, interval: poll::INTERVAL };
    let mut watching = Watching {
        scheduler: &options.scheduler,
        view: View::new(context.format()),
        line: String::new(),
        rolling: None,
    };
    let last = poll.run(&mut watching)?;
    let rolling = watching.rolling.take();
    match context.format() {
        // On a terminal the line that stayed current is gone by now.
        Format::Table if matches!(watching.view, View::Line(_)) => print(&line(&last))?,
        Format::Table => {}
        Format::Csv | Format::Json | Format::Yaml => context.show(&last, Json::cell)?,
    }
    verdict(context, &options.scheduler, &last, rolling.as_deref())
}

/// Success if what was being rolled out is deployed now. One that failed may be history before it was seen: then its
/// status tells.
fn verdict(context: &Context, scheduler: &str, last: &Json, rolling: Option<&str>) -> Result<(), Failure> {
    let state = last.get("state").cell();
    if state != "none" {
        let message = format!(
            "the rollout of scheduler {scheduler} is {}: {}",
            words(&state),
            last.get("waitingFor").cell()
        );
        return Err(Failure::new(Exit::Failed, message));
    }
    let Some(version) = rolling.filter(|version| last.get("active").as_str() != Some(version)) else {
        return Ok(());
    };
    let resource = Resource::new(&["schedulers", scheduler, "versions"]);
    let answer = context.client()?.get(&resource, "versions")?;
    let mut versions = answer.get("versions").items().iter();
    let found = versions.find(|found| found.get("version").as_str() == Some(version));
    match found.and_then(|found| found.get("status").as_str()) {
        Some(status @ ("error" | "canceled")) => {
            let message = format!("version {version} of scheduler {scheduler} was not deployed: {status}");
            Err(Failure::new(Exit::Failed, message))
        }
        Some(_) | None => Ok(()),
    }
}

fn words(state: &str) -> &str {
    match state {
        "rollingBack" => "rolling back",
        other => other,
    }
}

/// The whole of it on one line.
fn line(answer: &Json) -> String {
    let [active, percent, old, new] =
        ["active", "percent", "oldRooms", "newRooms"].map(|key| answer.get(key).cell());
    match answer.get("state").as_str() {
        Some("none") => format!("done: {active} with {new} rooms"),
        state => {
            let state = words(state.unwrap_or("-"));
            let waiting_for = match answer.get("waitingFor").as_str() {
                Some(what) => format!("; waiting for {what}"),
                None => String::new(),
            };
            plain(&format!("{state}, {active}: {percent} %, {old} old and {new} new rooms{waiting_for}"))
        }
    }
}

struct Watching<'a> {
    scheduler: &'a str,
    view: View,
    /// What was shown last.
    line: String,
    /// The version that was being rolled out when it was last seen to go on.
    rolling: Option<String>,
}

enum View {
    /// On a terminal: one line that stays current.
    Line(ProgressBar),
    /// Elsewhere: one line for each change, which are the result.
    Lines,
    /// The last answer is the result: changes on stderr.
    Notes,
}

impl View {
    fn new(format: Format) -> Self {
        match format {
            Format::Table if std::io::stdout().is_terminal() => Self::Line(spinner()),
            Format::Table => Self::Lines,
            Format::Csv | Format::Json | Format::Yaml => Self::Notes,
        }
    }

    fn show(&self, line: &str) -> Result<(), Failure> {
        match self {
            Self::Line(bar) => bar.set_message(line.to_owned()),
            Self::Lines => print(line)?,
            Self::Notes => note(line),
        }
        Ok(())
    }
}

impl Observer for Watching<'_> {
    fn saw(&mut self, answer: &Json) -> Result<bool, Failure> {
        let line = line(answer);
        if line != self.line {
            self.view.show(&line)?;
            self.line = line;
        }
        Ok(match answer.get("state").as_str() {
            Some("rolling" | "paused") => {
                self.rolling = answer.get("active").as_str().map(str::to_owned);
                false
            }
            Some(_) | None => true,
        })
    }

    fn unreachable(&mut self, message: &str) {
        let line = format!("{message}; trying again");
        match &self.view {
            View::Line(bar) => bar.set_message(line.clone()),
            View::Lines | View::Notes if self.line == line => {}
            View::Lines | View::Notes => note(&line),
        }
        // So that the next answer is shown again, whatever it is.
        self.line = line;
    }

    fn end(&mut self) {
        if let View::Line(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    fn timed_out(&self, after: Duration) -> Failure {
        let message = format!(
            "the rollout is not done after {after:?}; it goes on: maestro rollout status {} --watch",
            self.scheduler
        );
        Failure::new(Exit::TimedOut, message)
    }
}
