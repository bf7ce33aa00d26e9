//! Recipes and versions that cannot be meant: an answer that names the field, and nothing has changed.

use maestro_e2e::{Maestro, Version};
use serde_json::{Value, json};

use super::{NEVER_MS, ended, nothing_changed, validation_room};

const READY_TARGET: &str = "/autoscaling/policy/parameters/roomOccupancy/readyTarget";

#[test]
fn bad_recipes_are_told_which_field_is_wrong() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let before = maestro.fleet("arena", 2)?;
    let scheduler = maestro.api().get("/schedulers/arena")?.expect(200)?.json()?;
    let cases: Vec<(&str, Value, &str)> = vec![
        (READY_TARGET, json!(0), "readyTarget"),
        (READY_TARGET, json!(1), "readyTarget"),
        (READY_TARGET, json!(1.5), "readyTarget"),
        (READY_TARGET, json!("half"), "readyTarget"),
        (READY_TARGET, json!("NaN"), "readyTarget"),
        ("/autoscaling/min", json!(0), "autoscaling.min"),
        ("/autoscaling/max", json!(1), "autoscaling.max"),
        ("/autoscaling/policy/type", json!("roomOccupation"), "autoscaling.policy.type"),
        ("/maxSurge", json!("0%"), "maxSurge"),
        ("/maxSurge", json!("-5%"), "maxSurge"),
        ("/maxSurge", json!("abc"), "maxSurge"),
    ];
    for (field, value, named) in cases {
        for (name, path) in [("other", "/schedulers"), ("arena", "/schedulers/arena")] {
            let mut recipe = autoscaled(&maestro, name)?;
            *recipe.pointer_mut(field).expect("a field of the recipe") = value.clone();
            let answer = maestro.api().post(path, "ada", &recipe.to_string())?;
            assert_eq!(answer.status, 400, "{path} {field} {value}: {}", answer.text);
            assert_eq!(answer.json()?["code"], 3, "{path} {field} {value}: {}", answer.text);
            assert!(answer.message().contains(named), "{path} {field} {value}: {}", answer.text);
        }
    }
    maestro.api().get("/schedulers/other")?.expect(404)?;
    // It was the one field each time.
    maestro.api().create(&autoscaled(&maestro, "other")?)?.expect(200)?;
    assert_eq!(maestro.api().get("/schedulers/arena")?.expect(200)?.json()?, scheduler);
    nothing_changed(&maestro, &before)
}

/// Good in itself, as the recipe that is made bad one field at a time must be.
fn autoscaled(maestro: &Maestro, name: &str) -> anyhow::Result<Value> {
    let mut recipe = maestro.recipe(name, 2)?.json();
    recipe["autoscaling"] = json!({
        "enabled": true,
        "min": 2,
        "max": 8,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}},
    });
    Ok(recipe)
}

#[test]
fn only_versions_that_exist_can_be_switched_to() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let before = maestro.fleet("arena", 1)?;
    let cases = [
        ("arena", json!({"version": "v7.0.0"}), 404, "v7.0.0"),
        ("arena", json!({"version": "latest"}), 404, "latest"),
        ("arena", json!({"version": ""}), 400, "version: is missing"),
        ("arena", json!({}), 400, "version: is missing"),
        ("arena", json!({"version": 2}), 400, "version"),
        ("nobody", json!({"version": "v1.0.0"}), 404, "nobody"),
    ];
    for (scheduler, body, status, message) in cases {
        let answer = maestro.api().put(&format!("/schedulers/{scheduler}"), &body)?;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert!(answer.message().contains(message), "{body}: {}", answer.text);
    }
    nothing_changed(&maestro, &before)
}

#[test]
fn one_version_is_made_at_a_time() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let before = maestro.fleet("arena", 2)?;
    let slow = maestro.recipe("arena", 2)?.with("ROOM_START_DELAY_MS", NEVER_MS).json();
    let first = maestro.api().new_version("arena", &slow)?.expect(200)?.operation_id()?;
    maestro.until("its validation room", || validation_room(&maestro))?;

    let minor = maestro.recipe("arena", 3)?.json();
    let requests = [
        ("a new version", maestro.api().new_version("arena", &minor)?),
        ("a switch", maestro.api().put("/schedulers/arena", &json!({"version": "v1.0.0"}))?),
    ];
    for (what, answer) in requests {
        assert_eq!((answer.status, &answer.json()?["code"]), (400, &json!(9)), "{what}: {}", answer.text);
        assert!(answer.message().contains(&first), "{what}: {}", answer.text);
    }
    let names = |versions: Vec<Version>| -> Vec<String> { versions.into_iter().map(|v| v.version).collect() };
    assert_eq!(names(maestro.api().versions("arena")?), ["v1.0.0", "v2.0.0"]);

    maestro.api().cancel("arena", &first)?.expect(200)?;
    let first = maestro.until("its end", || ended(&maestro, &first))?;
    assert_eq!(first.status, "canceled", "{}", first.story());
    nothing_changed(&maestro, &before)
}
