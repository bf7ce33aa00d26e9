//! A recipe from a file or stdin, YAML or JSON. Errors are reported with the line in which they are.

use std::path::PathBuf;

use clap::Args;
use maestro_core::violation::{Violation, Violations};
use maestro_proto::document::{self, without_place};
use maestro_proto::json::{DecodeError, Decoded, decode};
use maestro_proto::unknown_recipe_field;
use maestro_proto::v1::CreateSchedulerRequest;

use super::{Failure, Json};
use crate::yaml::Node;

/// No recipe comes near it.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;

/// Options of the commands that read a recipe.
#[derive(Debug, Args)]
pub(super) struct RecipeOptions {
    /// The recipe, YAML or JSON; `-` reads stdin
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    // Most likely a slip: a recipe in which a field is ignored is not what was meant.
    /// Accept a recipe with unknown fields, which are ignored
    #[arg(long)]
    lenient: bool,
}

/// A recipe as somebody wrote it.
pub(super) struct Written {
    pub(super) recipe: Json,
    /// What it says; its rules are not checked yet.
    pub(super) message: CreateSchedulerRequest,
    pub(super) unknown_fields: Vec<String>,
    /// How messages call its file.
    name: String,
    text: String,
}

/// Reads the recipe of one scheduler. What `scheduler get -o yaml` printed can be read again: there the recipe is
/// inside `scheduler`.
pub(super) fn read_recipe(options: &RecipeOptions) -> Result<Written, Failure> {
    let RecipeOptions { file, lenient } = options;
    let name = document::name(file);
    let text = document::read_text(file, DOCUMENT_BYTES_MAX)
        .map_err(|error| Failure::invalid(format!("{name}: cannot be read: {error}")))?;
    let recipe = match document::parse(&text).map_err(|error| Failure::invalid(error.in_file(&name)))? {
        Json::Object(mut entries) if entries.len() == 1 && entries[0].0 == SCHEDULER => entries.remove(0).1,
        Json::Object(entries) => Json::Object(entries),
        Json::Null => {
            return Err(Failure::invalid(format!("{name}: is empty; it must contain a scheduler's recipe")));
        }
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            let reason = "must contain a scheduler's recipe: `name: …` and so on";
            return Err(Failure::invalid(format!("{name}: {reason}")));
        }
    };
    let mut written = Written {
        recipe: without_state(recipe),
        message: CreateSchedulerRequest::default(),
        unknown_fields: Vec::new(),
        name,
        text,
    };
    written.decode(*lenient)?;
    Ok(written)
}

/// A recipe in JSON, the server's too: what an answer has beside it is passed over.
pub(super) fn decode_recipe(recipe: &Json) -> Result<Decoded<CreateSchedulerRequest>, DecodeError> {
    decode(&serde_json::to_vec(recipe).unwrap_or_default())
}

impl Written {
    /// Where a field is written, `arena.yaml:12:5`; only the file if that cannot be told.
    fn place(&self, field: &str) -> String {
        let Self { name, text, .. } = self;
        let Ok(root) = document::parse_yaml::<Node>(text) else { return name.clone() };
        let recipe = match &root {
            Node::Map(entries) if entries.len() == 1 && entries[0].0.value == SCHEDULER => &entries[0].1,
            node => node,
        };
        match recipe.find(field) {
            Some(location) => format!("{name}:{}", document::place(&location)),
            None => name.clone(),
        }
    }

