//! The durable side: schedulers and versions, operations and leases, the room registry, and regions.
//!
//! Narrow read ports and one way to write: a [`Transaction`] is a list of [`Change`]s as data, carried out
//! wholly or not at all. Because they live in one place, a write can be checked in the transaction that makes it:
//! the guard's fencing token, the status an operation must be in, a port that must be free.
//!
//! Times come back to the microsecond, which is finer than anything that is decided on. Whether anything has run out that one
//! process holds against others is decided by the store with its own clock, in the statement that decides it: callers say
//! how long, never until when.

mod carried_out;
mod change;
mod new_records;
mod observed_regions;
mod outbox;
mod records;
mod refusal;

use async_trait::async_trait;
use maestro_core::allocation::AllocationId;
use maestro_core::lock::Locks;
use maestro_core::operation::{Operation, OperationId, Stage, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};

use crate::documents::Unreadable;

pub use maestro_core::rollout::{RolloutRecord, RolloutState};
pub use maestro_core::scheduler::SchedulerState;

pub use carried_out::CarriedOut;
pub use change::{Change, Guard, Transaction, TransactionId};
pub use new_records::{
    ClaimedSince, ForgetAllocations, NewAllocation, NewLock, NewOperation, NewRoomRecord, NewScheduler,
    NoAction, OperationUpdate, Routine, SchedulerUpdate, VERSION_OPERATIONS,
};
pub use observed_regions::ObservedRegions;
pub use outbox::{
    EventFilter, EventPage, EventPageRequest, EventQueue, IfEnded, LastAddress, NewEvent, OrphanedQueue,
    Outbox, QueueId, QueuedEvent,
};
pub use records::{
    AllocatedPlace, AllocationPage, AllocationPageRequest, AllocationRecord, Contact, Ended, EndedRoom,
    FleetRecord, Intent, OperationFilter, OperationPage, OwnershipRecord, PageRequest, RegionObservation,
    RegionRecord, Renewal, RequestRecord, RoomCount, RoomRecord, SchedulerRecord, StopIntent,
    UnreadableScheduler, UnreadableVersion, VersionRecord, WorkerRecord, Workforce,
};
pub use refusal::Refusal;

pub type Result<T = (), E = StoreError> = std::result::Result<T, E>;

#[async_trait]
pub trait Store:
    SchedulerStore + OperationStore + RoomRegistry + AllocationStore + RegionStore + Outbox
{
    /// The store's time, at some moment between the question and the answer. All times that are written or compared are in
    /// it, whoever wrote them. It is set like any clock: it may jump, both ways.
    async fn now(&self) -> Result<Timestamp>;

    /// The scheduler and its fleet, from one snapshot: nothing of it is older than anything else. Of the rooms that have
    /// ended, at most `ended_max`. `None`: no such scheduler.
    async fn fleet(&self, scheduler: &SchedulerName, ended_max: usize) -> Result<Option<FleetRecord>>;

    /// Carries out all changes, in their order, or none. Durable when it returns.
    ///
    /// A transaction that has an [id](Transaction::id) and was carried out is answered like the first time when it is sent
    /// again within 15 minutes, whatever has become of its guard and of what it changed. One that was refused is decided
    /// anew.
    async fn commit(&self, transaction: Transaction) -> Result;

    /// Carries out several transactions together. Each is accepted or refused by itself, in their order, and they share
    /// what makes them durable. An error is that of all: with [`StoreError::Unavailable`] none of them was carried out, with
    /// [`StoreError::Unknown`] any of them may have been. Sent again, those that were are answered as by [`Self::commit`].
    async fn commit_each(&self, transactions: Vec<Transaction>) -> Result<Vec<Result<(), Refusal>>>;
}

/// Recipes, versions, the active version, its rollout and the fleet size.
#[async_trait]
pub trait SchedulerStore: Send + Sync {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>>;

    /// The names of all schedulers, readable or not, in order.
    async fn scheduler_names(&self) -> Result<Vec<SchedulerName>>;

    /// All schedulers that can be read, and all that cannot, each ordered by name.
    async fn all_schedulers(&self) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>)>;

    /// Those that can be read.
    async fn schedulers(&self) -> Result<Vec<SchedulerRecord>> {
        Ok(self.all_schedulers().await?.0)
    }

    /// All versions of a scheduler that can be read, and all that cannot, each newest first. None of either kind: no such
    /// scheduler.
    async fn versions(&self, name: &SchedulerName) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>)>;

    /// The numbers that were ever given to its versions, also to those that are deleted; lowest first.
    async fn version_numbers(&self, name: &SchedulerName) -> Result<Vec<Version>>;

    async fn version(&self, name: &SchedulerName, version: Version) -> Result<Option<VersionRecord>>;
}

/// Queue, status, history and decision data of operations, and who owns which scheduler.
#[async_trait]
pub trait OperationStore: Send + Sync {
    async fn operation(&self, scheduler: &SchedulerName, id: OperationId) -> Result<Option<Operation>>;

    /// Pending and in-progress operations, whole, in the order in which they were enqueued.
    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>>;

    /// The newest of those that make or switch versions ([`VERSION_OPERATIONS`]), ended ones too, whole, newest first.
    async fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Result<Vec<Operation>>;

    /// One page of a list, without history and progress.
    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage>;

    /// Whether [`Change::ForgetOperations`] would find any.
    async fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> Result<bool>;

    /// How many schedulers wait for a worker to make or delete them, or are being made or deleted just now. What waits
    /// for something else does not count.
    async fn schedulers_in_hand(&self) -> Result<u32>;

