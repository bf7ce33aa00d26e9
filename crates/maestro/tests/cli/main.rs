//! Transcripts of the real binary against a scripted server: what was asked, what was printed, how it ended.

#![allow(clippy::unwrap_used, reason = "the lint's exemption covers test functions, not what they call")]

mod by_name;
mod diffs;
mod dry_runs;
mod events;
mod everyday;
mod explanations;
mod failures;
mod forecast;
mod local;
mod locks;
mod mistakes;
mod moving;
mod operations;
mod regions;
mod resize;
mod rollouts;
mod rooms;
mod schedulers;
mod server;
mod terminal;
mod versions;
mod whatif;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use expect_test::Expect;

use server::{Answer, Server};

/// Runs `maestro` against a server with this script and compares the transcript.
fn check(script: Vec<Answer>, arguments: &str, expected: &Expect) {
    check_stdin(script, arguments, "", expected);
}

fn check_stdin(script: Vec<Answer>, arguments: &str, stdin: &str, expected: &Expect) {
    let server = Server::start(script);
    let mut command = maestro(arguments);
    command.env("MAESTRO_URL", &server.url);
    let output = run(command, stdin);

    let mut transcript = String::new();
    for request in server.requests() {
        transcript.push_str(&format!("> {request}\n"));
    }
    transcript.push_str(&told(&output));
    expected.assert_eq(&transcript.replace(&server.url, "http://SERVER"));
}

/// Without a server.
fn check_local(command: Command, expected: &Expect) {
    expected.assert_eq(&told(&run(command, "")));
}

/// The binary with an environment of its own, so that the machine's does not matter.
fn maestro(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maestro"));
    command.args(arguments.split_whitespace()).env_clear().env("USER", "ada");
    command
}

fn run(mut command: Command, stdin: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // While somebody reads what it answers: a pipe holds only so much.
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(stdin.as_bytes()).unwrap());
        child.wait_with_output().unwrap()
    })
}

/// Stdout as it is, stderr marked, and the exit code if it is not 0.
fn told(output: &Output) -> String {
    let mut told = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        told.push_str(&format!("stderr: {line}\n"));
    }
    match output.status.code() {
        Some(0) => told,
        Some(code) => format!("{told}exit {code}\n"),
        None => format!("{told}killed: {}\n", output.status),
    }
}

/// A time so long ago that its age does not change while the test runs: `2d4h`.
fn long_ago() -> String {
    let ago = jiff::SignedDuration::from_secs(((2 * 24 + 4) * 60 + 30) * 60);
    (jiff::Timestamp::now() - ago).to_string()
}
