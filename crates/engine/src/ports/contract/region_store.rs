//! The suite of what people have said about regions, and of what was seen of them.

use std::future::Future;

use maestro_core::room::Region;
use maestro_core::time::{Millis, Timestamp};

use crate::ports::Store;
use crate::ports::store::{Change, Contact, NewRoomRecord, Refusal, RegionObservation, RegionRecord};

use super::fixtures::*;
use super::{StoreUnderTest, run_cases};

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = StoreUnderTest>,
{
    run_cases!(
        "region store",
        fresh,
        [
            a_region_comes_back_as_it_was_set,
            regions_are_listed_by_name,
            a_region_is_changed_only_from_what_it_is,
            a_region_is_known_by_what_was_written_and_by_what_was_read,
            a_refused_transaction_leaves_a_region_as_it_was,
            observers_replace_only_what_they_said_themselves,
            old_observations_of_a_region_are_forgotten,
            a_region_stays_bound_to_its_host_while_it_is_observed,
            a_region_stays_bound_to_its_host_while_it_has_rooms,
        ]
    );
}

fn region(name: &str, cordoned: bool, draining: bool) -> RegionRecord {
    RegionRecord {
        name: Region(name.into()),
        cordoned,
        draining,
        by: "ada@host".into(),
        reason: "new machines".into(),
        at: at(3),
        lost_at: draining.then(|| at(2)),
    }
}

fn set(from: Option<&RegionRecord>, to: &RegionRecord) -> Vec<Change> {
    vec![Change::SetRegion { from: from.cloned(), to: to.clone() }]
}

async fn a_region_comes_back_as_it_was_set(store: &dyn Store) {
    assert_eq!(store.regions().await.unwrap(), []);
    let mut before = None;
    for (cordoned, draining) in [(true, false), (true, true), (false, false)] {
        let record = region("eu-west", cordoned, draining);
        accept(store, set(before.as_ref(), &record)).await;
        assert_eq!(store.regions().await.unwrap().as_slice(), std::slice::from_ref(&record));
        before = Some(record);
    }
}

async fn regions_are_listed_by_name(store: &dyn Store) {
    for name in ["us-east", "RegionOne", "eu.west_1"] {
        accept(store, set(None, &region(name, true, false))).await;
    }
    let names: Vec<_> =
        store.regions().await.unwrap().into_iter().map(|region| region.name.to_string()).collect();
    assert_eq!(names, ["RegionOne", "eu.west_1", "us-east"]);
}

async fn a_region_is_changed_only_from_what_it_is(store: &dyn Store) {
    open(store).await;
    let is = region("eu-west", true, false);
    let changed = || Refusal::RegionChanged(is.name.clone());
    let to = region("eu-west", true, true);
    refuse(store, set(Some(&is), &to), changed()).await;
    accept(store, set(None, &is)).await;
    let others = [
        None,
        Some(RegionRecord { cordoned: false, ..is.clone() }),
        Some(RegionRecord { draining: true, ..is.clone() }),
        Some(RegionRecord { by: "bob@host".into(), ..is.clone() }),
        Some(RegionRecord { reason: String::new(), ..is.clone() }),
        Some(RegionRecord { at: at(4), ..is.clone() }),
        Some(RegionRecord { lost_at: Some(at(4)), ..is.clone() }),
    ];
    for from in &others {
        refuse(store, set(from.as_ref(), &to), changed()).await;
    }
    assert_eq!(store.regions().await.unwrap(), [is]);
}

async fn a_region_is_known_by_what_was_written_and_by_what_was_read(store: &dyn Store) {
    let fine = Timestamp::from_nanosecond(at(6).as_nanosecond() + 123_456_789).unwrap();
    let written = RegionRecord { at: fine, ..region("eu-west", true, false) };
    accept(store, set(None, &written)).await;
    let read = store.regions().await.unwrap().remove(0);
    accept(store, set(Some(&read), &written)).await;
    accept(store, set(Some(&written), &region("eu-west", false, false))).await;
}

