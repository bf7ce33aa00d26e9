//! What must not leave the machine. A recipe's environment may hold passwords, and so may addresses and settings.

use crate::cli::Json;

const HIDDEN: &str = "(hidden)";

/// Part of the name of a setting or field whose value is nobody's business.
const SECRET_NAMES: [&str; 5] = ["password", "secret", "token", "credential", "apikey"];

/// Hides, in the value of this name and anywhere below, the values of environment variables and of fields that are named
/// like secrets, and users and passwords in URLs.
pub(super) fn hide(name: &str, value: &mut Json) {
    match value {
        Json::Object(entries) => entries.iter_mut().for_each(|(name, value)| hide(name, value)),
        Json::Array(variables) if name.eq_ignore_ascii_case("environment") => {
            variables.iter_mut().for_each(hide_variable);
        }
        Json::Array(items) => items.iter_mut().for_each(|item| hide("", item)),
        Json::String(text) if is_secret_name(name) && !text.is_empty() => HIDDEN.clone_into(text),
        Json::String(text) => *text = without_user(text),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// `{name, value}`, in v10's operations `{Name, Value}`. Where a value comes from, `valueFrom`, is no secret.
fn hide_variable(variable: &mut Json) {
    if let Json::Object(entries) = variable {
        for (name, value) in entries {
            match value {
                Json::String(text) if name.eq_ignore_ascii_case("value") && !text.is_empty() => {
                    HIDDEN.clone_into(text);
                }
                _ => {}
            }
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // A reference to a secret names it; a fencing token is a number.
    SECRET_NAMES.iter().any(|part| name.contains(part)) && !name.ends_with("ref")
}

/// `http://user:password@host` without the part that logs in.
fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{HIDDEN}@{}", &rest[user.len() + 1..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut value: Json = serde_json::from_str(text).unwrap();
        hide("", &mut value);
        assert_eq!(serde_json::to_string(&value).unwrap(), expected);
    }

    #[test]
    fn secrets_are_hidden_wherever_they_are() {
        check(
            r#"{"spec":{"containers":[{"environment":[{"name":"KEY","value":"s3cret"},{"name":"A","value":""}]}]}}"#,
            r#"{"spec":{"containers":[{"environment":[{"name":"KEY","value":"(hidden)"},{"name":"A","value":""}]}]}}"#,
        );
        check(
            r#"{"Spec":{"Containers":[{"Environment":[{"Name":"KEY","Value":"s3cret"}]}]}}"#,
            r#"{"Spec":{"Containers":[{"Environment":[{"Name":"KEY","Value":"(hidden)"}]}]}}"#,
        );
        check(
            r#"{"valueFrom":{"secretKeyRef":{"name":"db","key":"password"}},"fencingToken":7,"apiToken":"x"}"#,
            r#"{"valueFrom":{"secretKeyRef":{"name":"db","key":"password"}},"fencingToken":7,"apiToken":"(hidden)"}"#,
        );
        check(
            r#"["http://ada:pw@host:1/a@b","http://host/a@b"]"#,
            r#"["http://(hidden)@host:1/a@b","http://host/a@b"]"#,
        );
    }

    #[test]
    fn settings_are_hidden_by_their_name() {
        for (name, text, shown) in
            [("internalApi.metricsToken", "abc", HIDDEN), ("dataDir", "./data", "./data")]
        {
            let mut value = Json::from(text);
            hide(name, &mut value);
            assert_eq!(value, Json::from(shown));
        }
    }
}
