//! What every process says of itself in its metrics: which build it is, and what it uses of the machine, under the names
//! that Prometheus' own libraries have for it.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

pub(super) fn register(registry: &mut Registry) {
    let build = Family::<Vec<(&'static str, &'static str)>, Gauge>::default();
    let labels = vec![("version", env!("CARGO_PKG_VERSION")), ("commit", env!("MAESTRO_COMMIT"))];
    build.get_or_create(&labels).set(1);
    registry.register("maestro_build_info", "Which build this is", build);
    registry.register_collector(Box::new(ProcessCollector));
}

/// Reads `/proc` when it is asked. What cannot be read is left out.
#[derive(Debug)]
struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut show = |name: &str, help: &str, value: Option<f64>| match value {
            Some(value) => {
                let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(gauge)
            }
            None => Ok(()),
        };
        let usage = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(usage);
        let of_usage = |value: fn(&Usage) -> f64| usage.as_ref().map(value);
        let resident = of_usage(|usage| usage.resident_pages * page_size() as f64);
        show("process_resident_memory_bytes", "Memory that the process has", resident)?;
        let virtual_bytes = of_usage(|usage| usage.virtual_bytes);
        show("process_virtual_memory_bytes", "Addresses that the process has", virtual_bytes)?;
        let booted_at = fs::read_to_string("/proc/stat").ok().as_deref().and_then(booted_at);
        let started = of_usage(|usage| usage.started_ticks / clock_ticks_per_second() as f64);
        let started = booted_at.zip(started).map(|(booted, started)| booted + started);
        show("process_start_time_seconds", "When the process began", started)?;
        let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
        show("process_open_fds", "Files and connections that are open", open)?;
        let most = getrlimit(Resource::Nofile).current.map(|most| most as f64);
        show("process_max_fds", "How many may be open", most)?;
        let Some(usage) = usage else { return Ok(()) };
        let cpu = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Processor time that the process has used",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(usage.cpu_ticks / clock_ticks_per_second() as f64).encode(cpu)
    }
}

#[derive(Debug, PartialEq)]
struct Usage {
    cpu_ticks: f64,
    /// After the machine was booted.
    started_ticks: f64,
    virtual_bytes: f64,
    resident_pages: f64,
}

/// From `/proc/self/stat`; see proc_pid_stat(5). The name of the program is in parentheses and may have anything in it.
fn usage(stat: &str) -> Option<Usage> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // The first of them is field 3 there.
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    Some(Usage {
        cpu_ticks: field(14)? + field(15)?,
        started_ticks: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

/// In seconds since 1970, from `/proc/stat`.
fn booted_at(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 9 0 0 0 700 30 0 0 20 0 8 0 5000 123456 300 1 2 3\n";
        let expected = Usage {
            cpu_ticks: 730.0,
            started_ticks: 5000.0,
            virtual_bytes: 123_456.0,
            resident_pages: 300.0,
        };
        assert_eq!(usage(stat), Some(expected));
        assert_eq!(usage("42 (maestro) S 1"), None);
        assert_eq!(booted_at("cpu 1 2\nbtime 1700000000\nprocesses 7\n"), Some(1_700_000_000.0));
    }

    #[test]
    fn this_process_has_memory_and_files() {
        let mut registry = Registry::default();
        register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse::<f64>().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_open_fds") <= value("process_max_fds"));
        assert!(value("process_start_time_seconds") > 1_600_000_000.0);
        assert!(value("process_cpu_seconds_total") >= 0.0);
    }
}
