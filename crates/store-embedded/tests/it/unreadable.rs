//! What this build cannot read is a problem of whose it is, and of nobody else.

use std::path::Path;

use maestro_core::operation::Stage;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    Change, OperationFilter, OperationStore, PageRequest, RoomRegistry, SchedulerStore, StoreError,
};
use maestro_store_embedded::EmbeddedStore;
use rusqlite::Connection;

/// What a newer Maestro may have written.
fn tamper(directory: &Path, sql: &str) {
    let connection = Connection::open(directory.join("maestro.db")).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

fn is_unreadable<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unreadable(_)))
}

async fn store_with_rooms(directory: &Path) -> Vec<SchedulerName> {
    let store = EmbeddedStore::open(directory).unwrap();
    open(&store).await;
    let rooms = vec![Change::IntendRoom(new_room(1, 40001)), Change::IntendRoom(new_room(2, 40002))];
    accept(&store, rooms).await;
    accept(&store, vec![Change::Enqueue(new_operation(1)), Change::Enqueue(new_operation(2))]).await;
    store.schedulers().await.unwrap().into_iter().map(|record| record.name).collect()
}

#[tokio::test]
async fn a_scheduler_that_cannot_be_read_leaves_the_others_as_they_are() {
    for sql in [
        r#"UPDATE versions SET recipe = '{"name": "arena", "unheardOf": {}}' WHERE scheduler = 'arena'"#,
        "UPDATE versions SET recipe = 'not even JSON' WHERE scheduler = 'arena'",
        "UPDATE schedulers SET state = 'hibernating' WHERE name = 'arena'",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let all = store_with_rooms(directory.path()).await;
        tamper(directory.path(), sql);
        let store = EmbeddedStore::open(directory.path()).unwrap();
        let readable: Vec<_> =
            store.schedulers().await.unwrap().into_iter().map(|record| record.name).collect();
        assert_eq!(store.scheduler_names().await.unwrap(), all, "{sql}");
        let others: Vec<_> = all.into_iter().filter(|name| *name != arena()).collect();
        assert!(!others.is_empty());
        assert_eq!(readable, others, "{sql}");
        let (_, unreadable) = store.all_schedulers().await.unwrap();
        assert_eq!(unreadable.len(), 1, "{sql}");
        assert_eq!(unreadable[0].name, arena());
        assert!(unreadable[0].why.contains("cannot be read"), "{}", unreadable[0].why);
        assert!(is_unreadable(&store.scheduler(&arena()).await), "{sql}");
        assert_eq!(store.live_rooms(&arena()).await.unwrap().len(), 2, "{sql}");
    }
}

#[tokio::test]
async fn a_scheduler_of_which_nothing_can_be_shown_hides_no_other_ones() {
    let directory = tempfile::tempdir().unwrap();
    let mut others = store_with_rooms(directory.path()).await;
    others.retain(|name| *name != arena());
    tamper(
        directory.path(),
        &format!("UPDATE schedulers SET created_at = {} WHERE name = 'arena'", i64::MAX),
    );
    let store = EmbeddedStore::open(directory.path()).unwrap();
    let (readable, unreadable) = store.all_schedulers().await.unwrap();
    assert_eq!(readable.into_iter().map(|record| record.name).collect::<Vec<_>>(), others);
    assert_eq!(unreadable, []);
}

#[tokio::test]
async fn a_room_that_cannot_be_read_hides_no_other_ones() {
    let directory = tempfile::tempdir().unwrap();
    store_with_rooms(directory.path()).await;
    tamper(directory.path(), &format!("UPDATE rooms SET purpose = 'dancing' WHERE id = '{}'", room_id(1)));
    let store = EmbeddedStore::open(directory.path()).unwrap();
    let found: Vec<_> = store.all_live_rooms().await.unwrap().into_iter().map(|room| room.id).collect();
    assert_eq!(found, [room_id(2)]);
    assert!(is_unreadable(&store.live_rooms(&arena()).await), "whoever decides about them must not miss one");
}

#[tokio::test]
async fn an_operation_that_cannot_be_read_is_listed_and_not_executed() {
    let directory = tempfile::tempdir().unwrap();
    store_with_rooms(directory.path()).await;
    let id = operation_id(1);
    tamper(
        directory.path(),
        &format!(r#"UPDATE operations SET input = '{{"amount": "plenty"}}' WHERE id = '{id}'"#),
    );
    let store = EmbeddedStore::open(directory.path()).unwrap();
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
