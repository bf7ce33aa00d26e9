//! Whatever the fleet, the players and the misfortunes: the numbers of every table add up.

use proptest::prelude::*;

use crate::{half_ready, simulated};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_table_adds_up(
        ready in 0_u32..60,
        occupied in 0_u32..60,
        peak in 0_u32..120,
        start_seconds in 0_u32..40,
        failures in prop_oneof![Just("0"), Just("0.1"), Just("0.5")],
        matches_max in 1_u32..4,
        seed in any::<u32>(),
    ) {
        let document = half_ready(&format!(
            "  matchAllocation: {{ maxMatches: {matches_max} }}
rooms: {{ ready: {ready}, occupied: {occupied} }}
demand: {{ curve: spike, base: {occupied}, peak: {peak}, at: 1m, rise: 1m, hold: 2m, fall: 1m }}
roomStart: {start_seconds}s
newVersion: {{ at: 90s }}
failures: {failures}
seed: {seed}
cycle: 10s
duration: 20m
"
        ));
        let report = simulated(&document).unwrap();
        for row in &report.rows {
            prop_assert_eq!(row.available, row.ready + row.occupied);
            prop_assert!(row.new <= row.available);
            prop_assert!(row.desired_ready <= row.desired);
        }
        // Who was there and who came are those who went and those who stay.
        let summary = &report.summary;
        let stays = u64::from(ready + occupied) + summary.rooms_started - summary.rooms_stopped;
        let last = report.rows.last().unwrap();
        prop_assert!(stays >= u64::from(last.available + last.to_surge - last.to_be_deleted.min(last.available)));
        prop_assert_eq!(summary.loops, 120);
    }
}
