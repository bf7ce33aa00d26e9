//! Rare events that happen in a world, counted. A run over many seeds that never saw one of them proves nothing about
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RareEvent {
    /// A call was not made, and whoever asked knew.
    Unreachable,
    /// A call got lost: nothing of it was done, and nobody could know.
    LostRequest,
    /// A write was done, and nobody who asked could know.
    LostReply,
    /// A write was sent a second time, and was done already.
    SentAgain,
    /// A worker became an owner, and was never told.
    UnheardOwnership,
    CrashBeforeWrite,
    CrashAfterWrite,
    SlowCall,
    /// A node was frozen for longer than an ownership lasts.
    LongFreeze,
    /// A write that was in a frozen node's hand when it was thawed was refused by its token.
    WokenWriteRefused,
    StaleWriteRefused,
    /// Another worker took over an operation that was in progress.
    TakeOver,
    /// Two workers owned schedulers at the same time.
    SharedWork,
    CleanStop,
    /// The store's clock was set, forward or back.
    ClockLeap,
    /// The clock of a host is wrong by more than the time that an ownership lasts.
    WrongClock,
    /// Engines heard no wake-up of each other.
    NoWakeUps,
    /// Some of them, on their way.
    LostWakeUp,
    LateWakeUp,
    RepeatedWakeUp,
    LostTable,
    /// A room table came back from a dump.
    OldTable,
    LostPing,
    RepeatedPing,
    /// What was seen of an earlier instance of a room was told late.
    EarlierInstance,
    RoomCrashed,
    RoomLost,
    RoomInvented,
    RoomSilent,
    StartRefused,
    HostFull,
    RuntimeGone,
    /// A node counted it as lost: it had not answered for long enough.
    RegionLost,
    /// A node counted it as there again.
    RegionBack,
    RegionCordoned,
    RegionDrained,
    OperationRolledBack,
    OperationEvicted,
    RolloutBegun,
    RolloutChangedByPerson,
    SchedulerDeleted,
    LockAwaited,
    /// By force.
    LockReleased,
    /// A burst of rooms was asked for in need.
    Panic,
    /// To a matchmaker.
    RoomAllocated,
    /// A matchmaker's players came in time.
    MatchBegun,
    /// Nobody came.
    HoldExpired,
    /// Down, or it hangs, for a while.
    ReceiverDown,
    /// For an hour.
    ReceiverDownLong,
    EventRetried,
    /// The receiver had it already.
    EventRepeated,
    EventDead,
    EventReplayed,
    /// Too many waited.
    EventQueueFull,
    /// An event that one engine had tried to deliver was tried by another one.
    DeliveryTakenOver,
    /// When its scheduler was gone.
    OrphanedEventDelivered,
}

impl RareEvent {
    pub const ALL: [Self; 56] = [
        Self::Unreachable,
        Self::LostRequest,
        Self::LostReply,
        Self::SentAgain,
        Self::UnheardOwnership,
        Self::CrashBeforeWrite,
        Self::CrashAfterWrite,
        Self::SlowCall,
        Self::LongFreeze,
        Self::WokenWriteRefused,
        Self::StaleWriteRefused,
        Self::TakeOver,
        Self::SharedWork,
        Self::CleanStop,
        Self::ClockLeap,
        Self::WrongClock,
        Self::NoWakeUps,
        Self::LostWakeUp,
        Self::LateWakeUp,
        Self::RepeatedWakeUp,
        Self::LostTable,
        Self::OldTable,
        Self::LostPing,
        Self::RepeatedPing,
        Self::EarlierInstance,
        Self::RoomCrashed,
        Self::RoomLost,
        Self::RoomInvented,
        Self::RoomSilent,
        Self::StartRefused,
        Self::HostFull,
        Self::RuntimeGone,
        Self::RegionLost,
        Self::RegionBack,
        Self::RegionCordoned,
        Self::RegionDrained,
        Self::OperationRolledBack,
        Self::OperationEvicted,
        Self::RolloutBegun,
        Self::RolloutChangedByPerson,
        Self::SchedulerDeleted,
        Self::LockAwaited,
        Self::LockReleased,
        Self::Panic,
        Self::RoomAllocated,
        Self::MatchBegun,
        Self::HoldExpired,
        Self::ReceiverDown,
        Self::ReceiverDownLong,
        Self::EventRetried,
        Self::EventRepeated,
        Self::EventDead,
        Self::EventReplayed,
        Self::EventQueueFull,
        Self::DeliveryTakenOver,
        Self::OrphanedEventDelivered,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "not reachable",
            Self::LostRequest => "lost request",
            Self::LostReply => "lost reply",
            Self::SentAgain => "write sent again",
            Self::UnheardOwnership => "owner that was never told",
            Self::CrashBeforeWrite => "crash before a write",
            Self::CrashAfterWrite => "crash after a write",
            Self::SlowCall => "slow call",
            Self::LongFreeze => "freeze for longer than an ownership lasts",
            Self::WokenWriteRefused => "write of a woken node refused",
            Self::StaleWriteRefused => "write by a stale token refused",
            Self::TakeOver => "operation taken over",
            Self::SharedWork => "several workers at work",
            Self::CleanStop => "clean stop",
            Self::ClockLeap => "clock set forward or back",
            Self::WrongClock => "a host's clock is wrong",
            Self::NoWakeUps => "engines that do not hear each other",
            Self::LostWakeUp => "lost wake-up",
            Self::LateWakeUp => "late wake-up",
            Self::RepeatedWakeUp => "repeated wake-up",
            Self::LostTable => "lost room table",
            Self::OldTable => "old room table",
            Self::LostPing => "lost ping",
            Self::RepeatedPing => "repeated ping",
            Self::EarlierInstance => "late word of an earlier instance",
            Self::RoomCrashed => "room crashed",
            Self::RoomLost => "room lost",
            Self::RoomInvented => "room invented",
            Self::RoomSilent => "room fell silent",
            Self::StartRefused => "room start refused",
            Self::HostFull => "host full",
            Self::RuntimeGone => "runtime gone",
            Self::RegionLost => "region lost",
            Self::RegionBack => "region back",
            Self::RegionCordoned => "region cordoned",
            Self::RegionDrained => "region drained",
            Self::OperationRolledBack => "operation rolled back",
            Self::OperationEvicted => "operation evicted",
            Self::RolloutBegun => "rollout begun",
            Self::RolloutChangedByPerson => "rollout paused, resumed or canceled",
            Self::SchedulerDeleted => "scheduler deleted",
            Self::LockAwaited => "lock waited for",
            Self::LockReleased => "lock released by force",
            Self::Panic => "panic",
            Self::RoomAllocated => "room allocated",
            Self::MatchBegun => "match of a matchmaker begun",
            Self::HoldExpired => "hold expired",
            Self::ReceiverDown => "receiver down",
            Self::ReceiverDownLong => "receiver down for an hour",
            Self::EventRetried => "event tried again",
            Self::EventRepeated => "event delivered twice",
            Self::EventDead => "dead letter",
            Self::EventReplayed => "dead letter replayed",
            Self::EventQueueFull => "event queue full",
            Self::DeliveryTakenOver => "delivery taken over",
            Self::OrphanedEventDelivered => "event of a deleted scheduler delivered",
        }
    }
}

/// How often each was seen. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Coverage(Arc<Mutex<BTreeMap<RareEvent, u64>>>);

impl Coverage {
    pub fn saw(&self, event: RareEvent) {
        *self.0.lock().entry(event).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<RareEvent, u64> {
        self.0.lock().clone()
    }
}
