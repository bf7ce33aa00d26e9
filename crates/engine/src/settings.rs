//! What can be set about the engine. The defaults are the documented ones; the binary fills in what is configured.

use std::time::Duration;

use maestro_core::plan::Limits;
use maestro_core::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub health_controller_interval: Duration,
    /// An event that changes the plan wakes the health controller before its time.
    pub early_wake_up: bool,
    pub storage_clean_up_interval: Duration,
    /// How often a worker looks for schedulers that it does not know of.
    pub sync_interval: Duration,
    pub ownership_ttl: Millis,
    pub operation_lease_ttl: Millis,
    pub lock_ttl: Millis,
    /// How long an operation waits for a lock before it gives up.
    pub lock_wait_timeout: Millis,
    /// How long a removal keeps its lock while its rooms do not go.
    pub downscaling_timeout: Millis,
    /// How long a clean shutdown waits for the step that is running.
    pub stop_timeout: Duration,

    pub room_initialization_timeout: Millis,
    pub room_ping_timeout: Millis,
    /// How long rooms that fell silent together are not taken for dead.
    pub mass_silence_timeout: Millis,
    /// How long a room that said `terminating` may be silent before it is removed.
    pub room_deletion_timeout: Millis,
    pub room_validation_timeout: Millis,
    pub room_validation_attempts: u32,
    /// A validation room that a matchmaker has filled before it said `ready` is good enough.
    pub room_validation_accepts_occupied: bool,

    /// How long a room is held for a matchmaker that does not say how long.
    pub room_allocation_ttl: Millis,
    /// Requests for rooms of one scheduler that wait in this process.
    pub allocation_queue_max: usize,

    pub rooms_add_limit: u32,
    /// Rooms that one step starts side by side.
    pub rooms_add_batch: u32,
    /// How long one room's start may take.
    pub room_start_timeout: Duration,
    pub rooms_remove_limit: u32,

    pub operations_kept: Millis,
    pub no_action_kept: Millis,
    pub rooms_kept: Millis,
    /// How long it is tried to deliver a queued event.
    pub events_kept: Millis,
    /// Events that may wait for one forwarder.
    pub events_queue_max: u32,
    /// Allocations that are over, of requests without an id.
    pub allocations_kept: Millis,
    /// Those of requests with one: whoever asks again is told what became of them.
    pub requested_allocations_kept: Millis,
    /// The most of both that are kept of a scheduler.
    pub allocations_kept_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            health_controller_interval: Duration::from_secs(10),
            early_wake_up: true,
            storage_clean_up_interval: Duration::from_secs(600),
            sync_interval: Duration::from_secs(10),
            ownership_ttl: Millis::from_seconds(10),
            operation_lease_ttl: Millis::from_seconds(5),
            lock_ttl: Millis::from_seconds(30),
            lock_wait_timeout: Millis::from_seconds(5 * 60),
            downscaling_timeout: Millis::from_seconds(10 * 60),
            stop_timeout: Duration::from_secs(120),
            room_initialization_timeout: Millis::from_seconds(120),
            room_ping_timeout: Millis::from_seconds(240),
            mass_silence_timeout: Millis::from_seconds(30 * 60),
            room_deletion_timeout: Millis::from_seconds(120),
            room_validation_timeout: Millis::from_seconds(120),
            room_validation_attempts: 3,
            room_validation_accepts_occupied: false,
            room_allocation_ttl: Millis::from_seconds(5 * 60),
            allocation_queue_max: 1000,
            rooms_add_limit: 1000,
            rooms_add_batch: 40,
            room_start_timeout: Duration::from_secs(5),
            rooms_remove_limit: 1000,
            operations_kept: Millis::from_seconds(24 * 3600),
            no_action_kept: Millis::from_seconds(3600),
            rooms_kept: Millis::from_seconds(24 * 3600),
            events_kept: Millis::from_seconds(24 * 3600),
            events_queue_max: 100_000,
            allocations_kept: Millis::from_seconds(3600),
            requested_allocations_kept: Millis::from_seconds(24 * 3600),
            allocations_kept_max: 1_000_000,
        }
    }
}

impl Settings {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            initialization_timeout: self.room_initialization_timeout,
            ping_timeout: self.room_ping_timeout,
            deletion_timeout: self.room_deletion_timeout,
            add_max: self.rooms_add_limit,
            remove_max: self.rooms_remove_limit,
        }
    }
}
