//! A recipe from a file or stdin, YAML or JSON. What is wrong with it is said with the line that it is written in.

mod place;

use std::io::Read;
use std::path::Path;

use maestro_proto::decimals::with_exact_decimals;
use maestro_proto::json::{Decoded, decode};
use maestro_proto::v1::CreateSchedulerRequest;
use serde_saphyr::UserMessageFormatter;

use super::failure::Failure;
use super::json::Json;
use crate::config::nearest;

/// No recipe comes near it; a wrong path must not fill the memory.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;

/// What is to be done about fields that no recipe has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownFields {
    /// They are most likely slips: a recipe that ignores one is not what was meant.
    Refused,
    /// The server warns of them.
    Submitted,
}

impl UnknownFields {
    pub(super) fn new(lenient: bool) -> Self {
        if lenient { Self::Submitted } else { Self::Refused }
    }
}

/// Reads the recipe of one scheduler. What `scheduler get -o yaml` printed can be read again: there the recipe is
/// inside `scheduler`.
pub(super) fn read_recipe(path: &Path, unknown: UnknownFields) -> Result<Json, Failure> {
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let text =
        read_text(path).map_err(|error| Failure::invalid(format!("{name}: cannot be read: {error}")))?;
    let document =
        parse(&with_exact_decimals(&text)).map_err(|reason| Failure::invalid(format!("{name}: {reason}")))?;
    let recipe = match document {
        Json::Object(mut entries) if entries.len() == 1 && entries[0].0 == SCHEDULER => entries.remove(0).1,
        Json::Object(entries) => Json::Object(entries),
        Json::Null => {
            return Err(Failure::invalid(format!("{name}: is empty; it must hold a scheduler's recipe")));
        }
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            let reason = "must hold a scheduler's recipe, `name: …` and so on";
            return Err(Failure::invalid(format!("{name}: {reason}")));
        }
    };
    let recipe = without_state(recipe);
    check(&recipe, unknown, |field| {
        place::of(&text, field).map_or_else(|| name.clone(), |place| format!("{name}:{place}"))
    })?;
    Ok(recipe)
}

/// The key that answers have a recipe under.
const SCHEDULER: &str = "scheduler";

/// An answer says more than a recipe: what only the server can know is not submitted again.
fn without_state(scheduler: Json) -> Json {
    match scheduler {
        Json::Object(mut entries) => {
            entries.retain(|(key, _)| !matches!(key.as_str(), "state" | "createdAt" | "created_at"));
            Json::Object(entries)
        }
        other => other,
    }
}

