//! The parser against recorded cases, its exact percentages, and what it refuses to read.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Senlin's setting in the recorded cases.
const NODES_MAX: Max = Max::Rooms(1000);

const FIVE_OF_TWO_TO_TEN: Cluster = Cluster {
    current: Some(5),
    min_size: 2,
    max_size: Max::Rooms(10),
    desired_capacity: 5,
    nodes_max: NODES_MAX,
};

/// Ids that the README of `testdata` lists. 0 % with `min_step` shrinks, and an exact size of 0 deletes rooms from a
/// fleet that has none: bugs, ours changes nothing.
const CHANGES_NOTHING: [u64; 2] = [102, 124];

#[test]
fn recorded_cases() {
    let mut checked = 0;
    for case in maestro_testkit::recorded("resize.jsonl") {
        let (request, cluster) = recorded(&case);
        let id = case["id"].as_u64().unwrap();
        let outcome = resize(&request, &cluster);
        let expected = match (case["status"].as_str().unwrap(), case["creation_count"].as_u64()) {
            _ if CHANGES_NOTHING.contains(&id) => Ok(Resized::Create(0)),
            ("ERROR", _) => Err(case["reason"].as_str().unwrap().to_owned()),
            (_, Some(rooms)) => Ok(Resized::Create(rooms)),
            (_, None) => Ok(Resized::Delete(case["deletion_count"].as_u64().unwrap())),
        };
        assert_eq!(outcome.map_err(|invalid| invalid.to_string()), expected, "{id}");
        checked += 1;
    }
    assert_eq!(checked, 112);
}

fn recorded(case: &Value) -> (Request, Cluster) {
    let (inputs, cluster) = (&case["inputs"], &case["cluster"]);
    let draft = Draft {
        adjustment_type: inputs["adjustment_type"].as_str().map(str::to_owned),
        number: inputs["number"].is_number().then(|| Number::parse(&inputs["number"].to_string()).unwrap()),
        min_step: inputs["min_step"].as_i64(),
        min_size: inputs["min_size"].as_i64(),
        max_size: inputs["max_size"].as_i64(),
    };
    let cluster = Cluster {
        current: case["current"].as_u64(),
        min_size: cluster["min_size"].as_u64().unwrap(),
        max_size: Max::parse(cluster["max_size"].as_i64().unwrap()).unwrap(),
        desired_capacity: cluster["desired_capacity"].as_u64().unwrap(),
        nodes_max: NODES_MAX,
    };
    (Request::parse(&draft, inputs["strict"].as_bool().into()).unwrap(), cluster)
}

fn request(adjustment: Adjustment) -> Request {
    Request {
        adjustment: Some(adjustment),
        min_size: None,
        max_size: None,
        strictness: Strictness::RequestOnly,
    }
}

#[test]
fn percentages_are_exact() {
    let check = |number: &str, current: u64, min_step: u64, expected: Resized| {
        let number = Number::parse(number).unwrap();
        let request = request(Adjustment::Percentage { number, min_step });
        let cluster = Cluster { current: Some(current), nodes_max: Max::Unlimited, ..FIVE_OF_TWO_TO_TEN };
        assert_eq!(resize(&request, &cluster), Ok(expected), "{number} % of {current}");
    };
    // 0.29 · 100 is 28.999… in binary floating point, and so is 1.1 · 10 not 11.
    check("29", 100, 0, Resized::Create(29));
    check("-29", 100, 0, Resized::Delete(29));
    check("0.29", 10_000, 0, Resized::Create(29));
    check("110", 10, 0, Resized::Create(11));
    check("0.000001", 5, 0, Resized::Create(1));
    check("-0.000001", 5, 0, Resized::Delete(1));
    check("39.999999", 5, 0, Resized::Create(1));
    check("0", 5, 9, Resized::Create(0));
    check("-20", 5, 2, Resized::Delete(2));
    check("20", 5, 1, Resized::Create(1));
    check("100", 1 << 54, 0, Resized::Create(1 << 54));
    check("99999999999999999.999999", u64::MAX, 0, Resized::Create(u64::MAX));
    check("-100", u64::MAX, 0, Resized::Delete(u64::MAX));
}

