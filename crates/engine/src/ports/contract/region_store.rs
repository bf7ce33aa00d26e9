//! The suite of what people have said about regions.

use std::future::Future;

use maestro_core::room::Region;
use maestro_core::time::Timestamp;

use crate::ports::Store;
use crate::ports::store::{Change, Refusal, RegionRecord};

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
