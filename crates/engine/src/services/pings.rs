//! What rooms say: the hot path. No operation, nothing durable, one lookup in the room table, and one more each in the lists
//! of fleets that may panic and of those that have forwarders.

use maestro_core::room::{HostPort, PingStatus, Purpose, RoomId};

use crate::ports::room_table::{Ping, PingError, Pinged, TableError};
use crate::{Engine, Error, Result};

use super::known_name;

/// Where players reach a room.
#[derive(Debug, Clone)]
pub struct Address {
    pub host: String,
    pub ports: Vec<HostPort>,
}

impl Engine {
    /// What it says is handed over to forwarders, which it does not wait for.
    pub async fn ping(&self, ping: Ping<'_>) -> Result<Pinged, PingError> {
        let pinged = self.take_in_ping(ping).await?;
        if pinged.purpose == Purpose::Fleet {
            self.events.resyncs.pinged(&ping);
        }
        Ok(pinged)
    }

    /// Only a change wakes anybody.
    pub(super) async fn take_in_ping(&self, ping: Ping<'_>) -> Result<Pinged, PingError> {
        let matches = match ping.status {
            // Older clients say `occupied` and no number.
            PingStatus::Occupied => ping.matches.max(1),
            PingStatus::Unknown | PingStatus::Ready | PingStatus::Terminating | PingStatus::Terminated => {
                ping.matches
            }
        };
        let late_max = i64::try_from(self.settings.room_ping_timeout.0 / 1000).unwrap_or(i64::MAX);
        let pinged = self.ports.table.ping(Ping { matches, late_max, ..ping }, self.now()).await;
        let pinged = pinged.inspect_err(|error| match error {
            PingError::Table(TableError::Unavailable(_)) => self.pings_refused(),
            // If there is such a scheduler, its owner puts its rooms into the table again. They are listened to from then
            // on, so that this counts as nobody's silence.
            PingError::Table(TableError::Lost(_)) => self.ports.wake.room_changed(ping.scheduler),
            PingError::UnknownRoom | PingError::Refused { .. } => {}
        })?;
        if pinged.changed() {
            self.ports.wake.room_changed(ping.scheduler);
        }
        if pinged.ended_holds {
            self.allocations.hold_ended();
        }
        if pinged.may_be_free() {
            self.allocations.room_freed();
        }
        if ping.status == PingStatus::Occupied && pinged.purpose == Purpose::Fleet {
            self.panics.occupied(ping.scheduler);
        }
        Ok(pinged)
    }

    /// Pings were refused, or could not be read, for lack of capacity: silence up to now is not the rooms' fault.
    pub fn pings_refused(&self) {
        self.listening.refused(self.now());
    }

    pub async fn room_address(&self, scheduler: &str, room: &str) -> Result<Address> {
        let missing = || Error::NotFound(format!("room {room} not found in scheduler {scheduler}"));
        let name = known_name(scheduler).map_err(|_| missing())?;
        let row = self.ports.store.room(&name, &RoomId::new(room)).await?;
        let row = row.filter(|row| row.ended.is_none()).ok_or_else(missing)?;
        let Some(handle) = row.handle else {
            let text = format!("room {room} of scheduler {scheduler} has no address yet; it is starting");
            return Err(Error::Conflict(text));
        };
        Ok(Address { host: handle.host, ports: row.ports })
    }
}
