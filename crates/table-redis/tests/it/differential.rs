//! The table in memory and the table in Redis take the same random steps, and nobody can tell them apart.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Happened, Read, ReadFrom, StreamId};
use maestro_core::time::Timestamp;
use maestro_engine::ports::RoomTable;
use maestro_engine::ports::room_table::DueHold;
use maestro_store_embedded::MemoryRoomTable;

use crate::steps::{Order, PING_TIMEOUT, SCHEDULERS, Step, Walk};
use crate::tables::{begin, fresh, name};

/// Of each walk. Often enough begun anew that rare beginnings are met, long enough that fleets grow old.
const STEPS: usize = 2_000;

/// Each mostly waits for Redis.
const WALKS_AT_ONCE: usize = 8;

/// Answers are compared after each step; everything that can be seen, after so many.
const LOOK_EVERY: usize = 25;

/// One of them is looked at by itself.
const ROOMS_MAX: usize = 16;

const DUE_MAX: usize = 1_000;

/// In all; `MAESTRO_DIFFERENTIAL_STEPS` asks for more.
fn steps_in_all() -> usize {
    let asked = std::env::var("MAESTRO_DIFFERENTIAL_STEPS").ok();
    asked.map_or(20_000, |steps| steps.parse().expect("MAESTRO_DIFFERENTIAL_STEPS is a number"))
}

#[tokio::test]
async fn nobody_can_tell_the_tables_apart() {
    let seeds = 0..steps_in_all().div_ceil(STEPS) as u64;
    stream::iter(seeds).for_each_concurrent(WALKS_AT_ONCE, walk).await;
}

async fn walk(seed: u64) {
    let (memory, redis) = (MemoryRoomTable::new(), fresh(&SCHEDULERS).await);
    for scheduler in SCHEDULERS {
        begin(&memory, &name(scheduler)).await;
    }
    let mut seen = [Seen::default(), Seen::default()];
    let mut walk = Walk::new(seed);
    for number in 0..STEPS {
        let step = walk.next();
        let (expected, found) = (take(&memory, &step).await, take(&redis, &step).await);
        assert_eq!(expected, found, "the answer to step {number} of seed {seed}: {step:?}");
        if let Order::RemoveScheduler(scheduler) = &step.order {
            begin(&memory, scheduler).await;
            begin(&redis, scheduler).await;
        }
        walk.remember(join_all(SCHEDULERS.map(|scheduler| held(&memory, scheduler))).await.concat());
        if number % LOOK_EVERY == LOOK_EVERY - 1 {
            let now = step.now;
            let expected = look(&memory, &mut seen[0], now).await;
            let found = look(&redis, &mut seen[1], now).await;
            assert_eq!(expected, found, "after step {number} of seed {seed}: {step:?}");
        }
    }
}

async fn held(table: &MemoryRoomTable, scheduler: &str) -> Vec<DueHold> {
    table.holds(&name(scheduler)).await.unwrap()
}

/// The answer of a step, as a text: all of it can be seen.
async fn take(table: &dyn RoomTable, step: &Step) -> Vec<String> {
    fn one(answer: impl Debug) -> Vec<String> {
        vec![format!("{answer:?}")]
    }
    match &step.order {
        Order::Insert(room) => one(table.insert((**room).clone()).await),
        Order::Ping(pings) => {
            let pinged = join_all(pings.iter().map(|ping| table.ping(ping.as_ping(), ping.at))).await;
            pinged.into_iter().map(|answer| format!("{answer:?}")).collect()
        }
        Order::Observe(scheduler, room, instance) => one(table.observe(scheduler, room, *instance).await),
        Order::SetAddress(scheduler, room, address) => {
            one(table.set_address(scheduler, room, address.clone()).await)
        }
        Order::Claim(claim) => one(table.claim(claim.as_claim()).await),
        Order::Unclaim(scheduler, operation, rooms) => one(table.unclaim(scheduler, *operation, rooms).await),
        Order::Hold(requests) => {
            let requests: Vec<_> = requests.iter().map(|request| request.as_request(step.now)).collect();
            let answers = table.hold(&requests).await.unwrap();
            answers.into_iter().map(|answer| format!("{answer:?}")).collect()
        }
        Order::Confirm(keys) => one(table.confirm(keys).await),
        Order::Mark(key, end) => one(table.mark(key, *end).await),
        Order::Release(keys) => one(table.release(keys).await),
        Order::Restore(scheduler, room, hold) => one(table.restore(scheduler, room, hold.clone()).await),
        Order::SetRules(scheduler, rules) => one(table.set_allocation_rules(scheduler, rules.clone()).await),
        Order::ReportWaiting(scheduler, process, slots) => {
            table.report_waiting(scheduler, process, *slots, step.now).await.unwrap();
            one(table.waiting(scheduler, step.now).await)
        }
        Order::Remove(scheduler, room) => one(table.remove(scheduler, room).await),
        Order::RemoveScheduler(scheduler) => one(table.remove_scheduler(scheduler).await),
        Order::SetMatchesMax(scheduler, matches) => one(table.set_matches_max(scheduler, *matches).await),
    }
}

/// How far the events of a table have been read.
#[derive(Default)]
struct Seen(Option<StreamId>);

/// Everything that can be seen of a table.
async fn look(table: &dyn RoomTable, seen: &mut Seen, now: Timestamp) -> Vec<String> {
    let mut all = Vec::new();
    for scheduler in SCHEDULERS.map(name) {
        let rooms = table.rooms(&scheduler).await.unwrap();
        if let Some(room) = rooms.get(now.as_millisecond() as usize % ROOMS_MAX) {
            assert_eq!(table.room(&scheduler, &room.id).await.unwrap().as_ref(), Some(room));
            all.push(format!("{:?} {:?}", room.id, table.holds_of(&scheduler, &room.id).await.unwrap()));
        }
        all.extend(rooms.iter().map(|room| format!("{room:?}")));
        let mut holds = table.holds(&scheduler).await.unwrap();
        holds.sort_by_key(|due| due.key.clone());
        all.push(format!("{holds:?}"));
        all.push(format!("{:?}", table.counts(&scheduler).await.unwrap()));
        all.push(format!("{:?}", table.waiting(&scheduler, now).await.unwrap()));
        all.push(format!("{:?}", table.allocation_rules(&scheduler).await.unwrap()));
    }
    for holds_max in [2, DUE_MAX] {
        all.push(format!("{:?}", table.due_holds(now, PING_TIMEOUT, holds_max).await.unwrap()));
    }
    all.push(format!("{:?}", events(table, seen).await));
    all
}

/// What has happened since, room by room: a call that changes many rooms may do so in any order.
async fn events(
    table: &dyn RoomTable,
    seen: &mut Seen,
) -> BTreeMap<(Option<SchedulerName>, RoomId), Vec<(RoomStatus, RoomStatus)>> {
    let mut by_room: BTreeMap<_, Vec<_>> = BTreeMap::new();
    loop {
        let from = seen.0.map_or(ReadFrom::Oldest, ReadFrom::After);
        let read = table.read_events(from, 100).await.unwrap();
        let Read::Events { events, next } = read else { panic!("events are missing: {read:?}") };
        seen.0 = Some(next);
        if events.is_empty() {
            return by_room;
        }
        for (_, event) in events {
            let Happened::RoomChanged { room, before, after } = &event.what else { panic!("{event:?}") };
            by_room.entry((event.scheduler.clone(), room.clone())).or_default().push((*before, *after));
        }
    }
}
