//! Random steps: everything that can be asked of a room table, of so few rooms that the steps meet.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationRules, ClaimNumber, Hold, HoldEnd, HoldStage, Wish};
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::room_table::{Claim, DueHold, HoldKey, HoldRequest, NewRoom, Ping, RoomAddress};

use crate::tables::name;

pub(crate) const SCHEDULERS: [&str; 2] = ["arena", "arena-2"];
pub(crate) const PING_TIMEOUT: Millis = Millis::from_seconds(30);

/// Enough that more than one page of each kind is never needed, few enough that every room has a history.
const ROOMS: u32 = 20;
const OPERATIONS: u128 = 3;

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) now: Timestamp,
    pub(crate) order: Order,
}

#[derive(Debug)]
pub(crate) enum Order {
    Insert(Box<NewRoom>),
    /// At the same time.
    Ping(Vec<OwnedPing>),
    Observe(SchedulerName, RoomId, InstanceStatus),
    SetAddress(SchedulerName, RoomId, RoomAddress),
    Claim(OwnedClaim),
    Unclaim(SchedulerName, OperationId, Vec<RoomId>),
    Hold(Vec<OwnedRequest>),
    Confirm(Vec<HoldKey>),
    Mark(HoldKey, HoldEnd),
    Release(Vec<HoldKey>),
    Restore(SchedulerName, RoomId, Hold),
    SetRules(SchedulerName, AllocationRules),
    ReportWaiting(SchedulerName, &'static str, u32),
    Remove(SchedulerName, RoomId),
    RemoveScheduler(SchedulerName),
    SetMatchesMax(SchedulerName, u32),
}

#[derive(Debug)]
pub(crate) struct OwnedPing {
    scheduler: &'static str,
    room: RoomId,
    status: PingStatus,
    matches: u32,
    metadata: Option<&'static str>,
    sent_at: Option<i64>,
    begun: Vec<AllocationId>,
    pub(crate) at: Timestamp,
}

impl OwnedPing {
    pub(crate) fn as_ping(&self) -> Ping<'_> {
        Ping {
            scheduler: self.scheduler,
            room: self.room.as_str(),
            status: self.status,
            matches: self.matches,
            metadata: self.metadata,
            sent_at: self.sent_at,
            late_max: 20,
            begun: &self.begun,
        }
    }
}

#[derive(Debug)]
pub(crate) struct OwnedClaim {
    scheduler: SchedulerName,
    operation: OperationId,
    candidates: Vec<RoomId>,
    statuses: Vec<RoomStatus>,
    known_only: bool,
    rooms_max: usize,
}

impl OwnedClaim {
    pub(crate) fn as_claim(&self) -> Claim<'_> {
        Claim {
            scheduler: &self.scheduler,
            operation: self.operation,
            candidates: &self.candidates,
            statuses: &self.statuses,
            known_only: self.known_only,
            rooms_max: self.rooms_max,
        }
    }
}

#[derive(Debug)]
pub(crate) struct OwnedRequest {
    scheduler: SchedulerName,
    allocations: Vec<AllocationId>,
    wishes: Vec<Wish>,
    metadata: Option<Arc<str>>,
    lasts: u64,
    heard_since: Timestamp,
    draw: u64,
}

impl OwnedRequest {
    pub(crate) fn as_request(&self, now: Timestamp) -> HoldRequest<'_> {
        HoldRequest {
            scheduler: &self.scheduler,
            allocations: &self.allocations,
            wishes: &self.wishes,
            metadata: self.metadata.as_ref(),
            now,
            expires_at: later(now, self.lasts),
            heard_since: self.heard_since,
            draw: self.draw,
        }
    }
}

/// Where a walk is.
pub(crate) struct Walk {
    random: fastrand::Rng,
    now: Timestamp,
    allocations: u128,
    /// Holds that are there.
    held: Vec<HoldKey>,
}

impl Walk {
    pub(crate) fn new(seed: u64) -> Self {
        let now = "2026-11-18T19:10:14Z".parse().unwrap();
        Self { random: fastrand::Rng::with_seed(seed), now, allocations: 0, held: Vec::new() }
    }

    pub(crate) fn next(&mut self) -> Step {
        if self.random.u8(..2) == 0 {
            self.now = later(self.now, self.random.u64(..3_000));
        }
        Step { now: self.now, order: self.order() }
    }

    /// So that later steps mostly concern holds that are there.
    pub(crate) fn remember(&mut self, held: impl IntoIterator<Item = DueHold>) {
        self.held = held.into_iter().map(|due| due.key).collect();
    }

