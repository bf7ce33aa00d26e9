//! `maestro plan autoscaling`: lines in, lines out.

use std::io::Write;

use expect_test::{Expect, expect};
use maestro_whatif::cases::{Tally, answer_lines, autoscaling};

fn answered(input: &[u8]) -> (String, Tally) {
    let mut output = Vec::new();
    let tally = answer_lines(input, &mut output, autoscaling::answer).unwrap();
    (String::from_utf8(output).unwrap(), tally)
}

fn check(input: &str, expected: &Expect) {
    expected.assert_eq(&answered(input.as_bytes()).0);
}

#[test]
fn the_seeds_table() {
    let rows = [
        (100, 80, "0.5", 160, "Scale Up: +60"),
        (100, 50, "0.5", 100, "Do Nothing: 0"),
        (100, 30, "0.5", 60, "Scale Down: -40"),
        (50, 40, "0.3", 58, "Scale Up: +8"),
        (50, 35, "0.3", 50, "Do Nothing: 0"),
        (50, 10, "0.3", 15, "Scale Down: -35"),
        (10, 5, "0.9", 50, "Scale Up: +40"),
        (10, 1, "0.9", 10, "Do Nothing: 0"),
        (10, 1, "0.8", 5, "Scale Down: -5"),
        (5, 5, "0.1", 6, "Scale Up: +1"),
        (1, 1, "0.3", 2, "Scale Up: +1"),
        (2, 2, "0.9", 20, "Scale Up: +18"),
    ];
    let mut input = String::new();
    let mut expected = String::new();
    for (number, (total, occupied, target, desired, decision)) in rows.into_iter().enumerate() {
        input += &format!(
            "{{\"id\":{number},\"occupied\":{occupied},\"total\":{total},\"readyTarget\":{target}}}\n"
        );
        let reason = format!("{occupied} occupied at readyTarget {target} → {desired}");
        expected += &format!(
            "{{\"id\":{number},\"desired\":{desired},\"decision\":\"{decision}\",\"reason\":\"{reason}\"}}\n"
        );
    }
    let (output, tally) = answered(input.as_bytes());
    assert_eq!(output, expected);
    assert_eq!(tally, Tally { answered: 12, refused: 0 });
}

