//! The unit for systemd.

use std::fs;
use std::process::Command;

use crate::{checked, read};

const UNIT: &str = "systemd/maestro.service";

fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let found = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("{UNIT} has no {key}"))
}

/// Rooms must outlive the server.
#[test]
fn stopping_the_unit_kills_no_room() {
    let unit = read(UNIT);
    assert_eq!(value(&unit, "KillMode"), "process");
    assert_eq!(value(&unit, "TasksMax"), "infinity");
    assert_eq!(value(&unit, "OOMPolicy"), "continue");
    assert!(value(&unit, "ExecStart").starts_with("/usr/local/bin/maestro start "));
}

/// Where there is systemd. The program is not installed, so that another one takes its place.
#[test]
fn systemd_accepts_the_unit() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("maestro.service");
    fs::write(&file, read(UNIT).replace("/usr/local/bin/maestro", "/bin/true")).expect("written");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(&file);
    if Command::new("systemd-analyze").arg("--version").output().is_ok() {
        checked(&mut verify);
    }
}
