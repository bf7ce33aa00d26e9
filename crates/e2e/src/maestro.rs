//! One data directory and the server that runs on it: started, killed, started again.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_testkit::processes::{self, RoomProcess};
use maestro_testkit::{Lines, PATIENCE, PortSlice, until};
use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::client::{Client, Room};
use crate::recipe::Recipe;
use crate::{binaries, checks};

/// Of a server's log, how much an error shows.
const LOG_TAIL_LINES: usize = 40;

/// Keys of the configuration as variables, without `MAESTRO_`.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

const DEFAULTS: Settings<'static> = &[
    // Nothing happens by the clock: what must happen is woken by its cause.
    ("WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL", "1h"),
    ("WORKERS_STORAGECLEANUPINTERVAL", "1h"),
    // Ctrl-C ends the tests and the servers; their rooms must not stay behind.
    (STOP_ROOMS, "true"),
];
/// Whether rooms end with a server that is asked to end. Unset, they do not.
pub const STOP_ROOMS: &str = "ADAPTERS_RUNTIME_PROCESS_STOPROOMSONSHUTDOWN";

pub struct Maestro {
    home: TempDir,
    ports: PortSlice,
    api_ports: [u16; 3],
    environment: BTreeMap<String, String>,
    child: Option<Child>,
    client: Client,
    store_id: Option<String>,
}

impl Maestro {
    /// A data directory on which nothing has run yet.
    pub fn new(settings: Settings<'_>) -> anyhow::Result<Self> {
        let ports = PortSlice::take()?;
        let api_ports = ports.api_ports()?;
        let mut maestro = Self {
            home: tempfile::tempdir().context("making a directory for the test")?,
            client: Client::new(format!("http://127.0.0.1:{}", api_ports[0])),
            ports,
            api_ports,
            environment: BTreeMap::new(),
            child: None,
            store_id: None,
        };
        let apis = ["MANAGEMENTAPI_PORT", "ROOMSAPI_PORT", "INTERNALAPI_PORT"];
        for (name, port) in apis.into_iter().zip(api_ports) {
            maestro.set(name, &port.to_string());
        }
        for (name, value) in DEFAULTS.iter().chain(settings) {
            maestro.set(name, value);
        }
        Ok(maestro)
    }

    pub fn started(settings: Settings<'_>) -> anyhow::Result<Self> {
        let mut maestro = Self::new(settings)?;
        maestro.start()?;
        Ok(maestro)
    }

