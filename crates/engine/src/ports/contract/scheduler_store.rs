//! The suite of the scheduler store: schedulers and the fleet size (here), [`versions`] and [`rollouts`].

mod rollouts;
mod versions;

use std::future::Future;
use std::sync::Arc;

use maestro_core::lock::LockKind;
use maestro_core::operation::{Definition, Operation, OperationStatus};
use maestro_core::scheduler::{SchedulerName, Version, VersionStatus};

use crate::ports::Store;
use crate::ports::store::{
    Change, FleetRecord, NewOperation, Refusal, RolloutState, SchedulerRecord, SchedulerState,
    SchedulerUpdate, VersionRecord,
};

use super::fixtures::*;
use super::{StoreUnderTest, run_cases};

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    run_cases!(
        "scheduler store",
        fresh,
        [
            a_new_store_knows_no_scheduler,
            a_scheduler_comes_back_as_it_was_created,
            schedulers_are_ordered_by_name,
            a_name_is_given_once,
            every_change_of_a_scheduler_raises_its_revision,
            a_scheduler_is_changed_only_as_it_was_read,
            the_fleet_size_is_adjusted_and_never_below_zero,
            an_operation_takes_back_only_what_is_still_its_part,
            what_is_not_there_cannot_be_changed,
            a_deleted_scheduler_leaves_one_operation_to_read,
            a_fleet_is_what_its_parts_are,
            a_fleet_is_of_one_moment,
            a_scheduler_with_live_rooms_is_not_deleted,
            a_name_is_free_again_after_the_deletion,
            versions::a_version_comes_back_as_it_was_inserted,
            versions::versions_are_listed_newest_first,
            versions::a_version_is_given_once,
            versions::a_version_has_a_status,
            versions::a_version_that_is_not_there_has_no_status,
            versions::the_active_version_brings_its_recipe_and_time,
            versions::only_a_version_that_is_there_becomes_active,
            versions::a_deleted_version_is_gone,
            versions::deleting_a_version_that_is_not_there_does_nothing,
            versions::the_active_version_is_not_deleted,
            versions::the_number_of_a_deleted_version_is_not_given_again,
            versions::the_numbers_of_a_deleted_scheduler_are_gone,
            rollouts::a_rollout_comes_back_as_it_was_set,
            rollouts::the_last_shrinking_is_remembered,
        ]
    );
}

