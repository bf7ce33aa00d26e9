//! The scenarios of Senlin's policies, with every branch and every example.

use serde_json::json;

use super::*;
use crate::resize::{Adjustment, Cluster, Max, Request, Strictness};

const SCALE_OUT: Action = Action::ScaleOut { count: None };
const SCALE_IN: Action = Action::ScaleIn { count: None };

fn resize_to(size: u64, strictness: Strictness) -> Action {
    let adjustment = Some(Adjustment::Exact(size));
    let request = Request { adjustment, min_size: None, max_size: None, strictness };
    let cluster = Cluster {
        current: Some(5),
        min_size: 2,
        max_size: Max::Rooms(10),
        desired_capacity: 5,
        nodes_max: Max::Unlimited,
    };
    Action::Resize { request, cluster }
}

/// Placement alone, over two regions that are alike.
#[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
fn check_placement(rooms: &[(&str, u64)], action: Action, data: Value, expected: Value) {
    let regions = standing(rooms);
    let policy = one_and_two();
    let placed = checked(&[Policy::Placement(&policy)], &action, &fleet(&regions), &data);
    assert_eq!(placed, expected, "{action:?} {data}");
}

#[test]
fn s1_scale_in() {
    let check = |action, data, regions: Value| {
        let count: u64 = regions.as_object().unwrap().values().map(|rooms| rooms.as_u64().unwrap()).sum();
        let expected = json!({"status": "OK", "deletion": {"count": count, "regions": regions}});
        check_placement(&[("RegionOne", 5), ("RegionTwo", 4)], action, data, expected);
    };
    // The example of Senlin's documentation.
    let three = Action::ScaleIn { count: Some(3) };
    check(three, json!({}), json!({"RegionOne": 2, "RegionTwo": 1}));
    // A decision of another policy counts, with and without a number, whatever the inputs say.
    check(three, json!({"deletion": {"count": 5}}), json!({"RegionOne": 3, "RegionTwo": 2}));
    check(three, json!({"deletion": {}}), json!({"RegionOne": 1}));
    check(SCALE_IN, json!({}), json!({"RegionOne": 1}));
    // What is about growing is not about this.
    check(SCALE_IN, json!({"creation": null}), json!({"RegionOne": 1}));
}

#[test]
fn s2_scale_out() {
    let check = |action, data, regions: Value| {
        let count: u64 = regions.as_object().unwrap().values().map(|rooms| rooms.as_u64().unwrap()).sum();
        let expected = json!({"status": "OK", "creation": {"count": count, "regions": regions}});
        check_placement(&[("RegionOne", 1), ("RegionTwo", 0)], action, data, expected);
    };
    // The example of Senlin's documentation.
    let three = Action::ScaleOut { count: Some(3) };
    check(three, json!({}), json!({"RegionOne": 1, "RegionTwo": 2}));
    check(three, json!({"creation": {"count": 5}}), json!({"RegionOne": 2, "RegionTwo": 3}));
    check(three, json!({"creation": {}}), json!({"RegionTwo": 1}));
    check(SCALE_OUT, json!({}), json!({"RegionTwo": 1}));
}

#[test]
fn s3_resize() {
    let rooms = [("RegionOne", 3), ("RegionTwo", 2)];
    let check = |action, data, expected| check_placement(&rooms, action, data, expected);
    let up = resize_to(8, Strictness::Strict);
    let grown = |count: u64, one: u64, two: u64| json!({"status": "OK", "creation": {"count": count, "regions": {"RegionOne": one, "RegionTwo": two}}});
    // Creation first, then deletion, then the parser.
    let both = json!({"creation": {"count": 5}, "deletion": {"count": 2}});
    let mut expected = grown(5, 2, 3);
    expected["deletion"] = json!({"count": 2});
    check(up, both, expected);
    check(
        up,
        json!({"creation": {}}),
        json!({"status": "OK", "creation": {"count": 1, "regions": {"RegionTwo": 1}}}),
    );
    check(
        up,
        json!({"deletion": {"count": 3}}),
        json!({"status": "OK", "deletion": {"count": 3, "regions": {"RegionOne": 2, "RegionTwo": 1}}}),
    );
    check(up, json!({}), grown(3, 1, 2));
    check(
        resize_to(3, Strictness::Strict),
        json!({}),
        json!({"status": "OK", "deletion": {"count": 2, "regions": {"RegionOne": 1, "RegionTwo": 1}}}),
    );
    check(resize_to(5, Strictness::Strict), json!({}), json!({"status": "OK", "creation": {"count": 0}}));
    // The parser's message is the reason.
    check(
        resize_to(1, Strictness::Strict),
        json!({}),
        json!({"status": "ERROR", "reason": "The target capacity (1) is less than the cluster's min_size (2)."}),
    );
}

#[test]
fn s4_create_room() {
    let regions = standing(&[("RegionOne", 1), ("RegionTwo", 0)]);
    let policy = one_and_two();
    let policies = [Policy::Placement(&policy)];
    let create = |fleet: &Fleet<'_>| checked(&policies, &Action::CreateRoom, fleet, &json!({}));
    let placed = json!({"status": "OK", "creation": {"count": 1, "regions": {"RegionTwo": 1}}});
    assert_eq!(create(&fleet(&regions)), placed);
    // A recipe that names its region is left alone, whatever the operation is.
    let bound_to = name("RegionOne");
    let bound = Fleet { bound_to: Some(&bound_to), ..fleet(&regions) };
    assert_eq!(create(&bound), json!({"status": "OK"}));
    let decided = json!({"creation": {"count": 9}});
    let left_alone = json!({"status": "OK", "creation": {"count": 9}});
    assert_eq!(checked(&policies, &SCALE_OUT, &bound, &decided), left_alone);
}