    /// Rules that the recipe breaks, one a line, each with the line that breaks it.
    pub(super) fn violations(&self, violations: &Violations) -> Failure {
        let Violations(violations) = violations;
        let line = |violation: &Violation| format!("{}: {violation}", self.place(&violation.field));
        Failure::invalid(violations.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// The server's refusal of it, with lines where it names fields.
    pub(super) fn refused(&self, failure: Failure) -> Failure {
        let Some(lines) = failure.message.strip_prefix(VALIDATION_ERROR) else { return failure };
        let line = |line: &str| match line.split_once(": ") {
            Some((field, _)) => format!("{}: {line}", self.place(field)),
            None => line.to_owned(),
        };
        let message = lines.lines().map(line).collect::<Vec<_>>().join("\n");
        Failure { message, ..failure }
    }

    /// Whether it has the form of a recipe; its rules are the server's.
    fn decode(&mut self, lenient: bool) -> Result<(), Failure> {
        let decoded = decode_recipe(&self.recipe).map_err(|error| {
            // The place in it is one in our own rendering, which nobody has seen.
            let reason = without_place(&error.reason);
            Failure::invalid(format!("{}: {}: {reason}", self.place(&error.field), error.field))
        })?;
        Decoded { message: self.message, unknown_fields: self.unknown_fields } = decoded;
        if self.unknown_fields.is_empty() || lenient {
            return Ok(());
        }
        let line = |field: &String| format!("{}: {}\n", self.place(field), unknown_recipe_field(field));
        let lines: String = self.unknown_fields.iter().map(line).collect();
        let advice = "nothing was changed; --lenient submits a recipe with unknown fields";
        Err(Failure::invalid(lines + advice))
    }
}

/// How the server begins a list of violations.
const VALIDATION_ERROR: &str = "Validation Error:\n";

/// The key that answers have a recipe under.
const SCHEDULER: &str = "scheduler";

/// An answer says more than a recipe: what only the server can know is not submitted again.
pub(super) fn without_state(scheduler: Json) -> Json {
    match scheduler {
        Json::Object(mut entries) => {
            entries.retain(|(key, _)| !matches!(key.as_str(), "state" | "createdAt" | "created_at"));
            Json::Object(entries)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::cli::failure::Exit;

    fn check(text: &str, expected: &Expect) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arena.yaml");
        std::fs::write(&path, text).unwrap();
        let outcome = match read_recipe(&RecipeOptions { file: path, lenient: false }) {
            Ok(written) => serde_json::to_string(&written.recipe).unwrap(),
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
        check("", &expect!["arena.yaml: is empty; it must contain a scheduler's recipe"]);
        check(
            "- name: arena\n",
            &expect!["arena.yaml: must contain a scheduler's recipe: `name: …` and so on"],
        );
        check(
            "name: arena\n  game: x\n",
            &expect!["arena.yaml:2:7: not valid YAML: mapping values are not allowed in this context"],
        );
        check(r#"{"name": "arena", "#, &expect!["arena.yaml:1:1: not valid YAML: unclosed bracket '{'"]);
        check(
            "name: a\n---\nname: b\n",
            &expect!["arena.yaml:3:1: not valid YAML: only single YAML document expected but multiple found"],
        );
        check(
            "name: a\nname: b\n",
            &expect!["arena.yaml:2:1: not valid YAML: duplicate mapping key: name not allowed here"],
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

    /// Whether it was checked here or by the server.
    #[test]
    fn broken_rules_are_named_with_the_line_that_they_are_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arena.yaml");
        let text = "name: arena\nspec:\n  containers:\n  - name: room\n    image_pull_policy: Perhaps\n";
        std::fs::write(&path, text).unwrap();
        let written = read_recipe(&RecipeOptions { file: path.clone(), lenient: false }).unwrap();
        let violations = [
            Violation::new("spec.containers[0].imagePullPolicy", "\"Perhaps\" is none"),
            Violation::new("game", "is missing"),
        ];
        let broken =
            ["FILE:5:5: spec.containers[0].imagePullPolicy: \"Perhaps\" is none", "FILE: game: is missing"]
                .join("\n")
                .replace("FILE", &path.display().to_string());
        let violations = Violations(violations.to_vec());
        assert_eq!(written.violations(&violations).message, broken);
        let refused = Failure::new(Exit::Invalid, format!("Validation Error:\n{violations}"));
        assert_eq!(written.refused(refused).message, broken);
        let other = Failure::new(Exit::Conflict, "game: of another kind");
        assert_eq!(written.refused(other).message, "game: of another kind");
    }

    #[test]
    fn who_is_lenient_submits_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arena.yaml");
        std::fs::write(&path, "name: arena\ncolour: red\n").unwrap();
        assert!(read_recipe(&RecipeOptions { file: path.clone(), lenient: false }).is_err());
        assert!(read_recipe(&RecipeOptions { file: path, lenient: true }).is_ok());
    }
}
