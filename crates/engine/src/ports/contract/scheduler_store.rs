//! The suite of the scheduler store: schedulers and the fleet size (here), [`versions`] and [`rollouts`].

mod rollouts;
mod versions;

use std::future::Future;
use std::sync::Arc;

use maestro_core::operation::{Definition, OperationStatus};
use maestro_core::scheduler::{SchedulerName, Version, VersionStatus};

use crate::ports::Store;
use crate::ports::store::{
    Change, NewOperation, Refusal, RolloutState, SchedulerRecord, SchedulerState, VersionRecord,
};

use super::fixtures::*;
use super::run_cases;

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = Arc<dyn Store>>,
{
    run_cases!(
        "scheduler store",
        fresh,
        [
            a_new_store_knows_no_scheduler,
            a_scheduler_comes_back_as_it_was_created,
            schedulers_are_ordered_by_name,
            a_name_is_given_once,
            a_state_is_left_only_from_where_it_may_be,
            the_fleet_size_is_set_only_from_what_it_is,
            the_fleet_size_is_adjusted_and_never_below_zero,
            an_operation_takes_back_only_what_is_still_its_part,
            what_is_not_there_cannot_be_changed,
            a_deleted_scheduler_leaves_one_operation_to_read,
            a_scheduler_with_live_rooms_is_not_deleted,
            a_name_is_free_again_after_the_deletion,
            versions::a_version_comes_back_as_it_was_inserted,
            versions::versions_are_listed_newest_first,
            versions::a_version_is_given_once,
            versions::a_version_has_a_status,
            versions::a_version_that_is_not_there_has_no_status,
            versions::the_active_version_brings_its_recipe_and_time,
            versions::the_active_version_is_changed_only_from_what_it_is,
            versions::only_a_version_that_is_there_becomes_active,
            versions::a_deleted_version_is_gone,
            versions::deleting_a_version_that_is_not_there_does_nothing,
            versions::the_active_version_is_not_deleted,
            versions::the_number_of_a_deleted_version_is_not_given_again,
            versions::the_numbers_of_a_deleted_scheduler_are_gone,
            rollouts::a_rollout_comes_back_as_it_was_set,
            rollouts::a_rollout_is_changed_only_from_what_it_is,
            rollouts::a_rollout_begins_only_where_there_is_none,
            rollouts::a_rollout_is_known_by_what_was_written_and_by_what_was_read,
            rollouts::the_last_shrinking_is_remembered,
        ]
    );
}

async fn a_new_store_knows_no_scheduler(store: &dyn Store) {
    assert_eq!(store.scheduler(&arena()).await.unwrap(), None);
    assert_eq!(store.schedulers().await.unwrap(), []);
    assert_eq!(store.scheduler_names().await.unwrap(), []);
    assert_eq!(store.versions(&arena()).await.unwrap(), []);
    assert_eq!(store.version(&arena(), Version::FIRST).await.unwrap(), None);
}

async fn a_scheduler_comes_back_as_it_was_created(store: &dyn Store) {
    let mut created = new_scheduler(&arena());
    created.version_status = VersionStatus::Validating;
    created.at = at(7);
    accept(store, vec![Change::CreateScheduler(created)]).await;

    let recipe = Arc::new(recipe(&arena()));
    let expected = SchedulerRecord {
        name: arena(),
        state: SchedulerState::Creating,
        active_version: Version::FIRST,
        recipe: recipe.clone(),
        fleet_size: recipe.rooms_replicas,
        created_at: at(7),
        version_created_at: at(7),
        last_shrunk_at: None,
        rollout: None,
    };
    assert_eq!(scheduler(store, &arena()).await, expected);
    assert_eq!(store.schedulers().await.unwrap(), [expected]);

    let expected = VersionRecord {
        version: Version::FIRST,
        recipe,
        status: VersionStatus::Validating,
        cause: String::new(),
        is_active: true,
        created_at: at(7),
    };
    assert_eq!(store.versions(&arena()).await.unwrap(), std::slice::from_ref(&expected));
    let version = store.version(&arena(), Version::FIRST).await.unwrap();
    assert_eq!(version, Some(expected));
    let other = Version { minor: 1, ..Version::FIRST };
    assert_eq!(store.version(&arena(), other).await.unwrap(), None);
}

