//! One fleet from its creation to its deletion, through every operation.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use maestro_e2e::{Maestro, Settings, send_signal};
use rustix::process::Signal;

use super::story::{SCHEDULER, Story};

/// A write that the scenario makes.
pub(super) struct Write {
    pub(super) stage: &'static str,
    pub(super) label: String,
}

const SETTINGS: Settings<'static> = &[
    // Rooms come in several steps.
    ("OPERATIONS_ROOMS_ADD_BATCHSIZE", "2"),
    // storage_clean_up comes by the clock, and finds something to do.
    ("WORKERS_STORAGECLEANUPINTERVAL", "1s"),
    ("OPERATIONS_RETENTION_ROOMS", "1s"),
    ("OPERATIONS_RETENTION_NOACTION", "1s"),
];

type Stage = fn(&mut Fleet) -> anyhow::Result<()>;

const STAGES: [(&str, Stage); 9] = [
    ("create_scheduler", create),
    ("add_rooms", add),
    ("a killed room", kill_a_room),
    ("storage_clean_up", clean_up),
    ("remove_rooms", remove),
    ("resize", resize),
    ("create_room", create_room),
    ("cancel", cancel),
    ("delete_scheduler", delete),
];

/// The fleet, and how large it must be.
struct Fleet {
    story: Story,
    size: usize,
    killed: Option<String>,
}

/// Runs once with nothing that fails, and says which writes there were.
pub(super) fn log_writes() -> anyhow::Result<Vec<Write>> {
    let maestro = Maestro::new(SETTINGS)?;
    let log: PathBuf = maestro.home().join("writes");
    let failpoint = format!("log:{}", log.display());
    let mut fleet = Fleet::begin(maestro, &[failpoint])?;
    let mut writes = Vec::new();
    for (name, stage) in STAGES {
        stage(&mut fleet).context(name)?;
        let labels = read_labels(&log)?;
        let new = labels.into_iter().skip(writes.len());
        writes.extend(new.map(|label| Write { stage: name, label }));
    }
    Ok(writes)
}

/// How many servers died at their failpoint.
pub(super) fn run(failpoints: &[String]) -> anyhow::Result<usize> {
    let mut fleet = Fleet::begin(Maestro::new(SETTINGS)?, failpoints)?;
    for (name, stage) in STAGES {
        stage(&mut fleet).context(name)?;
    }
    Ok(fleet.story.deaths)
}

/// Lines are `number label`.
fn read_labels(log: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(log)?;
    let label = |line: &str| line.split_once(' ').map(|(_, label)| label.to_owned());
    Ok(text.lines().filter_map(label).collect())
}

impl Fleet {
    fn begin(maestro: Maestro, failpoints: &[String]) -> anyhow::Result<Self> {
        Ok(Self { story: Story::begin(maestro, failpoints)?, size: 0, killed: None })
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        self.story.settled(self.size)?;
        Ok(())
    }

    /// What a person asked for must have ended so; the reason is in the error.
    fn ends_as(&mut self, operation: &str, statuses: &[&str]) -> anyhow::Result<String> {
        let operation = self.story.end_of(operation)?;
        ensure!(
            statuses.contains(&operation.status.as_str()),
            "{} ended as {}: {}",
            operation.definition_name,
            operation.status,
            operation.story()
        );
        Ok(operation.status)
    }
}

fn create(fleet: &mut Fleet) -> anyhow::Result<()> {
    fleet.story.create(3)?;
    fleet.size = 3;
    fleet.settle()
}

fn add(fleet: &mut Fleet) -> anyhow::Result<()> {
    let operation = fleet.story.add(3, "add")?;
    fleet.size += 3;
    fleet.ends_as(&operation, &["finished"])?;
    fleet.settle()
}

fn kill_a_room(fleet: &mut Fleet) -> anyhow::Result<()> {
    let rooms = fleet.story.settled(fleet.size)?;
    let victim = rooms[0].clone();
    send_signal(victim.pids[0], Signal::KILL)?;
    fleet.killed = Some(victim.id.clone());
    fleet.story.until("the end of the killed room", |maestro| {
        // It is not remembered for long here.
        let Some(room) = maestro.api().room(SCHEDULER, &victim.id)? else {
            return Ok(());
        };
        let how = room.ended.context("it has not ended")?.how;
        let seen = ["signal 9", "nobody watched", "lost"];
        assert!(seen.iter().any(|seen| how.contains(seen)), "{how}");
        Ok(())
    })?;
    fleet.settle()
}

fn clean_up(fleet: &mut Fleet) -> anyhow::Result<()> {
    let killed = fleet.killed.clone().unwrap_or_default();
    fleet.story.until("the killed room to be forgotten", |maestro| {
        ensure!(maestro.api().room(SCHEDULER, &killed)?.is_none(), "it is remembered");
        let log = maestro.data_dir().join("rooms").join(SCHEDULER).join(&killed);
        ensure!(!log.exists(), "its log is there");
        Ok(())
    })?;
    fleet.settle()
}

fn remove(fleet: &mut Fleet) -> anyhow::Result<()> {
    let operation = fleet.story.remove(2, "remove")?;
    fleet.size -= 2;
    fleet.ends_as(&operation, &["finished"])?;
    fleet.settle()
}

fn resize(fleet: &mut Fleet) -> anyhow::Result<()> {
    for (size, user) in [(fleet.size + 2, "resize-up"), (fleet.size - 1, "resize-down")] {
        let operation = fleet.story.resize(size, size, user)?;
        fleet.size = size;
        fleet.ends_as(&operation, &["finished"])?;
        fleet.settle()?;
    }
    let refused = fleet.story.resize(fleet.size + 1, fleet.size, "resize-refused")?;
    fleet.ends_as(&refused, &["error"])?;
    fleet.settle()
}

fn create_room(fleet: &mut Fleet) -> anyhow::Result<()> {
    let operation = fleet.story.create_room("create")?;
    fleet.size += 1;
    fleet.ends_as(&operation, &["finished"])?;
    fleet.settle()
}

/// Of two additions the second waits when it is canceled, and the first is at work; the removal is parked. On a
/// busy machine each may be over before.
fn cancel(fleet: &mut Fleet) -> anyhow::Result<()> {
    let first = fleet.story.add(4, "canceled-1")?;
    let second = fleet.story.add(1, "canceled-2")?;
    for operation in [&second, &first] {
        fleet.story.cancel(operation)?;
    }
    for (operation, amount) in [(first, 4), (second, 1)] {
        if fleet.ends_as(&operation, &["canceled", "finished"])? == "finished" {
            fleet.size += amount;
        }
    }
    fleet.settle()?;
    let removal = fleet.story.remove(1, "canceled-3")?;
    fleet.story.cancel(&removal)?;
    if fleet.ends_as(&removal, &["canceled", "finished"])? == "finished" {
        fleet.size -= 1;
    }
    fleet.settle()
}

fn delete(fleet: &mut Fleet) -> anyhow::Result<()> {
    let operation = fleet.story.delete()?;
    fleet.ends_as(&operation, &["finished"])?;
    fleet.story.until("nothing to be left", |maestro| {
        maestro.api().get(&format!("/schedulers/{SCHEDULER}"))?.expect(404)?;
        ensure!(maestro.processes()?.is_empty(), "processes are left");
        let logs = maestro.data_dir().join("rooms").join(SCHEDULER);
        ensure!(!logs.exists(), "logs are left");
        Ok(())
    })
}