#[test]
fn no_region_is_usable() {
    let expected = json!({"status": "ERROR", "reason": "No region is found usable."});
    for action in [SCALE_OUT, SCALE_IN, Action::CreateRoom, resize_to(8, Strictness::Strict)] {
        check_placement(&[], action, json!({}), expected.clone());
        check_placement(&[("RegionNine", 3)], action, json!({}), expected.clone());
    }
    // Cordoned: nothing may come, but rooms may go.
    let cordoned = Standing { counted: 2, cordoned: true, ..Standing::default() };
    let regions = BTreeMap::from([(name("RegionOne"), cordoned)]);
    let policy = one_and_two();
    let policies = [Policy::Placement(&policy)];
    assert_eq!(checked(&policies, &SCALE_OUT, &fleet(&regions), &json!({})), expected);
    let removed = json!({"status": "OK", "deletion": {"count": 1, "regions": {"RegionOne": 1}}});
    assert_eq!(checked(&policies, &SCALE_IN, &fleet(&regions), &json!({})), removed);
}

/// What it has does not count either: its rooms may be many, or on their way out.
#[test]
fn the_share_of_a_cordoned_region_goes_to_the_others() {
    let cordoned = Standing { counted: 12, cordoned: true, ..Standing::default() };
    let open = Standing::default();
    let regions = BTreeMap::from([(name("a"), cordoned), (name("b"), open), (name("c"), open)]);
    let region = |text, weight| PlacementRegion { name: name(text), weight, cap: None };
    let policy = PlacementPolicy { regions: vec![region("a", 3), region("b", 2), region("c", 1)] };
    let action = Action::ScaleOut { count: Some(24) };
    let data = checked(&[Policy::Placement(&policy)], &action, &fleet(&regions), &json!({}));
    assert_eq!(data["creation"]["regions"], json!({"b": 16, "c": 8}));
}

#[test]
fn there_is_no_feasible_plan() {
    let expected = json!({"status": "ERROR", "reason": "There is no feasible plan to handle all nodes."});
    let rooms = [("RegionOne", 2), ("RegionTwo", 1)];
    check_placement(&rooms, Action::ScaleIn { count: Some(4) }, json!({}), expected.clone());
    let mut policy = one_and_two();
    for region in &mut policy.regions {
        region.cap = Some(3);
    }
    let regions = standing(&rooms);
    let grow = |count| {
        let action = Action::ScaleOut { count: Some(count) };
        checked(&[Policy::Placement(&policy)], &action, &fleet(&regions), &json!({}))
    };
    assert_eq!(grow(3)["creation"]["regions"], json!({"RegionOne": 1, "RegionTwo": 2}));
    assert_eq!(grow(4), expected);
    let refusal = check(
        &[Policy::Placement(&policy)],
        &Action::ScaleOut { count: Some(4) },
        &fleet(&regions),
        Data::default(),
    );
    assert_eq!(refusal, Err(Refusal::NoFeasiblePlan(NoPlan { fits: 3 })));
}

/// A region that cannot be reached is not there; its share goes to the others.
#[test]
fn what_is_not_usable_is_left_out() {
    let policy = one_and_two();
    let policies = [Policy::Placement(&policy)];
    let regions = standing(&[("RegionTwo", 4)]);
    let placed = checked(&policies, &Action::ScaleOut { count: Some(3) }, &fleet(&regions), &json!({}));
    assert_eq!(placed["creation"]["regions"], json!({"RegionTwo": 3}));
    // Rooms in a region that the policy does not name go first, and no others come there.
    let regions = standing(&[("RegionOne", 2), ("RegionTwo", 2), ("Attic", 2)]);
    let placed = checked(&policies, &Action::ScaleOut { count: Some(4) }, &fleet(&regions), &json!({}));
    assert_eq!(placed["creation"]["regions"], json!({"RegionOne": 2, "RegionTwo": 2}));
    let placed = checked(&policies, &Action::ScaleIn { count: Some(3) }, &fleet(&regions), &json!({}));
    assert_eq!(placed["deletion"]["regions"], json!({"Attic": 2, "RegionTwo": 1}));
}

#[test]
fn scaling_comes_first_whatever_the_order_of_the_list() {
    let policy = one_and_two();
    let regions = standing(&[("RegionOne", 1), ("RegionTwo", 0)]);
    let check = |outcome, action, expected| {
        let policies = [Policy::Placement(&policy), Policy::Scaling(outcome)];
        assert_eq!(checked(&policies, &action, &fleet(&regions), &json!({})), expected);
    };
    let three =
        json!({"status": "OK", "creation": {"count": 3, "regions": {"RegionOne": 1, "RegionTwo": 2}}});
    check(Outcome::ScaleUp(3), Action::ScaleOut { count: Some(1) }, three.clone());
    check(Outcome::ScaleDown(9), Action::ScaleOut { count: Some(3) }, three);
    let one = json!({"status": "OK", "deletion": {"count": 1, "regions": {"RegionOne": 1}}});
    check(Outcome::ScaleDown(1), Action::ScaleIn { count: Some(9) }, one);
    let priorities = [Policy::Scaling(Outcome::DoNothing), Policy::Placement(&policy)];
    assert_eq!(priorities.map(|policy| policy.priority()), [100, 200]);
}
