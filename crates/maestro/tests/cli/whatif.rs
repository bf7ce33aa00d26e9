//! `maestro simulate` and `maestro plan`, which need no server.

use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};

use crate::{check_local, maestro, run, told};

/// From the root of the repository, as the documentation writes it.
fn from_root(arguments: &str) -> Command {
    let mut command = maestro(arguments);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

#[test]
fn both_scenarios_of_the_seed() {
    check_local(
        from_root("simulate -f examples/simulate/downscale.yaml"),
        &expect![],
    );
    check_local(
        from_root("simulate -f examples/simulate/upscale.yaml"),
        &expect![],
    );
}

#[test]
fn a_recipe_and_options() {
    check_local(
        from_root("simulate -f examples/scheduler.yaml --add-limit 5 --room-start 15s --cycle 10s -o csv"),
        &expect![],
    );
    check_local(
        from_root(
            "simulate -f examples/simulate/upscale.yaml --demand spike:base=20,peak=40,at=30s,rise=0s,hold=1m,fall=0s --cycles 6 -o csv",
        ),
        &expect![],
    );
    let yaml = run(
        from_root("simulate -f examples/simulate/upscale.yaml --cycles 1 -o yaml"),
        "",
    );
    assert!(
        told(&yaml).starts_with("loops:\n- loop: 1\n  ready: 5\n"),
        "{}",
        told(&yaml)
    );
    let json = run(
        from_root("simulate -f examples/simulate/upscale.yaml --cycles 2 -o json"),
        "",
    );
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["loops"][1]["available"], 35);
    assert_eq!(json["summary"]["rollout"]["state"], "rolling");
}

#[test]
fn options_that_are_wrong() {
    check_local(
        from_root(
            "simulate -f examples/scheduler.yaml --ready many --cycle 5 --demand tide:x=1 --failures 2",
        ),
        &expect![],
    );
    check_local(from_root("simulate -f no-such-file.yaml"), &expect![]);
    check_local(from_root("version -o csv"), &expect![]);
}

fn check_plan(cases: &str, expected: &Expect) {
    expected.assert_eq(&told(&run(maestro("plan autoscaling"), cases)));
}

#[test]
fn lines_are_answered() {
    check_plan(
        "{\"id\":\"a\",\"occupied\":80,\"total\":100,\"min\":1,\"max\":-1,\"readyTarget\":0.5}\n",
        &expect![],
    );
    check_plan(
        "{\"id\":\"a\",\"occupied\":1,\"total\":1,\"readyTarget\":1.5}\n{\"id\":\"b\",\"occupied\":1,\"total\":10,\"readyTarget\":0.8}\n",
        &expect![],
    );
    check_plan("", &expect![[""]]);
}
