//! Rooms and holds as Redis keeps them: MessagePack arrays, which the scripts read and write too.
//!
//! Scripts count in doubles, and an array of Lua has no gaps. So times are whole milliseconds, and what is not there is
//! [`NEVER`] or an empty text.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, ClaimNumber, Hold, HoldEnd, HoldStage};
use maestro_core::operation::OperationId;
use maestro_core::room::{Fill, HostPort, InstanceStatus, Region, RoomId, Sides};
use maestro_core::scheduler::{Protocol, Version};
use maestro_core::time::Timestamp;
use maestro_core::words::Word;
use maestro_engine::ports::room_table::{NewRoom, RoomAddress, RoomView};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Before all times. The smallest whole number that a double tells from its neighbours.
pub(crate) const NEVER: i64 = -9_007_199_254_740_991;

/// Whether an operation has taken the room out of service.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClaimState {
    Unclaimed,
    Claimed,
    /// And the runtime has seen the instance fail since.
    ClaimedAndFailed,
}

/// See [`HoldStage`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    Provisional,
    Firm,
    Begun,
    Returned,
    Expired,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Provisional, Self::Firm, Self::Begun, Self::Returned, Self::Expired];

    pub(crate) fn marked(end: HoldEnd) -> Self {
        match end {
            HoldEnd::Begun => Self::Begun,
            HoldEnd::Returned => Self::Returned,
            HoldEnd::Expired => Self::Expired,
        }
    }

    /// `since`: of one that is provisional.
    pub(crate) fn read(stored: u8, since: i64) -> Result<HoldStage, Failure> {
        let stage =
            Self::ALL.get(usize::from(stored)).ok_or_else(|| Failure::unreadable("a hold", "its stage"))?;
        Ok(match stage {
            Self::Provisional => HoldStage::Provisional { since: time(since) },
            Self::Firm => HoldStage::Firm,
            Self::Begun => HoldStage::Marked(HoldEnd::Begun),
            Self::Returned => HoldStage::Marked(HoldEnd::Returned),
            Self::Expired => HoldStage::Marked(HoldEnd::Expired),
        })
    }
}

/// A room. The fields are in the order in which room.lua knows them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// As the runtime saw it last, claimed or not.
    instance: u8,
    claim: u8,
    ping: u8,
    matches: u32,
    matches_max: u32,
    known: u8,
    was_ready: u8,
    /// A matchmaker would have got it, and it had not pinged for too long.
    silent: u8,
    last_ping_at: i64,
    last_sent_at: i64,
    terminating_since: i64,
    number: u64,
    purpose: u8,
    created_at: i64,
    listened_since: i64,
    version: String,
    region: String,
    claimed_by: String,
    address: String,
    metadata: String,
    holds: Vec<HoldRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HoldRecord {
    number: u64,
    allocation: String,
    expires_at: i64,
    stage: u8,
    since: i64,
    metadata: String,
}

impl Record {
    /// Without its holds: those are added as any others.
    pub(crate) fn new(room: &NewRoom) -> Self {
        Self {
            instance: room.instance as u8,
            claim: ClaimState::Unclaimed as u8,
            ping: 0,
            matches: 0,
            matches_max: room.matches_max,
            known: room.known.into(),
            was_ready: 0,
            silent: 0,
            last_ping_at: NEVER,
            last_sent_at: NEVER,
            terminating_since: NEVER,
            number: room.claim_number.0,
            purpose: room.purpose as u8,
            created_at: room.created_at.as_millisecond(),
            listened_since: room.listened_since.as_millisecond(),
            version: room.version.to_string(),
            region: room.region.to_string(),
            claimed_by: String::new(),
            address: room.address.as_ref().map_or_else(String::new, address_text),
            metadata: String::new(),
            holds: Vec::new(),
        }
    }

    pub(crate) fn parse(stored: &[u8]) -> Result<Self, Failure> {
        rmp_serde::from_slice(stored).map_err(|error| Failure::unreadable("a room", error))
    }