async fn schedulers_are_ordered_by_name(store: &dyn Store) {
    for text in ["m", "z-9", "a", "m-1"] {
        accept(store, vec![Change::CreateScheduler(new_scheduler(&name(text)))]).await;
    }
    let records = store.schedulers().await.unwrap();
    let names: Vec<_> = records.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["a", "m", "m-1", "z-9"]);
    let names = store.scheduler_names().await.unwrap();
    assert!(names.iter().eq(records.iter().map(|record| &record.name)), "{names:?}");
}

async fn a_name_is_given_once(store: &dyn Store) {
    open(store).await;
    let mut again = new_scheduler(&arena());
    again.at = at(99);
    refuse(store, vec![Change::CreateScheduler(again)], Refusal::SchedulerExists(arena())).await;
    let twice = Change::CreateScheduler(new_scheduler(&name("new")));
    refuse(store, vec![twice.clone(), twice], Refusal::SchedulerExists(name("new"))).await;
}

async fn a_state_is_left_only_from_where_it_may_be(store: &dyn Store) {
    open(store).await;
    let set =
        |from: &[SchedulerState], to| vec![Change::SetState { scheduler: arena(), from: from.into(), to }];
    for is in SchedulerState::ALL {
        accept(store, set(&SchedulerState::ALL, is)).await;
        assert_eq!(scheduler(store, &arena()).await.state, is);
        let others: Vec<_> = SchedulerState::ALL.into_iter().filter(|state| *state != is).collect();
        let wrong = Refusal::WrongState { scheduler: arena(), is };
        for to in SchedulerState::ALL {
            refuse(store, set(&others, to), wrong.clone()).await;
        }
    }
    assert_eq!(scheduler(store, &bystander()).await.state, SchedulerState::Creating);
}

async fn the_fleet_size_is_set_only_from_what_it_is(store: &dyn Store) {
    open(store).await;
    let set = |from, to| vec![Change::SetFleetSize { scheduler: arena(), from, to }];
    accept(store, set(FLEET_SIZE, 12)).await;
    let changed = Refusal::FleetSizeChanged { scheduler: arena(), is: 12 };
    refuse(store, set(FLEET_SIZE, 13), changed).await;
    assert_eq!(scheduler(store, &arena()).await.fleet_size, 12);
}

/// A new version may have set the size anew since one looked: then there is nothing to take back.
async fn an_operation_takes_back_only_what_is_still_its_part(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(NewOperation { fleet_delta: 4, ..new_operation(1) })]).await;
    let take_back =
        |delta| vec![Change::AdjustFleetSize { scheduler: arena(), delta, of: Some(operation_id(1)) }];
    let changed = || Refusal::FleetSizeChanged { scheduler: arena(), is: FLEET_SIZE };
    refuse(store, take_back(-3), changed()).await;
    accept(store, take_back(-4)).await;
    accept(
        store,
        vec![adjust_fleet(&arena(), 4), Change::ForgetFleetDeltas { scheduler: arena(), before: None }],
    )
    .await;
    refuse(store, take_back(-4), changed()).await;
    assert_eq!(scheduler(store, &arena()).await.fleet_size, FLEET_SIZE);
}

async fn the_fleet_size_is_adjusted_and_never_below_zero(store: &dyn Store) {
    open(store).await;
    for (delta, expected) in [(5, 15), (-3, 12), (-13, 0), (4, 4), (i64::MIN, 0)] {
        accept(store, vec![adjust_fleet(&arena(), delta)]).await;
        assert_eq!(scheduler(store, &arena()).await.fleet_size, expected, "after {delta}");
    }
    assert_eq!(scheduler(store, &bystander()).await.fleet_size, FLEET_SIZE);
}

