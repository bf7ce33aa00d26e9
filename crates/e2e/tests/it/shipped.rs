//! What people install is not what most tests run: it has the default features. Nothing that exists for tests alone may be
//! in it.

use std::process::{Command, Output};

use maestro_e2e::binaries;
use serde_json::{Value, json};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Output> {
    let directory = tempfile::tempdir()?;
    let mut command = Command::new(binaries::shipped()?.join("maestro"));
    command.args(arguments).current_dir(directory.path()).env_clear().envs(variables.iter().copied());
    Ok(command.output()?)
}

/// The tests' own build has both, so an empty list means that they are left out and not that nobody looked.
#[test]
fn it_has_neither_failpoints_nor_guards_that_can_be_taken_out() -> anyhow::Result<()> {
    let features = |output: Output| -> anyhow::Result<Value> {
        Ok(serde_json::from_slice::<Value>(&output.stdout)?["features"].clone())
    };
    let shipped = run(&["version", "-o", "json"], &[])?;
    assert_eq!(features(shipped)?, json!([]));
    let tested = Command::new(binaries::maestro()?).args(["version", "-o", "json"]).output()?;
    let tested = features(tested)?;
    assert!(tested.as_array().is_some_and(|features| features.contains(&json!("failpoints"))), "{tested}");
    Ok(())
}

/// The first build takes minutes: whoever types `make run` sees that something happens.
#[test]
fn make_run_shows_what_it_builds() -> anyhow::Result<()> {
    let mut make = Command::new("make");
    make.args(["--dry-run", "run"]).current_dir(maestro_testkit::repository());
    let output = make.output()?;
    let steps = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && steps.contains("echo \"Building Maestro"), "{steps}");
    assert!(steps.contains("cargo build") && !steps.contains("--quiet"), "{steps}");
    Ok(())
}

/// A server that silently ignored it would let a test believe that it had been killed at a write.
#[test]
fn it_does_not_start_with_a_failpoint() -> anyhow::Result<()> {
    let failpoint = ("MAESTRO_FAILPOINT", "kill:1:before");
    let ports = ["MANAGEMENTAPI", "ROOMSAPI", "INTERNALAPI"].map(|api| format!("MAESTRO_{api}_PORT"));
    let mut variables: Vec<(&str, &str)> = ports.iter().map(|port| (port.as_str(), "0")).collect();
    variables.push(failpoint);
    let refused = run(&["start"], &variables)?;
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("MAESTRO_FAILPOINT: this build has no failpoints"), "{stderr}");
    assert!(refused.stdout.is_empty(), "it served: {}", String::from_utf8_lossy(&refused.stdout));
    Ok(())
}