    /// Counts from the next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(format!("MAESTRO_{name}"), value.to_owned());
    }

    /// From the next start on Maestro's own default counts.
    pub fn unset(&mut self, name: &str) {
        self.environment.remove(&format!("MAESTRO_{name}"));
    }

    /// `None`: the next start fails nowhere. See `maestro_store_embedded::Failpoints` for the words.
    pub fn set_failpoint(&mut self, failpoint: Option<&str>) {
        match failpoint {
            Some(failpoint) => self.set("FAILPOINT", failpoint),
            None => self.unset("FAILPOINT"),
        }
    }

    /// The configuration file of the next start.
    pub fn set_file(&self, text: &str) -> anyhow::Result<()> {
        fs::write(self.file(), text).context("writing the configuration")
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("maestro.yaml")
    }

    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// For files of the test itself.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn api(&self) -> &Client {
        &self.client
    }

    /// The internal API: probes and metrics.
    pub fn internal(&self) -> Client {
        Client::new(format!("http://127.0.0.1:{}", self.api_ports[2]))
    }

    /// What rooms call.
    pub fn rooms_api(&self) -> Client {
        Client::new(format!("http://127.0.0.1:{}", self.api_ports[1]))
    }

    /// Of the management, rooms and internal API.
    pub fn api_ports(&self) -> [u16; 3] {
        self.api_ports
    }

    pub fn room_ports(&self) -> RangeInclusive<u16> {
        self.ports.room_ports()
    }

    pub fn recipe(&self, name: &str, rooms: u32) -> anyhow::Result<Recipe> {
        Recipe::new(name, rooms, self.room_ports())
    }

    /// Makes a fleet of rooms that behave, and waits until all are ready.
    pub fn fleet(&self, name: &str, rooms: u32) -> anyhow::Result<Vec<Room>> {
        let recipe = self.recipe(name, rooms)?;
        self.client.create(&recipe.json())?.expect(200)?;
        self.until("a fleet", || checks::settled(self, name, rooms as usize))
    }

    /// The command that starts a server here, for those who want to see how it fails.
    pub fn start_command(&self) -> anyhow::Result<Command> {
        let mut command = self.command()?;
        command.arg("start").arg("--data-dir").arg(self.data_dir());
        if self.file().exists() {
            command.arg("-c").arg(self.file());
        }
        Ok(command)
    }

    /// Without the machine's environment.
    fn command(&self) -> anyhow::Result<Command> {
        let program = binaries::maestro()?;
        // Recipes may name the example room without its directory.
        let mut path = program.parent().map(Path::to_path_buf).into_iter().collect::<Vec<_>>();
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new(program);
        let path = std::env::join_paths(path)?;
        command
            .env_clear()
            .env("PATH", path)
            .envs(&self.environment)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// The command line against this server.
    pub fn cli(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.cli_command(arguments)?.output().context("running maestro")
    }

    /// The same, for those who do something else while it runs.
    pub fn cli_command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = self.command()?;
        command.args(arguments).env("MAESTRO_URL", self.client.url());
        Ok(command)
    }

    /// Returns when it serves.
    pub fn start(&mut self) -> anyhow::Result<()> {
        self.launch()?;
        self.await_serving()
    }

    /// With flags of `maestro start`.
    pub fn start_with(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        let log = self.open_log()?;
        self.spawn(flags, log)?;
        self.await_serving()
    }

    /// Begins to start: whoever wants to kill it before it serves does not wait for that.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        let log = self.open_log()?;
        self.launch_with_log(log)
    }

    /// As [`Maestro::launch`], with a log that goes elsewhere.
    pub fn launch_with_log(&mut self, log: Stdio) -> anyhow::Result<()> {
        self.spawn(&[], log)
    }

    fn open_log(&self) -> anyhow::Result<Stdio> {
        Ok(OpenOptions::new().create(true).append(true).open(self.log())?.into())
    }

    fn spawn(&mut self, flags: &[&str], log: Stdio) -> anyhow::Result<()> {
        ensure!(self.child.is_none(), "it runs already");
        let mut command = self.start_command()?;
        let child = command.args(flags).stdout(Stdio::piped()).stderr(log).spawn();
        let child = child.context("starting maestro")?;
        self.child = Some(child);
        Ok(())
    }

    /// Of one that was launched.
    pub fn await_serving(&mut self) -> anyhow::Result<()> {
        let stdout = self.child.as_mut().and_then(|child| child.stdout.take());
        let stdout = stdout.context("it was not launched, or serves already")?;
        let line = Lines::of(stdout).wait(|_| true).with_context(|| self.log_tail())?;
        ensure!(line.contains("\"serving\""), "expected that it serves, not {line:?}; {}", self.log_tail());
        self.store_id = Some(self.read_store_id()?);
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        let status = self.stop(Signal::KILL)?;
        ensure!(status.signal() == Some(9), "it ended before it was killed: {status}");
        Ok(())
    }

    /// Sends a signal and waits for the end.
    pub fn stop(&mut self, signal: Signal) -> anyhow::Result<ExitStatus> {
        let child = self.child.as_ref().context("it does not run")?;
        processes::send_signal(child.id(), signal)?;
        until(format!("its end after {signal:?}"), PATIENCE, || self.ended()?.context("it runs"))
            .with_context(|| self.log_tail())
    }

    /// How it ended, if it has. Asked once more, it does not run and has not ended.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        let status = child.try_wait()?;
        if status.is_some() {
            self.child = None;
        }
        Ok(status)
    }

    /// Starts it again, without its failpoint, if that has killed it. True: it did.
    pub fn revive(&mut self) -> anyhow::Result<bool> {
        let Some(status) = self.ended()? else { return Ok(false) };
        ensure!(status.signal() == Some(9), "the server ended by itself: {status}");
        self.set_failpoint(None);
        self.start()?;
        Ok(true)
    }

    pub fn pid(&self) -> anyhow::Result<u32> {
        self.child.as_ref().map(Child::id).context("it does not run")
    }

    /// `None` before its first start.
    pub fn store_id(&self) -> Option<&str> {
        self.store_id.as_deref()
    }

    /// Leaves the directory of the data and of the log behind, for who wants to look into them.
    pub fn keep(&mut self) -> &Path {
        self.home.disable_cleanup(true);
        self.home.path()
    }

    /// Of this store, whether Maestro knows them or not, in the order of their pids.
    pub fn processes(&self) -> anyhow::Result<Vec<RoomProcess>> {
        let Some(store_id) = &self.store_id else {
            return Ok(Vec::new());
        };
        processes::of_store(store_id).context("listing processes")
    }

    /// Waits with [`PATIENCE`]; the error shows the end of the server's log.
    pub fn until<T>(&self, what: &str, look: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        until(what, PATIENCE, look).with_context(|| self.log_tail())
    }

    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("the server's log ends with\n{}\n", tail.join("\n"))
    }

    pub fn log(&self) -> PathBuf {
        self.home.path().join("maestro.log")
    }

    /// Ended ones included, as far as they are kept.
    pub fn rooms_ever_made(&self, scheduler: &str) -> anyhow::Result<u32> {
        let count = "SELECT count(*) FROM rooms WHERE scheduler = ?1";
        self.database()?.query_row(count, [scheduler], |row| row.get(0)).context("counting rooms")
    }

    /// To read in it what no answer says.
    pub(crate) fn database(&self) -> anyhow::Result<Connection> {
        let database = self.data_dir().join("maestro.db");
        Ok(Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
    }

    fn read_store_id(&self) -> anyhow::Result<String> {
        let connection = self.database()?;
        connection.query_row("SELECT id FROM store", [], |row| row.get(0)).context("reading the store's id")
    }

    /// Nothing may be left of a test, however it ended.
    fn end_all(&mut self) {
        if let Some(child) = &mut self.child {
            // Fails only if it has ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        if self.store_id.is_none() {
            self.store_id = self.read_store_id().ok();
        }
        // A room that was being started when the server died may come late.
        let _ = until("all rooms to be gone", Duration::from_secs(10), || {
            let rooms = self.processes()?;
            for room in &rooms {
                let _ = processes::send_signal(room.pid, Signal::KILL);
            }
            ensure!(rooms.is_empty(), "{rooms:?}");
            Ok(())
        });
    }
}

impl Drop for Maestro {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
        self.end_all();
    }
}
