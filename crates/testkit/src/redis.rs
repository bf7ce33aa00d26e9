//! Redis servers of tests: on a free port of this machine, in a directory of their own, gone with the test.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::processes::send_signal;
use crate::{PATIENCE, until};

/// Another program may take the port before Redis does.
const ATTEMPTS: usize = 5;

/// For one answer of a server that is about to run.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Keeps nothing on disk unless its arguments say so.
pub struct RedisServer {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
    _parent: Sender<()>,
}

impl RedisServer {
    /// `arguments`: of `redis-server`, such as `["--requirepass", "secret"]`.
    pub fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let directory = tempfile::tempdir()?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
            match spawn(port, directory.path(), &arguments) {
                Ok((child, parent)) => {
                    return Ok(Self { child, port, arguments, directory, _parent: parent });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no attempt was made")?)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Where its dump is, if it writes one.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        send_signal(self.child.id(), signal)
    }

    /// As `kill -9`, and back on the same port with what is in its directory.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        (self.child, self._parent) = spawn(self.port, self.directory.path(), &self.arguments)?;
        Ok(())
    }

    /// Sends a command, and returns the beginning of its answer as Redis writes it.
    pub fn command(&self, command: &str) -> anyhow::Result<String> {
        ask(self.port, command)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // Fails if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// It dies with this process, however that ends. The kernel takes the thread that started it for its parent, and the thread
/// of a test ends with the test: so it is started by a thread that lives as long as the server.
fn spawn(port: u16, directory: &Path, arguments: &[String]) -> anyhow::Result<(Child, Sender<()>)> {
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        "--",
        "redis-server",
        "--bind",
        "127.0.0.1",
        "--port",
        &port.to_string(),
    ]);
    command.arg("--dir").arg(directory);
    command.args(["--save", "", "--appendonly", "no", "--loglevel", "warning"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (started, child) = mpsc::channel();
    let (parent, is_needed) = mpsc::channel::<()>();
    thread::spawn(move || {
        // Fails if the test has ended meanwhile.
        let _ = started.send(command.spawn());
        let _ = is_needed.recv();
    });
    let mut child = child.recv()?.context("starting redis-server: is it installed?")?;
    until(format_args!("Redis on port {port}"), PATIENCE, || {
        if let Some(status) = child.try_wait()? {
            // No use to wait for it any longer.
            return Ok(Err(anyhow::anyhow!("redis-server has ended: {status}")));
        }
        let answer = ask(port, "PING")?;
        // Asking for a password is an answer too.
        ensure!(answer.starts_with("+PONG") || answer.starts_with("-NOAUTH"), "{answer}");
        Ok(Ok(()))
    })??;
    Ok((child, parent))
}

fn ask(port: u16, command: &str) -> anyhow::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut connection = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = [0; 4096];
    match connection.read(&mut answer)? {
        0 => bail!("Redis has closed the connection"),
        length => Ok(String::from_utf8_lossy(&answer[..length]).into_owned()),
    }
}
