//! The room table as one engine reaches it. It is one for all engines of a world, as a server beside them would be: it
//! outlives each of them, and can be lost on its own.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::allocation::{AllocationRules, Hold, HoldEnd, HoldStage};
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Read, ReadFrom, StreamEvent, StreamId};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::room_table::{
    Claim, DueHold, FleetCounts, HeldRoom, HoldAnswer, HoldKey, HoldRequest, NewRoom, Ping, PingError,
    Pinged, RoomAddress, RoomTable, RoomView, StatusChange, TableError,
};
use maestro_engine::ports::store::Store;
use maestro_engine::ports::{EventRing, Randomness};
use maestro_store_embedded::MemoryRoomTable;
use parking_lot::Mutex;

use crate::broken;
use crate::clock::VirtualClock;
use crate::faults::{Call, FaultInjector, Loss, Surroundings, What};
use crate::host::Span;

/// What all engines share. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct SharedTable {
    table: Arc<Mutex<Arc<MemoryRoomTable>>>,
    /// As the table was at some time.
    dump: Arc<Mutex<Option<MemoryRoomTable>>>,
    clock: VirtualClock,
    random: Arc<Randomness>,
}

impl SharedTable {
    pub(crate) fn new(clock: VirtualClock, seed: u64) -> Self {
        let random = Arc::new(Randomness::from_seed(seed));
        let table = Arc::new(Mutex::new(empty(&clock, &random)));
        Self { table, dump: Arc::default(), clock, random }
    }

    /// Nothing of it was durable, and nothing of it is left.
    pub(crate) fn lose(&self) {
        *self.table.lock() = empty(&self.clock, &self.random);
    }

    pub(crate) fn dump(&self) {
        *self.dump.lock() = Some(self.now().dumped(true));
    }

    /// It is again what it was when the last dump was made, as a server that is started with one. False: there is none.
    pub(crate) fn come_back(&self) -> bool {
        let dump = self.dump.lock();
        let Some(dump) = &*dump else { return false };
        *self.table.lock() = Arc::new(dump.dumped(broken::trusts_old_tables()));
        true
    }

    pub(crate) fn now(&self) -> Arc<MemoryRoomTable> {
        self.table.lock().clone()
    }
}

fn empty(clock: &VirtualClock, random: &Arc<Randomness>) -> Arc<MemoryRoomTable> {
    Arc::new(MemoryRoomTable::on_clock(Arc::new(clock.clone()), random.clone()))
}

pub(crate) struct SimulatedTable {
    shared: SharedTable,
    injector: FaultInjector,
    /// For those who check what is done in the table.
    store: Arc<dyn Store>,
}

impl SimulatedTable {
    pub(crate) fn new(shared: SharedTable, around: Surroundings, store: Arc<dyn Store>) -> Self {
        Self { shared, injector: FaultInjector::new(around, "table", |faults| faults.table), store }
    }

    async fn read<T, F: Future<Output = Result<T, TableError>>>(
        &self,
        what: &What<'_>,
        read: impl FnOnce(Arc<MemoryRoomTable>) -> F,
    ) -> Result<T, TableError> {
        self.injector.call(Call::read(what), async { read(self.shared.now()).await }, lost).await
    }

    async fn write<T, F: Future<Output = Result<T, TableError>>>(
        &self,
        what: &What<'_>,
        write: impl FnOnce(Arc<MemoryRoomTable>) -> F,
    ) -> Result<T, TableError> {
        let call = Call::write(what, Span::ZERO);
        self.injector.call(call, async { write(self.shared.now()).await }, lost).await
    }
}

fn keys(request: &HoldRequest<'_>, answer: &HoldAnswer) -> Vec<HoldKey> {
    let HoldAnswer::Held(rooms) = answer else { return Vec::new() };
    let key = |held: &HeldRoom| HoldKey {
        scheduler: request.scheduler.clone(),
        room: held.room.clone(),
        number: held.number,
    };
    rooms.iter().map(key).collect()
}

fn lost(_: Loss, why: &'static str) -> TableError {
    TableError::Unavailable(why.into())
}

/// What nobody in this world watches takes no time and does not fail, so that it changes no other part of a run.
#[async_trait]
impl EventRing for SimulatedTable {
    async fn append(&self, events: Vec<StreamEvent>, after_loss: bool) -> Result<(), TableError> {
        self.shared.now().append(events, after_loss).await
    }

    async fn read_events(
        &self,
        from: ReadFrom,
        events_max: usize,
    ) -> Result<Read<Arc<StreamEvent>>, TableError> {
        self.shared.now().read_events(from, events_max).await
    }

    async fn wait_for_events(&self, next: StreamId) -> Result<(), TableError> {
        self.shared.now().wait_for_events(next).await
    }
}

#[async_trait]
impl RoomTable for SimulatedTable {
    async fn begin_rebuild(&self, scheduler: &SchedulerName) -> Result<bool, TableError> {
        self.write(&"begin rebuild", |table| async move { table.begin_rebuild(scheduler).await }).await
    }

    async fn end_rebuild(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        self.write(&"end rebuild", |table| async move { table.end_rebuild(scheduler).await }).await
    }

    async fn insert(&self, room: NewRoom) -> Result<(), TableError> {
        self.write(&"insert", |table| async move { table.insert(room).await }).await
    }

