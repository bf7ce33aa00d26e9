//! What policies decided about an operation, for people. Programs read the operation's `data` as it is.

use super::Json;

/// Why the policies refused an operation, if they did.
pub(super) fn refusal(data: &Json) -> Option<&str> {
    data.get("status").as_str().filter(|status| *status == "ERROR").and(data.get("reason").as_str())
}

/// `+3: RegionOne 1, RegionTwo 2`, or why it was refused. What has another form is shown as it is.
pub(super) fn cell(data: &Json) -> String {
    if let Some(reason) = refusal(data) {
        return format!("refused: {reason}");
    }
    if data.get("status").as_str() != Some("OK") {
        return data.cell();
    }
    let parts = [("+", data.get("creation")), ("-", data.get("deletion"))];
    let parts = parts.into_iter().filter(|(_, part)| !part.is_null());
    let parts: Vec<String> = parts.map(|(sign, part)| words(sign, part)).collect();
    if parts.is_empty() { "left to the request and the recipe".to_owned() } else { parts.join("; ") }
}

fn words(sign: &str, part: &Json) -> String {
    let mut words = format!("{sign}{}", part.get("count").cell());
    if let Json::Object(regions) = part.get("regions") {
        let regions = regions.iter().map(|(name, rooms)| format!("{name} {}", rooms.cell()));
        words += &format!(": {}", regions.collect::<Vec<_>>().join(", "));
    }
    match part.get("candidates") {
        Json::Null => words,
        candidates => format!("{words} ({})", candidates.cell()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_short() {
        for (data, expected) in [
            (
                r#"{"status":"OK","creation":{"count":3,"regions":{"RegionOne":1,"RegionTwo":2}}}"#,
                "+3: RegionOne 1, RegionTwo 2",
            ),
            (
                r#"{"status":"OK","deletion":{"count":2,"regions":{"RegionOne":2},"candidates":["a-1","a-2"]}}"#,
                "-2: RegionOne 2 (a-1,a-2)",
            ),
            (r#"{"status":"OK","creation":{"count":3}}"#, "+3"),
            (r#"{"status":"OK"}"#, "left to the request and the recipe"),
            (
                r#"{"status":"ERROR","reason":"No region is found usable."}"#,
                "refused: No region is found usable.",
            ),
            (r#"{"version":"v2.0.0"}"#, r#"{"version":"v2.0.0"}"#),
            ("{}", "-"),
        ] {
            assert_eq!(cell(&serde_json::from_str(data).unwrap()), expected);
        }
    }
}
