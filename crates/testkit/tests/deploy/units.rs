//! The units for systemd: of a whole server, and of a module.

use std::fs;
use std::process::Command;

use crate::{checked, read};

/// In `deploy/systemd`, and the name under which it runs.
const UNITS: [(&str, &str); 2] =
    [("maestro.service", "maestro.service"), ("maestro@.service", "maestro@worker.service")];

fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let found = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("there is no {key} in {unit}"))
}

/// Rooms must outlive the server.
#[test]
fn stopping_a_unit_kills_no_room() {
    for (file, _) in UNITS {
        let unit = read(&format!("systemd/{file}"));
        assert_eq!(value(&unit, "KillMode"), "process");
        assert_eq!(value(&unit, "TasksMax"), "infinity");
        assert_eq!(value(&unit, "OOMPolicy"), "continue");
        assert!(value(&unit, "ExecStart").starts_with("/usr/local/bin/maestro start "));
    }
}

/// Where there is systemd. The program is not installed, so that another one takes its place.
#[test]
fn systemd_accepts_the_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]);
    for (file, name) in UNITS {
        let unit = read(&format!("systemd/{file}")).replace("/usr/local/bin/maestro", "/bin/true");
        fs::write(folder.path().join(name), unit).expect("written");
        verify.arg(folder.path().join(name));
    }
    if Command::new("systemd-analyze").arg("--version").output().is_ok() {
        checked(&mut verify);
    }
}