async fn a_new_store_knows_no_scheduler(store: &dyn Store) {
    assert_eq!(store.scheduler(&arena()).await.unwrap(), None);
    assert_eq!(store.schedulers().await.unwrap(), []);
    assert_eq!(store.scheduler_names().await.unwrap(), []);
    assert_eq!(store.versions(&arena()).await.unwrap().0, []);
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
        revision: 0,
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
    assert_eq!(store.versions(&arena()).await.unwrap().0, std::slice::from_ref(&expected));
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

async fn every_change_of_a_scheduler_raises_its_revision(store: &dyn Store) {
    open(store).await;
    accept(store, vec![insert_version(version(2, 0))]).await;
    let begun = rollout(RolloutState::Rolling);
    let mut revision = 0;
    let mut raise = async |what: &str, change: Change| {
        accept(store, vec![change]).await;
        revision += 1;
        assert_eq!(scheduler(store, &arena()).await.revision, revision, "{what}");
    };
    for (read, state) in (0..).zip(SchedulerState::ALL) {
        raise("a state", set_state(read, state)).await;
        assert_eq!(scheduler(store, &arena()).await.state, state);
    }
    raise("a fleet size", set_fleet_size(3, 12)).await;
    raise("the same one", set_fleet_size(4, 12)).await;
    raise("another one by so much", adjust_fleet(&arena(), 1)).await;
    raise("an active version", set_active_version(6, version(2, 0))).await;
    raise("a rollout", set_rollout(7, Some(begun.clone()))).await;
    raise("none any more", set_rollout(8, None)).await;
    raise("that it shrank", set_last_shrunk(9, 5)).await;
    let all = SchedulerUpdate {
        state: Some(SchedulerState::InSync),
        active_version: Some(Version::FIRST),
        fleet_size: Some(7),
        rollout: Some(Some(begun.clone())),
        last_shrunk_at: Some(at(6)),
        ..update(10)
    };
    raise("all at once", Change::UpdateScheduler(all)).await;
    let is = scheduler(store, &arena()).await;
    assert_eq!((is.state, is.active_version), (SchedulerState::InSync, Version::FIRST));
    assert_eq!((is.fleet_size, is.rollout, is.last_shrunk_at), (7, Some(begun), Some(at(6))));
    let other = scheduler(store, &bystander()).await;
    assert_eq!((other.revision, other.state), (0, SchedulerState::Creating));
}

async fn a_scheduler_is_changed_only_as_it_was_read(store: &dyn Store) {
    open(store).await;
    accept(store, vec![set_fleet_size(0, 12), adjust_fleet(&arena(), 1)]).await;
    let before = scheduler(store, &arena()).await;
    let changed = || Refusal::SchedulerChanged(arena());
    for revision in [0, 1, 3] {
        for change in [
            set_state(revision, SchedulerState::InSync),
            set_fleet_size(revision, 13),
            set_rollout(revision, None),
            set_rollout(revision, Some(rollout(RolloutState::Rolling))),
            set_last_shrunk(revision, 5),
            set_active_version(revision, Version::FIRST),
            // Before anything is said about the version that is not there.
            set_active_version(revision, version(9, 0)),
            Change::UpdateScheduler(update(revision)),
        ] {
            refuse(store, vec![change], changed()).await;
        }
    }
    // Who only checks changes nothing.
    accept(store, vec![Change::UpdateScheduler(update(2)), Change::UpdateScheduler(update(2))]).await;
    assert_eq!(scheduler(store, &arena()).await, before);
    // Also in one transaction.
    refuse(store, vec![set_fleet_size(2, 13), set_fleet_size(2, 14)], changed()).await;
}

/// A new version may have set the size anew since one looked: then there is nothing to take back.
async fn an_operation_takes_back_only_what_is_still_its_part(store: &dyn Store) {
    open(store).await;
    accept(store, vec![Change::Enqueue(NewOperation { fleet_delta: 4, ..new_operation(1) })]).await;
    let take_back =
        |delta| vec![Change::AdjustFleetSize { scheduler: arena(), delta, of: Some(operation_id(1)) }];
    let changed = || Refusal::SchedulerChanged(arena());
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
        Change::UpdateScheduler(SchedulerUpdate::of(gone.clone(), 0)),
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
    let token = store.own(&arena(), "worker-1", TTL).await.unwrap();
    assert!(token.is_some());
    accept(store, vec![end(2, OperationStatus::Finished), delete(&arena(), 2)]).await;

    assert_eq!(store.scheduler(&arena()).await.unwrap(), None);
    assert_eq!(store.versions(&arena()).await.unwrap().0, []);
    assert_eq!(store.room(&arena(), &room_id(1)).await.unwrap(), None);
    assert_eq!(store.unfinished(&arena()).await.unwrap(), []);
    assert_eq!(store.operation(&arena(), operation_id(1)).await.unwrap(), None, "only one is kept");
    assert_eq!(operation(store, 2).await.status, OperationStatus::Finished);
    let owned = store.renew(renewal("worker-1")).await.unwrap();
    assert_eq!(owned, [], "nobody owns what is gone");
    assert_eq!(store.unfinished(&bystander()).await.unwrap().len(), 1);
}

async fn a_fleet_is_what_its_parts_are(store: &dyn Store) {
    assert_eq!(store.fleet(&arena(), 10).await.unwrap(), None);
    open(store).await;
    let elsewhere = NewOperation { scheduler: bystander(), ..new_operation(4) };
    let rooms = (1..=5).map(|number| Change::IntendRoom(new_room(number, 40000 + number as u16)));
    accept(store, (1..=3).map(|number| Change::Enqueue(new_operation(number))).collect()).await;
    accept(store, vec![Change::Enqueue(elsewhere), start(1), end(3, OperationStatus::Canceled)]).await;
    accept(store, vec![take(LockKind::Config, holder(1)), await_lock(LockKind::Config, holder(2))]).await;
    accept(store, rooms.collect()).await;
    accept(store, vec![end_room(1, 3), end_room(2, 5), end_room(3, 4), intend_stop(4, 1)]).await;
    let in_short = |operation| Operation { history: Vec::new(), ..operation };
    for ended_max in [0, 2, 10] {
        let expected = FleetRecord {
            scheduler: scheduler(store, &arena()).await,
            unfinished: store.unfinished(&arena()).await.unwrap().into_iter().map(in_short).collect(),
            locks: locks(store).await,
            live: store.live_rooms(&arena()).await.unwrap(),
            ended: store.ended_rooms(&arena(), ended_max).await.unwrap(),
        };
        assert_eq!((expected.unfinished.len(), expected.live.len()), (2, 2));
        assert_eq!(store.fleet(&arena(), ended_max).await.unwrap(), Some(expected), "{ended_max}");
    }
    assert_eq!(store.fleet(&name("gone"), 10).await.unwrap(), None);
}

/// Each writer adds a room and counts it in the fleet size, in one transaction: whoever reads sees both or none of them.
async fn a_fleet_is_of_one_moment(store: &dyn Store) {
    const ROOMS: u32 = 40;
    open(store).await;
    let write = async {
        for number in 1..=ROOMS {
            let room = Change::IntendRoom(new_room(number, 40000 + number as u16));
            accept(store, vec![adjust_fleet(&arena(), 1), room]).await;
        }
    };
    let read = async {
        loop {
            let FleetRecord { scheduler, live, .. } = store.fleet(&arena(), 0).await.unwrap().unwrap();
            assert_eq!(scheduler.fleet_size as usize, FLEET_SIZE as usize + live.len());
            if live.len() == ROOMS as usize {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    futures_util::future::join(write, read).await;
}

async fn a_scheduler_with_live_rooms_is_not_deleted(store: &dyn Store) {
    open(store).await;
    let rooms = (1..=3).map(|number| Change::IntendRoom(new_room(number, 40000 + number as u16)));
    accept(store, rooms.collect()).await;
    // One has ended, one only should: it is still there.
    let stop = intend_stop(2, 1);
    accept(store, vec![end_room(1, 3), stop]).await;
    let left = Refusal::RoomsLeft { scheduler: arena(), rooms: 2 };
    refuse(store, vec![delete(&arena(), 9)], left).await;
    accept(store, vec![end_room(2, 4), end_room(3, 4), delete(&arena(), 9)]).await;
}

async fn a_name_is_free_again_after_the_deletion(store: &dyn Store) {
    open(store).await;
    let early = store.own(&arena(), "worker-1", TTL).await.unwrap();
    let (created, versions) = (scheduler(store, &arena()).await, store.versions(&arena()).await.unwrap().0);
    let second = version(2, 0);
    accept(
        store,
        vec![
            adjust_fleet(&arena(), 5),
            insert_version(second),
            set_active_version(1, second),
            set_rollout(2, Some(rollout(RolloutState::Rolling))),
            set_last_shrunk(3, 3),
        ],
    )
    .await;
    accept(store, vec![delete(&arena(), 9)]).await;
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena()))]).await;
    assert_eq!(scheduler(store, &arena()).await, created, "it begins anew");
    assert_eq!(store.versions(&arena()).await.unwrap().0, versions);
    let late = store.own(&arena(), "worker-2", TTL).await.unwrap();
    assert!(late > early, "no token comes twice, not even for another scheduler of the same name");
}

fn delete(scheduler: &SchedulerName, keep: u128) -> Change {
    Change::DeleteScheduler { scheduler: scheduler.clone(), keep: operation_id(keep) }
}
