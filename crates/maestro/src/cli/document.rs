//! A recipe from a file or stdin, YAML or JSON.

use std::io::Read;
use std::path::Path;

use serde_saphyr::UserMessageFormatter;

use super::failure::Failure;
use super::json::Json;

/// No recipe comes near it; a wrong path must not fill the memory.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;

/// Reads the recipe of one scheduler. What `scheduler get -o yaml` printed can be read again: there the recipe is
/// inside `scheduler`.
pub(super) fn read_recipe(path: &Path) -> Result<Json, Failure> {
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let text =
        read_text(path).map_err(|error| Failure::invalid(format!("{name}: cannot be read: {error}")))?;
    let document = parse(&text).map_err(|reason| Failure::invalid(format!("{name}: {reason}")))?;
    match document {
        Json::Object(mut entries) if entries.len() == 1 && entries[0].0 == "scheduler" => {
            Ok(without_state(entries.remove(0).1))
        }
        Json::Object(entries) => Ok(Json::Object(entries)),
        Json::Null => Err(Failure::invalid(format!("{name}: is empty; it must hold a scheduler's recipe"))),
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Err(Failure::invalid(format!("{name}: must hold a scheduler's recipe, `name: …` and so on")))
        }
    }
}

/// An answer says more than a recipe: what only the server can know is not submitted again.
fn without_state(scheduler: Json) -> Json {
    match scheduler {
        Json::Object(mut entries) => {
            entries.retain(|(key, _)| !matches!(key.as_str(), "state" | "createdAt"));
            Json::Object(entries)
        }
        other => other,
    }
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
        let outcome = match read_recipe(&path) {
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
}
