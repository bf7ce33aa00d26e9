//! The alert rules: they name what exists, each is tested, and says what to do.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use maestro_testkit::{documented_metrics, repository};
use serde_json::Value;

use crate::{checked, path, promql, yaml};

fn rules() -> Vec<Value> {
    let rules = yaml("prometheus/alerts.yaml");
    let groups = rules["groups"].as_array().expect("groups");
    groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
}

fn alert(rule: &Value) -> &str {
    rule["alert"].as_str().expect("the name of an alert")
}

#[test]
fn rules_name_metrics_that_exist() {
    let documented = documented_metrics().exported;
    let unknown = |rule: &Value| {
        let expression = rule["expr"].as_str().expect("an expression");
        let wrong = promql::unknown(expression, &documented);
        wrong.into_iter().map(|why| format!("{}: {why}", alert(rule))).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = rules().iter().flat_map(unknown).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A severity, a sentence, and the section of the runbook, which has commands to type.
#[test]
fn rules_say_how_bad_it_is_and_what_to_do() {
    let page = fs::read_to_string(repository().join("docs/production.md")).expect("the runbook");
    let mut named = BTreeSet::new();
    for rule in rules() {
        let name = alert(&rule);
        let severity = rule["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{name}: {severity:?}");
        let summary = rule["annotations"]["summary"].as_str();
        assert!(summary.is_some_and(|summary| summary.ends_with('.')), "{name}: {summary:?}");
        let runbook = format!("docs/production.md#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"], runbook, "{name}");
        let heading = format!("\n### {name}\n");
        let section = page.split_once(&heading).map(|(_, rest)| rest.split("\n#").next().unwrap_or(rest));
        let section = section.unwrap_or_else(|| panic!("the runbook has no section {name}"));
        let has_command =
            section.contains("maestro ") || section.contains("curl ") || section.contains("systemctl ");
        assert!(has_command, "{name}: nothing to type in {section}");
        named.insert(name.to_owned());
    }
    let sections = page.lines().filter_map(|line| line.strip_prefix("### "));
    let of_alerts: BTreeSet<String> =
        sections.filter(|title| title.starts_with("Maestro")).map(str::to_owned).collect();
    assert_eq!(of_alerts, named, "sections of the runbook, and alerts");
}

#[test]
fn rules_are_accepted() {
    checked(Command::new("promtool").args(["check", "rules"]).arg(path("prometheus/alerts.yaml")));
    // It names the rules.
    checked(Command::new("promtool").args(["check", "config"]).arg(path("prometheus/prometheus.yaml")));
}

#[test]
fn rules_fire_when_they_should_and_only_then() {
    checked(Command::new("promtool").args(["test", "rules"]).arg(path("prometheus/alerts-test.yaml")));
}

/// For each rule a case in which it fires, and one in which it does not.
#[test]
fn every_rule_is_tested() {
    let tests = yaml("prometheus/alerts-test.yaml");
    let cases = tests["tests"].as_array().expect("tests");
    let cases: Vec<&Value> =
        cases.iter().flat_map(|test| test["alert_rule_test"].as_array().expect("cases")).collect();
    let fires = |case: &Value| case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
    let names = |which: bool| -> BTreeSet<&str> {
        let of_kind = cases.iter().filter(|case| fires(case) == which);
        of_kind.map(|case| case["alertname"].as_str().expect("a name")).collect()
    };
    let rules = rules();
    let alerts: BTreeSet<&str> = rules.iter().map(alert).collect();
    assert_eq!(names(true), alerts);
    assert_eq!(names(false), alerts);
}
