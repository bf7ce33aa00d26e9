//! `maestro scheduler diff`: what a recipe would change, found out here with the code that the server uses.

use maestro_core::scheduler::{ChangedField, Recipe, RecipeChange, Version};
use maestro_proto::recipe::recipe_to_json;
use serde_json::Value;

use super::proposal::{Current, Proposal};
use crate::cli::document::RecipeOptions;
use crate::cli::{At, Column, Context, Exit, Failure, Json, table};

pub(super) fn diff(context: &Context, options: &RecipeOptions) -> Result<(), Failure> {
    let proposal = Proposal::read(&context.client()?, options)?;
    proposal.warn_of_unknown_fields();
    context.show(&answer(&proposal), text)?;
    let is_different =
        proposal.current.as_ref().is_none_or(|current| current.difference.change() != RecipeChange::None);
    if is_different { Err(Failure::new(Exit::Different, "")) } else { Ok(()) }
}

/// For programs: `{"scheduler","change","from","to","fields":[{"path","change","from","to"}]}`.
pub(super) fn answer(proposal: &Proposal) -> Json {
    let (change, from, to, fields) = match &proposal.current {
        None => ("create", Json::Null, Version::FIRST, Vec::new()),
        Some(current) => (
            word(current.difference.change()),
            Json::from(current.version.to_string().as_str()),
            current.next,
            fields(current, &proposal.recipe),
        ),
    };
    Json::object([
        ("scheduler", Json::from(proposal.name().as_str())),
        ("change", Json::from(change)),
        ("from", from),
        ("to", Json::from(to.to_string().as_str())),
        ("fields", Json::Array(fields)),
    ])
}

pub(super) fn word(change: RecipeChange) -> &'static str {
    match change {
        RecipeChange::None => "none",
        RecipeChange::Minor => "minor",
        RecipeChange::Major => "major",
    }
}

fn fields(current: &Current, proposed: &Recipe) -> Vec<Json> {
    let [old, new] = [&current.recipe, proposed].map(document);
    let field = |ChangedField { path, change }: &ChangedField| {
        Json::object([
            ("path", Json::from(path.as_str())),
            ("change", Json::from(word(*change))),
            ("from", Json::from(at(&old, path).clone())),
            ("to", Json::from(at(&new, path).clone())),
        ])
    };
    current.difference.fields.iter().map(field).collect()
}

/// With the rules of a rollout also where they were not written: a default that changes is shown with its value.
fn document(recipe: &Recipe) -> Value {
    let mut recipe = recipe.clone();
    recipe.rollout_rules = Some(recipe.rollout());
    recipe_to_json(&recipe)
}

/// The value at a path as differences write it, `spec.containers[0].image` or `labels["example.com/team"]`.
fn at<'a>(document: &'a Value, path: &str) -> &'a Value {
    const NOTHING: &Value = &Value::Null;
    let mut value = document;
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let key;
        (key, rest) = match rest.strip_prefix('[') {
            Some(bracket) => bracket.split_once(']').unwrap_or((bracket, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        let found = match key.parse::<usize>() {
            Ok(index) if value.is_array() => value.get(index),
            Ok(_) | Err(_) => value.get(key.trim_matches('"')),
        };
        value = found.unwrap_or(NOTHING);
    }
    value
}

const FIELDS: &[Column] =
    &[("FIELD", At("path")), ("CHANGE", At("change")), ("FROM", At("from")), ("TO", At("to"))];

/// For people.
pub(super) fn text(answer: &Json) -> String {
    let [scheduler, from, to] = ["scheduler", "from", "to"].map(|key| answer.get(key).cell());
    let means = match answer.get("change").as_str() {
        Some("create") => {
            return format!("scheduler {scheduler} does not exist: it would be created as {to}");
        }
        Some("major") => "a major change, rooms are replaced",
        Some("minor") => "a minor change, rooms stay as they are",
        Some(_) | None => return format!("scheduler {scheduler} {from} is unchanged"),
    };
    let fields = table(answer.get("fields"), FIELDS);
    format!("{fields}\n\nscheduler {scheduler} {from} → {to}: {means}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths() {
        let document = json!({"spec": {"containers": [{"image": "a", "ports": [1, 2]}]}, "maxSurge": "1",
            "labels": {"example.com/team": "b", "2": "c"}});
        for (path, expected) in [
            ("maxSurge", json!("1")),
            ("spec.containers[0].image", json!("a")),
            ("spec.containers[0].ports[1]", json!(2)),
            ("spec.containers[1]", json!(null)),
            ("spec.containers[1].image", json!(null)),
            (r#"labels["example.com/team"]"#, json!("b")),
            ("labels.2", json!("c")),
            ("nothing.here[7]", json!(null)),
        ] {
            assert_eq!(at(&document, path), &expected, "{path}");
        }
    }
}