#[test]
fn bounds_and_spellings() {
    check(
        r#"
{"id":"clamped","occupied":80,"total":100,"min":1,"max":120,"readyTarget":0.5}
{"id":"raised","occupied":0,"total":100,"min":3,"max":9,"readyTarget":0.5}
{"id":"unlimited","occupied":80,"total":100,"min":1,"max":-1,"readyTarget":"0.50"}
{"id":"texts","occupied":"80","total":"100","min":"1","max":"-1","readyTarget":"0.5"}
{"id":"nulls","occupied":80,"total":100,"min":null,"max":null,"readyTarget":0.5}
  {"readyTarget":0.5,"total":100,"colour":"red","occupied":80}
{"id":{"an":["object"]},"occupied":4294967295,"total":4294967295,"max":2147483647,"readyTarget":0.9}
"#,
        &expect![[r#"
            {"id":"clamped","desired":120,"decision":"Scale Up: +20","reason":"80 occupied at readyTarget 0.5 → 160; max 120 → 120"}
            {"id":"raised","desired":3,"decision":"Scale Down: -97","reason":"0 occupied at readyTarget 0.5 → 0; min 3 → 3"}
            {"id":"unlimited","desired":160,"decision":"Scale Up: +60","reason":"80 occupied at readyTarget 0.5 → 160"}
            {"id":"texts","desired":160,"decision":"Scale Up: +60","reason":"80 occupied at readyTarget 0.5 → 160"}
            {"id":"nulls","desired":160,"decision":"Scale Up: +60","reason":"80 occupied at readyTarget 0.5 → 160"}
            {"desired":160,"decision":"Scale Up: +60","reason":"80 occupied at readyTarget 0.5 → 160"}
            {"id":{"an":["object"]},"desired":2147483647,"decision":"Scale Down: -2147483648","reason":"4294967295 occupied at readyTarget 0.9 → 42949672950; max 2147483647 → 2147483647"}
        "#]],
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"{"id":1,"occupied":1,"total":1,"readyTarget":1.5}
{"id":2,"occupied":1,"total":1,"readyTarget":0}
{"id":3,"occupied":1,"total":1,"readyTarget":1}
{"id":4,"occupied":1,"total":1,"readyTarget":"half"}
{"id":5,"occupied":1,"total":1,"readyTarget":NaN}
{"id":6,"occupied":1,"total":1,"readyTarget":0.1234567890123456789}
{"id":7,"occupied":1,"total":1}
{"id":8,"occupied":1,"total":1,"min":0,"readyTarget":0.5}
{"id":9,"occupied":1,"total":1,"min":5,"max":4,"readyTarget":0.5}
{"id":10,"occupied":1,"total":1,"min":5,"max":5,"readyTarget":0.5}
{"id":11,"occupied":-1,"total":1.5,"min":"x","max":9999999999,"readyTarget":[]}
{"id":12,"occupied":4294967296,"total":1e2,"readyTarget":0.5}
{"id":13,"occupied":4294967295,"total":1,"readyTarget":0.9}
{"id":14,"id":15,"occupied":1}
{"id":16,"occupied":1,
nonsense
[1,2]
{"id":17,"occupied":1,"total":1,"readyTarget":0.5} trailing
"#,
        &expect![[r#"
            {"id":1,"error":"readyTarget: 1.5 is not between 0.1 and 0.9"}
            {"id":2,"error":"readyTarget: 0 is not between 0.1 and 0.9"}
            {"id":3,"error":"readyTarget: 1 is not between 0.1 and 0.9"}
            {"id":4,"error":"readyTarget: \"half\" is not a decimal number; write it as 0.5"}
            {"id":5,"error":"readyTarget: NaN is not valid JSON"}
            {"id":6,"error":"readyTarget: 0.1234567890123456789 has more than 18 digits after the point"}
            {"id":7,"error":"readyTarget: is missing; a decimal from 0.1 to 0.9 is needed"}
            {"id":8,"error":"min: 0 is not at least 1; for no rooms at all turn autoscaling off and set roomsReplicas: 0"}
            {"id":9,"error":"max: 4 is not above min, which is 5; -1 means no limit"}
            {"id":10,"error":"max: 5 is not above min, which is 5; -1 means no limit"}
            {"id":11,"error":"occupied: -1 is not a whole number from 0 to 4294967295; total: 1.5 is not a whole number from 0 to 4294967295; min: x is not a whole number from -2147483648 to 2147483647; max: 9999999999 is not a whole number from -2147483648 to 2147483647; readyTarget: \"[]\" is not a decimal number; write it as 0.5"}
            {"id":12,"error":"occupied: 4294967296 is not a whole number from 0 to 4294967295; total: 1e2 is not a whole number from 0 to 4294967295"}
            {"id":13,"error":"occupied: 4294967295 needs 42949672950 rooms, more than 4294967295"}
            {"id":14,"error":"id: appears twice"}
            {"id":16,"error":"line 15: EOF while parsing a value at column 22"}
            {"error":"line 16: expected ident at column 2"}
            {"error":"line 17: invalid type: sequence, expected a case, a JSON object at column 0"}
            {"id":17,"error":"line 18: trailing characters at column 52"}
        "#]],
    );
}

#[test]
fn lines_that_are_no_text() {
    let mut input = br#"{"id":1,"occupied":1,"total":1,"readyTarget":0.5,"padding":""#.to_vec();
    input.resize(100_000, b'x');
    input.extend_from_slice(b"\"}\n\xff\xfe\n\n{\"id\":3,\"occupied\":1,\"total\":2,\"readyTarget\":0.5}");
    let (output, tally) = answered(&input);
    expect![[r#"
        {"error":"line 1: is longer than 65536 bytes"}
        {"error":"line 2: is not UTF-8"}
        {"id":3,"desired":2,"decision":"Do Nothing: 0","reason":"1 occupied at readyTarget 0.5 → 2"}
    "#]]
    .assert_eq(&output);
    assert_eq!(tally, Tally { answered: 1, refused: 2 });
}

/// Someone who asks one question at a time gets each answer before the next question.
#[test]
fn an_answer_does_not_wait_for_the_next_question() {
    #[derive(Default)]
    struct Recorder {
        written: Vec<u8>,
        flushed: usize,
    }
    impl Write for Recorder {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.flushed = self.written.len();
            Ok(())
        }
    }
    struct OneLine(bool);
    impl std::io::Read for OneLine {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(std::io::Error::other("nothing more is written until the answer is read"));
            }
            let line = b"{\"id\":1,\"occupied\":1,\"total\":2,\"readyTarget\":0.5}\n";
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }
    let mut output = Recorder::default();
    answer_lines(OneLine(false), &mut output, autoscaling::answer).unwrap_err();
    assert!(output.flushed > 0);
    assert_eq!(output.flushed, output.written.len());
}