    fn order(&mut self) -> Order {
        let (scheduler, room) = (self.scheduler(), self.room());
        match self.random.u32(..100) {
            0..12 => Order::Insert(Box::new(self.new_room(scheduler))),
            12..45 => {
                let pings = self.random.usize(1..4);
                Order::Ping((0..pings).map(|_| self.ping()).collect())
            }
            45..53 => Order::Observe(scheduler, room, self.instance()),
            53..56 => Order::SetAddress(scheduler, room, address(self.random.u16(..))),
            56..59 => Order::Claim(self.claim(scheduler)),
            59..64 => Order::Unclaim(scheduler, self.operation(), self.rooms()),
            64..74 => {
                let requests = self.random.usize(1..4);
                Order::Hold((0..requests).map(|_| self.request(&scheduler)).collect())
            }
            74..81 => Order::Confirm(self.keys()),
            81..84 => {
                let ends = [HoldEnd::Begun, HoldEnd::Returned, HoldEnd::Expired];
                Order::Mark(self.key(), self.one_of(&ends))
            }
            84..90 => Order::Release(self.keys()),
            90..92 => {
                let hold = self.any_hold();
                Order::Restore(scheduler, room, hold)
            }
            92..94 => Order::SetRules(scheduler, self.rules()),
            94..96 => Order::ReportWaiting(scheduler, self.one_of(&["a", "b"]), self.random.u32(..5)),
            96..99 => Order::Remove(scheduler, room),
            _ if self.random.u8(..16) == 0 => Order::RemoveScheduler(scheduler),
            _ => Order::SetMatchesMax(scheduler, self.random.u32(..5)),
        }
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.usize(..all.len())].clone()
    }

    fn scheduler(&mut self) -> SchedulerName {
        // Mostly the same one, so that its rooms are not all new.
        name(SCHEDULERS[usize::from(self.random.u8(..4) == 0)])
    }

    fn room(&mut self) -> RoomId {
        // Ids of which one begins another one.
        let number = self.random.u32(..ROOMS);
        RoomId::new(&if number.is_multiple_of(2) {
            format!("room-{number}")
        } else {
            format!("room-{}-b", number - 1)
        })
    }

    fn rooms(&mut self) -> Vec<RoomId> {
        (0..self.random.usize(..8)).map(|_| self.room()).collect()
    }

    fn operation(&mut self) -> OperationId {
        OperationId::from_u128(self.random.u128(..OPERATIONS))
    }

    fn instance(&mut self) -> InstanceStatus {
        let any = self.random.u8(..3) == 0;
        if any { self.one_of(&InstanceStatus::ALL) } else { InstanceStatus::Ready }
    }

    fn version(&mut self) -> Version {
        // Numbers that texts sort in another order.
        Version { major: self.one_of(&[1, 2, 10]), minor: 0, patch: 0 }
    }

    fn region(&mut self) -> Region {
        Region(self.one_of(&["eu", "us", "asia.1"]).into())
    }

    fn new_room(&mut self, scheduler: SchedulerName) -> NewRoom {
        let holds = if self.random.u8(..6) == 0 { vec![self.any_hold()] } else { Vec::new() };
        NewRoom {
            scheduler,
            id: self.room(),
            version: self.version(),
            region: self.region(),
            purpose: if self.random.u8(..8) == 0 { Purpose::Validation } else { Purpose::Fleet },
            instance: self.one_of(&[InstanceStatus::Ready, InstanceStatus::Ready, InstanceStatus::Pending]),
            created_at: self.now,
            matches_max: self.one_of(&[0, 1, 1, 3, 4]),
            known: self.random.u8(..6) != 0,
            listened_since: self.now,
            address: (self.random.u8(..8) != 0).then(|| address(7)),
            claim_number: ClaimNumber(self.random.u64(..4)),
            holds,
        }
    }

    fn any_hold(&mut self) -> Hold {
        let stages = [
            HoldStage::Firm,
            HoldStage::Provisional { since: self.now },
            HoldStage::Marked(HoldEnd::Begun),
            HoldStage::Marked(HoldEnd::Expired),
        ];
        Hold {
            allocation: AllocationId::from_u128(self.random.u128(1..30)),
            number: ClaimNumber(self.random.u64(1..6)),
            expires_at: later(self.now, self.random.u64(..60_000)),
            stage: self.one_of(&stages),
            metadata: None,
        }
    }

    fn ping(&mut self) -> OwnedPing {
        let said = [PingStatus::Ready, PingStatus::Ready, PingStatus::Ready, PingStatus::Occupied];
        let any = self.random.u8(..16) == 0;
        let begun = if self.random.u8(..6) == 0 { 2 } else { 0 };
        OwnedPing {
            scheduler: self.one_of(&[
                SCHEDULERS[0],
                SCHEDULERS[0],
                SCHEDULERS[0],
                SCHEDULERS[1],
                "",
                "No Name",
            ]),
            room: self.room(),
            status: if any { self.one_of(&PingStatus::SAID) } else { self.one_of(&said) },
            matches: self.random.u32(..4),
            metadata: self.one_of(&[None, None, Some(r#"{"mode":"duel"}"#), Some(r#"{"mode":"siege"}"#)]),
            sent_at: (self.random.u8(..3) == 0).then(|| self.random.i64(0..60)),
            begun: (0..begun)
                .map(|_| AllocationId::from_u128(self.random.u128(1..=self.allocations + 1)))
                .collect(),
            at: later(self.now, self.one_of(&[0, 0, 0, 20_000])),
        }
    }

    fn claim(&mut self, scheduler: SchedulerName) -> OwnedClaim {
        let statuses = RoomStatus::ALL.into_iter().filter(|_| self.random.bool()).collect();
        OwnedClaim {
            scheduler,
            operation: self.operation(),
            candidates: self.rooms(),
            statuses,
            known_only: self.random.bool(),
            rooms_max: self.random.usize(..5),
        }
    }

    fn request(&mut self, scheduler: &SchedulerName) -> OwnedRequest {
        let wishes = self.wishes();
        // A search by what rooms say begins elsewhere for each room that is wanted.
        let is_search = wishes.iter().any(|wish| !wish.metadata.is_empty());
        let count = if is_search { 1 } else { self.random.u128(1..4) };
        let first = self.allocations + 1;
        self.allocations += count;
        OwnedRequest {
            scheduler: scheduler.clone(),
            allocations: (first..first + count).map(AllocationId::from_u128).collect(),
            wishes,
            metadata: self.random.bool().then(|| r#"{"team":"red"}"#.into()),
            lasts: self.random.u64(1_000..60_000),
            heard_since: earlier(self.now, 30_000),
            draw: self.random.u64(..),
        }
    }

    fn wishes(&mut self) -> Vec<Wish> {
        let anything = Wish::default();
        let there = Wish { regions: vec![self.region(), self.region()], ..Wish::default() };
        let that = Wish { version: Some(self.version()), ..Wish::default() };
        let mode = self.one_of(&["duel", "siege"]);
        let says = Wish { metadata: [("mode".to_owned(), mode.into())].into(), ..there.clone() };
        let all = [
            vec![],
            vec![anything.clone()],
            vec![there.clone()],
            vec![that, there],
            vec![says.clone()],
            vec![says, anything],
        ];
        self.one_of(&all)
    }

    fn rules(&mut self) -> AllocationRules {
        AllocationRules {
            old_versions: (self.random.bool()).then(|| self.version()).into_iter().collect(),
            draining_regions: (self.random.bool()).then(|| self.region()).into_iter().collect(),
            unreachable_regions: (self.random.u8(..4) == 0).then(|| self.region()).into_iter().collect(),
            version_of_new_rooms: (self.random.bool()).then(|| self.version()),
            growing_regions: (self.random.bool()).then(|| vec![self.region()]),
        }
    }

    fn key(&mut self) -> HoldKey {
        if !self.held.is_empty() && self.random.u8(..5) != 0 {
            return self.one_of(&self.held.clone());
        }
        HoldKey {
            scheduler: self.scheduler(),
            room: self.room(),
            number: ClaimNumber(self.random.u64(1..12)),
        }
    }

    fn keys(&mut self) -> Vec<HoldKey> {
        (0..self.random.usize(..5)).map(|_| self.key()).collect()
    }
}

fn address(port: u16) -> RoomAddress {
    use maestro_core::room::HostPort;
    use maestro_core::scheduler::Protocol;
    let port =
        HostPort { name: "game".into(), protocol: Protocol::Udp, container_port: 7777, host_port: port };
    RoomAddress { host: "203.0.113.7".into(), ports: [port].into() }
}

fn later(at: Timestamp, millis: u64) -> Timestamp {
    maestro_core::time::after(at, Millis(millis))
}

fn earlier(at: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond() - millis).unwrap()
}