    async fn ping(&self, ping: Ping<'_>, at: Timestamp) -> Result<Pinged, PingError> {
        let act = async {
            let pinged = self.shared.now().ping(ping, at).await?;
            self.injector.around().inspector.heard(ping.scheduler, ping.room, ping.matches);
            Ok(pinged)
        };
        self.injector.call(Call::write(&"ping", Span::ZERO), act, |loss, why| lost(loss, why).into()).await
    }

    async fn observe(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: InstanceStatus,
    ) -> Result<Option<StatusChange>, TableError> {
        self.write(&"observe", |table| async move { table.observe(scheduler, room, instance).await }).await
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Vec<RoomId>, TableError> {
        self.write(&"claim", |table| async move {
            let before = table.rooms(claim.scheduler).await?;
            let claimed = table.claim(broken::claimed(claim)).await?;
            let around = self.injector.around();
            around.inspector.judge_table(&claim, &claimed, &before);
            let at = around.trace.now();
            around.inspector.claimed(&around.node, &claim, &claimed, at, &*self.store).await;
            Ok(claimed)
        })
        .await
    }

    async fn unclaim(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
        rooms: &[RoomId],
    ) -> Result<(), TableError> {
        self.write(&"unclaim", |table| async move { table.unclaim(scheduler, operation, rooms).await }).await
    }

    async fn set_address(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        address: RoomAddress,
    ) -> Result<(), TableError> {
        self.write(&"set address", |table| async move { table.set_address(scheduler, room, address).await })
            .await
    }

    async fn hold(&self, requests: &[HoldRequest<'_>]) -> Result<Vec<HoldAnswer>, TableError> {
        self.write(&"hold", |table| async move {
            let answers = table.hold(requests).await?;
            if !broken::holds() {
                for (request, answer) in requests.iter().zip(&answers) {
                    table.release(&keys(request, answer)).await?;
                }
            }
            Ok(answers)
        })
        .await
    }

    async fn confirm(&self, holds: &[HoldKey]) -> Result<Vec<Option<HoldStage>>, TableError> {
        self.write(&"confirm", |table| async move {
            let stages = table.confirm(holds).await?;
            Ok(if broken::holds() { stages } else { vec![Some(HoldStage::Firm); stages.len()] })
        })
        .await
    }

    async fn mark(&self, hold: &HoldKey, end: HoldEnd) -> Result<Option<HoldEnd>, TableError> {
        self.write(&"mark", |table| async move { table.mark(hold, end).await }).await
    }

    async fn release(&self, holds: &[HoldKey]) -> Result<(), TableError> {
        self.write(&"release", |table| async move { table.release(holds).await }).await
    }

    async fn restore(&self, scheduler: &SchedulerName, room: &RoomId, hold: Hold) -> Result<(), TableError> {
        self.write(&"restore", |table| async move { table.restore(scheduler, room, hold).await }).await
    }

    async fn due_holds(
        &self,
        now: Timestamp,
        ping_timeout: Millis,
        holds_max: usize,
    ) -> Result<Vec<DueHold>, TableError> {
        self.read(&"due holds", |table| async move { table.due_holds(now, ping_timeout, holds_max).await })
            .await
    }

    async fn holds_of(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Vec<Hold>, TableError> {
        self.read(&"holds of room", |table| async move { table.holds_of(scheduler, room).await }).await
    }

    async fn holds(&self, scheduler: &SchedulerName) -> Result<Vec<DueHold>, TableError> {
        self.read(&"holds", |table| async move { table.holds(scheduler).await }).await
    }

    async fn allocation_rules(&self, scheduler: &SchedulerName) -> Result<AllocationRules, TableError> {
        self.read(&"allocation_rules", |table| async move { table.allocation_rules(scheduler).await }).await
    }

    async fn set_allocation_rules(
        &self,
        scheduler: &SchedulerName,
        rules: AllocationRules,
    ) -> Result<(), TableError> {
        self.write(&"set allocation rules", |table| async move {
            table.set_allocation_rules(scheduler, rules).await
        })
        .await
    }

    async fn report_waiting(
        &self,
        scheduler: &SchedulerName,
        process: &str,
        slots: u32,
        now: Timestamp,
    ) -> Result<(), TableError> {
        self.write(&"report waiting", |table| async move {
            self.injector.around().inspector.waits(scheduler, process, slots);
            table.report_waiting(scheduler, process, slots, now).await
        })
        .await
    }

    async fn waiting(&self, scheduler: &SchedulerName, now: Timestamp) -> Result<u32, TableError> {
        self.read(&"waiting", |table| async move { table.waiting(scheduler, now).await }).await
    }

    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        self.write(&"remove", |table| async move { table.remove(scheduler, room).await }).await
    }

    async fn remove_scheduler(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        self.write(&"remove scheduler", |table| async move { table.remove_scheduler(scheduler).await }).await
    }

    async fn set_matches_max(&self, scheduler: &SchedulerName, matches_max: u32) -> Result<(), TableError> {
        self.write(&"set matches", |table| async move { table.set_matches_max(scheduler, matches_max).await })
            .await
    }

    async fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        self.read(&"room", |table| async move { table.room(scheduler, room).await }).await
    }

    async fn rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomView>, TableError> {
        self.read(&"rooms", |table| async move {
            let mut views = table.rooms(scheduler).await?;
            let around = self.injector.around();
            around.inspector.table_read(&around.node, scheduler, &views);
            views.iter_mut().for_each(broken::seen);
            Ok(views)
        })
        .await
    }

    async fn counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts, TableError> {
        self.read(&"counts", |table| async move { table.counts(scheduler).await }).await
    }
}
