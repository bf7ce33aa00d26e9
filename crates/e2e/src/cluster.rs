//! Servers of every module, each a process of its own, on one PostgreSQL and one Redis.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_testkit::processes::{self, RoomProcess};
use maestro_testkit::{Lines, PATIENCE, PortSlice, RedisServer, postgres, until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::binaries;
use crate::client::{Client, Room};
use crate::recipe::Recipe;

/// Of each log, how much an error shows.
const LOG_TAIL_LINES: usize = 15;

pub struct Cluster {
    home: TempDir,
    ports: PortSlice,
    environment: BTreeMap<String, String>,
    postgres: postgres::Server,
    database: String,
    redis: RedisServer,
    processes: Vec<ModuleProcess>,
    store_id: String,
}

/// One of them.
struct ModuleProcess {
    /// The module and a number, from 0.
    name: String,
    child: Child,
    /// The line that it wrote when it served.
    serving: Value,
}

impl Cluster {
    /// The servers and an empty database with Maestro's schema; no module yet.
    pub fn new() -> anyhow::Result<Self> {
        let (postgres, redis) = (postgres::Server::start()?, RedisServer::start(&[])?);
        let database = postgres.create_database(None)?;
        let ports = PortSlice::take()?;
        let rooms_api = format!("http://127.0.0.1:{}", ports.api_ports()?[1]);
        let environment = [
            ("STORE_POSTGRES_URL", postgres.tcp_url(&database)),
            ("ROOMTABLE_REDIS_URL", redis.url()),
            ("MANAGEMENTAPI_PORT", "0".into()),
            ("ROOMSAPI_PORT", "0".into()),
            ("INTERNALAPI_PORT", "0".into()),
            ("ADAPTERS_RUNTIME_PROCESS_ROOMSAPIURL", rooms_api),
            ("WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL", "2s".into()),
        ];
        let environment =
            environment.into_iter().map(|(name, value)| (format!("MAESTRO_{name}"), value)).collect();
        let home = tempfile::tempdir().context("making a directory for the test")?;
        let (processes, store_id) = (Vec::new(), String::new());
        let mut cluster = Self { home, ports, environment, postgres, database, redis, processes, store_id };
        let migrated = cluster.command()?.arg("migrate").output()?;
        ensure!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let id = cluster.postgres.sql(&cluster.database, "SELECT id FROM store")?;
        cluster.store_id = id.trim().to_owned();
        Ok(cluster)
    }

    fn command(&self) -> anyhow::Result<Command> {
        let mut command = Command::new(binaries::maestro()?);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(&self.environment)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Starts one more of a module, and returns its name when it serves. The first rooms API is the one that rooms know.
    pub fn start(&mut self, module: &str) -> anyhow::Result<String> {
        let number = self.processes.iter().filter(|process| process.name.starts_with(module)).count();
        let name = format!("{module}-{number}");
        let log = OpenOptions::new().create(true).append(true).open(self.log(&name))?;
        let mut command = self.command()?;
        if name == "rooms-api-0" {
            command.env("MAESTRO_ROOMSAPI_PORT", self.ports.api_ports()?[1].to_string());
        }
        let data = self.home.path().join("data");
        let child = command.args(["start", module]).arg("--data-dir").arg(data);
        let mut child = child.stdout(Stdio::piped()).stderr(log).spawn().context("starting maestro")?;
        let stdout = child.stdout.take().context("it has no stdout")?;
        self.processes.push(ModuleProcess { name: name.clone(), child, serving: Value::Null });
        let line = Lines::of(stdout).wait(|_| true).with_context(|| self.log_tails())?;
        let serving = serde_json::from_str(&line).with_context(|| format!("{line:?}"))?;
        if let Some(process) = self.processes.last_mut() {
            process.serving = serving;
        }
        Ok(name)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.home.path().join(format!("{name}.log"))
    }

    fn process(&self, name: &str) -> anyhow::Result<&ModuleProcess> {
        self.processes.iter().find(|process| process.name == name).with_context(|| format!("no {name}"))
    }

    /// The line that a process wrote when it served.
    pub fn serving(&self, name: &str) -> anyhow::Result<&Value> {
        Ok(&self.process(name)?.serving)
    }

    /// One of its APIs: `management`, `rooms` or `internal`.
    pub fn client(&self, name: &str, api: &str) -> anyhow::Result<Client> {
        let url = self.process(name)?.serving[api].as_str();
        Ok(Client::new(url.with_context(|| format!("{name} does not serve {api}"))?.to_owned()))
    }

    pub fn signal(&self, name: &str, signal: Signal) -> anyhow::Result<()> {
        processes::send_signal(self.process(name)?.child.id(), signal)
    }

    /// `kill -9`.
    pub fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let process = self.processes.iter_mut().find(|process| process.name == name);
        let process = process.with_context(|| format!("no {name}"))?;
        process.child.kill()?;
        process.child.wait()?;
        Ok(())
    }

    pub fn recipe(&self, name: &str, rooms: u32) -> anyhow::Result<Recipe> {
        Recipe::new(name, rooms, self.ports.room_ports())
    }

    /// The server of the room table.
    pub fn redis(&self) -> &RedisServer {
        &self.redis
    }

    /// Rooms that run, whether Maestro knows them or not.
    pub fn room_processes(&self) -> anyhow::Result<Vec<RoomProcess>> {
        processes::of_store(&self.store_id).context("listing processes")
    }

    /// The fleet as one of the management APIs shows it, once it has so many rooms, all ready, each with its process.
    pub fn settled(&self, name: &str, scheduler: &str, size: usize) -> anyhow::Result<Vec<Room>> {
        let client = self.client(name, "management")?;
        self.until(&format!("{size} ready rooms"), || {
            let rooms = client.rooms(scheduler)?;
            let ready = rooms.iter().filter(|room| room.status == "ready").count();
            ensure!((rooms.len(), ready) == (size, size), "{ready} of {} rooms are ready", rooms.len());
            let running = self.room_processes()?.len();
            ensure!(running == size, "{running} processes of {size} rooms");
            Ok(rooms)
        })
    }

    /// Waits with [`PATIENCE`]; the error shows the ends of all logs.
    pub fn until<T>(&self, what: &str, look: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        until(what, PATIENCE, look).with_context(|| self.log_tails())
    }

    fn log_tails(&self) -> String {
        let mut tails = String::new();
        for ModuleProcess { name, .. } in &self.processes {
            let log = fs::read_to_string(self.log(name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
            tails.push_str(&format!("the log of {name} ends with\n{}\n", tail.join("\n")));
        }
        tails
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log_tails());
        }
        for process in &mut self.processes {
            // Fails only if it has ended by itself.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
        // A room that was being started may come late.
        let _ = until("all rooms to be gone", Duration::from_secs(10), || {
            let rooms = self.room_processes()?;
            for room in &rooms {
                let _ = processes::send_signal(room.pid, Signal::KILL);
            }
            ensure!(rooms.is_empty(), "{rooms:?}");
            Ok(())
        });
    }
}
