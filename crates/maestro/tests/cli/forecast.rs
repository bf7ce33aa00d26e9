//! What a dry run says of regions: caps, cordons, drains and lost ones.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::schedulers::arena;
use crate::server::{Answer, Server, ok, refusal};
use crate::versions::{VERSIONS, recipe};
use crate::{check_stdin, maestro, run, told};

/// Of a server that names no regions.
pub(crate) fn one_region() -> Answer {
    regions(&[("default", OPEN)])
}

/// What the list says of a region: reachable, cordoned, draining, and why.
type State = (bool, bool, bool, &'static str);

const OPEN: State = (true, false, false, "");
const CORDONED: State = (true, true, false, "cordoned by ada@host: slow network");
const DRAINED: State = (true, true, true, "drained by ada@host: new machines");
const LOST: State = (false, false, false, "cannot be reached: no answer within 10s");
const NOT_ADOPTED: State = (false, false, false, "is not adopted yet: it has not answered yet");

fn regions(states: &[(&str, State)]) -> Answer {
    let region = |(name, (reachable, cordoned, draining, reason)): &(&str, State)| {
        json!({
            "name": name, "reachable": reachable, "cordoned": cordoned, "draining": draining, "reason": reason,
            "capacity": null, "rooms": {},
        })
    };
    let regions: Vec<Value> = states.iter().map(region).collect();
    ok(&json!({ "regions": regions }).to_string())
}

/// So many ready rooms in each region, and an occupied one in the last.
fn rooms(numbers: &[(&str, u32)]) -> Answer {
    let mut rooms = Vec::new();
    for (region, number) in numbers {
        for room in 1..=*number {
            rooms.push(json!({
                "id": format!("arena-{region}-{room}"), "status": "ready", "version": "v1.0.0", "region": region,
            }));
        }
    }
    if let Some(last) = rooms.last_mut() {
        last["status"] = "occupied".into();
    }
    ok(&json!({ "rooms": rooms }).to_string())
}

/// At most four rooms in eu-west.
const ONE_CAP: &str = r#""placement":{"regions":[{"name":"eu-west","weight":1,"cap":4},{"name":"us-east","weight":1}]},"labels""#;
/// And no more in us-east.
const TWO_CAPS: &str = r#""placement":{"regions":[{"name":"eu-west","weight":1,"cap":4},{"name":"us-east","weight":1,"cap":4}]},"labels""#;

/// The recipe of a fleet of this size.
fn placed(placement: &str, replicas: u32) -> String {
    let replicas = format!(r#""roomsReplicas":{replicas}"#);
    recipe(&[(r#""labels""#, placement), (r#""roomsReplicas":3"#, &replicas)])
}

/// A fleet of five: two in eu-west and three in us-east.
fn server(placement: &str, states: [State; 2]) -> Vec<Answer> {
    let [eu_west, us_east] = states;
    vec![
        ok(&placed(placement, 5)),
        ok(VERSIONS),
        regions(&[("eu-west", eu_west), ("us-east", us_east)]),
        rooms(&[("eu-west", 2), ("us-east", 3)]),
        ok(r#"{"state":"none"}"#),
    ]
}

/// What the next cycle does when so many rooms are wanted instead of five.
fn check_wanted(placement: &str, states: [State; 2], wanted: u32, expected: &Expect) {
    check_next_cycle(server(placement, states), &placed(placement, wanted), expected);
}

/// What a dry run of a minor version says of the cycle after it.
pub(crate) fn check_next_cycle(script: Vec<Answer>, recipe: &str, expected: &Expect) {
    let server = Server::start(script);
    let mut command = maestro("scheduler apply -f - --dry-run");
    command.env("MAESTRO_URL", &server.url);
    let told = told(&run(command, recipe));
    let (_, forecast) = told.split_once("first: v1.1.0 becomes active\n").unwrap_or(("", &told));
    expected.assert_eq(forecast);
}

#[test]
fn regions_that_take_new_rooms() {
    check_wanted(
        ONE_CAP,
        [OPEN, OPEN],
        10,
        &expect![[r#"
        next cycle: 5 rooms (4 ready, 1 occupied), 10 wanted (fleet size 10): starts 5 rooms of v1.1.0
    "#]],
    );
}

#[test]
fn caps() {
    check_wanted(
        TWO_CAPS,
        [OPEN, OPEN],
        10,
        &expect![[r#"
        next cycle: 5 rooms (4 ready, 1 occupied), 8 wanted (fleet size 10; caps of its regions → 8): starts 3 rooms of v1.1.0
    "#]],
    );
}

#[test]
fn a_cordon_leaves_the_cap_of_the_other_region() {
    check_wanted(
        ONE_CAP,
        [OPEN, CORDONED],
        10,
        &expect![[r#"
        next cycle: 5 rooms (4 ready, 1 occupied), 10 wanted (fleet size 10): starts 2 rooms of v1.1.0
        held back: 3 more wanted, but regions have capacity for only 2: eu-west has a cap of 4; us-east is cordoned by ada@host: slow network
    "#]],
    );
}

#[test]
fn rooms_of_a_drained_region_are_replaced() {
    check_wanted(
        ONE_CAP,
        [OPEN, DRAINED],
        10,
        &expect![[r#"
        next cycle: 5 rooms (4 ready, 1 occupied), 10 wanted (fleet size 10): starts 2 rooms of v1.1.0, removes none of 3 rooms of drained regions yet
    "#]],
    );
    check_wanted(
        ONE_CAP,
        [DRAINED, OPEN],
        4,
        &expect![[r#"
        next cycle: 5 rooms (4 ready, 1 occupied), 4 wanted (fleet size 4): removes 1 of 2 rooms of drained regions
    "#]],
    );
}

#[test]
fn rooms_of_a_lost_region_are_missing() {
    check_wanted(
        ONE_CAP,
        [LOST, OPEN],
        10,
        &expect![[r#"
        next cycle: 3 rooms (2 ready, 1 occupied, and 2 in regions that cannot be reached), 10 wanted (fleet size 10): starts 7 rooms of v1.1.0
    "#]],
    );
    check_wanted(
        ONE_CAP,
        [LOST, LOST],
        10,
        &expect![[r#"
        next cycle: 0 rooms (0 ready, 1 occupied, and 5 in regions that cannot be reached), 10 wanted (fleet size 10): changes nothing
        held back: 10 more wanted, but no region may have new rooms: eu-west cannot be reached: no answer within 10s; us-east cannot be reached: no answer within 10s
    "#]],
    );
}

/// They are there as far as anybody knows; but whether they are ready is not known, and so nothing is scaled down.
#[test]
fn rooms_that_nobody_has_looked_for_yet() {
    check_wanted(
        ONE_CAP,
        [NOT_ADOPTED, OPEN],
        10,
        &expect![[r#"
        next cycle: 5 rooms (2 ready, 1 occupied), 10 wanted (fleet size 10): starts 5 rooms of v1.1.0
    "#]],
    );
    check_wanted(
        ONE_CAP,
        [NOT_ADOPTED, OPEN],
        3,
        &expect![[r#"
        next cycle: 5 rooms (2 ready, 1 occupied), 3 wanted (fleet size 3): changes nothing
        held back: nothing is scaled down: 2 rooms have not pinged since the restart
    "#]],
    );
}

#[test]
fn a_fleet_that_is_bound_to_a_region() {
    let bound =
        |replicas: u32| placed(ONE_CAP, replicas).replace(r#""spec":{"#, r#""spec":{"region":"us-east","#);
    let mut script = server(ONE_CAP, [OPEN, CORDONED]);
    script[0] = ok(&bound(5));
    check_next_cycle(
        script,
        &bound(10),
        &expect![[r#"
        next cycle: 5 rooms (4 ready, 1 occupied), 10 wanted (fleet size 10): changes nothing
        held back: 5 more wanted, but no region may have new rooms: us-east is cordoned by ada@host: slow network
    "#]],
    );
}

#[test]
fn a_new_scheduler_needs_place_too() {
    check_stdin(
        vec![refusal(404, "scheduler arena not found"), regions(&[("default", CORDONED)])],
        "scheduler apply -f - --dry-run",
        &arena("in-sync"),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /regions?view=full
            scheduler arena does not exist: it would be created as v1.0.0
            next cycle: 0 rooms (0 ready, 0 occupied), 3 wanted (fleet size 3): changes nothing
            held back: 3 more wanted, but no region may have new rooms: default is cordoned by ada@host: slow network
        "#]],
    );
}

/// Without a region that may have its validation room there is no new version.
#[test]
fn a_major_version_that_cannot_be_tried() {
    check_stdin(
        vec![ok(&arena("in-sync")), ok(VERSIONS), regions(&[("default", DRAINED)])],
        "scheduler apply -f - --dry-run",
        &recipe(&[("room:1", "room:2")]),
        &expect![[r#"
            > GET /schedulers/arena?view=full
            > GET /schedulers/arena/versions?view=full
            > GET /regions?view=full
            FIELD                     CHANGE  FROM    TO
            spec.containers[0].image  major   room:1  room:2

            scheduler arena v1.0.0 → v2.0.0: a major change, rooms are replaced
            first: no room of v2.0.0 can be tried, and nothing is changed: no region may have new rooms: default is drained by ada@host: new machines
        "#]],
    );
}