#[test]
fn bounds_that_contradict_each_other() {
    let check = |min_size, max_size, strictness, target, expected: Expect| {
        let request = Request { adjustment: Some(Adjustment::Exact(target)), min_size, max_size, strictness };
        expected.assert_eq(&resize(&request, &FIVE_OF_TWO_TO_TEN).unwrap_err().to_string());
    };
    check(
        Some(12),
        None,
        Strictness::RequestOnly,
        15,
        expect!["The specified min_size (12) is greater than the current max_size (10) of the cluster."],
    );
    check(
        None,
        Some(Max::Rooms(1)),
        Strictness::BestEffort,
        5,
        expect!["The specified max_size (1) is less than the current min_size (2) of the cluster."],
    );
    check(
        None,
        Some(Max::Rooms(2000)),
        Strictness::Strict,
        5,
        expect![
            "The specified max_size (2000) is greater than the maximum number of nodes allowed per cluster (1000)."
        ],
    );
    check(
        None,
        None,
        Strictness::RequestOnly,
        1001,
        expect![
            "The target capacity (1001) is greater than the maximum number of nodes allowed per cluster (1000)."
        ],
    );
}

/// A fleet whose rooms are all on their way is not taken for one that has them.
#[test]
fn a_fleet_without_rooms() {
    let empty = Cluster { current: Some(0), min_size: 0, max_size: Max::Unlimited, ..FIVE_OF_TWO_TO_TEN };
    for (adjustment, expected) in [
        (Adjustment::Exact(0), Resized::Create(0)),
        (Adjustment::Exact(7), Resized::Create(7)),
        (Adjustment::Change(2), Resized::Create(2)),
        (Adjustment::Change(-2), Resized::Delete(2)),
    ] {
        assert_eq!(resize(&request(adjustment), &empty), Ok(expected));
    }
}

#[test]
fn what_is_no_request() {
    let number = |text| Some(Number::parse(text).unwrap());
    let check = |draft: Draft, expected: Expect| {
        let violations = Request::parse(&draft, Strictness::Strict).unwrap_err();
        let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
        expected.assert_eq(&lines.join("\n"));
    };
    let draft = |adjustment_type: &str, number| Draft {
        adjustment_type: Some(adjustment_type.into()),
        number,
        ..Draft::default()
    };
    check(draft("EXACT_CAPACITY", number("-1")), expect!["number: -1 is not at least 0"]);
    check(draft("EXACT_CAPACITY", None), expect!["number: is missing; adjustment_type needs one"]);
    check(
        draft("CHANGE_IN_CAPACITY", number("1.5")),
        expect![
            "number: 1.5 is not a whole number, which it must be unless adjustment_type is CHANGE_IN_PERCENTAGE"
        ],
    );
    check(
        draft("exact", number("1")),
        expect![[
            r#"adjustment_type: "exact" is not one of EXACT_CAPACITY, CHANGE_IN_CAPACITY, CHANGE_IN_PERCENTAGE"#
        ]],
    );
    check(
        Draft {
            number: number("1"),
            min_step: Some(1),
            min_size: Some(-1),
            max_size: Some(-2),
            ..Draft::default()
        },
        expect![[r#"
            min_step: goes with adjustment_type CHANGE_IN_PERCENTAGE only
            adjustment_type: is missing; one of EXACT_CAPACITY, CHANGE_IN_CAPACITY, CHANGE_IN_PERCENTAGE is needed
            min_size: -1 is not at least 0
            max_size: -2 is not at least 0; -1 means no limit"#]],
    );
    check(
        Draft { min_step: Some(-1), ..draft("CHANGE_IN_PERCENTAGE", number("5")) },
        expect!["min_step: -1 is not at least 0"],
    );
}

#[test]
fn numbers() {
    for (text, printed) in
        [("12", "12"), ("-12.50", "-12.5"), ("0.000001", "0.000001"), ("-0", "0"), ("007", "7")]
    {
        assert_eq!(Number::parse(text).unwrap().to_string(), printed);
    }
    for text in ["", "-", "1.", ".5", "+1", "1e3", "1,5", "0.0000001", "123456789012345678", "NaN"] {
        assert!(Number::parse(text).is_err(), "{text}");
    }
    assert_eq!(Number::from(-3), Number::parse("-3").unwrap());
}

proptest! {
    /// Best effort ends within the bounds, whatever is asked for.
    #[test]
    fn best_effort_ends_within_bounds(
        current in 1_u64..50, change in -100_i64..100, min_size in 0_u64..20, above in 1_u64..20,
    ) {
        let max = min_size + above;
        let cluster = Cluster {
            current: Some(current), min_size, max_size: Max::Rooms(max), ..FIVE_OF_TWO_TO_TEN
        };
        let request = Request { strictness: Strictness::BestEffort, ..request(Adjustment::Change(change)) };
        let size = match resize(&request, &cluster).unwrap() {
            Resized::Create(rooms) => current + rooms,
            Resized::Delete(rooms) => current - rooms,
        };
        prop_assert!((min_size..=max).contains(&size));
    }
}