async fn a_refused_transaction_leaves_a_region_as_it_was(store: &dyn Store) {
    open(store).await;
    let is = region("eu-west", true, false);
    accept(store, set(None, &is)).await;
    let mut changes = set(Some(&is), &region("eu-west", false, false));
    changes.extend(set(Some(&is), &is));
    refuse(store, changes, Refusal::RegionChanged(is.name.clone())).await;
    assert_eq!(store.regions().await.unwrap(), [is]);
}

fn observed(region: &str, observer: &str, second: i64, contact: Contact) -> RegionObservation {
    let (region, observer) = (Region(region.into()), observer.to_owned());
    RegionObservation { region, observer, at: at(second), contact, capacity: Some(40) }
}

fn reachable() -> Contact {
    Contact::Reachable { since: None }
}

async fn observers_replace_only_what_they_said_themselves(store: &dyn Store) {
    assert_eq!(store.region_observations().await.unwrap(), []);
    let unreachable = Contact::Unreachable { why: "no answer".into() };
    let first = observed("eu-west", "two", 1, Contact::Unsettled { why: "too early".into() });
    let others = [
        observed("eu-west", "one", 2, unreachable),
        observed("us-east", "two", 3, Contact::Reachable { since: Some(at(2)) }),
    ];
    for observation in others.iter().chain([&first]) {
        store.observe_region(observation.clone(), at(0)).await.unwrap();
    }
    let [one, us] = others;
    assert_eq!(store.region_observations().await.unwrap(), [one.clone(), first, us.clone()]);
    let next = RegionObservation { capacity: None, ..observed("eu-west", "two", 4, reachable()) };
    store.observe_region(next.clone(), at(0)).await.unwrap();
    assert_eq!(store.region_observations().await.unwrap(), [one, next, us]);
}

async fn old_observations_of_a_region_are_forgotten(store: &dyn Store) {
    for (region, observer, second) in [("eu-west", "gone", 1), ("eu-west", "late", 2), ("us-east", "gone", 1)]
    {
        let observation = observed(region, observer, second, reachable());
        store.observe_region(observation, at(0)).await.unwrap();
    }
    store.observe_region(observed("eu-west", "new", 3, reachable()), at(2)).await.unwrap();
    let left = store.region_observations().await.unwrap();
    let left: Vec<_> = left.iter().map(|seen| (seen.region.as_str(), seen.observer.as_str())).collect();
    assert_eq!(left, [("eu-west", "late"), ("eu-west", "new"), ("us-east", "gone")]);
}

/// Whatever is older than ten seconds is over.
async fn bound(store: &dyn Store, host: &str, now: i64) -> String {
    let region = Region("eu-west".into());
    store.bind_region(&region, host, at(now), Millis::from_seconds(10)).await.unwrap()
}

async fn a_region_stays_bound_to_its_host_while_it_is_observed(store: &dyn Store) {
    assert_eq!(bound(store, "ada", 1).await, "ada");
    assert_eq!(bound(store, "bob", 10).await, "ada", "it was bound a moment ago");
    store.observe_region(observed("eu-west", "ada/1", 10, reachable()), at(0)).await.unwrap();
    store.observe_region(observed("us-east", "bob/1", 19, reachable()), at(0)).await.unwrap();
    assert_eq!(bound(store, "bob", 19).await, "ada");
    assert_eq!(bound(store, "bob", 20).await, "bob", "nobody has looked at it since");
    assert_eq!(bound(store, "ada", 21).await, "bob");
    assert_eq!(bound(store, "bob", 29).await, "bob");
    assert_eq!(bound(store, "ada", 38).await, "bob", "it was bound again");
}

async fn a_region_stays_bound_to_its_host_while_it_has_rooms(store: &dyn Store) {
    assert_eq!(bound(store, "ada", 1).await, "ada");
    open(store).await;
    let room = NewRoomRecord { region: Region("eu-west".into()), ..new_room(1, 20_000) };
    accept(store, vec![Change::IntendRoom(room)]).await;
    assert_eq!(bound(store, "bob", 100).await, "ada");
    accept(store, vec![end_room(1, 4)]).await;
    assert_eq!(bound(store, "bob", 100).await, "bob");
}
