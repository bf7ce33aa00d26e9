//! A data directory of its own for each test, rooms for it, and the certainty that none of them stays behind.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use maestro_core::room::{Ending, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{
    Container, EnvironmentValue, EnvironmentVariable, ImagePullPolicy, Resources, RestartPolicy, Version,
};
use maestro_engine::Tasks;
use maestro_engine::ports::contract::fixtures;
pub(crate) use maestro_engine::ports::contract::fixtures::arena;
use maestro_engine::ports::runtime::{Handle, Observation, RoomEvent, RoomToStart, Runtime};
use maestro_runtime_process::{Options, ProcessRuntime, ProcessScanner};
pub(crate) use maestro_testkit::{PATIENCE, eventually, processes};
use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A grace period that rooms which obey do not need.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Dropped, it kills whatever carries its store's id, however its test ended.
pub(crate) struct World {
    directory: tempfile::TempDir,
    pub(crate) store_id: String,
}

impl World {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            directory: tempfile::tempdir().unwrap(),
            store_id: format!("test-{}-{number}", std::process::id()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn options(&self) -> Options {
        options(self.path(), &self.store_id)
    }

    pub(crate) async fn open(&self) -> Arc<ProcessRuntime> {
        ProcessRuntime::open(self.options()).await.unwrap()
    }

    /// A runtime and what it sees.
    pub(crate) async fn watch(&self) -> (Arc<ProcessRuntime>, Seen) {
        let runtime = self.open().await;
        let seen = Seen::by(&runtime);
        (runtime, seen)
    }

    /// Until nothing of this world runs.
    pub(crate) async fn until_empty(&self) {
        eventually("all processes are gone", async || carrying(&self.store_id).is_empty()).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // In the middle of an exec a process shows no environment, so one look that finds nothing proves nothing.
        let mut looks = 0;
        while looks < 5 {
            let left = carrying(&self.store_id);
            looks = if left.is_empty() { looks + 1 } else { 0 };
            left.into_iter().for_each(kill_group);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(crate) fn options(directory: &Path, store_id: &str) -> Options {
    Options {
        directory: directory.to_owned(),
        data_directory: directory.to_owned(),
        store_id: store_id.to_owned(),
        region: Region::default_region(),
        host: "127.0.0.1".into(),
        rooms_api_url: "http://127.0.0.1:8070".into(),
        log_limit_bytes: 1 << 20,
        scheduler_log_limit_bytes: 1 << 30,
        log_keeper: log_keeper(),
        ended_rooms_max: 100,
        rooms_max: 10_000,
        working_directory: directory.to_owned(),
        scanner: ProcessScanner::new(None),
        tasks: Tasks::default(),
        rooms_directory: None,
        user: None,
        server_of: |directory| std::fs::read_to_string(directory.join("server.pid")).ok()?.parse().ok(),
    }
}

/// This very binary, made to run [`crate::logs::log_keeper_process`] and nothing else.
fn log_keeper() -> Vec<OsString> {
    let this = std::env::current_exe().unwrap();
    let test = ["--exact", "logs::log_keeper_process", "--nocapture"];
    std::iter::once(this.into()).chain(test.map(OsString::from)).collect()
}

/// All processes, leaders or not, whose environment carries this store's id; found without any code under test.
pub(crate) fn carrying(store_id: &str) -> Vec<u32> {
    processes::of_store(store_id).unwrap().into_iter().map(|process| process.pid).collect()
}

pub(crate) fn leads_its_group(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.cast_signed());
    pid.is_some() && getpgid(pid).ok() == pid
}

pub(crate) fn kill_group(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = kill_process(pid, Signal::KILL);
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// A container that runs a script.
pub(crate) fn script(name: &str, text: &str) -> Container {
    command(name, &["/bin/sh", "-c", text])
}

pub(crate) fn command(name: &str, command: &[&str]) -> Container {
    let none = || Resources { memory: String::new(), cpu: String::new() };
    Container {
        name: name.into(),
        image: "unused".into(),
        image_pull_policy: ImagePullPolicy::IfNotPresent,
        command: command.iter().map(ToString::to_string).collect(),
        environment: vec![],
        requests: none(),
        limits: none(),
        ports: vec![],
    }
}

pub(crate) fn variable(name: &str, value: &str) -> EnvironmentVariable {
    EnvironmentVariable { name: name.into(), value: EnvironmentValue::Text(value.into()) }
}

pub(crate) fn room(id: &str, restart_policy: RestartPolicy, containers: Vec<Container>) -> RoomToStart {
    let mut recipe = fixtures::recipe(&arena());
    recipe.spec.termination_grace_period = Duration::from_millis(500);
    recipe.spec.containers = containers;
    recipe.spec.restart_policy = restart_policy;
    RoomToStart {
        purpose: Purpose::Fleet,
        id: RoomId::new(id),
        scheduler: arena(),
        version: Version::FIRST,
        recipe: Arc::new(recipe),
        ports: Vec::<HostPort>::new(),
    }
}

/// A room of one container that is never restarted.
pub(crate) fn simple(id: &str, text: &str) -> RoomToStart {
    room(id, RestartPolicy::Never, vec![script("game", text)])
}

/// What a runtime sees, by room.
pub(crate) struct Seen {
    pub(crate) observations: mpsc::Receiver<Observation>,
    /// Of other rooms than the one that was asked for.
    unclaimed: Vec<Observation>,
}

impl Seen {
    pub(crate) fn by(runtime: &ProcessRuntime) -> Self {
        Self { observations: runtime.observations().unwrap(), unclaimed: Vec::new() }
    }

    pub(crate) async fn next_event(&mut self, id: &str) -> RoomEvent {
        let position = self.unclaimed.iter().position(|seen| seen.room.as_str() == id);
        if let Some(position) = position {
            return self.unclaimed.remove(position).event;
        }
        let next = async {
            loop {
                let seen = self.observations.recv().await.expect("the runtime watches");
                if seen.room.as_str() == id {
                    return seen.event;
                }
                self.unclaimed.push(seen);
            }
        };
        timeout(PATIENCE, next).await.expect("something is seen of the room")
    }

    pub(crate) async fn ending(&mut self, id: &str) -> Ending {
        loop {
            if let RoomEvent::Ended(ending) = self.next_event(id).await {
                return ending;
            }
        }
    }
}

pub(crate) async fn until_log(runtime: &ProcessRuntime, id: &str, text: &str) {
    eventually(text, async || logs(runtime, id).await.contains(text)).await;
}

pub(crate) async fn logs(runtime: &ProcessRuntime, id: &str) -> String {
    let logs = runtime.logs(&arena(), &RoomId::new(id), 1000).await.unwrap();
    logs.unwrap_or_default()
}

pub(crate) async fn stop(runtime: &ProcessRuntime, id: &str, handle: Option<&Handle>, grace: Duration) {
    runtime.stop(&arena(), &RoomId::new(id), handle, grace).await.unwrap();
}
