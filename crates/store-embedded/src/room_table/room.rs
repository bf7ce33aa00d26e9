//! One room of the table. A hundred thousand of them are kept, so what is rare is boxed.

use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomState, RoomStatus};
use maestro_core::scheduler::Version;
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{Claim, NewRoom, Ping, PingError, Pinged, RoomView, StatusChange};

pub(super) struct Room {
    version: Version,
    region: Region,
    purpose: Purpose,
    state: RoomState,
    listened_since: Timestamp,
    created_at: Timestamp,
    last_ping_at: Option<Timestamp>,
    terminating_since: Option<Timestamp>,
    metadata: Option<Box<str>>,
    /// Whose claim the state knows of.
    claimed_by: Option<Box<OperationId>>,
}

/// What the counters know of a room. Never stored: composed before and after a change, so that it cannot drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) status: RoomStatus,
    pub(super) instance: InstanceStatus,
    pub(super) matches: u32,
    pub(super) known: bool,
}

impl Room {
    pub(super) fn new(new: NewRoom) -> (RoomId, Self) {
        let NewRoom {
            scheduler: _,
            id,
            version,
            region,
            purpose,
            instance,
            created_at,
            matches_max,
            known,
            listened_since,
        } = new;
        let room = Self {
            version,
            region,
            purpose,
            state: RoomState::new(instance, matches_max, known),
            listened_since,
            created_at,
            last_ping_at: None,
            terminating_since: None,
            metadata: None,
            claimed_by: None,
        };
        (id, room)
    }

    /// `None`: a validation room is counted nowhere.
    pub(super) fn counted(&self) -> Option<Counted> {
        match self.purpose {
            Purpose::Validation => None,
            Purpose::Fleet => Some(Counted {
                status: self.state.status(),
                instance: self.state.instance(),
                matches: self.state.matches(),
                known: self.state.is_known(),
            }),
        }
    }

    /// Never another one: it is no part of [`Counted`].
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    pub(super) fn claimed_by(&self) -> Option<OperationId> {
        self.claimed_by.as_deref().copied()
    }

    /// Takes up what the game says, or refuses it and stays as it is.
    pub(super) fn ping(&mut self, ping: &Ping<'_>, at: Timestamp) -> Result<Pinged, PingError> {
        let heard_again = !self.state.is_known();
        let StatusChange { before, after } = self
            .state
            .ping(ping.status, ping.matches)
            .map_err(|change| PingError::Refused { from: change.before, to: change.after })?;
        self.last_ping_at = Some(at);
        self.terminating_since = match ping.status {
            PingStatus::Terminating => self.terminating_since.or(Some(at)),
            PingStatus::Unknown | PingStatus::Ready | PingStatus::Occupied | PingStatus::Terminated => None,
        };
        // Most pings repeat what the last one said: those allocate nothing.
        if let Some(metadata) = ping.metadata
            && self.metadata.as_deref() != Some(metadata)
        {
            self.metadata = Some(metadata.into());
        }
        Ok(Pinged { before, after, heard_again, purpose: self.purpose })
    }

    pub(super) fn observe(&mut self, instance: InstanceStatus) -> Option<StatusChange> {
        let change = self.state.observe(instance);
        (change.before != change.after).then_some(change)
    }

    pub(super) fn claim(&mut self, claim: &Claim<'_>) -> bool {
        let claimed = self.state.claim(claim.statuses, claim.known_only);
        if claimed {
            self.claimed_by = Some(Box::new(claim.operation));
        }
        claimed
    }

    pub(super) fn unclaim(&mut self, operation: OperationId) {
        if self.claimed_by() == Some(operation) {
            self.claimed_by = None;
            self.state.unclaim();
        }
    }

    pub(super) fn set_matches_max(&mut self, matches_max: u32) {
        self.state.set_matches_max(matches_max);
    }

    pub(super) fn view(&self, id: RoomId) -> RoomView {
        RoomView {
            id,
            version: self.version,
            region: self.region.clone(),
            purpose: self.purpose,
            instance: self.state.instance(),
            ping: self.state.ping_status(),
            status: self.state.status(),
            matches: self.state.matches(),
            created_at: self.created_at,
            last_ping_at: self.last_ping_at,
            terminating_since: self.terminating_since,
            known: self.state.is_known(),
            listened_since: self.listened_since,
            was_ready: self.state.was_ready(),
            claimed_by: self.claimed_by(),
            metadata: self.metadata.as_deref().map(str::to_owned),
        }
    }
}
