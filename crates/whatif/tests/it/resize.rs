//! `maestro plan resize`: by how many rooms a fleet changes.

use expect_test::{Expect, expect};
use maestro_whatif::cases::{answer_lines, resize};

fn check(input: &str, expected: &Expect) {
    let mut output = Vec::new();
    answer_lines(input.as_bytes(), &mut output, resize::answer).unwrap();
    expected.assert_eq(&String::from_utf8(output).unwrap());
}

#[test]
fn by_how_many() {
    check(
        r#"{"id":1,"inputs":{"adjustment_type":"CHANGE_IN_PERCENTAGE","number":12.5},"current":40}
{"id":2,"inputs":{"adjustment_type":"EXACT_CAPACITY","number":"3","strict":true},"current":5,"cluster":{"min_size":4,"max_size":10,"desired_capacity":5}}
{"id":3,"inputs":{"adjustment_type":"EXACT_CAPACITY","number":3},"current":5,"cluster":{"min_size":4,"max_size":10}}
{"id":4,"inputs":{"adjustment_type":"EXACT_CAPACITY","number":3,"strict":null},"current":5,"cluster":{"min_size":4,"max_size":10}}
{"id":5,"inputs":{"adjustment_type":"CHANGE_IN_CAPACITY","number":2000},"current":5,"cluster":{"max_nodes_per_cluster":-1}}
{"id":6,"inputs":{"adjustment_type":"CHANGE_IN_CAPACITY","number":2},"cluster":{"desired_capacity":5}}
"#,
        &expect![[r#"
            {"id":1,"status":"OK","reason":"","creation_count":5,"deletion_count":null}
            {"id":2,"status":"ERROR","reason":"The target capacity (3) is less than the cluster's min_size (4).","creation_count":null,"deletion_count":null}
            {"id":3,"status":"OK","reason":"","creation_count":null,"deletion_count":1}
            {"id":4,"status":"OK","reason":"","creation_count":null,"deletion_count":2}
            {"id":5,"status":"OK","reason":"","creation_count":2000,"deletion_count":null}
            {"id":6,"status":"OK","reason":"","creation_count":2,"deletion_count":null}
        "#]],
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"{"id":1,"inputs":{"adjustment_type":"EXACT_CAPACITY","number":-1,"min_step":2},"current":5}
{"id":2,"inputs":{"number":1},"current":5}
{"id":3,"inputs":{"adjustment_type":"sideways","number":"x","min_size":1.5,"strict":"very"},"current":-1,"cluster":{"min_size":-1,"max_size":-2}}
{"id":4,"inputs":7,"current":5,"cluster":"big"}
{"id":5,"inputs":{"adjustment_type":"CHANGE_IN_PERCENTAGE"},"current":5}
"#,
        &expect![[r#"
            {"id":1,"error":"inputs.min_step: goes with adjustment_type CHANGE_IN_PERCENTAGE only; inputs.number: -1 is not at least 0"}
            {"id":2,"error":"inputs.adjustment_type: is missing; one of EXACT_CAPACITY, CHANGE_IN_CAPACITY, CHANGE_IN_PERCENTAGE is needed"}
            {"id":3,"error":"inputs.number: \"x\" is not a decimal number; write it as 12 or 12.5; inputs.min_size: 1.5 is not a whole number from -9223372036854775808 to 9223372036854775807; inputs.strict: very is not true or false; current: -1 is not a whole number from 0 to 18446744073709551615; cluster.min_size: -1 is not a whole number from 0 to 18446744073709551615; cluster.max_size: -2 is not at least 0; -1 means no limit"}
            {"id":4,"error":"inputs: 7 is not an object; cluster: \"big\" is not an object"}
            {"id":5,"error":"inputs.number: is missing; adjustment_type needs one"}
        "#]],
    );
}
