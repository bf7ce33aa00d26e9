//! Which rooms are claimed for matchmakers, of all that there are.

use maestro_core::allocation::{AllocationRules, Wish};

use crate::ports::room_table::{HeldRoom, HoldAnswer, HoldRequest};

use super::holds::{allocation, hold, ids_of, request, rooms_of};
use super::*;

pub(super) async fn the_fullest_room_comes_first(table: &dyn RoomTable) {
    for (number, matches) in [(1, 0), (2, 2), (3, 1), (4, 4)] {
        table.insert(NewRoom { matches_max: 4, ..new_room(number) }).await.unwrap();
        try_ping(table, number, PingStatus::Ready, matches).await.unwrap();
    }
    let mut order = Vec::new();
    for caller in 1..=9 {
        order.extend(hold(table, &[caller], &[]).await.map(rooms_of).unwrap());
    }
    assert_eq!(order, ids_of(&[2, 2, 3, 3, 3, 1, 1, 1, 1]));
    assert_eq!(hold(table, &[10], &[]).await, None);
}

pub(super) async fn wishes_are_tried_in_their_order(table: &dyn RoomTable) {
    let v2 = Version { major: 2, minor: 0, patch: 0 };
    for (number, version, region) in
        [(1, Version::FIRST, "eu"), (2, v2, "eu"), (3, Version::FIRST, "us"), (4, Version::FIRST, "asia")]
    {
        table.insert(NewRoom { version, region: Region(region.into()), ..new_room(number) }).await.unwrap();
        ping(table, number, PingStatus::Ready).await;
    }
    let of_v2 = Wish { version: Some(v2), ..Wish::default() };
    let there = |regions: &[&str]| Wish {
        regions: regions.iter().map(|region| Region((*region).into())).collect(),
        ..Wish::default()
    };
    for (wishes, expected) in [
        (vec![there(&["us", "eu"])], Some(3)),
        (vec![there(&["us"])], None),
        (vec![there(&["us"]), of_v2.clone()], Some(2)),
        (vec![of_v2], None),
        (vec![there(&["us", "asia"])], Some(4)),
        (vec![there(&["mars"])], None),
        (vec![there(&["mars"]), Wish::default()], Some(1)),
    ] {
        let held = hold(table, &[9], &wishes).await.map(rooms_of);
        assert_eq!(held, expected.map(|number| ids_of(&[number])), "{wishes:?}");
    }
}

pub(super) async fn what_is_to_be_replaced_comes_last(table: &dyn RoomTable) {
    let v2 = Version { major: 2, minor: 0, patch: 0 };
    for (number, version, region) in [(1, Version::FIRST, "eu"), (2, v2, "eu"), (3, v2, "us")] {
        table.insert(NewRoom { version, region: Region(region.into()), ..new_room(number) }).await.unwrap();
        ping(table, number, PingStatus::Ready).await;
    }
    let rules = AllocationRules {
        old_versions: vec![Version::FIRST],
        draining_regions: vec![Region("us".into())],
        ..AllocationRules::default()
    };
    table.set_allocation_rules(&arena(), rules).await.unwrap();
    assert_eq!(hold(table, &[1], &[]).await.map(rooms_of), Some(ids_of(&[2])));
    assert!(hold(table, &[2, 3], &[]).await.is_some(), "better than nothing");
}

pub(super) async fn rooms_of_an_unreachable_region_are_not_held(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    let rules =
        AllocationRules { unreachable_regions: vec![Region::default_region()], ..AllocationRules::default() };
    table.set_allocation_rules(&arena(), rules).await.unwrap();
    assert_eq!(hold(table, &[1], &[]).await, None);
    table.set_allocation_rules(&arena(), AllocationRules::default()).await.unwrap();
    assert!(hold(table, &[1], &[]).await.is_some());
}

