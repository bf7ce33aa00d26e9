//! The dashboard: what it asks for exists, and each of its expressions is one.

use std::fs;
use std::process::Command;

use maestro_testkit::documented_metrics;
use serde_json::{Value, json};

use crate::{checked, promql, read};

/// Grafana's variables, and values that a dashboard could have.
const VARIABLES: [(&str, &str); 3] =
    [("$__rate_interval", "1m"), ("$scheduler", "arena"), ("$game", "chess")];

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana/maestro.json")).expect("JSON")
}

/// Of all panels, with the panel's title.
fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut found = Vec::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().expect("a title");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title} asks for nothing");
        for target in targets {
            found.push((title.to_owned(), target["expr"].as_str().expect("an expression").to_owned()));
        }
    }
    found
}

#[test]
fn every_panel_asks_for_metrics_that_exist() {
    let documented = documented_metrics().exported;
    let dashboard = dashboard();
    let mut wrong = Vec::new();
    for (title, expression) in expressions(&dashboard) {
        wrong.extend(promql::unknown(&expression, &documented).iter().map(|why| format!("{title}: {why}")));
    }
    // label_values(METRIC, LABEL)
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (metric, label) = inner.and_then(|inner| inner.rsplit_once(", ")).expect("label_values");
        let expression = format!("max by ({label}) ({metric})");
        wrong.extend(promql::unknown(&expression, &documented));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn panels_are_told_apart() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    for key in ["id", "title"] {
        let mut values: Vec<String> = panels.iter().map(|panel| panel[key].to_string()).collect();
        values.sort();
        let all = values.len();
        values.dedup();
        assert_eq!(values.len(), all, "two panels have one {key}");
    }
}

/// As recording rules, because that is what promtool checks.
#[test]
fn every_expression_is_promql() {
    let rule = |(index, (_, expression)): (usize, (String, String))| {
        let expression = VARIABLES.iter().fold(expression, |text, (name, value)| text.replace(name, value));
        json!({"record": format!("panel:{index}"), "expr": expression})
    };
    let rules: Vec<Value> = expressions(&dashboard()).into_iter().enumerate().map(rule).collect();
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let file = tempfile::NamedTempFile::new().expect("a file");
    // JSON is YAML.
    fs::write(file.path(), groups.to_string()).expect("written");
    checked(Command::new("promtool").args(["check", "rules"]).arg(file.path()));
}