/// Whether it has the form of a recipe; its rules are the server's. `at` says where a field is written.
fn check(recipe: &Json, unknown: UnknownFields, at: impl Fn(&str) -> String) -> Result<(), Failure> {
    let json = serde_json::to_vec(recipe).unwrap_or_default();
    let decoded: Decoded<CreateSchedulerRequest> = decode(&json).map_err(|error| {
        // The place in it is one in our own rendering, which nobody has seen.
        let reason = error.reason.rsplit_once(" at line ").map_or(&*error.reason, |(reason, _)| reason);
        Failure::invalid(format!("{}: {}: {reason}", at(&error.field), error.field))
    })?;
    if decoded.unknown_fields.is_empty() || unknown == UnknownFields::Submitted {
        return Ok(());
    }
    let mut lines: Vec<String> = Vec::new();
    for field in &decoded.unknown_fields {
        let key = field.rsplit(['.', ']']).next().unwrap_or_default();
        let meant = nearest(key, maestro_proto::RECIPE_FIELDS.iter().copied());
        let hint = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        lines.push(format!("{}: unknown field {field}{hint}", at(field)));
    }
    lines.push("nothing was changed; --lenient submits a recipe with unknown fields".to_owned());
    Err(Failure::invalid(lines.join("\n")))
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(DOCUMENT_BYTES_MAX).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(path)?.take(DOCUMENT_BYTES_MAX).read_to_string(&mut text)?;
    }
    if text.len() as u64 == DOCUMENT_BYTES_MAX {
        return Err(std::io::Error::other(format!("it is larger than {DOCUMENT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// JSON is tried as JSON first: nearly all of it is YAML, but not its escapes for characters beyond the 16-bit ones.
fn parse(text: &str) -> Result<Json, String> {
    if let Ok(document) = serde_json::from_str(text) {
        return Ok(document);
    }
    let document = serde_saphyr::from_str(text);
    document.map_err(|error| {
        format!(
            "not valid YAML or JSON: {}",
            error.without_snippet().render_with_formatter(&UserMessageFormatter)
        )
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arena.yaml");
        std::fs::write(&path, text).unwrap();
        let outcome = match read_recipe(&path, UnknownFields::Refused) {
            Ok(document) => serde_json::to_string(&document).unwrap(),
            Err(failure) => failure.message.replace(&format!("{}/", directory.path().display()), ""),
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn recipes() {
        check(
            "name: arena\nmaxSurge: 25%\nspec:\n  terminationGracePeriod: 5s\n",
            &expect![[r#"{"name":"arena","maxSurge":"25%","spec":{"terminationGracePeriod":"5s"}}"#]],
        );
        check(
            r#"{"name": "arena", "roomsReplicas": 3}"#,
            &expect![[r#"{"name":"arena","roomsReplicas":3}"#]],
        );
        check(
            "scheduler:\n  name: arena\n  state: in-sync\n  createdAt: 2026-11-15T09:06:47Z\n",
            &expect![[r#"{"name":"arena"}"#]],
        );
        check("{name: arena, labels: {a: '1'}}", &expect![[r#"{"name":"arena","labels":{"a":"1"}}"#]]);
        check(
            "name: arena\nstate: in-sync\ncreatedAt: 2026-11-15T09:06:47Z\nmaxSurge: 1\n",
            &expect![[r#"{"name":"arena","maxSurge":1}"#]],
        );
        check("", &expect!["arena.yaml: is empty; it must hold a scheduler's recipe"]);
        check("- name: arena\n", &expect!["arena.yaml: must hold a scheduler's recipe, `name: …` and so on"]);
        check(
            "name: arena\n  game: x\n",
            &expect![
                "arena.yaml: not valid YAML or JSON: mapping values are not allowed in this context at line 2, column 7"
            ],
        );
        check(
            r#"{"name": "arena", "#,
            &expect!["arena.yaml: not valid YAML or JSON: unclosed bracket '{' at line 1, column 1"],
        );
        check(
            "name: a\n---\nname: b\n",
            &expect![
                "arena.yaml: not valid YAML or JSON: only single YAML document expected but multiple found at line 3, column 1"
            ],
        );
        check(
            "name: a\nname: b\n",
            &expect![
                "arena.yaml: not valid YAML or JSON: duplicate mapping key: name not allowed here at line 2, column 1"
            ],
        );
    }
    #[test]
    fn slips_are_named_with_the_line_that_they_are_in() {
        check(
            "name: arena\nautoscaling:\n  policy:\n    parameters:\n      roomOccupancy: {readyTraget: 0.5}\n",
            &expect![[r#"
                arena.yaml:5:23: unknown field autoscaling.policy.parameters.roomOccupancy.readyTraget; did you mean readyTarget?
                nothing was changed; --lenient submits a recipe with unknown fields"#]],
        );
        check(
            "scheduler:\n  name: arena\n  spec:\n    containers:\n    - name: room\n      comand: [a]\n  zzz: 1\n",
            &expect![[r#"
                arena.yaml:6:7: unknown field spec.containers[0].comand; did you mean command?
                arena.yaml:7:3: unknown field zzz
                nothing was changed; --lenient submits a recipe with unknown fields"#]],
        );
        check(
            "name: arena\nspec:\n  containers:\n  - ports:\n    - port: many\n",
            &expect![[
                r#"arena.yaml:5:7: spec.containers[0].ports[0].port: invalid value: string "many", expected a whole number of 32 bits"#
            ]],
        );
    }

    #[test]
    fn who_is_lenient_submits_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arena.yaml");
        std::fs::write(&path, "name: arena\ncolour: red\n").unwrap();
        assert!(read_recipe(&path, UnknownFields::Refused).is_err());
        assert!(read_recipe(&path, UnknownFields::Submitted).is_ok());
    }
}
