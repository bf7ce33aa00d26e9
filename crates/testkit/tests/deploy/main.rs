//! What is in `deploy/` fits the metrics, the configuration and the documentation, and is accepted by the programs that read
//! it.

mod compose;
mod dashboard;
mod promql;
mod rules;
mod units;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn path(name: &str) -> PathBuf {
    maestro_testkit::repository().join("deploy").join(name)
}

fn read(name: &str) -> String {
    let path = path(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a program says of these files; it must be content.
fn checked(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {told}");
    told
}

/// Whoever deploys Maestro reads this before anything else.
#[test]
fn every_file_says_first_that_the_apis_are_open() {
    const WARNING: &str = "The APIs of Maestro are open to whoever reaches them";
    let folders = ["", "prometheus", "grafana", "systemd"].map(path);
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder of deploy/"));
    let files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    let files: Vec<_> = files.into_iter().filter(|path| path.is_file()).collect();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        // JSON has no comments, so a dashboard says it in its description. Tests of rules deploy nothing.
        let begins = text.lines().take(8).any(|line| line.contains(WARNING));
        assert!(begins || file.ends_with("alerts-test.yaml"), "{}: {WARNING}", file.display());
    }
}
