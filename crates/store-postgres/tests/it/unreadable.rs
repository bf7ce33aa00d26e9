//! What this build cannot read is a problem of whose it is, and of nobody else.

use maestro_core::operation::Stage;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    Change, OperationFilter, OperationStore, PageRequest, RoomRegistry, SchedulerStore, Store, StoreError,
};
use maestro_store_postgres::PostgresStore;
use maestro_testkit::postgres::Server;

use crate::database;

/// Two schedulers with rooms and operations, in which something is written that a newer Maestro may have written.
async fn tampered(statement: &str) -> (PostgresStore, Vec<SchedulerName>) {
    let (name, options) = database::named().await;
    let store = database::open(&options).await;
    open(&store).await;
    let rooms = vec![Change::IntendRoom(new_room(1, 40001)), Change::IntendRoom(new_room(2, 40002))];
    accept(&store, rooms).await;
    accept(&store, vec![Change::Enqueue(new_operation(1)), Change::Enqueue(new_operation(2))]).await;
    let all = store.schedulers().await.unwrap().into_iter().map(|record| record.name).collect();
    Server::shared().sql(&name, statement).unwrap();
    // Another process, which has not read the recipes before.
    (database::open(&options).await, all)
}

fn is_unreadable<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unreadable(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_that_cannot_be_read_leaves_the_others_as_they_are() {
    for statement in [
        r#"UPDATE versions SET recipe = '{"name": "arena", "unheardOf": {}}' WHERE scheduler = 'arena'"#,
        "UPDATE versions SET recipe = 'not even JSON' WHERE scheduler = 'arena'",
        "UPDATE schedulers SET state = 'hibernating' WHERE name = 'arena'",
        "UPDATE schedulers SET revision = -1 WHERE name = 'arena'",
    ] {
        let (store, all) = tampered(statement).await;
        let (readable, unreadable) = store.all_schedulers().await.unwrap();
        assert_eq!(store.scheduler_names().await.unwrap(), all, "{statement}");
        let readable: Vec<_> = readable.into_iter().map(|record| record.name).collect();
        assert_eq!(readable, [bystander()], "{statement}");
        assert_eq!(unreadable.len(), 1, "{statement}");
        assert_eq!(unreadable[0].name, arena());
        assert!(unreadable[0].why.contains("cannot be read"), "{}", unreadable[0].why);
        assert!(is_unreadable(&store.scheduler(&arena()).await), "{statement}");
        assert!(is_unreadable(&store.fleet(&arena(), 10).await), "{statement}");
        assert_eq!(store.live_rooms(&arena()).await.unwrap().len(), 2, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_of_which_nothing_can_be_shown_hides_no_other_ones() {
    let (store, _) =
        tampered("UPDATE schedulers SET created_at = 9223372036854775807 WHERE name = 'arena'").await;
    let (readable, unreadable) = store.all_schedulers().await.unwrap();
    assert_eq!(readable.into_iter().map(|record| record.name).collect::<Vec<_>>(), [bystander()]);
    assert_eq!(unreadable, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_cannot_be_read_hides_no_other_ones() {
    let (store, _) =
        tampered(&format!("UPDATE rooms SET purpose = 'dancing' WHERE id = '{}'", room_id(1))).await;
    let found: Vec<_> = store.all_live_rooms().await.unwrap().into_iter().map(|room| room.id).collect();
    assert_eq!(found, [room_id(2)]);
    assert!(is_unreadable(&store.live_rooms(&arena()).await), "whoever decides about them must not miss one");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_cannot_be_read_is_listed_and_not_executed() {
    let id = operation_id(1);
    let (store, _) =
        tampered(&format!(r#"UPDATE operations SET input = '{{"amount": "plenty"}}' WHERE id = '{id}'"#))
            .await;
    let page = PageRequest {
        page: 1,
        page_size: 10,
        newest_first: false,
        no_action: true,
        only: OperationFilter::default(),
    };
    let listed = store.operations(&arena(), Stage::Pending, page).await.unwrap();
    assert_eq!(listed.operations.len(), 2);
    assert_eq!(listed.operations[0].id, id);
    let shown = store.operation(&arena(), id).await.unwrap().unwrap();
    assert_eq!(shown.definition.name(), new_operation(1).definition.name());
    assert!(is_unreadable(&store.unfinished(&arena()).await));
}
