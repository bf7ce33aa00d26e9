//! `docs/metrics.md` has every metric that is exported and no other, and says what has become of those of v10.

use std::collections::BTreeSet;

use anyhow::ensure;
use maestro_api::metrics_text;
use maestro_e2e::Maestro;
use maestro_engine::Readiness;
use maestro_testkit::{Metrics, documented_metrics, exported_metrics, metrics_of_v10};
use prometheus_client::registry::Registry;
use serde_json::json;

/// What a server shows that has a fleet, requests, and pings of rooms that it does not know.
fn of_a_server() -> anyhow::Result<Metrics> {
    let maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 1)?;
    maestro.rooms_api().ping("arena", "nobody", &json!({"status": "ready"}))?;
    maestro.until("the gauges of the fleet", || {
        let metrics = exported_metrics(&maestro.internal().get("/metrics")?.expect(200)?.text);
        ensure!(metrics.contains_key("maestro_worker_gru_ready"), "not there yet");
        Ok(metrics)
    })
}

/// What an engine shows to which everything has happened.
fn of_an_engine() -> anyhow::Result<Metrics> {
    let metrics = maestro_engine::metrics::Metrics::default();
    metrics.show_everything();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let problems = vec!["store: disk is full".to_owned()];
    Ok(exported_metrics(&metrics_text(&registry, &Readiness { is_ready: false, problems })?))
}

#[test]
fn the_table_has_what_is_exported() -> anyhow::Result<()> {
    let (page, of_server, of_engine) = (documented_metrics(), of_a_server()?, of_an_engine()?);
    let mut wrong = Vec::new();
    for (name, metric) in of_server.iter().chain(&of_engine) {
        match page.exported.get(name) {
            Some(documented) if documented == metric => {}
            Some(documented) => wrong.push(format!("{name} is {metric:?}, and documented as {documented:?}")),
            None => wrong.push(format!("{name}, {metric:?}, is not documented")),
        }
    }
    let exported = |name: &&String| of_server.contains_key(*name) || of_engine.contains_key(*name);
    let missing = page.exported.keys().filter(|name| !exported(name));
    wrong.extend(missing.map(|name| format!("{name} is documented, and nobody exports it")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn the_table_has_all_metrics_of_v10() {
    let (page, of_v10) = (documented_metrics(), metrics_of_v10());
    let mut wrong = Vec::new();
    for (name, metric) in &of_v10 {
        match (page.exported.get(name), page.left_out.contains(name)) {
            (Some(ours), false) if ours == metric => {}
            (Some(ours), false) => wrong.push(format!("{name} is {metric:?} in v10, and here {ours:?}")),
            (Some(_), true) => wrong.push(format!("{name} is exported, and said not to be")),
            (None, true) => {}
            (None, false) => wrong.push(format!("{name} is missing, without a reason")),
        }
    }
    let names: BTreeSet<String> = of_v10.into_keys().collect();
    let said_to_be_of_v10: BTreeSet<String> = &page.of_v10 | &page.left_out;
    wrong.extend(said_to_be_of_v10.difference(&names).map(|name| format!("v10 has no {name}")));
    let exported: BTreeSet<String> = page.exported.into_keys().collect();
    let unsaid = exported.intersection(&names).filter(|name| !page.of_v10.contains(*name));
    wrong.extend(unsaid.map(|name| format!("v10 has {name}, too")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
