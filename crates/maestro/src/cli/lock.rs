//! `maestro lock …`

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Args, Subcommand};
use maestro_core::lock::LockKind;

use super::{Age, At, Column, Context, Failure, Json, Resource, Text, table};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the locks of a scheduler: who holds them, since when and why
    #[command(after_help = examples![
        "maestro lock list arena",
        "maestro lock list arena -o json | jq '.[] | select(.isLocked)'",
    ])]
    List {
        /// Name of the scheduler
        scheduler: String,
    },

    /// Release a lock by force: an operation that holds it ends with an error, a rollout that holds it is paused
    #[command(after_help = examples![
        "maestro lock release arena downscaling --reason \"the rooms are gone, I looked\"",
        "maestro lock release arena config --token 1841 --reason \"wrong build\"",
    ])]
    Release(ReleaseOptions),
}

#[derive(Debug, Args)]
pub(super) struct ReleaseOptions {
    /// Name of the scheduler
    scheduler: String,
    /// Kind of the lock
    #[arg(value_parser = PossibleValuesParser::new(LockKind::LISTED.map(LockKind::as_str)))]
    kind: String,
    /// Reason for the release, recorded in the history
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    reason: String,
    /// Release the lock only if it still has this fencing token
    #[arg(long, value_name = "N")]
    token: Option<u64>,
}

pub(super) fn run(context: &Context, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List { scheduler } => {
            let answer = context.client()?.get_list(&Resource::new(&["schedulers", scheduler, "locks"]))?;
            context.show(&answer, |locks| table(locks, LOCKS))
        }
        Command::Release(options) => release(context, options),
    }
}

fn release(context: &Context, options: &ReleaseOptions) -> Result<(), Failure> {
    let ReleaseOptions { scheduler, kind, reason, token } = options;
    let resource = Resource::new(&["schedulers", scheduler, "locks", kind])
        .query("reason", reason)
        .query_some("token", *token);
    context.client()?.delete_silently(&resource)?;
    context.show(&Json::object([]), |_| format!("lock {kind} of scheduler {scheduler} released"))
}

const LOCKS: &[Column] = &[
    ("KIND", At("kind")),
    ("LOCKED", Text(|lock| if lock.get("isLocked").is_true() { "yes" } else { "no" }.to_owned())),
    ("OWNER", At("owner")),
    ("SINCE", Age("acquiredAt")),
    ("TTL", Text(ttl)),
    ("WAITING", Text(waiting)),
    ("REASON", At("reason")),
];

fn ttl(lock: &Json) -> String {
    match lock.get("ttlInSec") {
        _ if !lock.get("isLocked").is_true() => "-".to_owned(),
        Json::Number(seconds) if seconds.as_i64() == Some(-1) => "no end".to_owned(),
        seconds => format!("{}s", seconds.cell()),
    }
}

/// How many wait for it.
fn waiting(lock: &Json) -> String {
    match lock.get("waiters").items().len() {
        0 => "-".to_owned(),
        waiters => waiters.to_string(),
    }
}
