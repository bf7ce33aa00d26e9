//! Several processes on one store.

use std::sync::Arc;

use futures_util::future::join_all;
use maestro_core::operation::Token;
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    AllocationStore, Change, Guard, NewAllocation, OperationStore, Refusal, RoomRegistry, StoreError,
    Transaction,
};
use maestro_store_postgres::PostgresStore;
use maestro_testkit::{eventually, postgres::Server};

use crate::database;

const PROCESSES: usize = 3;
const WRITERS: u32 = 24;

async fn processes() -> (String, Vec<Arc<PostgresStore>>) {
    let (name, options) = database::named().await;
    let mut stores = Vec::new();
    for _ in 0..PROCESSES {
        stores.push(Arc::new(database::open(&options).await));
    }
    open(&*stores[0]).await;
    (name, stores)
}

/// Waits until a transaction waits for the lock of another.
async fn until_one_waits(database: &str) {
    let waiting = "SELECT count(*) > 0 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("a transaction that waits", async || Server::shared().sql(database, waiting).unwrap() == "t")
        .await;
}

fn refusals(answers: Vec<Result<(), StoreError>>) -> Vec<Refusal> {
    let refused = answers.into_iter().filter_map(Result::err);
    refused.map(|error| error.refusal().cloned().unwrap_or_else(|| panic!("{error:?}"))).collect()
}

/// A guard is checked under the lock under which schedulers are taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_while_its_scheduler_is_taken_is_refused() {
    let (name, stores) = processes().await;
    let token = stores[0].own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    let taker = database::connect_to(&name).await;
    let take = "BEGIN; SELECT 1 FROM schedulers WHERE name = 'arena' FOR NO KEY UPDATE;
        UPDATE ownerships SET owner = 'worker-2', token = nextval('tokens') WHERE scheduler = 'arena'";
    taker.batch_execute(take).await.unwrap();
    let guard = Guard { scheduler: arena(), token, operation: None, locks: Vec::new() };
    let guarded = Transaction::guarded("test", guard, vec![adjust_fleet(&arena(), 1)]);
    let taken = async {
        until_one_waits(&name).await;
        taker.batch_execute("COMMIT").await.unwrap();
    };
    let (answer, ()) = tokio::join!(stores[1].commit(guarded), taken);
    assert_eq!(refusals(vec![answer]), [Refusal::StaleToken { scheduler: arena() }]);
    assert_eq!(scheduler(&*stores[0], &arena()).await.fleet_size, FLEET_SIZE);
}