async fn what_is_not_there_cannot_be_changed(store: &dyn Store) {
    open(store).await;
    let gone = name("gone");
    let enqueue = NewOperation { scheduler: gone.clone(), ..new_operation(1) };
    for change in [
        Change::SetState {
            scheduler: gone.clone(),
            from: SchedulerState::ALL.into(),
            to: SchedulerState::InSync,
        },
        Change::SetFleetSize { scheduler: gone.clone(), from: 0, to: 1 },
        adjust_fleet(&gone, 1),
        Change::SetVersionStatus {
            scheduler: gone.clone(),
            version: Version::FIRST,
            status: VersionStatus::Error,
            cause: String::new(),
        },
        Change::InsertVersion {
            scheduler: gone.clone(),
            recipe: Arc::new(recipe(&gone)),
            version: Version::FIRST,
            status: VersionStatus::Validating,
            at: at(1),
        },
        Change::SetActiveVersion { scheduler: gone.clone(), from: Version::FIRST, to: Version::FIRST },
        Change::SetRollout { scheduler: gone.clone(), from: None, to: None },
        Change::SetLastShrunk { scheduler: gone.clone(), at: at(1) },
        delete(&gone, 1),
        Change::Enqueue(enqueue),
    ] {
        refuse(store, vec![change], Refusal::SchedulerNotFound(gone.clone())).await;
    }
}

async fn a_deleted_scheduler_leaves_one_operation_to_read(store: &dyn Store) {
    open(store).await;
    let deletion = NewOperation { definition: Definition::DeleteScheduler, ..new_operation(2) };
    let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(3) };
    accept(
        store,
        vec![
            Change::Enqueue(new_operation(1)),
            Change::Enqueue(deletion),
            Change::Enqueue(elsewhere),
            Change::IntendRoom(new_room(1, 40001)),
            end_room(1, 3),
            start(2),
        ],
    )
    .await;
    let token = store.own(&arena(), "worker-1", at(0), TTL).await.unwrap();
    assert!(token.is_some());
    accept(store, vec![end(2, OperationStatus::Finished), delete(&arena(), 2)]).await;

    assert_eq!(store.scheduler(&arena()).await.unwrap(), None);
    assert_eq!(store.versions(&arena()).await.unwrap(), []);
    assert_eq!(store.room(&arena(), &room_id(1)).await.unwrap(), None);
    assert_eq!(store.unfinished(&arena()).await.unwrap(), []);
    assert_eq!(store.operation(&arena(), operation_id(1)).await.unwrap(), None, "only one is kept");
    assert_eq!(operation(store, 2).await.status, OperationStatus::Finished);
    let owned = store.renew(renewal("worker-1", at(1))).await.unwrap();
    assert_eq!(owned, [], "nobody owns what is gone");
    assert_eq!(store.unfinished(&bystander()).await.unwrap().len(), 1);
}

async fn a_scheduler_with_live_rooms_is_not_deleted(store: &dyn Store) {
    open(store).await;
    let rooms = (1..=3).map(|number| Change::IntendRoom(new_room(number, 40000 + number as u16)));
    accept(store, rooms.collect()).await;
    // One has ended, one only should: it is still there.
    let stop = Change::IntendStop { scheduler: arena(), room: room_id(2), stop: stop_intent(1) };
    accept(store, vec![end_room(1, 3), stop]).await;
    let left = Refusal::RoomsLeft { scheduler: arena(), rooms: 2 };
    refuse(store, vec![delete(&arena(), 9)], left).await;
    accept(store, vec![end_room(2, 4), end_room(3, 4), delete(&arena(), 9)]).await;
}

async fn a_name_is_free_again_after_the_deletion(store: &dyn Store) {
    open(store).await;
    let early = store.own(&arena(), "worker-1", at(0), TTL).await.unwrap();
    let (created, versions) = (scheduler(store, &arena()).await, store.versions(&arena()).await.unwrap());
    let second = version(2, 0);
    accept(
        store,
        vec![
            adjust_fleet(&arena(), 5),
            insert_version(second),
            set_active_version(Version::FIRST, second),
            set_rollout(None, Some(rollout(RolloutState::Rolling))),
            set_last_shrunk(3),
        ],
    )
    .await;
    accept(store, vec![delete(&arena(), 9)]).await;
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena()))]).await;
    assert_eq!(scheduler(store, &arena()).await, created, "it begins anew");
    assert_eq!(store.versions(&arena()).await.unwrap(), versions);
    let late = store.own(&arena(), "worker-2", at(1), TTL).await.unwrap();
    assert!(late > early, "no token comes twice, not even for another scheduler of the same name");
}

fn delete(scheduler: &SchedulerName, keep: u128) -> Change {
    Change::DeleteScheduler { scheduler: scheduler.clone(), keep: operation_id(keep) }
}
