//! Values as Go's `%v` prints them: what receivers of v10 find in metadata.

use serde_json::{Map, Value};

/// Numbers are doubles, as everything in a `google.protobuf.Struct` is.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), double),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => format!("map[{}]", pairs(fields).join(" ")),
    }
}

/// Go prints maps in the order of their keys.
fn pairs(fields: &Map<String, Value>) -> Vec<String> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    fields.into_iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect()
}

/// The fewest digits that mean this number; with an exponent from a million up, and below a ten-thousandth.
fn double(number: f64) -> String {
    /// Go decides as if six digits were asked for.
    const EXPONENTS_WITHOUT: std::ops::Range<i32> = -4..6;
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if number != 0.0 && !EXPONENTS_WITHOUT.contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What `fmt.Sprintf("%v", x)` prints for the values of a Struct.
    #[test]
    fn as_go_prints_them() {
        for (value, text) in [
            (json!("a b"), "a b"),
            (json!(""), ""),
            (json!(null), "<nil>"),
            (json!(true), "true"),
            (json!(false), "false"),
            (json!(245), "245"),
            (json!(0), "0"),
            (json!(-0.0), "-0"),
            (json!(-7), "-7"),
            (json!(1.5), "1.5"),
            (json!(0.1), "0.1"),
            (json!(999_999), "999999"),
            (json!(1_000_000), "1e+06"),
            (json!(1_234_567), "1.234567e+06"),
            (json!(-123_456_789), "-1.23456789e+08"),
            (json!(123_456.5), "123456.5"),
            (json!(1e100), "1e+100"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(0.000_012_5), "1.25e-05"),
            (json!(u64::MAX), "1.8446744073709552e+19"),
            (json!([]), "[]"),
            (json!([1, 2]), "[1 2]"),
            (json!(["a", null, [true]]), "[a <nil> [true]]"),
            (json!({}), "map[]"),
            (json!({"b": {"c": [1]}, "a": 1}), "map[a:1 b:map[c:[1]]]"),
        ] {
            assert_eq!(go_text(&value), text, "{value}");
        }
    }
}