    pub(crate) fn view(self, id: RoomId) -> Result<RoomView, Failure> {
        let instance = match self.claim {
            claim if claim == ClaimState::Unclaimed as u8 => word(self.instance)?,
            claim if claim == ClaimState::Claimed as u8 => InstanceStatus::Terminating,
            _ => InstanceStatus::Error,
        };
        let (ping, fill) = (word(self.ping)?, Fill::of(self.matches, self.matches_max));
        let begun = |hold: &&HoldRecord| hold.stage == Stage::Begun as u8;
        Ok(RoomView {
            id,
            version: version(&self.version)?,
            region: Region(self.region.into()),
            purpose: word(self.purpose)?,
            instance,
            ping,
            status: Sides { instance, ping, fill, held: !self.holds.is_empty() }.status(),
            matches: self.matches,
            created_at: time(self.created_at),
            last_ping_at: optional_time(self.last_ping_at),
            terminating_since: optional_time(self.terminating_since),
            known: self.known == 1,
            listened_since: time(self.listened_since),
            was_ready: self.was_ready == 1,
            claimed_by: Some(self.claimed_by)
                .filter(|text| !text.is_empty())
                .map(|text| operation(&text))
                .transpose()?,
            metadata: Some(self.metadata).filter(|text| !text.is_empty()),
            expected: (self.holds.len() - self.holds.iter().filter(begun).count()) as u32,
        })
    }

    pub(crate) fn holds(self) -> Result<Vec<Hold>, Failure> {
        self.holds.into_iter().map(HoldRecord::read).collect()
    }
}

impl HoldRecord {
    pub(crate) fn new(hold: &Hold) -> Self {
        let (stage, since) = match hold.stage {
            HoldStage::Provisional { since } => (Stage::Provisional, since.as_millisecond()),
            HoldStage::Firm => (Stage::Firm, NEVER),
            HoldStage::Marked(end) => (Stage::marked(end), NEVER),
        };
        Self {
            number: hold.number.0,
            allocation: hold.allocation.to_string(),
            expires_at: hold.expires_at.as_millisecond(),
            stage: stage as u8,
            since,
            metadata: hold.metadata.as_deref().unwrap_or_default().to_owned(),
        }
    }

    pub(crate) fn read(self) -> Result<Hold, Failure> {
        let allocation = AllocationId::parse(&self.allocation);
        Ok(Hold {
            allocation: allocation.ok_or_else(|| Failure::unreadable("a hold", self.allocation.as_str()))?,
            number: ClaimNumber(self.number),
            expires_at: time(self.expires_at),
            stage: Stage::read(self.stage, self.since)?,
            metadata: Some(self.metadata).filter(|text| !text.is_empty()).map(Arc::from),
        })
    }
}

/// The value that stands at this place among all of its kind.
pub(crate) fn word<T: Word>(place: u8) -> Result<T, Failure> {
    let found = T::WORDS.get(usize::from(place)).map(|(value, _)| *value);
    found.ok_or_else(|| Failure::unreadable("a status", place.to_string()))
}

/// What lies beyond all times is their end: the very last ones are not made of whole milliseconds.
pub(crate) fn time(millis: i64) -> Timestamp {
    let end = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(end)
}

pub(crate) fn optional_time(millis: i64) -> Option<Timestamp> {
    (millis != NEVER).then(|| time(millis))
}

pub(crate) fn version(text: &str) -> Result<Version, Failure> {
    Version::parse(text).map_err(|error| Failure::unreadable("a version", error))
}

fn operation(text: &str) -> Result<OperationId, Failure> {
    OperationId::parse(text).ok_or_else(|| Failure::unreadable("the claim of an operation", text))
}

/// Scripts do not look into it: it only has to be no empty text.
#[derive(Serialize, Deserialize)]
struct StoredAddress {
    host: String,
    ports: Vec<StoredPort>,
}

#[derive(Serialize, Deserialize)]
struct StoredPort(String, String, u16, u16);

pub(crate) fn address_text(address: &RoomAddress) -> String {
    let port = |port: &HostPort| {
        StoredPort(port.name.clone(), port.protocol.as_str().to_owned(), port.container_port, port.host_port)
    };
    let stored =
        StoredAddress { host: address.host.to_string(), ports: address.ports.iter().map(port).collect() };
    serde_json::to_string(&stored).expect("texts and numbers can be written")
}

pub(crate) fn address(text: &str) -> Result<RoomAddress, Failure> {
    let unreadable = |why: String| Failure::unreadable("the address of a room", why);
    let stored: StoredAddress = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let port = |StoredPort(name, protocol, container_port, host_port)| {
        let protocol = Protocol::parse(&protocol).ok_or_else(|| unreadable(protocol))?;
        Ok(HostPort { name, protocol, container_port, host_port })
    };
    let ports = stored.ports.into_iter().map(port).collect::<Result<Vec<_>, _>>()?;
    Ok(RoomAddress { host: stored.host.into(), ports: ports.into() })
}
