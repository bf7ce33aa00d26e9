//! Faults as people read them: those that are on, and how often they strike.

use std::fmt;

use crate::story::seconds;

use super::{Faults, PortFaults, Rate};

/// One sentence without its end.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, runtime, table, receivers, ping_lost, ping_repeated, .. } = self;
        let Self { wake_up_lost, wake_up_late, wake_up_repeated, skew_max_ms, .. } = self;
        let mut told = Vec::new();
        let ports = [("store", store), ("runtime", runtime), ("room table", table), ("receiver", receivers)];
        for (port, faults) in ports {
            told.extend(of_port(port, faults));
        }
        told.extend(often(*ping_lost, "of pings are lost"));
        told.extend(often(*ping_repeated, "of pings come twice"));
        told.extend(often(*wake_up_lost, "of wake-ups between engines are lost"));
        told.extend(often(*wake_up_late, "of wake-ups between engines are late"));
        told.extend(often(*wake_up_repeated, "of wake-ups between engines come twice"));
        if *skew_max_ms > 0 {
            told.push(format!("clocks are wrong by up to {} s", seconds(u64::from(*skew_max_ms))));
        }
        match told.is_empty() {
            true => f.write_str("no call fails, and clocks are right"),
            false => f.write_str(&told.join(", ")),
        }
    }
}

fn of_port(port: &str, faults: &PortFaults) -> impl Iterator<Item = String> {
    let PortFaults { slow, slow_for, fails_before, fails_after, crashes_before, crashes_after } = faults;
    let slow_max = seconds(u64::try_from(slow_for.to.as_millis()).unwrap_or(u64::MAX));
    [
        often(*slow, &format!("of {port} calls are slow (by up to {slow_max} s each way)")),
        often(*fails_before, &format!("of {port} calls are lost on their way")),
        often(*fails_after, &format!("of {port} writes are done and their answers lost")),
        often(*crashes_before, &format!("of {port} writes kill the engine before they are done")),
        often(*crashes_after, &format!("of {port} writes kill the engine after they are done")),
    ]
    .into_iter()
    .flatten()
}

/// `None`: never.
fn often(rate: Rate, what: &str) -> Option<String> {
    (rate != Rate::NEVER).then(|| format!("{} % {what}", f64::from(rate.0) / 100.0))
}

#[cfg(test)]
mod tests {
    use crate::host::Span;

    use super::*;

    #[test]
    fn only_those_that_are_on_are_told() {
        assert_eq!(Faults::NONE.to_string(), "no call fails, and clocks are right");
        let store = PortFaults {
            slow: Rate::of_ten_thousand(200),
            slow_for: Span::millis(0, 3_501),
            crashes_after: Rate::of_ten_thousand(7),
            ..PortFaults::NONE
        };
        let runtime = PortFaults { fails_before: Rate::of_ten_thousand(150), ..PortFaults::NONE };
        assert_eq!(
            Faults { store, runtime, skew_max_ms: 1_250, ..Faults::NONE }.to_string(),
            "2 % of store calls are slow (by up to 3.501 s each way), \
             0.07 % of store writes kill the engine after they are done, \
             1.5 % of runtime calls are lost on their way, clocks are wrong by up to 1.25 s"
        );
    }
}
