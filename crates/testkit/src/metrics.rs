//! What `docs/metrics.md` says of metrics, and what a scrape shows of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::recordings::{path, repository};

/// By name: counters end with `_total`, histograms have no ending.
pub type Metrics = BTreeMap<String, Metric>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metric {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    pub labels: BTreeSet<String>,
}

/// The page, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricsPage {
    pub exported: Metrics,
    /// Of those that are exported: those that v10 has.
    pub of_v10: BTreeSet<String>,
    /// Metrics of v10 that are not exported; each with a reason.
    pub left_out: BTreeSet<String>,
}

/// `docs/metrics.md`. A row that cannot be read is a failed test.
pub fn documented_metrics() -> MetricsPage {
    let page = repository().join("docs/metrics.md");
    let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    read_page(&text)
}

fn read_page(text: &str) -> MetricsPage {
    let mut page = MetricsPage::default();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [name, kind, labels, v10, about] if !about.is_empty() => {
                let name = name.trim_matches('`').to_owned();
                let labels = labels.split(", ").filter(|label| *label != "–");
                let labels = labels.map(|label| label.trim_matches('`').to_owned()).collect();
                match v10 {
                    "yes" => drop(page.of_v10.insert(name.clone())),
                    "" => {}
                    other => panic!("neither `yes` nor nothing: {other} in {row}"),
                }
                let metric = Metric { kind: kind.to_owned(), labels };
                assert_eq!(page.exported.insert(name, metric), None, "twice: {row}");
            }
            [name, why] if !why.is_empty() => {
                page.left_out.insert(name.trim_matches('`').to_owned());
            }
            _ => panic!("not a row: {row}"),
        }
    }
    page
}

/// `testdata/v10-metrics.txt`.
pub fn metrics_of_v10() -> Metrics {
    let file = path("v10-metrics.txt");
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let metric = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, kind, labels] = words[..] else { panic!("not a metric: {line}") };
        let labels = labels.split(',').filter(|label| *label != "-").map(str::to_owned).collect();
        (name.to_owned(), Metric { kind: kind.to_owned(), labels })
    };
    text.lines().map(metric).collect()
}

/// What a scrape shows: text in the format of OpenMetrics.
pub fn exported_metrics(text: &str) -> Metrics {
    let mut metrics = Metrics::new();
    let (mut family, mut kind) = ("", "");
    for line in text.lines() {
        if let Some((name, of_kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            (family, kind) = (name, of_kind);
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        assert!(line.starts_with(family), "a sample of another family than {family}: {line}");
        let name = if kind == "counter" { format!("{family}_total") } else { family.to_owned() };
        let metric = metrics.entry(name).or_default();
        kind.clone_into(&mut metric.kind);
        let mut labels = label_names(line);
        labels.remove("le");
        metric.labels.extend(labels);
    }
    metrics
}

/// Values may contain anything but a bare quote.
fn label_names(sample: &str) -> BTreeSet<String> {
    let Some((_, labels)) = sample.split_once('{') else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    let mut rest = labels;
    while let Some((name, value)) = rest.split_once("=\"") {
        names.insert(name.trim_start_matches(',').to_owned());
        let mut escaped = false;
        let end = value.find(|letter| {
            let is_end = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            is_end
        });
        let Some(end) = end else { panic!("a value without an end: {sample}") };
        rest = &value[end + 1..];
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(kind: &str, labels: &[&str]) -> Metric {
        Metric { kind: kind.into(), labels: labels.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn a_scrape_is_read() {
        let text = "# HELP a_ms How long.\n# TYPE a_ms histogram\na_ms_sum{x=\"1\"} 2\na_ms_count{x=\"1\"} 2\n\
                    a_ms_bucket{le=\"5.0\",x=\"a,\\\"b=\\\"\",y=\"\"} 1\n# TYPE b counter\nb_total 1\n\
                    # TYPE c gauge\nc{z=\"{}\"} 1\n# EOF\n";
        let expected = [
            ("a_ms".to_owned(), metric("histogram", &["x", "y"])),
            ("b_total".to_owned(), metric("counter", &[])),
            ("c".to_owned(), metric("gauge", &["z"])),
        ];
        assert_eq!(exported_metrics(text), expected.into());
    }

    #[test]
    fn a_page_is_read() {
        let text = "| metric | type | labels | v10 | about |\n|---|---|---|---|---|\n\
                    | `a` | gauge | `x`, `y` | yes | A. |\n| `b_total` | counter | – | | B. |\n\n| `c` | no C here |\n";
        let page = read_page(text);
        let exported =
            [("a".to_owned(), metric("gauge", &["x", "y"])), ("b_total".to_owned(), metric("counter", &[]))];
        assert_eq!(page.exported, exported.into());
        assert_eq!(page.of_v10, ["a".to_owned()].into());
        assert_eq!(page.left_out, ["c".to_owned()].into());
    }
}
