//! Someone who follows a page, line by line.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use maestro_e2e::{PortSlice, binaries, until};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

/// Rooms start and stop meanwhile, on a machine that other tests keep busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Session {
    home: TempDir,
    ports: PortSlice,
    api_ports: [u16; 3],
    background: Option<Background>,
}

/// A server, or the demo with its server.
struct Background {
    child: Child,
    command: String,
}

impl Session {
    /// A folder with what a clone has, apart from what is built.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        let repository = maestro_testdata::repository();
        for name in ["Makefile", "scripts", "examples"] {
            copy(&repository.join(name), &home.path().join(name))?;
        }
        let shipped = binaries::shipped()?;
        fs::create_dir(home.path().join("target"))?;
        symlink(shipped, home.path().join("target/debug"))?;
        let bin = home.path().join("prefix/bin");
        fs::create_dir_all(&bin)?;
        for name in ["maestro", "maestro-example-room"] {
            symlink(shipped.join(name), bin.join(name))?;
        }
        let ports = PortSlice::take()?;
        let api_ports = ports.api_ports()?;
        Ok(Self { home, ports, api_ports, background: None })
    }

    /// Several lines, all of which must work.
    pub(crate) fn script(&mut self, script: &str) -> anyhow::Result<()> {
        if script.lines().any(is_server) {
            return script.lines().try_for_each(|line| self.command(line, false));
        }
        self.run(script, false)
    }

    /// `fails`: with an error, as the page shows.
    pub(crate) fn command(&mut self, command: &str, fails: bool) -> anyhow::Result<()> {
        if is_server(command) && !fails {
            return self.start(command);
        }
        self.run(command, fails)
    }

    /// What a command prints; it must work.
    pub(crate) fn output(&self, command: &str) -> anyhow::Result<String> {
        let ended = run(self.shell(command)?)?;
        ensure!(ended.code == Some(0), "{}", ended.told);
        Ok(ended.told)
    }

    fn run(&mut self, command: &str, fails: bool) -> anyhow::Result<()> {
        let command = self.with_real_ids(command)?;
        let ended = run(self.shell(&command)?)?;
        match ended.code {
            Some(0) => ensure!(!fails, "the page shows an error, but it worked:\n{}", ended.told),
            Some(_) if fails => {}
            code => bail!("exit code {code:?}:\n{}", ended.told),
        }
        Ok(())
    }

    fn start(&mut self, command: &str) -> anyhow::Result<()> {
        self.stop()?;
        let command = command.trim_end().trim_end_matches('&').to_owned();
        let mut shell = self.shell(&format!("exec {command}"))?;
        shell.stdout(Stdio::piped()).stderr(fs::File::create(self.home.path().join("server.log"))?);
        let mut child = shell.process_group(0).spawn()?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        self.background = Some(Background { child, command });
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Nobody waits for more than the one that says that it serves.
                let _ = sender.send(line);
            }
        });
        let serves = |line: &String| line.contains("serving") || line.contains("will have");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) if serves(&line) => return Ok(()),
                Ok(_) => {}
                Err(error) => bail!("it does not serve ({error}): {}", self.log()),
            }
        }
    }

    /// As Ctrl-C does, which reaches the whole process group.
    fn stop(&mut self) -> anyhow::Result<()> {
        let Some(Background { mut child, command }) = self.background.take() else {
            return Ok(());
        };
        kill_process_group(Pid::from_child(&child), Signal::INT)?;
        until(format!("{command} to end"), PATIENCE, || {
            ensure!(child.try_wait()?.is_some(), "it runs");
            Ok(())
        })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("server.log")).unwrap_or_default()
    }

    /// Nothing of this machine's environment but the way to other programs.
    fn shell(&self, script: &str) -> anyhow::Result<Command> {
        let [management, rooms, internal] = self.api_ports.map(|port| port.to_string());
        let home = self.home.path();
        let mut path = vec![home.join("prefix/bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).current_dir(home).env_clear().stdin(Stdio::null());
        shell
            .env("PATH", std::env::join_paths(path)?)
            .env("HOME", home)
            .env("USER", "ada")
            .env("MAESTRO_MANAGEMENTAPI_PORT", &management)
            .env("MAESTRO_ROOMSAPI_PORT", rooms)
            .env("MAESTRO_INTERNALAPI_PORT", &internal)
            .env("MAESTRO_URL", format!("http://127.0.0.1:{management}"))
            // Rooms must not stay behind.
            .env("MAESTRO_ADAPTERS_RUNTIME_PROCESS_STOPROOMSONSHUTDOWN", "true")
            // Everything is built: `make` only installs and runs it.
            .env("CARGO", "true")
            .env("BUILT", binaries::shipped()?)
            .env("PREFIX", home.join("prefix"))
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-buildvcs=false");
        Ok(shell)
    }

    /// Ids on a page are of the day on which it was written.
    fn with_real_ids(&self, command: &str) -> anyhow::Result<String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut real = command.to_owned();
        for pair in words.windows(2) {
            let [scheduler, word] = [pair[0], pair[1]];
            let id = if is_operation_id(word) {
                self.first_id(&format!("maestro operation list {scheduler} -o json"), "operations")?
            } else if is_room_id(scheduler, word) {
                self.first_id(&format!("maestro room list {scheduler} -o json"), "rooms")?
            } else {
                continue;
            };
            real = real.replace(word, &id);
        }
        Ok(real)
    }

    fn first_id(&self, list: &str, key: &str) -> anyhow::Result<String> {
        until(format!("`{list}` to have one"), PATIENCE, || {
            let mut shell = self.shell(list)?;
            let listed: Value = serde_json::from_slice(&shell.output()?.stdout)?;
            let id = listed[key][0]["id"].as_str();
            id.map(str::to_owned).with_context(|| format!("no {key} in {listed}"))
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log());
        }
        if self.stop().is_err()
            && let Some(Background { mut child, .. }) = self.background.take()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
        // The ports are free for other tests from here on.
        let _ = &self.ports;
    }
}

fn is_server(command: &str) -> bool {
    let command = command.trim_start();
    command.starts_with("maestro start") || command.starts_with("make run")
}

fn is_operation_id(word: &str) -> bool {
    word.len() == 36 && word.chars().all(|character| character.is_ascii_hexdigit() || character == '-')
}

fn is_room_id(scheduler: &str, word: &str) -> bool {
    let suffix = word.strip_prefix(scheduler).and_then(|rest| rest.strip_prefix('-'));
    suffix.is_some_and(|suffix| suffix.len() == 10 && suffix.chars().all(char::is_alphanumeric))
}

struct Ended {
    code: Option<i32>,
    told: String,
}

/// With a bound, and both outputs in one, as a terminal shows them.
fn run(mut shell: Command) -> anyhow::Result<Ended> {
    let (mut reader, writer) = std::io::pipe()?;
    shell.stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = shell.spawn()?;
    // It holds the writing ends.
    drop(shell);
    let told = thread::spawn(move || {
        let mut told = Vec::new();
        reader.read_to_end(&mut told).map(|_| String::from_utf8_lossy(&told).into_owned())
    });
    let ended = until("the command to end", PATIENCE, || {
        child.try_wait()?.context("it runs")
    });
    if ended.is_err() {
        kill_process_group(Pid::from_child(&child), Signal::KILL)?;
        child.wait()?;
    }
    let told = told.join().map_err(|_| anyhow::anyhow!("the reader of the output panicked"))??;
    Ok(Ended { code: ended.with_context(|| told.clone())?.code(), told })
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
