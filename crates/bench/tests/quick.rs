//! A smoke run of everything, so that the benchmarks cannot rot.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_maestro-bench");

fn run(benches: &[&str]) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    Command::new(PROGRAM)
        .arg("--quick")
        .arg("--directory")
        .arg(directory.path())
        .args(benches)
        .output()
        .expect("it runs")
}

fn check(benches: &[&str], names: &[&str]) {
    let output = run(benches);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    let figures: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    let found: Vec<&str> = figures.iter().filter_map(|figure| figure["bench"].as_str()).collect();
    assert_eq!(found, names);
    for figure in figures {
        let keys: Vec<&String> = figure.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["bench", "ratio", "ratioTo", "unit", "value"]);
        assert!(figure["value"].as_f64().is_some_and(|value| value > 0.0), "{figure}");
        assert_eq!(figure["ratio"].is_number(), figure["ratioTo"].is_string(), "{figure}");
    }
}

#[test]
fn a_ping_is_measured() {
    let names = [
        "ping.throughput",
        "ping.cpu",
        "ping.latency.p50",
        "ping.latency.p99",
        "ping.worker.quiet.cpu",
        "ping.worker.changing5.cpu",
        "ping.worker.changing50.cpu",
    ];
    check(&["ping"], &names);
}

/// With a directory that stands for the one in memory.
#[test]
fn an_allocation_is_measured() {
    let directory = tempfile::tempdir().expect("a directory");
    let tmpfs = directory.path().to_str().expect("text");
    let names = [
        "allocate.callers1",
        "allocate.callers1.cpu",
        "allocate.callers32",
        "allocate.callers32.cpu",
        "allocate.callers256",
        "allocate.callers256.cpu",
        "allocate.latency.p50",
        "allocate.latency.p99",
        "allocate.tmpfs.callers1",
        "allocate.tmpfs.callers1.cpu",
        "allocate.tmpfs.callers32",
        "allocate.tmpfs.callers32.cpu",
        "allocate.tmpfs.callers256",
        "allocate.tmpfs.callers256.cpu",
    ];
    check(&["allocate", "--tmpfs", tmpfs], &names);
}

#[test]
fn a_ping_with_forwarders_is_measured() {
    let mut names = vec!["events.ping.cpu", "events.ping.latency.p50", "events.ping.latency.p99"];
    if counts_instructions() {
        names.push("events.ping.instructions");
    }
    check(&["events"], &names);
}

/// Instructions are counted where there is valgrind.
fn counts_instructions() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

#[test]
fn store_and_plan_are_measured_in_their_order() {
    let mut names = vec!["plan.rooms100k", "plan.room1m", "plan.rollout.rooms100k", "plan.rollout.room1m"];
    if counts_instructions() {
        names.extend(["plan.instructions.rooms100k", "plan.instructions.room1m"]);
    }
    names.extend(["store.syncs", "store.commits1", "store.commits64"]);
    check(&["store", "plan"], &names);
}

#[test]
fn placement_is_measured() {
    check(&["placement"], &["placement.grow", "placement.shrink"]);
}

#[test]
fn memory_is_measured() {
    check(&["memory"], &["memory.room"]);
}

#[test]
fn the_table_in_redis_is_measured() {
    let names = ["table.redis.room", "table.redis.pings.callers32", "table.redis.pings.callers256"];
    check(&["table"], &names);
}

/// Cargo builds the programs of this package only; `make test` builds all of them before.
#[test]
fn a_server_is_measured() {
    let server = Path::new(PROGRAM).with_file_name("maestro");
    if !server.exists() {
        eprintln!("skipped: {} is not built", server.display());
        return;
    }
    let names = ["start.first", "start.rooms0", "start.rooms10k", "start.running1k"];
    check(&["start"], &names);
    let names = ["idle.cpu", "idle.written", "idle.get.p99"];
    check(&["idle"], &names);
    check(&["restart"], &["restart.cpu", "restart.written", "restart.get.p99"]);
    let names = ["churn.backlog", "churn.get.p99", "churn.schedulers", "churn.cpu"];
    check(&["churn"], &names);
}

#[test]
fn what_is_not_there_is_an_error() {
    assert!(!run(&["--maestro", "/nonexistent", "start"]).status.success());
    assert_eq!(run(&["speed"]).status.code(), Some(2));
}
