//! The containers: each module once, with settings that exist. Nothing here runs them.

use std::collections::BTreeSet;
use std::fs;

use maestro_testkit::repository;
use serde_json::Value;

use crate::{read, yaml};

const FILE: &str = "compose.yaml";

fn documentation(page: &str) -> String {
    fs::read_to_string(repository().join("docs").join(page)).expect("a page of the documentation")
}

/// Those of Maestro, by what they run.
fn commands(compose: &Value) -> BTreeSet<String> {
    let services = compose["services"].as_object().expect("services").values();
    let of_maestro = services.filter(|service| service["image"] == "maestro");
    let words = |service: &Value| {
        let words = service["command"].as_array().expect("a command");
        words.iter().map(|word| word.as_str().expect("a word")).collect::<Vec<_>>().join(" ")
    };
    of_maestro.map(words).collect()
}

/// The table in `docs/running.md` has them, each in the first cell of a row.
#[test]
fn every_module_is_there() {
    let page = documentation("running.md");
    let (_, table) = page.split_once("| `maestro start …` |").expect("the table of the modules");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let modules: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert!(modules.len() > 5, "{modules:?}");
    let mut expected: BTreeSet<String> =
        modules.iter().filter(|module| **module != "all").map(|module| format!("start {module}")).collect();
    expected.insert("migrate".into());
    assert_eq!(commands(&yaml(FILE)), expected);
}

#[test]
fn every_setting_exists() {
    let page = documentation("configuration.md");
    let keys = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let variable = |key: &str| format!("MAESTRO_{}", key.replace('.', "_").to_uppercase());
    let known: BTreeSet<String> = keys.map(variable).collect();
    let compose = yaml(FILE);
    let services = compose["services"].as_object().expect("services").values();
    let mut used = BTreeSet::new();
    for service in services {
        let names = service["environment"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        used.extend(names.filter(|name| name.starts_with("MAESTRO_")));
    }
    assert!(
        used.contains("MAESTRO_STORE_POSTGRES_URL") && used.contains("MAESTRO_ROOMTABLE_REDIS_URL"),
        "{used:?}"
    );
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Nobody else is to reach the APIs.
#[test]
fn apis_are_published_on_the_loopback_only() {
    let compose = yaml(FILE);
    for api in ["management-api", "rooms-api"] {
        let ports = compose["services"][api]["ports"].as_array().expect("ports");
        let is_loopback = |port: &Value| port.as_str().is_some_and(|port| port.starts_with("127.0.0.1:"));
        assert!(ports.iter().all(is_loopback), "{api}: {ports:?}");
    }
    for service in ["postgres", "redis"] {
        assert_eq!(compose["services"][service]["ports"], Value::Null, "{service}");
    }
    assert!(read(FILE).contains("noeviction"));
}
