//! Someone who follows a page, line by line.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use maestro_e2e::{PortSlice, binaries, copy_all, until};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

/// Rooms start and stop meanwhile, on a machine that other tests keep busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// In a setup.
const STOP: &str = "# stop the server";

pub(crate) struct Session {
    home: TempDir,
    _ports: PortSlice,
    api_ports: [u16; 3],
    background: Option<Background>,
    /// Ids on the page, and those that were printed in their place.
    ids: BTreeMap<String, String>,
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
        let repository = maestro_testkit::repository();
        for name in ["Makefile", "scripts", "examples"] {
            copy_all(&repository.join(name), &home.path().join(name))?;
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
        Ok(Self { home, _ports: ports, api_ports, background: None, ids: BTreeMap::new() })
    }

    /// Several lines, all of which must work.
    pub(crate) fn script(&mut self, script: &str) -> anyhow::Result<()> {
        if script.lines().any(|line| is_server(line) || line == STOP) {
            return script.lines().try_for_each(|line| self.command(line, ""));
        }
        self.run(script, "")
    }

    /// `shown` is what the page shows as its output.
    pub(crate) fn command(&mut self, command: &str, shown: &str) -> anyhow::Result<()> {
        if command == STOP {
            return self.stop();
        }
        if is_server(command) && !shows_error(shown) {
            return self.start(command);
        }
        self.run(command, shown)
    }

    /// What a command prints; it must work.
    pub(crate) fn output(&self, command: &str) -> anyhow::Result<String> {
        let ended = run(self.shell(command)?)?;
        ensure!(ended.code == Some(0), "{}", ended.told);
        Ok(ended.told)
    }

    fn run(&mut self, command: &str, shown: &str) -> anyhow::Result<()> {
        let command = self.with_real_ids(command)?;
        let ended = run(self.shell(&command)?)?;
        match ended.code {
            Some(0) => {
                ensure!(!shows_error(shown), "the page shows an error, but it worked:\n{}", ended.told);
            }
            Some(_) if shows_error(shown) => {}
            code => bail!("exit code {code:?}:\n{}\n{}", ended.told, self.log()),
        }
        for header in shown.lines().map(words).filter(|words| is_table_header(words)) {
            let is_printed = ended.told.lines().any(|line| words(line) == header);
            ensure!(
                is_printed,
                "the page shows a table with the header {header:?}, but it printed:\n{}",
                ended.told
            );
        }
        for is_id in [is_operation_id, is_any_room_id] {
            let first = |text: &str| text.split_whitespace().find(|word| is_id(word)).map(str::to_owned);
            if let (Some(shown), Some(told)) = (first(shown), first(&ended.told)) {
                self.ids.insert(shown, told);
            }
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
            // What Go has built before, above all its standard library.
            .env("GOCACHE", go_cache()?)
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
            let id = if let Some(id) = self.ids.get(word) {
                id.clone()
            } else if is_operation_id(word) {
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
    }
}

fn go_cache() -> anyhow::Result<PathBuf> {
    let cache = std::env::var_os("GOCACHE").map(PathBuf::from);
    let of_user = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/go-build"));
    cache.or_else(of_user).context("neither GOCACHE nor HOME is set")
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Rows of a table differ from one run to the next; its columns do not.
fn is_table_header(words: &[&str]) -> bool {
    words.len() > 2 && words.iter().all(|word| word.chars().all(|letter| letter.is_ascii_uppercase()))
}

fn shows_error(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("error: "))
}

fn is_server(command: &str) -> bool {
    let command = command.trim_start();
    command.starts_with("maestro start") || command.starts_with("make run")
}

fn is_operation_id(word: &str) -> bool {
    word.len() == 36 && word.chars().all(|character| character.is_ascii_hexdigit() || character == '-')
}

fn is_room_id(scheduler: &str, word: &str) -> bool {
    is_any_room_id(word) && word.rsplit_once('-').is_some_and(|(prefix, _)| prefix == scheduler)
}

fn is_any_room_id(word: &str) -> bool {
    let suffix = word.rsplit_once('-').map(|(_, suffix)| suffix);
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
    let ended = until("the command to end", PATIENCE, || child.try_wait()?.context("it runs"));
    if ended.is_err() {
        kill_process_group(Pid::from_child(&child), Signal::KILL)?;
        child.wait()?;
    }
    let told = told.join().map_err(|_| anyhow::anyhow!("the reader of the output panicked"))??;
    Ok(Ended { code: ended.with_context(|| told.clone())?.code(), told })
}