pub(super) async fn a_wish_for_metadata(table: &dyn RoomTable) {
    insert_ready(table, 3).await;
    say(table, 2, r#"{"mode":"duel","level":3}"#).await;
    let wish = |text: &str| Wish { metadata: serde_json::from_str(text).unwrap(), ..Wish::default() };
    assert_eq!(hold(table, &[1], &[wish(r#"{"mode":"siege"}"#)]).await, None);
    let held = hold(table, &[1], &[wish(r#"{"mode":"duel"}"#)]).await.map(rooms_of);
    assert_eq!(held, Some(ids_of(&[2])));
    assert_eq!(hold(table, &[2], &[wish(r#"{"mode":"duel"}"#)]).await, None);
}

/// More rooms than one search looks at: the next search begins elsewhere.
pub(super) async fn many_candidates_are_found_in_turn(table: &dyn RoomTable) {
    insert_ready(table, 600).await;
    say(table, 1, r#"{"mode":"duel"}"#).await;
    let found = search(table, &[wish_for("duel")]).await;
    assert_eq!(found.map(rooms_of), Some(ids_of(&[1])));
}

/// Two searches that take turns do not each see the same half of all rooms for ever.
pub(super) async fn searches_that_take_turns_see_all_rooms(table: &dyn RoomTable) {
    insert_ready(table, 512).await;
    // The first search sees the last 256 of them.
    for number in [512, 1] {
        say(table, number, r#"{"mode":"duel"}"#).await;
        let found = search(table, &[wish_for("siege"), wish_for("duel")]).await;
        assert_eq!(found.map(rooms_of), Some(ids_of(&[number])));
    }
}

/// The first that is found within as many attempts as somebody makes who waits.
async fn search(table: &dyn RoomTable, wishes: &[Wish]) -> Option<Vec<HeldRoom>> {
    let ids = [allocation(1)];
    for attempt in 0..60 {
        let request = HoldRequest { draw: attempt * 1_000_003, ..request(&ids, wishes) };
        if let Some(HoldAnswer::Held(rooms)) = table.hold(&[request]).await.unwrap().pop() {
            return Some(rooms);
        }
    }
    None
}

pub(super) async fn rooms_that_fell_silent_do_not_hide_others(table: &dyn RoomTable) {
    insert_ready(table, 300).await;
    let heard = |number| async move {
        let said = room_id(number);
        table.ping(ready_ping(&said), at(9)).await.unwrap();
    };
    let ids = [allocation(1)];
    let late = || HoldRequest { heard_since: at(6), now: at(9), ..request(&ids, &[]) };
    assert_eq!(table.hold(&[late()]).await.unwrap(), [HoldAnswer::NotEnough]);
    for number in [1, 300] {
        heard(number).await;
        let held = table.hold(&[late()]).await.unwrap().pop();
        let Some(HoldAnswer::Held(held)) = held else { panic!("room {number} has pinged") };
        assert_eq!(rooms_of(held), ids_of(&[number]));
    }
    assert_eq!(counts(table).await, recounted(table).await);
}

/// What was heard before the clock was set back says nothing about now.
pub(super) async fn a_ping_from_the_future_is_no_sign_of_life(table: &dyn RoomTable) {
    insert_ready(table, 1).await;
    let said = room_id(1);
    table.ping(ready_ping(&said), at(500)).await.unwrap();
    assert_eq!(hold(table, &[1], &[]).await, None);
    table.ping(ready_ping(&said), at(6)).await.unwrap();
    assert!(hold(table, &[1], &[]).await.is_some(), "clocks are not the same to the second");
}

// What cases are made of.

/// A room pings with this metadata.
async fn say(table: &dyn RoomTable, number: u32, metadata: &str) {
    let said = room_id(number);
    table.ping(Ping { metadata: Some(metadata), ..ready_ping(&said) }, at(5)).await.unwrap();
}

fn wish_for(mode: &str) -> Wish {
    let metadata = std::iter::once(("mode".to_owned(), mode.into())).collect();
    Wish { metadata, ..Wish::default() }
}

/// However the search for the first of them ended, nobody behind it is luckier.
pub(super) async fn nobody_finds_what_others_of_the_call_did_not(table: &dyn RoomTable) {
    insert_ready(table, 600).await;
    let said = room_id(1);
    let ping = Ping { metadata: Some(r#"{"mode":"duel"}"#), ..ready_ping(&said) };
    table.ping(ping, at(5)).await.unwrap();
    let wish = Wish { metadata: serde_json::from_str(r#"{"mode":"duel"}"#).unwrap(), ..Wish::default() };
    let wishes = std::slice::from_ref(&wish);
    let anything = [allocation(9)];
    let callers: Vec<_> = (1..=4).map(|number| [allocation(number)]).collect();
    let same = callers.iter().map(|caller| request(caller, wishes));
    let requests: Vec<_> = same.chain([request(&anything, &[])]).collect();
    let answers = table.hold(&requests).await.unwrap();
    let is_held = |answer: &HoldAnswer| matches!(answer, HoldAnswer::Held(_));
    let luckier = answers[..4].windows(2).filter(|pair| !is_held(&pair[0]) && is_held(&pair[1])).count();
    assert_eq!(luckier, 0, "{answers:?}");
    assert!(is_held(&answers[4]), "who wants something else gets it");
}
