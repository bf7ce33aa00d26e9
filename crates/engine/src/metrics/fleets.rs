//! Gauges of fleets, as the last report saw them. A scrape shows one report as a whole, so it never meets half of one, and
//! nothing has to be taken away for fleets that are gone.

use std::fmt;
use std::sync::Arc;

use maestro_core::lock::{LockKind, Locks};
use maestro_core::room::{InstanceStatus, RoomStatus};
use maestro_core::scheduler::{ScalingPolicy, WHOLE};
use maestro_core::time::{Timestamp, age};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::ports::room_table::FleetCounts;
use crate::ports::store::SchedulerRecord;

use super::per_scheduler::{Labels, and, labels_of};

/// A fleet, as a report saw it.
pub(super) struct FleetReport {
    pub(super) scheduler: SchedulerRecord,
    pub(super) counts: FleetCounts,
    pub(super) locks: Locks,
    pub(super) at: Timestamp,
}

#[derive(Clone, Default)]
pub(super) struct FleetGauges(Arc<Mutex<Vec<FleetReport>>>);

/// Name, help, and what it shows of a fleet.
type FleetGauge = (&'static str, &'static str, fn(&FleetReport) -> Option<f64>);

const INSTANCE_HELP: &str = "Rooms by what the runtime says of their instance";

const FLEET_GAUGES: [FleetGauge; 20] = [
    ("maestro_worker_gru_ready", "Rooms that are ready", |fleet| fleet.rooms(RoomStatus::Ready)),
    ("maestro_worker_gru_pending", "Rooms that are pending", |fleet| fleet.rooms(RoomStatus::Pending)),
    ("maestro_worker_gru_unready", "Rooms that are unready", |fleet| fleet.rooms(RoomStatus::Unready)),
    ("maestro_worker_gru_terminating", "Rooms that are terminating", |fleet| {
        fleet.rooms(RoomStatus::Terminating)
    }),
    ("maestro_worker_gru_error", "Rooms that are error", |fleet| fleet.rooms(RoomStatus::Error)),
    ("maestro_worker_gru_occupied", "Rooms that are occupied", |fleet| fleet.rooms(RoomStatus::Occupied)),
    ("maestro_worker_gru_active", "Rooms that are active", |fleet| fleet.rooms(RoomStatus::Active)),
    ("maestro_worker_gru_allocated", "Rooms that are allocated", |fleet| fleet.rooms(RoomStatus::Allocated)),
    ("maestro_worker_instance_ready", INSTANCE_HELP, |fleet| fleet.instances(InstanceStatus::Ready)),
    ("maestro_worker_instance_pending", INSTANCE_HELP, |fleet| fleet.instances(InstanceStatus::Pending)),
    ("maestro_worker_instance_unknown", INSTANCE_HELP, |fleet| fleet.instances(InstanceStatus::Unknown)),
    ("maestro_worker_instance_terminating", INSTANCE_HELP, |fleet| {
        fleet.instances(InstanceStatus::Terminating)
    }),
    ("maestro_worker_instance_error", INSTANCE_HELP, |fleet| fleet.instances(InstanceStatus::Error)),
    ("maestro_worker_current_rooms", "Rooms of the fleet", |fleet| {
        Some(fleet.counts.by_status.total().into())
    }),
    ("maestro_rooms_unknown", "Rooms that have not pinged since the room table began", |fleet| {
        Some(fleet.counts.unknown.into())
    }),
    ("maestro_rooms_held", "Slots of rooms that matchmakers hold", |fleet| Some(fleet.counts.holds as f64)),
    ("maestro_worker_running_matches", "Matches running", |fleet| Some(fleet.counts.matches as f64)),
    ("maestro_worker_max_matches", "Matches that a room holds", |fleet| {
        Some(fleet.scheduler.recipe.match_allocation.max_matches.into())
    }),
    ("maestro_worker_ready_target", "Share of rooms to stand ready", |fleet| match fleet.policy()? {
        ScalingPolicy::RoomOccupancy(policy) => Some(policy.ready_target.units() as f64 / WHOLE as f64),
        ScalingPolicy::FixedBuffer(_) => None,
    }),
    ("maestro_worker_fixed_buffer", "Rooms to stand ready", |fleet| match fleet.policy()? {
        ScalingPolicy::RoomOccupancy(_) => None,
        ScalingPolicy::FixedBuffer(policy) => Some(policy.amount.into()),
    }),
];

impl FleetGauges {
    pub(super) fn show(&self, fleets: Vec<FleetReport>) {
        *self.0.lock() = fleets;
    }
}

impl FleetReport {
    fn rooms(&self, status: RoomStatus) -> Option<f64> {
        Some(self.counts.by_status.of(status).into())
    }

    fn instances(&self, status: InstanceStatus) -> Option<f64> {
        Some(self.counts.by_instance.of(status).into())
    }

    fn policy(&self) -> Option<&ScalingPolicy> {
        self.scheduler.recipe.autoscaling.as_ref().map(|autoscaling| &autoscaling.policy)
    }

    fn locks_held(&self) -> impl Iterator<Item = (Labels, f64)> {
        LockKind::ALL.into_iter().filter_map(|kind| {
            let lock = self.locks.held(kind).filter(|lock| !lock.is_over(self.at))?;
            let seconds = age(self.at, lock.acquired_at).0 / 1000;
            Some((and(labels_of(&self.scheduler), "lock", kind.as_str()), seconds as f64))
        })
    }

    fn locks_waited_for(&self) -> impl Iterator<Item = (Labels, f64)> {
        LockKind::ALL.into_iter().filter_map(|kind| {
            let waiting = self.locks.waiters_of(kind, self.at).count();
            let labels = || and(labels_of(&self.scheduler), "lock", kind.as_str());
            (waiting > 0).then(|| (labels(), waiting as f64))
        })
    }

    fn rooms_by_region(&self) -> impl Iterator<Item = (Labels, f64)> {
        self.counts.by_region.iter().flat_map(move |(region, by_status)| {
            by_status.iter().filter(|(_, rooms)| *rooms > 0).map(move |(status, rooms)| {
                let labels = and(labels_of(&self.scheduler), "region", region.to_string());
                (and(labels, "status", status.as_str()), f64::from(rooms))
            })
        })
    }
}

impl Collector for FleetGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let fleets = self.0.lock();
        for (name, help, value) in FLEET_GAUGES {
            let values = fleets.iter().filter_map(|fleet| Some((labels_of(&fleet.scheduler), value(fleet)?)));
            encode(&mut encoder, name, help, values)?;
        }
        let held = fleets.iter().flat_map(FleetReport::locks_held);
        encode(&mut encoder, "maestro_locks_held_seconds", "Seconds that a lock has been held", held)?;
        let waiting = fleets.iter().flat_map(FleetReport::locks_waited_for);
        encode(&mut encoder, "maestro_locks_waiting", "Operations that wait for a lock", waiting)?;
        let rooms = fleets.iter().flat_map(FleetReport::rooms_by_region);
        encode(&mut encoder, "maestro_region_rooms", "Rooms by region and status", rooms)
    }
}

/// Nothing at all where there are no values, as families of the library do.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        let gauge = gauge.encode_family(&labels)?;
        // Whole numbers without a fraction, as v10 shows them.
        match value.fract() == 0.0 {
            true => ConstGauge::new(value as i64).encode(gauge)?,
            false => ConstGauge::new(value).encode(gauge)?,
        }
    }
    Ok(())
}

impl fmt::Debug for FleetGauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetGauges").finish_non_exhaustive()
    }
}