/// What an allocation waited for is seen by what decides about it.
#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_that_waits_while_its_room_ends_is_refused() {
    let (name, stores) = processes().await;
    accept(&*stores[0], vec![Change::IntendRoom(new_room(1, 40001))]).await;
    let ender = database::connect_to(&name).await;
    let end = "BEGIN; SELECT 1 FROM room_claims FOR NO KEY UPDATE;
        UPDATE rooms SET ended_at = 1, ended_how = 'died', ended_cause = 'failed', was_ready = TRUE";
    ender.batch_execute(end).await.unwrap();
    let allocate = Transaction::new("test", &arena(), vec![allocate(1, 1, 1)]);
    let ended = async {
        until_one_waits(&name).await;
        ender.batch_execute("COMMIT").await.unwrap();
    };
    let (answer, ()) = tokio::join!(stores[1].commit(allocate), ended);
    assert_eq!(refusals(vec![answer]), [Refusal::RoomNotFound(room_id(1))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_is_given_to_one_of_many_processes() {
    let (_, stores) = processes().await;
    accept(&*stores[0], vec![Change::IntendRoom(new_room(1, 40001))]).await;
    let tries = (1..=WRITERS).map(|number| {
        let store = stores[number as usize % PROCESSES].clone();
        // The same claim of the same room, with slots to spare.
        let new = NewAllocation { matches_max: WRITERS, ..new_allocation(number.into(), 1, 1) };
        let transaction = Transaction::new("test", &arena(), vec![Change::Allocate(new)]);
        async move { store.commit(transaction).await }
    });
    let refused = refusals(join_all(tries).await);
    assert_eq!(refused, vec![Refusal::RoomClaimed(room_id(1)); WRITERS as usize - 1]);
    assert_eq!(stores[0].open_allocations(None).await.unwrap().len(), 1);
    assert_eq!(room(&*stores[0], 1).await.holds, 1);
}

/// Whatever unique thing they want: the schema refuses what no single scheduler's lock does.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_schedulers_one_gets_the_room_and_the_port() {
    let (_, stores) = processes().await;
    let names: Vec<_> = (0..WRITERS).map(|number| name(&format!("arena-{number}"))).collect();
    let schedulers = names.iter().map(|name| Change::CreateScheduler(new_scheduler(name)));
    accept(&*stores[0], schedulers.collect()).await;
    let tries = (1u32..).zip(&names).map(|(number, scheduler)| {
        let store = stores[number as usize % PROCESSES].clone();
        let mut new = new_room(if number % 2 == 0 { 0 } else { number }, 40001);
        new.scheduler = scheduler.clone();
        let transaction = Transaction::new("test", scheduler, vec![Change::IntendRoom(new)]);
        async move { store.commit(transaction).await }
    });
    assert_eq!(refusals(join_all(tries).await).len(), WRITERS as usize - 1);
    assert_eq!(stores[0].all_live_rooms().await.unwrap().len(), 1);
}

/// Everyone wants it at the same moment; one gets it, and no token comes twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_is_owned_by_one_of_many_processes() {
    let (_, stores) = processes().await;
    let mut last = Token(0);
    for round in 0..5 {
        let tries = (0..WRITERS).map(|worker| {
            let store = stores[worker as usize % PROCESSES].clone();
            let owner = format!("worker-{round}-{worker}");
            async move { (store.own(&arena(), &owner, TTL).await.unwrap(), owner) }
        });
        let owners: Vec<_> =
            join_all(tries).await.into_iter().filter_map(|(token, owner)| Some((token?, owner))).collect();
        let [(token, owner)] = &owners[..] else { panic!("in round {round}: {owners:?}") };
        assert!(*token > last, "in round {round}");
        last = *token;
        stores[0].own(&arena(), owner, NO_TIME).await.unwrap();
    }
}

/// Ends, allocations and events of the same rooms by several processes, next to the owner's writes: nothing is lost, and
/// nobody waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn facts_are_written_beside_each_other() {
    let (_, stores) = processes().await;
    let rooms = (1..=WRITERS).map(|number| Change::IntendRoom(new_room(number, 40000 + number as u16)));
    accept(&*stores[0], rooms.collect()).await;
    let token = stores[0].own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    let writes = (1..=WRITERS).flat_map(|number| {
        let guard = Guard { scheduler: arena(), token, operation: None, locks: Vec::new() };
        let event = u128::from(number);
        [
            Transaction::new("test", &arena(), vec![allocate(event, number, 1), queue_event(event, number)]),
            // Two rooms, which others lock in the other order.
            Transaction::new("test", &arena(), vec![end_room(WRITERS + 1 - number, 9), end_room(number, 9)]),
            Transaction::guarded("test", guard, vec![adjust_fleet(&arena(), 1)]),
        ]
    });
    let writes = writes.enumerate().map(|(number, transaction)| {
        let store = stores[number % PROCESSES].clone();
        async move { store.commit(transaction).await }
    });
    let refused = refusals(join_all(writes).await);
    assert!(refused.iter().all(|refusal| matches!(refusal, Refusal::RoomNotFound(_))), "{refused:?}");
    assert_eq!(stores[0].all_live_rooms().await.unwrap(), []);
    assert_eq!(stores[0].open_allocations(None).await.unwrap(), []);
    assert_eq!(scheduler(&*stores[0], &arena()).await.fleet_size, FLEET_SIZE + WRITERS);
}
