//! One room of the table. A hundred thousand of them are kept, so what is rare is boxed.

use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus, Seen};
use maestro_core::scheduler::Version;
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{NewRoom, Ping, PingError, Pinged, RoomView, StatusChange};

pub(super) struct Room {
    version: Version,
    region: Region,
    purpose: Purpose,
    /// As the runtime saw it last, claimed or not: what the room goes back to when a claim is given up.
    observed: InstanceStatus,
    ping: PingStatus,
    known: bool,
    listened_since: Timestamp,
    was_ready: bool,
    matches: u32,
    matches_max: u32,
    created_at: Timestamp,
    last_ping_at: Option<Timestamp>,
    terminating_since: Option<Timestamp>,
    metadata: Option<Box<str>>,
    claim: Option<Box<Claimed>>,
}

struct Claimed {
    operation: OperationId,
    /// The runtime has seen the instance fail since.
    failed_since: bool,
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
            observed: instance,
            ping: PingStatus::Unknown,
            known,
            listened_since,
            was_ready: false,
            matches: 0,
            matches_max,
            created_at,
            last_ping_at: None,
            terminating_since: None,
            metadata: None,
            claim: None,
        };
        (id, room)
    }

    pub(super) fn status(&self) -> RoomStatus {
        self.status_if(self.instance(), self.ping, self.matches)
    }

    /// `None`: a validation room is counted nowhere.
    pub(super) fn counted(&self) -> Option<Counted> {
        match self.purpose {
            Purpose::Validation => None,
            Purpose::Fleet => Some(Counted {
                status: self.status(),
                instance: self.instance(),
                matches: self.matches,
                known: self.known,
            }),
        }
    }

    /// Never another one: it is no part of [`Counted`].
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    pub(super) fn claimed_by(&self) -> Option<OperationId> {
        self.claim.as_ref().map(|claim| claim.operation)
    }

    /// Takes up what the game says, or refuses it and stays as it is.
    pub(super) fn ping(&mut self, ping: &Ping<'_>) -> Result<Pinged, PingError> {
        let before = self.status();
        let after = self.status_if(self.instance(), ping.status, ping.matches);
        if !before.may_become(after) {
            return Err(PingError::Refused { from: before, to: after });
        }
        let heard_again = !self.known;
        self.known = true;
        self.ping = ping.status;
        self.matches = ping.matches;
        self.last_ping_at = Some(ping.at);
        self.terminating_since = match ping.status {
            PingStatus::Terminating => self.terminating_since.or(Some(ping.at)),
            PingStatus::Unknown | PingStatus::Ready | PingStatus::Occupied | PingStatus::Terminated => None,
        };
        // Most pings repeat what the last one said: those allocate nothing.
        if let Some(metadata) = ping.metadata
            && self.metadata.as_deref() != Some(metadata)
        {
            self.metadata = Some(metadata.into());
        }
        self.remember_ready();
        Ok(Pinged { before, after, heard_again, purpose: self.purpose })
    }

    /// Takes up what the runtime sees, unless no room can change that way: then the instance stays what it was, so
    /// that the status is always the one composed from what is shown.
    pub(super) fn observe(&mut self, instance: InstanceStatus) -> Option<StatusChange> {
        let before = self.status();
        if let Some(claim) = &mut self.claim {
            claim.failed_since = instance == InstanceStatus::Error;
        } else if !before.may_become(self.status_if(instance, self.ping, self.matches)) {
            return None;
        }
        self.observed = instance;
        let after = self.status();
        self.remember_ready();
        (before != after).then_some(StatusChange { before, after })
    }

    /// The caller has checked that nobody else claimed it.
    pub(super) fn claim(&mut self, operation: OperationId) {
        self.claim = Some(Box::new(Claimed { operation, failed_since: false }));
    }

    pub(super) fn unclaim(&mut self, operation: OperationId) {
        if self.claimed_by() == Some(operation) {
            self.claim = None;
            self.remember_ready();
        }
    }

    pub(super) fn set_matches_max(&mut self, matches_max: u32) {
        self.matches_max = matches_max;
        self.remember_ready();
    }

    pub(super) fn view(&self, id: RoomId) -> RoomView {
        RoomView {
            id,
            version: self.version,
            region: self.region.clone(),
            purpose: self.purpose,
            instance: self.instance(),
            ping: self.ping,
            status: self.status(),
            matches: self.matches,
            created_at: self.created_at,
            last_ping_at: self.last_ping_at,
            terminating_since: self.terminating_since,
            known: self.known,
            listened_since: self.listened_since,
            was_ready: self.was_ready,
            claimed_by: self.claimed_by(),
            metadata: self.metadata.as_deref().map(str::to_owned),
        }
    }

    /// What counts as the instance's status: a claimed room is on its way out, whatever its runtime still sees.
    fn instance(&self) -> InstanceStatus {
        match &self.claim {
            None => self.observed,
            Some(claim) if claim.failed_since => InstanceStatus::Error,
            Some(_) => InstanceStatus::Terminating,
        }
    }

    fn status_if(&self, instance: InstanceStatus, ping: PingStatus, matches: u32) -> RoomStatus {
        let seen = Seen { instance, ping, matches, matches_max: self.matches_max, held: false };
        seen.status()
    }

    fn remember_ready(&mut self) {
        let status = self.status();
        self.was_ready |= status == RoomStatus::Ready || status.serves_players();
    }
}
