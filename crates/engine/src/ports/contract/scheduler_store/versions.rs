//! Versions, and which of them is the active one.

use std::sync::Arc;

use maestro_core::scheduler::{Version, VersionStatus};

use crate::ports::Store;
use crate::ports::contract::fixtures::*;
use crate::ports::store::{Change, Refusal, SchedulerRecord, VersionRecord};

/// A version of the arena.
async fn read(store: &dyn Store, version: Version) -> VersionRecord {
    let found = store.version(&arena(), version).await.unwrap();
    found.expect("the version is there")
}

async fn listed(store: &dyn Store) -> Vec<Version> {
    let versions = store.versions(&arena()).await.unwrap().0;
    versions.into_iter().map(|record| record.version).collect()
}

pub(super) async fn a_version_comes_back_as_it_was_inserted(store: &dyn Store) {
    open(store).await;
    let before = scheduler(store, &arena()).await;
    let inserted = Change::InsertVersion {
        scheduler: arena(),
        recipe: Arc::new(recipe_with_image("example/game:2")),
        version: version(2, 0),
        status: VersionStatus::Validating,
        at: at(7),
    };
    accept(store, vec![inserted]).await;
    let expected = VersionRecord {
        version: version(2, 0),
        recipe: Arc::new(recipe_with_image("example/game:2")),
        status: VersionStatus::Validating,
        cause: String::new(),
        is_active: false,
        created_at: at(7),
    };
    assert_eq!(read(store, version(2, 0)).await, expected);
    assert_eq!(scheduler(store, &arena()).await, before, "the active one stays active");
    assert!(read(store, Version::FIRST).await.is_active);
    let elsewhere = store.version(&bystander(), version(2, 0)).await.unwrap();
    assert_eq!(elsewhere, None);
}

pub(super) async fn versions_are_listed_newest_first(store: &dyn Store) {
    open(store).await;
    // By their numbers, which are neither in the order of inserting nor in that of their texts.
    for (major, minor, status) in [
        (2, 0, VersionStatus::Error),
        (1, 10, VersionStatus::Superseded),
        (10, 0, VersionStatus::Validating),
        (1, 2, VersionStatus::Canceled),
    ] {
        let version = version(major, minor);
        accept(store, vec![insert_version(version), set_version_status(version, status)]).await;
    }
    let versions = store.versions(&arena()).await.unwrap().0;
    let listed: Vec<_> =
        versions.iter().map(|record| (record.version.to_string(), record.status, record.is_active)).collect();
    let expected = [
        ("v10.0.0", VersionStatus::Validating, false),
        ("v2.0.0", VersionStatus::Error, false),
        ("v1.10.0", VersionStatus::Superseded, false),
        ("v1.2.0", VersionStatus::Canceled, false),
        ("v1.0.0", VersionStatus::Deployed, true),
    ];
    assert_eq!(listed, expected.map(|(text, status, is_active)| (text.to_owned(), status, is_active)));
    for record in versions {
        assert_eq!(read(store, record.version).await, record, "one by one too");
    }
    let elsewhere = store.versions(&bystander()).await.unwrap().0;
    assert_eq!(elsewhere.len(), 1, "others have their own");
}

pub(super) async fn a_version_is_given_once(store: &dyn Store) {
    open(store).await;
    let exists = |version| Refusal::VersionExists { scheduler: arena(), version };
    refuse(store, vec![insert_version(Version::FIRST)], exists(Version::FIRST)).await;
    let second = version(2, 0);
    refuse(store, vec![insert_version(second), insert_version(second)], exists(second)).await;
    accept(store, vec![insert_version(second)]).await;
    refuse(store, vec![insert_version(second)], exists(second)).await;
    let elsewhere = Change::InsertVersion {
        scheduler: bystander(),
        recipe: Arc::new(recipe(&bystander())),
        version: second,
        status: VersionStatus::Validating,
        at: at(1),
    };
    accept(store, vec![elsewhere]).await;
}

pub(super) async fn a_version_has_a_status(store: &dyn Store) {
    open(store).await;
    accept(store, vec![insert_version(version(2, 0))]).await;
    for status in VersionStatus::ALL {
        for changed in [Version::FIRST, version(2, 0)] {
            accept(store, vec![set_version_status(changed, status)]).await;
            let VersionRecord { status: is, cause, .. } = read(store, changed).await;
            assert_eq!((is, cause), (status, format!("why it is {}", status.as_str())));
        }
    }
    accept(store, vec![set_version_status(Version::FIRST, VersionStatus::Superseded)]).await;
    assert_eq!(
        read(store, version(2, 0)).await.status,
        VersionStatus::ALL[VersionStatus::ALL.len() - 1],
        "each has its own"
    );
    let other = store.version(&bystander(), Version::FIRST).await.unwrap();
    assert_eq!(other.map(|version| version.status), Some(VersionStatus::Deployed));
}

