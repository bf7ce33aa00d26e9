//! Parts of tests that run in a process of their own, because they are killed there, or have to be another process.
//!
//! Such a part is a test that does nothing by itself: its parent starts this very binary for it alone, with a
//! directory to work on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DIRECTORY: &str = "MAESTRO_TEST_DIRECTORY";
const FAILPOINTS: &str = "MAESTRO_TEST_FAILPOINTS";

/// The command that runs the part `name` on a directory.
pub(crate) fn command(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

pub(crate) fn run(name: &str, directory: &Path, failpoints: &str) -> Output {
    command(name, directory).env(FAILPOINTS, failpoints).output().unwrap()
}

/// In the child; `None`: this is not the child.
pub(crate) fn directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// In the child.
pub(crate) fn failpoints() -> String {
    std::env::var(FAILPOINTS).unwrap_or_default()
}

/// In the child: tells the parent something, at once.
pub(crate) fn say(words: &str) {
    println!("say {words}");
}

/// What a child said, without what the test harness says.
pub(crate) fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.split_once("say ")).map(|(_, words)| words.to_owned()).collect()
}
