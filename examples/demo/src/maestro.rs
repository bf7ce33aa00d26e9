//! Maestro as a child process: from its start to how it ended.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

/// Its rooms have five seconds to end; the rest is for itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

const LOG_TAIL_LINES: usize = 15;
const LOG_TAIL_BYTES: u64 = 8 * 1024;

pub(crate) struct Maestro {
    child: Child,
    log: PathBuf,
}

/// Where it serves, as it says in its one line of output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Endpoints {
    pub(crate) management: String,
    pub(crate) rooms: String,
    pub(crate) internal: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) status: ExitStatus,
    pub(crate) after: Duration,
    /// It did not end by itself in time.
    pub(crate) killed: bool,
}

impl Maestro {
    /// Calls `on_serving` from another thread when it serves.
    pub(crate) fn start(
        program: &Path,
        data_dir: &Path,
        on_serving: impl FnOnce(Endpoints) + Send + 'static,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(data_dir).with_context(|| format!("cannot create {}", data_dir.display()))?;
        let log = data_dir.join("maestro.log");
        let log_file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = Command::new(program)
            .arg("start")
            .arg("--data-dir")
            .arg(data_dir)
            .env("MAESTRO_ADAPTERS_RUNTIME_PROCESS_STOPROOMSONSHUTDOWN", "true")
            // Ctrl-C is for the demo, which then ends Maestro in its own order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_output(stdout, on_serving));
        }
        Ok(Self { child, log })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks it to end and waits; kills it when the time is up or `hurry` says so.
    pub(crate) fn stop(&mut self, hurry: impl Fn() -> bool) -> io::Result<Stopped> {
        self.stop_within(STOP_TIMEOUT, hurry)
    }

    fn stop_within(&mut self, timeout: Duration, hurry: impl Fn() -> bool) -> io::Result<Stopped> {
        let started = Instant::now();
        // Until it is waited for, its id cannot belong to anyone else.
        if self.child.try_wait()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        }
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Stopped { status, after: started.elapsed(), killed: false });
            }
            if started.elapsed() >= timeout || hurry() {
                break;
            }
            thread::sleep(POLL);
        }
        self.child.kill()?;
        let status = self.child.wait()?;
        Ok(Stopped { status, after: started.elapsed(), killed: true })
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log, as far as they can be read.
    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }
}

impl Drop for Maestro {
    /// Whatever went wrong in the demo, nothing is left running.
    fn drop(&mut self) {
        let _ = self.stop(|| false);
    }
}

/// Reads to the end, also after the line that matters: a full pipe would block the writer.
fn read_output(stdout: ChildStdout, on_serving: impl FnOnce(Endpoints)) {
    let mut on_serving = Some(on_serving);
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if let Some(endpoints) = parse_serving(&line)
            && let Some(on_serving) = on_serving.take()
        {
            on_serving(endpoints);
        }
    }
}

fn parse_serving(line: &str) -> Option<Endpoints> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    (value["event"] == "serving").then(|| Endpoints::deserialize(value).ok())?
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(LOG_TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A stand-in that does what `script` says.
    fn start(script: &str) -> (tempfile::TempDir, Maestro, mpsc::Receiver<Endpoints>) {
        let data_dir = tempfile::tempdir().expect("a directory");
        fs::write(data_dir.path().join("fake"), script).expect("a script");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-maestro");
        let (sender, serving) = mpsc::channel();
        let on_serving = move |endpoints| sender.send(endpoints).unwrap_or_default();
        let maestro = Maestro::start(&program, data_dir.path(), on_serving).expect("it starts");
        (data_dir, maestro, serving)
    }

    fn wait_for(mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < deadline, "it does not come to pass");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn it_serves_and_ends_when_asked() {
        let (_data_dir, mut maestro, serving) = start(
            r#"trap 'exit 0' TERM
            echo '{"event":"warming up"}'
            echo '{"event":"serving","management":"http://m","rooms":"http://r","internal":"http://i"}'
            while :; do sleep 0.05; done"#,
        );
        let endpoints = serving.recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            endpoints,
            Endpoints {
                management: "http://m".into(),
                rooms: "http://r".into(),
                internal: "http://i".into()
            }
        );
        assert_eq!(maestro.ended().unwrap(), None);
        let stopped = maestro.stop(|| false).unwrap();
        assert_eq!((stopped.status.code(), stopped.killed), (Some(0), false));
    }

    #[test]
    fn it_is_killed_if_it_does_not_end() {
        let (data_dir, mut maestro, _serving) =
            start("trap '' TERM; touch \"$3/deaf\"; while :; do sleep 0.05; done");
        wait_for(|| data_dir.path().join("deaf").exists());
        assert!(maestro.stop_within(Duration::from_millis(100), || false).unwrap().killed);
    }

    #[test]
    fn a_second_wish_to_end_is_a_kill() {
        let (data_dir, mut maestro, _serving) =
            start("trap '' TERM; touch \"$3/deaf\"; while :; do sleep 0.05; done");
        wait_for(|| data_dir.path().join("deaf").exists());
        assert!(maestro.stop(|| true).unwrap().killed);
    }

    #[test]
    fn the_log_tells_why_it_died() {
        let (_data_dir, mut maestro, _serving) = start(
            "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i >&2; done
            echo 'port 8080 is taken' >&2; exit 4",
        );
        wait_for(|| maestro.ended().unwrap().is_some());
        assert_eq!(maestro.ended().unwrap().unwrap().code(), Some(4));
        let tail = maestro.log_tail();
        assert!(tail.starts_with("line 17\n") && tail.ends_with("\nport 8080 is taken"), "{tail}");
    }
}