pub(super) async fn a_version_that_is_not_there_has_no_status(store: &dyn Store) {
    open(store).await;
    let absent = version(1, 1);
    let missing = Refusal::VersionNotFound { scheduler: arena(), version: absent };
    refuse(store, vec![set_version_status(absent, VersionStatus::Deployed)], missing).await;
}

pub(super) async fn the_active_version_brings_its_recipe_and_time(store: &dyn Store) {
    open(store).await;
    let before = scheduler(store, &arena()).await;
    let second = version(2, 0);
    accept(store, vec![insert_version(second), set_active_version(0, second)]).await;
    let inserted = read(store, second).await;
    assert!(inserted.is_active);
    assert!(!read(store, Version::FIRST).await.is_active, "there is only one");
    let expected = SchedulerRecord {
        active_version: second,
        recipe: inserted.recipe,
        version_created_at: at(4),
        revision: 1,
        ..before.clone()
    };
    assert_eq!(scheduler(store, &arena()).await, expected, "and nothing else");
    assert!(store.schedulers().await.unwrap().contains(&expected));

    for (read, again) in [(1, "and back"), (2, "to what it is")] {
        accept(store, vec![set_active_version(read, Version::FIRST)]).await;
        let expected = SchedulerRecord { revision: read + 1, ..before.clone() };
        assert_eq!(scheduler(store, &arena()).await, expected, "{again}");
    }
    assert!(read(store, Version::FIRST).await.is_active);
}

pub(super) async fn only_a_version_that_is_there_becomes_active(store: &dyn Store) {
    open(store).await;
    let second = version(2, 0);
    let elsewhere = Change::InsertVersion {
        scheduler: bystander(),
        recipe: Arc::new(recipe(&bystander())),
        version: second,
        status: VersionStatus::Validated,
        at: at(1),
    };
    accept(store, vec![elsewhere]).await;
    let missing = Refusal::VersionNotFound { scheduler: arena(), version: second };
    let switch = set_active_version(0, second);
    refuse(store, vec![switch.clone()], missing.clone()).await;
    refuse(store, vec![insert_version(second), delete_version(second), switch], missing).await;
}

pub(super) async fn a_deleted_version_is_gone(store: &dyn Store) {
    open(store).await;
    accept(store, vec![insert_version(version(2, 0)), insert_version(version(3, 0))]).await;
    accept(store, vec![delete_version(version(2, 0))]).await;
    assert_eq!(store.version(&arena(), version(2, 0)).await.unwrap(), None);
    assert_eq!(listed(store).await, [version(3, 0), Version::FIRST]);
}

pub(super) async fn deleting_a_version_that_is_not_there_does_nothing(store: &dyn Store) {
    open(store).await;
    let before = everything(store).await;
    let of_nobody = Change::DeleteVersion { scheduler: name("gone"), version: Version::FIRST };
    accept(store, vec![delete_version(version(2, 0)), of_nobody]).await;
    assert_eq!(everything(store).await, before);
}

pub(super) async fn the_active_version_is_not_deleted(store: &dyn Store) {
    open(store).await;
    let active = |version| Refusal::VersionIsActive { scheduler: arena(), version };
    let second = version(2, 0);
    refuse(store, vec![delete_version(Version::FIRST)], active(Version::FIRST)).await;
    accept(store, vec![insert_version(second), set_active_version(0, second)]).await;
    refuse(store, vec![delete_version(second)], active(second)).await;
    accept(store, vec![delete_version(Version::FIRST)]).await;
    assert_eq!(listed(store).await, [second]);
}

/// What was said about a version that is gone does not become true of another one.
pub(super) async fn the_number_of_a_deleted_version_is_not_given_again(store: &dyn Store) {
    open(store).await;
    let (second, third) = (version(2, 0), version(3, 0));
    accept(store, vec![insert_version(third), insert_version(second)]).await;
    accept(store, vec![delete_version(second)]).await;
    let exists = Refusal::VersionExists { scheduler: arena(), version: second };
    refuse(store, vec![insert_version(second)], exists).await;
    let numbers = store.version_numbers(&arena()).await.unwrap();
    assert_eq!(numbers, [Version::FIRST, second, third]);
    let elsewhere = store.version_numbers(&bystander()).await.unwrap();
    assert_eq!(elsewhere, [Version::FIRST], "others have their own");
    assert_eq!(store.version_numbers(&name("gone")).await.unwrap(), []);
}

/// The next scheduler of that name begins anew.
pub(super) async fn the_numbers_of_a_deleted_scheduler_are_gone(store: &dyn Store) {
    open(store).await;
    accept(store, vec![insert_version(version(2, 0)), delete_version(version(2, 0))]).await;
    accept(store, vec![Change::DeleteScheduler { scheduler: arena(), keep: operation_id(1) }]).await;
    assert_eq!(store.version_numbers(&arena()).await.unwrap(), []);
    accept(store, vec![Change::CreateScheduler(new_scheduler(&arena())), insert_version(version(2, 0))])
        .await;
    assert_eq!(listed(store).await, [version(2, 0), Version::FIRST]);
}