    /// Makes `owner` the owner of each of these schedulers that nobody else owns, or whose owner's lease has run out, in
    /// one transaction. A new owner gets a new, greater token; who owns it already keeps its token, and its lease is
    /// renewed. Returns those that it owns now, in the order in which they were asked for: the others are owned by
    /// someone else, or do not exist.
    async fn own_all(
        &self,
        schedulers: &[SchedulerName],
        owner: &str,
        ttl: Millis,
    ) -> Result<Vec<(SchedulerName, Token)>>;

    /// The same for one.
    async fn own(&self, scheduler: &SchedulerName, owner: &str, ttl: Millis) -> Result<Option<Token>> {
        let owned = self.own_all(std::slice::from_ref(scheduler), owner, ttl).await?;
        Ok(owned.first().map(|(_, token)| *token))
    }

    /// Says that this worker is there, and renews all that it owns, in one transaction: its ownerships, the leases of
    /// operations in progress under its tokens, and the locks of unfinished operations of its schedulers (but for those
    /// without an end). Returns what it still owns: a scheduler that is missing was taken by another, its work must
    /// stop.
    ///
    /// Ownerships and signs of life of others that have more than twice their time to go are from before the store's clock
    /// was set back: they run out as if they had been renewed now. Whoever is alive renews them before that.
    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>>;

    /// Who owns which scheduler, and which workers are there: all by name. What has run out is listed until it is
    /// taken, or until the worker is back.
    async fn workers(&self) -> Result<Workforce>;

    /// The worker is gone for good, and owns nothing any more.
    async fn retire(&self, worker: &str) -> Result;

    /// Gives a scheduler up at once, so that another may take it. Nothing happens if the token is not current.
    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result;

    /// The locks of a scheduler, and who waits for them; none of a scheduler that does not exist.
    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks>;
}

/// One durable row per room: what is wanted, what was made of it, how it ended.
#[async_trait]
pub trait RoomRegistry: Send + Sync {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>>;

    /// Rooms that have not ended, ordered by id.
    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>>;

    /// Those of them that this operation wrote down as leaving.
    async fn leaving_rooms(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>>;

    /// How many of them belong to the fleet, by version and region; validation rooms do not. In no order.
    async fn room_counts(&self, scheduler: &SchedulerName) -> Result<Vec<RoomCount>>;

    /// Rooms of all schedulers that have not ended: what a restart begins with.
    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>>;

    /// All rooms that an operation made, ended ones too, ordered by id.
    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>>;

    /// The newest ended rooms of a scheduler, latest end first.
    async fn ended_rooms(&self, scheduler: &SchedulerName, rooms_max: usize) -> Result<Vec<RoomRecord>>;

    /// Ended rooms whose end lies before, at most `rooms_max`, earliest end first: what retention drops. `after` is the
    /// last one of the page before.
    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Result<Vec<EndedRoom>>;

    /// Host ports of all live rooms of a region, across schedulers, terminating ones included.
    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>>;
}

/// Who was given which room, and what became of it.
#[async_trait]
pub trait AllocationStore: Send + Sync {
    async fn allocation(
        &self,
        scheduler: &SchedulerName,
        id: AllocationId,
    ) -> Result<Option<AllocationRecord>>;

    /// All allocations of one request, by their index.
    async fn allocations_of_request(
        &self,
        scheduler: &SchedulerName,
        request: &str,
    ) -> Result<Vec<AllocationRecord>>;

    /// Those whose room waits for its match, ordered by room and number. `None`: of all schedulers.
    async fn open_allocations(&self, scheduler: Option<&SchedulerName>) -> Result<Vec<AllocationRecord>>;

    /// How many [`Change::ForgetAllocations`] would find, whatever its `allocations_max`. Counting may stop above that.
    async fn allocations_to_forget(&self, forget: &ForgetAllocations) -> Result<u32>;

    async fn allocations(
        &self,
        scheduler: &SchedulerName,
        page: AllocationPageRequest,
    ) -> Result<AllocationPage>;
}

/// What people have said about regions, and what was seen of them.
#[async_trait]
pub trait RegionStore: Send + Sync {
    /// By name; those of which nobody has said anything are not among them.
    async fn regions(&self) -> Result<Vec<RegionRecord>>;

    /// By region and observer.
    async fn region_observations(&self) -> Result<Vec<RegionObservation>>;

    /// Replaces what this observer saw of the region before, and forgets what anybody saw of it before `forget_before`. It
    /// need not be durable: whoever can reach a region says so again and again.
    async fn observe_region(&self, observation: RegionObservation, forget_before: Timestamp) -> Result;

    /// Binds a region whose rooms are processes to their host. It stays bound to another one while a room of the region has
    /// not ended, or if it was bound or observed less than `ttl` ago. Returns the host that it is bound to now.
    async fn bind_region(&self, region: &Region, host: &str, now: Timestamp, ttl: Millis) -> Result<String>;
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is well and said no; nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// This build cannot read what is stored there; everything else can be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The store did not do it (disk full, file damaged, gone); nothing was changed.
    #[error("the store could not {step}")]
    Unavailable {
        step: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer is lost: it was done, or it was not. Who needs to know sends it again, under the same id.
    #[error("the store did not say whether it could {step}")]
    Unknown {
        step: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    pub fn unavailable(
        step: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable { step, source: source.into() }
    }

    pub fn unknown(step: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unknown { step, source: source.into() }
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Unreadable(_) | Self::Unavailable { .. } | Self::Unknown { .. } => None,
        }
    }
}
