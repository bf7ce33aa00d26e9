//! `maestro rollout …`

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, Subcommand};
use maestro_core::rollout::VersionOutcome;
use maestro_core::scheduler::Version;
use maestro_core::text::count_of;

use super::ready_rooms::ReadyRooms;
use super::{
    At, Client, Column, Context, Exit, Failure, Format, Json, Poll, Progress, Resource, Text, WaitOptions,
    fields, or_dash, plain, poll, print,
};
use crate::config::duration;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show which version is being validated or rolled out, and how far it is
    #[command(after_help = examples![
        "maestro rollout status arena",
        "maestro rollout status arena --watch",
        "maestro scheduler apply -f arena.yaml && maestro rollout status arena --watch --timeout 30m && echo deployed",
        "maestro rollout status arena --watch --version v2.0.0",
    ])]
    Status(StatusOptions),

    /// Stop replacing rooms for now; autoscaling continues
    #[command(after_help = examples!["maestro rollout pause arena"])]
    Pause(SchedulerName),

    /// Continue a rollout that is paused or halted
    #[command(after_help = examples!["maestro rollout resume arena"])]
    Resume(SchedulerName),

    /// Roll back to the last version that was deployed
    #[command(after_help = examples![
        "maestro rollout cancel arena",
        "maestro rollout cancel arena --wait",
    ])]
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
    /// Follow the version until it is deployed and its rooms are ready; exit code 1 if it fails, is canceled or is superseded
    #[arg(short, long)]
    watch: bool,
    /// The version to look at, instead of the one that was submitted or switched to last
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Stop watching after this long; without it, watch to the end
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "watch")]
    timeout: Option<Duration>,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Status(options) if options.watch => watch(context, options),
        Command::Status(options) => {
            let resource = rollout(&options.scheduler, options.version.as_deref());
            let answer = context.client()?.get(&resource, "state")?;
            context.show(&answer, |rollout| fields(rollout, ROLLOUT))
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

fn rollout(scheduler: &str, version: Option<&str>) -> Resource {
    Resource::new(&["schedulers", scheduler, "rollout"]).query_some("version", version)
}

const ROLLOUT: &[Column] = &[
    ("State", At("state")),
    ("Version", At("version")),
    ("Status", At("status")),
    ("Cause", At("cause")),
    ("Active", At("active")),
    ("Rooms", Text(rooms_by_version)),
    ("Old rooms", At("oldRooms")),
    ("New rooms", At("newRooms")),
    ("Total", At("total")),
    ("Done", Text(|rollout| format!("{} %", rollout.get("percent").cell()))),
    ("Waiting for", At("waitingFor")),
];

/// `v1.0.0: 12, v2.0.0: 8`, the oldest first.
fn rooms_by_version(answer: &Json) -> String {
    let mut versions: Vec<_> = answer.get("roomsByVersion").entries().iter().collect();
    versions.sort_by_key(|(version, _)| Version::parse(version).ok());
    or_dash(versions.into_iter().map(|(version, rooms)| format!("{version}: {}", rooms.cell())), ", ")
}

fn watch(context: &Context, options: &StatusOptions) -> Result<(), Failure> {
    let (client, scheduler) = (context.client()?, options.scheduler.as_str());
    // What someone submits meanwhile is another rollout: the version that was seen first is the one to follow.
    let version = RefCell::new(options.version.clone());
    let ask = |client: &Client| Seen::ask(client, scheduler, &mut version.borrow_mut());
    let poll = Poll { client: &client, ask: &ask, timeout: options.timeout, interval: poll::INTERVAL };
    let progress = match context.output {
        Format::Table if std::io::stdout().is_terminal() => Progress::spinner(),
        // The changes are the result, a line each.
        Format::Table => Progress::lines(),
        Format::Csv | Format::Json | Format::Yaml => Progress::notes(),
    };
    let is_spinner = progress.is_spinner();
    let mut missing_rooms = None;
    let last = poll.run(progress, |seen, progress| {
        progress.state(&seen.line())?;
        missing_rooms = seen.missing_rooms().map(ReadyRooms::count);
        Ok(seen.is_last())
    })?;
    let Some(Seen { rollout: last, .. }) = last else {
        let after = options.timeout.unwrap_or_default();
        let how_far = match missing_rooms {
            Some(rooms) => format!("deployed, but {rooms} after {after:?}; the scheduler keeps trying"),
            None => format!("not deployed after {after:?}; the rollout continues"),
        };
        let message = format!("{how_far}: maestro rollout status {scheduler} --watch");
        return Err(Failure::new(Exit::TimedOut, message));
    };
    match context.output {
        // On a terminal the line that stayed current has been cleared.
        Format::Table if is_spinner => print(&line(&last))?,
        Format::Table => {}
        Format::Csv | Format::Json | Format::Yaml => context.show(&last, Json::cell)?,
    }
    verdict(scheduler, &last)
}

/// One look at a version that is followed.
struct Seen {
    rollout: Json,
    /// The rooms of a version that is deployed and active: a fleet without rooms has none to replace, and is not complete.
    rooms: Option<ReadyRooms>,
}

impl Seen {
    fn ask(client: &Client, scheduler: &str, version: &mut Option<String>) -> Result<Self, Failure> {
        let answer = client.get(&rollout(scheduler, version.as_deref()), "state")?;
        *version = version.take().or_else(|| answer.get("version").as_str().map(str::to_owned));
        let is_active = answer.get("active") == answer.get("version");
        let has_rooms = is_active && outcome(&answer) == VersionOutcome::Deployed;
        let rooms = has_rooms.then(|| ReadyRooms::ask(client, scheduler)).transpose()?;
        Ok(Self { rollout: answer, rooms })
    }

    fn missing_rooms(&self) -> Option<&ReadyRooms> {
        self.rooms.as_ref().filter(|rooms| !rooms.is_complete())
    }

    fn is_last(&self) -> bool {
        let is_over = outcome(&self.rollout) != VersionOutcome::InProgress || is_halted(&self.rollout);
        is_over && self.missing_rooms().is_none()
    }

    fn line(&self) -> String {
        match self.missing_rooms() {
            Some(rooms) => {
                plain(&format!("deployed, {}: {}", self.rollout.get("version").cell(), rooms.with_problem()))
            }
            None => line(&self.rollout),
        }
    }
}

/// Success if the version is deployed, else why it is not, and where more is said.
fn verdict(scheduler: &str, last: &Json) -> Result<(), Failure> {
    let outcome = match outcome(last) {
        VersionOutcome::Deployed => return Ok(()),
        VersionOutcome::Failed => "failed",
        VersionOutcome::Canceled => "was canceled",
        VersionOutcome::Superseded => "was superseded",
        VersionOutcome::InProgress if is_halted(last) => "halted",
        // What is not over is not judged.
        VersionOutcome::InProgress => "is not deployed",
    };
    let cause = match (last.get("cause").as_str(), last.get("waitingFor").as_str()) {
        (Some(cause), _) => plain(cause),
        (None, Some(waiting_for)) => format!("waiting for {}", plain(waiting_for)),
        (None, None) => "no cause was recorded".to_owned(),
    };
    // A version that has no number yet cannot be named.
    let version = match last.get("version").as_str() {
        Some(number) => format!("version {number}"),
        None => "the new version".to_owned(),
    };
    let mut message = format!("{version} of scheduler {scheduler} {outcome}: {cause}");
    if let Some(operation) = last.get("operationId").as_str() {
        message.push_str(&format!("\nmore: maestro operation get {scheduler} {operation}"));
    }
    Err(Failure::failed(message))
}

/// What has become of the version that an answer is about.
fn outcome(answer: &Json) -> VersionOutcome {
    answer.get("outcome").as_str().and_then(VersionOutcome::parse).unwrap_or(VersionOutcome::InProgress)
}

/// Nothing happens until someone says how to continue.
fn is_halted(answer: &Json) -> bool {
    answer.get("state").as_str() == Some("halted")
}

/// The whole state of a rollout on one line.
fn line(answer: &Json) -> String {
    let number = answer.get("version").cell();
    plain(&match outcome(answer) {
        VersionOutcome::Deployed => {
            let rooms = answer.get("roomsByVersion").get(&number).as_u64().unwrap_or(0);
            format!("done: {number} is deployed with {}", count_of(rooms, "room"))
        }
        over @ (VersionOutcome::Failed | VersionOutcome::Canceled | VersionOutcome::Superseded) => {
            let cause = answer.get("cause").as_str().unwrap_or("no cause was recorded");
            format!("{over}: {number}: {cause}")
        }
        VersionOutcome::InProgress => {
            let state = match answer.get("state").cell() {
                rolling_back if rolling_back == "rollingBack" => "rolling back".to_owned(),
                state => state,
            };
            let number = if number == "-" { "a new version" } else { &number };
            let [percent, old, new] = ["percent", "oldRooms", "newRooms"].map(|key| answer.get(key).cell());
            let waiting_for = match answer.get("waitingFor").as_str() {
                Some(what) => format!("; waiting for {what}"),
                None => String::new(),
            };
            match state.as_str() {
                "validating" => format!("{state}, {number}{waiting_for}"),
                _ => format!("{state}, {number}: {percent} %, {old} old and {new} new rooms{waiting_for}"),
            }
        }
    })
}
