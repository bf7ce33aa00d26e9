//! Expressions of PromQL, as far as one has to read them to know which metrics and labels they name. Whether they are
//! right, `promtool` says.

use std::collections::BTreeSet;

use maestro_testkit::{Metric, Metrics};

/// Labels that a scrape adds.
const OF_SCRAPES: [&str; 3] = ["job", "instance", "module"];
/// Words of the language that are followed by a list of labels.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
/// Prometheus' own.
const UP: &str = "up";

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) metrics: BTreeSet<String>,
    pub(crate) labels: BTreeSet<String>,
}

pub(crate) fn named(expression: &str) -> Named {
    let mut named = Named::default();
    let mut rest = expression;
    let mut in_labels = false;
    let mut word_before = "";
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let end = rest[1..].find('"').unwrap_or_else(|| panic!("a text without an end: {expression}"));
            rest = &rest[end + 2..];
        } else if first == '[' {
            let end = rest.find(']').unwrap_or_else(|| panic!("a range without an end: {expression}"));
            rest = &rest[end + 1..];
        } else if first.is_ascii_alphabetic() || first == '_' {
            let is_inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
            let end = rest.find(|letter| !is_inside(letter)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            // `sum by (game) (…)` is one, too.
            let next = after.trim_start();
            let is_function = ["(", "by ", "by(", "without "].iter().any(|begin| next.starts_with(begin));
            if in_labels {
                named.labels.insert(word.to_owned());
            } else if !is_function && !OPERATORS.contains(&word) && !BEFORE_LABELS.contains(&word) {
                named.metrics.insert(word.to_owned());
            }
            word_before = word;
        } else {
            match first {
                '{' => in_labels = true,
                '(' => in_labels = BEFORE_LABELS.contains(&word_before),
                '}' | ')' => in_labels = false,
                _ => {}
            }
            if first.is_ascii_digit() {
                // A number may end with a unit.
                let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
                rest = &rest[end.unwrap_or(rest.len())..];
            } else {
                rest = &rest[first.len_utf8()..];
            }
            if !first.is_whitespace() {
                word_before = "";
            }
        }
    }
    named
}

/// What it names that there is not.
pub(crate) fn unknown(expression: &str, documented: &Metrics) -> Vec<String> {
    let Named { metrics, labels } = named(expression);
    let mut known_labels: BTreeSet<&str> = OF_SCRAPES.into();
    let mut unknown = Vec::new();
    for name in &metrics {
        match metric(name, documented) {
            Some((metric, is_bucket)) => {
                known_labels.extend(metric.labels.iter().map(String::as_str));
                known_labels.extend(is_bucket.then_some("le"));
            }
            None if name == UP => {}
            None => unknown.push(format!("there is no metric {name}: {expression}")),
        }
    }
    let wrong = labels.iter().filter(|label| !known_labels.contains(label.as_str()));
    unknown.extend(wrong.map(|label| format!("none of its metrics has a label {label}: {expression}")));
    unknown
}

/// Of a histogram, only its parts have values; whether it is the buckets.
fn metric<'a>(name: &str, documented: &'a Metrics) -> Option<(&'a Metric, bool)> {
    let part = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| Some((name.strip_suffix(end)?, end)));
    let of_part = part.and_then(|(family, end)| Some((documented.get(family)?, end == "_bucket")));
    match of_part.filter(|(metric, _)| metric.kind == "histogram") {
        Some(part) => Some(part),
        None => {
            documented.get(name).filter(|metric| metric.kind != "histogram").map(|metric| (metric, false))
        }
    }
}

#[test]
fn metrics_and_labels_are_found() {
    let set = |words: &[&str]| words.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    for (expression, metrics, labels) in [
        ("up", &["up"][..], &[][..]),
        ("absent(up{job=\"a b{\", module=~\"x|y\"} == 1)", &["up"], &["job", "module"]),
        ("sum by (le, x) (rate(a_bucket[5m])) > 1e3", &["a_bucket"], &["le", "x"]),
        ("time() - min(a) and on (x) b unless ignoring(y) c", &["a", "b", "c"], &["x", "y"]),
        ("sum(increase(a[$__rate_interval] offset 5m)) / 2.5", &["a"], &[]),
    ] {
        assert_eq!(named(expression), Named { metrics: set(metrics), labels: set(labels) }, "{expression}");
    }
}

#[test]
fn what_there_is_not_is_named() {
    let metric = |kind: &str, labels: &[&str]| Metric {
        kind: kind.into(),
        labels: labels.iter().map(ToString::to_string).collect(),
    };
    let documented =
        [("a".to_owned(), metric("histogram", &["x"])), ("b".to_owned(), metric("gauge", &["y"]))];
    let documented = Metrics::from(documented);
    for (expression, expected) in [
        ("a_bucket{le=\"1\", x=\"\"} + on (job) b{y=\"1\"} * up", &[][..]),
        ("a", &["there is no metric a: a"]),
        ("b_count", &["there is no metric b_count: b_count"]),
        ("b{x=\"1\"}", &["none of its metrics has a label x: b{x=\"1\"}"]),
        ("a_sum{le=\"1\"}", &["none of its metrics has a label le: a_sum{le=\"1\"}"]),
    ] {
        assert_eq!(unknown(expression, &documented), expected);
    }
}
