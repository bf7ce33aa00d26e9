//! What the server says about itself and its fleets.

use super::bundle::{Bundle, Keep};
use super::secrets::hide;
use crate::cli::{Client, Exit, Failure, Json, Resource};

/// More fleets than that are asked for by name.
const SCHEDULERS_MAX: usize = 100;

/// Rooms of a scheduler whose logs are included; those that are not well come first.
const ROOM_LOGS_MAX: usize = 10;
const ROOM_LOG_LINES: &str = "200";

/// The latest operations that have ended, by the most that the server gives at once.
const OPERATIONS: &str = "100";

/// Operations of a scheduler that are explained: those that have not ended.
const EXPLAINED_MAX: usize = 20;

/// About the schedulers of these names, or about all if none is named. Fails only if there is no server to ask.
pub(super) fn collect(
    bundle: &mut Bundle,
    client: &Client,
    named: &[String],
    room_logs: bool,
) -> Result<(), Failure> {
    let list = client.get(&Resource::new(&["schedulers"]), "schedulers");
    let schedulers = match list {
        Err(failure) if matches!(failure.exit, Exit::Unreachable | Exit::TimedOut) => return Err(failure),
        list => keep(bundle, "schedulers.json", list),
    };
    keep(bundle, "regions.json", client.get(&Resource::new(&["regions"]), "regions"));
    let names: Vec<String> = match named {
        [] => texts(schedulers.get("schedulers"), "name").collect(),
        named => named.to_vec(),
    };
    for (index, name) in names.iter().enumerate() {
        if index >= SCHEDULERS_MAX {
            bundle.miss(&format!("schedulers/{name}"), "too many schedulers; select some with --scheduler");
            continue;
        }
        scheduler(bundle, client, name, room_logs);
    }
    Ok(())
}

fn scheduler(bundle: &mut Bundle, client: &Client, name: &str, room_logs: bool) {
    let of = |rest: &[&str]| Resource::new(&[&["schedulers", name], rest].concat());
    let file = |file: &str| format!("schedulers/{name}/{file}");
    let plain = [
        ("scheduler.json", of(&[]), "scheduler"),
        ("versions.json", of(&["versions"]), "versions"),
        ("rollout.json", of(&["rollout"]), "state"),
        ("autoscaling.json", of(&["autoscaling"]), "decisions"),
        ("stuck.json", of(&["operations", "stuck"]), "operations"),
        (
            "operations-final.json",
            of(&["operations"]).query("stage", "final").query("perPage", OPERATIONS),
            "operations",
        ),
    ];
    for (name, resource, key) in plain {
        keep(bundle, &file(name), client.get(&resource, key));
    }
    keep(bundle, &file("locks.json"), client.get_list(&of(&["locks"])));
    let mut unfinished = Vec::new();
    for stage in ["pending", "active"] {
        let resource = of(&["operations"]).query("stage", stage);
        let list = client.get(&resource, "operations");
        let list = keep(bundle, &file(&format!("operations-{stage}.json")), list);
        unfinished.extend(texts(list.get("operations"), "id"));
    }
    for id in unfinished.iter().take(EXPLAINED_MAX) {
        let explained = client.get(&of(&["operations", id, "explain"]), "next");
        keep(bundle, &file(&format!("explain/{id}.json")), explained);
    }
    let rooms = keep(bundle, &file("rooms.json"), client.get(&of(&["rooms"]), "rooms"));
    if room_logs {
        for id in worst_rooms(rooms.get("rooms").items()) {
            let log = client.get_text(&of(&["rooms", id, "logs"]).query("tail", ROOM_LOG_LINES));
            bundle.add(&file(&format!("logs/{id}.log")), log.map(String::into_bytes), Keep::End);
        }
    }
}

/// The texts that items have at a key.
fn texts(items: &Json, key: &str) -> impl Iterator<Item = String> {
    items.items().iter().filter_map(move |item| item.get(key).as_str().map(str::to_owned))
}

fn worst_rooms(rooms: &[Json]) -> Vec<&str> {
    let is_well = |room: &&Json| matches!(room.get("status").as_str(), Some("ready" | "occupied"));
    let (well, unwell): (Vec<&Json>, Vec<&Json>) = rooms.iter().partition(is_well);
    let ids = unwell.into_iter().chain(well).filter_map(|room| room.get("id").as_str());
    ids.take(ROOM_LOGS_MAX).collect()
}

/// Health and metrics. What is not healthy is answered with an error, which is what the report is about.
pub(super) fn collect_internal(bundle: &mut Bundle, client: &Client) {
    for (name, path) in [("readyz.txt", "readyz"), ("healthz.txt", "healthz"), ("metrics.txt", "metrics")] {
        let answer = client.get_whatever(&Resource::new(&[path])).map(|(status, body)| match status {
            200 => body,
            _ => format!("HTTP {status}\n{}", String::from_utf8_lossy(&body)).into_bytes(),
        });
        bundle.add(name, answer, Keep::Beginning);
    }
}

/// Puts an answer in without its secrets, and gives it back; null if there is none.
fn keep(bundle: &mut Bundle, name: &str, answer: Result<Json, Failure>) -> Json {
    match answer {
        Ok(mut answer) => {
            hide("", &mut answer);
            bundle.add_json(name, &answer);
            answer
        }
        Err(failure) => {
            bundle.miss(name, &failure.message);
            Json::Null
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_that_are_not_well_come_first() {
        let rooms: Json = serde_json::from_str(
            r#"[{"id":"a","status":"ready"},{"id":"b","status":"error"},{"id":"c","status":"occupied"},{"id":"d","status":"unready"}]"#,
        )
        .unwrap();
        assert_eq!(worst_rooms(rooms.items()), ["b", "d", "a", "c"]);
    }
}
