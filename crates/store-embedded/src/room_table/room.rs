//! One room of the table. A hundred thousand of them are kept, so what is rare is boxed.

use maestro_core::allocation::{
    AllocationId, ClaimNumber, Hold, HoldEnd, HoldStage, Holds, MatchReport, Wish,
};
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomState, RoomStatus};
use maestro_core::scheduler::Version;
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::{
    Claim, HoldRequest, NewRoom, Ping, PingError, Pinged, RoomAddress, RoomView, StatusChange,
};

#[derive(Clone)]
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
    /// The last number that a claim has taken.
    number: ClaimNumber,
    holds: Option<Box<Holds>>,
    address: Option<RoomAddress>,
    /// By the room's own clock.
    last_sent_at: Option<i64>,
    /// A matchmaker would have got it, and it had not pinged for too long: nobody gets it before it does.
    is_silent: bool,
}

/// What becomes of a matchmaker's claim.
pub(super) enum HoldOutcome {
    Held(ClaimNumber),
    /// It is full, or does not fit.
    Unfit,
    /// It may be dead.
    Silent,
}

/// What the counters know of a room. Never stored: composed before and after a change, so that it cannot drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedRoom {
    pub(super) status: RoomStatus,
    pub(super) instance: InstanceStatus,
    pub(super) matches: u32,
    /// Matches that are expected.
    pub(super) expected: u32,
    pub(super) known: bool,
    /// Slots for matchmakers.
    pub(super) free: u32,
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
            address,
            claim_number,
            holds,
        } = new;
        let mut room = Self {
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
            number: claim_number,
            holds: None,
            address,
            last_sent_at: None,
            is_silent: false,
        };
        holds.into_iter().for_each(|hold| room.restore(hold));
        (id, room)
    }

    /// `None`: a validation room is counted nowhere.
    pub(super) fn counted(&self) -> Option<CountedRoom> {
        match self.purpose {
            Purpose::Validation => None,
            Purpose::Fleet => Some(CountedRoom {
                status: self.state.status(),
                instance: self.state.instance(),
                matches: self.state.matches(),
                expected: self.expected(),
                known: self.state.is_known(),
                free: self.free_slots(),
            }),
        }
    }

    pub(super) fn status(&self) -> RoomStatus {
        self.state.status()
    }

    fn free_slots(&self) -> u32 {
        match (self.purpose, &self.address, self.is_silent) {
            (Purpose::Fleet, Some(_), false) => self.state.free_slots(),
            (Purpose::Validation, _, _) | (Purpose::Fleet, None, _) | (Purpose::Fleet, Some(_), true) => 0,
        }
    }

    fn expected(&self) -> u32 {
        self.holds.as_ref().map_or(0, |holds| holds.open())
    }

    pub(super) fn holds(&self) -> Option<&Holds> {
        self.holds.as_deref()
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Never another one: it is no part of [`CountedRoom`].
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    pub(super) fn claimed_by(&self) -> Option<OperationId> {
        self.claimed_by.as_deref().copied()
    }

    /// Takes up what the game says, or refuses it and stays as it is.
    pub(super) fn ping(&mut self, ping: &Ping<'_>, at: Timestamp) -> Result<Pinged, PingError> {
        let heard_again = !self.state.is_known();
        if self.was_overtaken(ping) {
            self.last_ping_at = Some(at);
            self.is_silent = false;
            let status = self.state.status();
            return Ok(Pinged {
                before: status,
                after: status,
                heard_again: false,
                purpose: self.purpose,
                ended_holds: false,
            });
        }
        let matches_before = self.state.matches();
        let StatusChange { before, after } = self
            .state
            .ping(ping.status, ping.matches)
            .map_err(|change| PingError::Refused { from: change.before, to: change.after })?;
        self.last_ping_at = Some(at);
        self.is_silent = false;
        self.last_sent_at = ping.sent_at.or(self.last_sent_at);
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
        let ended_holds = self.holds.as_mut().is_some_and(|holds| {
            // The first ping after the table was lost says how many matches there are, not how many have begun.
            let newly_running = if heard_again { 0 } else { ping.matches.saturating_sub(matches_before) };
            let (has_slots, occupied) = (self.state.matches_max() > 1, ping.status == PingStatus::Occupied);
            holds.end_by_ping(&MatchReport { has_slots, occupied, newly_running, begun: ping.begun, at }) > 0
        });
        Ok(Pinged { before, after, heard_again, purpose: self.purpose, ended_holds })
    }

    /// A later ping came before this one. An unknown room has not said anything yet.
    fn was_overtaken(&self, ping: &Ping<'_>) -> bool {
        match (ping.sent_at, self.last_sent_at) {
            (Some(sent), Some(last)) => {
                self.state.is_known() && sent < last && last.saturating_sub(sent) < ping.late_max
            }
            (None, _) | (_, None) => false,
        }
    }

    pub(super) fn observe(&mut self, instance: InstanceStatus) -> Option<StatusChange> {
        let change = self.state.observe(instance);
        (change.before != change.after).then_some(change)
    }

    pub(super) fn claim(&mut self, claim: &Claim<'_>) -> bool {
        let claimed = self.state.claim(claim.statuses, claim.known_only);
        if claimed {
            self.claimed_by = Some(Box::new(claim.operation));
            self.number = self.number.next();
        }
        claimed
    }

    /// The claim of a matchmaker: a provisional hold, if there is a slot for it and the room fits.
    pub(super) fn hold(
        &mut self,
        request: &HoldRequest<'_>,
        wish: &Wish,
        allocation: AllocationId,
    ) -> HoldOutcome {
        if self.free_slots() == 0 {
            return HoldOutcome::Unfit;
        }
        if !request.is_alive(self.last_ping_at) {
            self.is_silent = true;
            return HoldOutcome::Silent;
        }
        if !wish.accepts(self.metadata.as_deref()) {
            return HoldOutcome::Unfit;
        }
        self.number = self.number.next();
        let number = self.number;
        self.change_holds(|holds| {
            holds.add(Hold {
                allocation,
                number,
                expires_at: request.expires_at,
                stage: HoldStage::Provisional { since: request.now },
                metadata: request.metadata.cloned(),
            });
        });
        HoldOutcome::Held(number)
    }

    pub(super) fn confirm(&mut self, number: ClaimNumber) -> Option<HoldStage> {
        if self.claimed_by.is_some() {
            return None;
        }
        self.holds.as_mut()?.confirm(number)
    }

    pub(super) fn mark(&mut self, number: ClaimNumber, end: HoldEnd) -> Option<HoldEnd> {
        self.holds.as_mut()?.mark(number, end)
    }

    pub(super) fn release(&mut self, number: ClaimNumber) {
        self.change_holds(|holds| {
            holds.release(number);
        });
    }

    pub(super) fn restore(&mut self, hold: Hold) {
        self.number = self.number.max(hold.number);
        self.change_holds(|holds| holds.add(hold));
    }

    fn change_holds(&mut self, change: impl FnOnce(&mut Holds)) {
        let mut holds = self.holds.take().unwrap_or_default();
        change(&mut holds);
        self.state.set_holds(holds.len());
        self.holds = Some(holds).filter(|holds| !holds.is_empty());
    }

    pub(super) fn set_address(&mut self, address: RoomAddress) {
        self.address = Some(address);
    }

    pub(super) fn address(&self) -> Option<&RoomAddress> {
        self.address.as_ref()
    }

    pub(super) fn unclaim(&mut self, operation: OperationId) {
        if self.claimed_by() == Some(operation) {
            self.claimed_by = None;
            self.state.unclaim();
        }
    }

    pub(super) fn matches_max(&self) -> u32 {
        self.state.matches_max()
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
            expected: self.expected(),
        }
    }
}
