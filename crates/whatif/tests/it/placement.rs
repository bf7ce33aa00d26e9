//! `maestro plan placement`: where rooms would go.

use expect_test::{Expect, expect};
use maestro_whatif::cases::{answer_lines, placement};

fn check(input: &str, expected: &Expect) {
    let mut output = Vec::new();
    answer_lines(input.as_bytes(), &mut output, placement::answer).unwrap();
    expected.assert_eq(&String::from_utf8(output).unwrap());
}

#[test]
fn where_rooms_would_go() {
    check(
        r#"{"id":1,"regions":[{"name":"us","weight":3,"cap":50},{"name":"eu","weight":2}],"current":{"us":40,"eu":10},"count":40,"expand":true}
{"id":2,"regions":[{"name":"us"},{"name":"eu"}],"count":3}
{"id":3,"regions":[{"name":"us"},{"name":"eu"}],"current":{"us":2,"eu":5},"count":"3","expand":false}
{"id":4,"regions":[{"name":"us","cap":1},{"name":"eu","cap":2,"weight":null}],"current":null,"count":4,"expand":null}
{"id":5,"regions":[{"name":"us"}],"current":{"us":2},"count":3,"expand":false}
{"id":6,"regions":[{"name":"us"}],"count":0}
{"id":7,"regions":[{"name":"a","weight":18014398509481984},{"name":"b","weight":1}],"count":18446744073709551615}
"#,
        &expect![[r#"
            {"id":1,"plan":{"us":10,"eu":30},"reason":"90 rooms in total: us 40 → 50 (share 54), eu 10 → 40 (share 36)"}
            {"id":2,"plan":{"us":2,"eu":1},"reason":"3 rooms in total: us 0 → 2 (share 1.50), eu 0 → 1 (share 1.50)"}
            {"id":3,"plan":{"eu":3},"reason":"4 rooms in total: us 2 → 2 (share 2), eu 5 → 2 (share 2)"}
            {"id":4,"plan":null,"reason":"There is no feasible plan to handle all nodes.","fits":3}
            {"id":5,"plan":null,"reason":"There is no feasible plan to handle all nodes.","fits":2}
            {"id":6,"plan":{},"reason":"0 rooms in total: us 0 → 0 (share 0)"}
            {"id":7,"plan":{"a":18446744073709550591,"b":1024},"reason":"18446744073709551615 rooms in total: a 0 → 18446744073709550591 (share 18446744073709550591), b 0 → 1024 (share 1023.99)"}
        "#]],
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"{"id":1,"regions":[{"name":"a","weight":-50},{"name":"b","weight":1.5,"cap":-2}],"count":-1,"expand":"maybe"}
{"id":2,"regions":[{"name":"a","weight":0},{"name":"b","weight":0}],"count":1}
{"id":3,"regions":[],"count":1}
{"id":4,"regions":[{"name":"a"},{"name":"a"},{"weight":1}],"count":1}
{"id":5,"regions":[{"name":"a"}],"current":{"a":"many","b":1},"count":1}
{"id":6,"regions":["a"],"current":[],"count":1}
{"id":7,"regions":["a",{"name":"b"}],"count":1}
{"id":8,"regions":{"name":"a"},"count":1}
{"id":9,"regions":[{"name":"a","name":"b"}]}
{"id":10,"regions":[{"name":"a","weight":18014398509481985}],"count":1}
"#,
        &expect![[r#"
            {"id":1,"error":"count: -1 is not a whole number from 0 to 18446744073709551615; expand: maybe is not true or false; regions[0].weight: -50 is not a whole number from 0 to 18014398509481984; regions[1].weight: 1.5 is not a whole number from 0 to 18014398509481984; regions[1].cap: -2 is not a whole number from -1 to 9223372036854775807"}
            {"id":2,"error":"regions: all weights are 0, so no region could ever get a room; give one a weight"}
            {"id":3,"error":"regions: is empty; name at least one region"}
            {"id":4,"error":"regions[2].name: is missing; the name of a region is needed; regions[1].name: \"a\" is there twice"}
            {"id":5,"error":"current.a: many is not a whole number from 0 to 18446744073709551615; current.b: is not one of the regions"}
            {"id":6,"error":"current: [] is not an object"}
            {"id":7,"error":"regions[0]: \"a\" is not an object"}
            {"id":8,"error":"regions: {\"name\":\"a\"} is not a list"}
            {"id":9,"error":"count: is missing; a whole number is needed; regions[0]: name: appears twice"}
            {"id":10,"error":"regions[0].weight: 18014398509481985 is not a whole number from 0 to 18014398509481984"}
        "#]],
    );
}
