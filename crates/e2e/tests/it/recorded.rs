//! The recorded story of a running v10, told to the real server with real rooms: same paths, same bodies, answers of the
//! same shape. Told over gRPC, the answers are those of HTTP.

#![allow(clippy::unwrap_used, reason = "a recording that lacks something is a failed test")]

mod over_grpc;

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_e2e::{Maestro, binaries, checks};
use serde_json::Value;

/// Exchanges before which the recorded system was left alone until it had done what it was asked for.
const SETTLED: [&str; 4] =
    ["get", "get after minor", "the version operation", "versions after switching back"];

/// Keys whose values are another in every run; their types are compared.
const OWN_VALUES: [(&str, &str); 7] = [
    ("id", "made at random"),
    ("roomId", "made at random"),
    ("operationId", "made at random"),
    ("createdAt", "a time"),
    ("host", "an address"),
    ("port", "of an address: a free host port"),
    ("message", "texts need not be equal"),
];

/// Values that differ on purpose.
const OTHER_VALUES: [(&str, &str, &str); 2] = [
    ("get while deleting", "state", "deleting, where v10 goes on saying in-sync"),
    ("the version operation", "event", "attempts are counted in plain words"),
];

/// The recorded command, which only exists in the image that was recorded.
const COMMAND: &str = "\"/room\"";

struct Reply {
    status: u16,
    headers: BTreeMap<String, String>,
    text: String,
}

struct Story {
    maestro: Maestro,
    agent: ureq::Agent,
    /// The example room, in place of the recorded command.
    command: String,
    /// The ids that were answered in place of the recorded ones.
    operations: BTreeMap<String, String>,
}

/// One exchange, as this server has to be asked.
struct Asked {
    port: u16,
    method: String,
    path: String,
    body: String,
}

#[test]
fn the_recorded_story() -> anyhow::Result<()> {
    let mut story = Story::begin()?;
    let mut compared = 0;
    for exchange in maestro_testkit::recorded("http-v10.jsonl") {
        let name = exchange["name"].as_str().unwrap();
        if SETTLED.contains(&name) {
            story.settle()?;
        }
        let reply = story.tell(&story.asked(&exchange)?)?;
        compare(name, &exchange, &reply);
        story.remember(&exchange, &reply.json());
        compared += 1;
    }
    assert_eq!(compared, 70, "the recording has other exchanges than this test was written for");
    Ok(())
}

impl Story {
    fn begin() -> anyhow::Result<Self> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(20)))
            .allow_non_standard_methods(true);
        let command = Value::from(binaries::example_room()?.to_string_lossy()).to_string();
        // The room that is allocated is ready again soon, as it is for the story's next pages.
        let hold = ("SERVICES_ROOMMANAGER_ROOMALLOCATIONTTLMILLIS", "1000");
        let (maestro, agent) = (Maestro::started(&[hold])?, config.build().into());
        Ok(Self { maestro, agent, command, operations: BTreeMap::new() })
    }

    /// Which id was answered in place of the recorded one.
    fn remember(&mut self, exchange: &Value, answer: &Value) {
        let ids = [&exchange["response"], answer].map(|body| body["operationId"].as_str());
        if let [Some(recorded), Some(answered)] = ids {
            self.operations.insert(recorded.to_owned(), answered.to_owned());
        }
    }

    /// Both schedulers have their three rooms, of one version, and nothing is under way.
    fn settle(&self) -> anyhow::Result<()> {
        for scheduler in ["arena", "bad-three"] {
            self.maestro.until("it to be at rest", || {
                checks::settled(&self.maestro, scheduler, 3)?;
                let rollout = self.maestro.api().get(&format!("/schedulers/{scheduler}/rollout"))?;
                anyhow::ensure!(rollout.json()?["state"] == "none", "{}", rollout.text);
                let operations = self.maestro.api().operations(scheduler)?;
                anyhow::ensure!(operations.iter().all(|operation| operation.is_final()));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn asked(&self, exchange: &Value) -> anyhow::Result<Asked> {
        let port = match exchange["api"].as_str() {
            Some("management") => self.maestro.api_ports()[0],
            _ => self.maestro.api_ports()[1],
        };
        let body = match (&exchange["rawBody"], &exchange["body"]) {
            (Value::String(raw), _) => raw.clone(),
            (_, Value::Null) => String::new(),
            (_, body) => body.to_string(),
        };
        Ok(Asked {
            port,
            method: exchange["method"].as_str().unwrap().to_owned(),
            path: self.path(exchange)?,
            body: body.replace(COMMAND, &self.command),
        })
    }

    fn tell(&self, asked: &Asked) -> anyhow::Result<Reply> {
        let Asked { port, method, path, body } = asked;
        let request = ureq::http::Request::builder()
            .method(method.as_str())
            .uri(format!("http://127.0.0.1:{port}{path}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.clone())?;
        let mut response = self.agent.run(request)?;
        let header = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.map(|value| (name.to_owned(), value.to_owned()))
        };
        let headers = ["content-type", "allow", "warning"].iter().filter_map(|name| header(name)).collect();
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string()?.replace(&self.command, COMMAND);
        Ok(Reply { status, headers, text })
    }

    fn path(&self, exchange: &Value) -> anyhow::Result<String> {
        const CREATE_OPERATION: &str = "d19db03c-1f9a-4e92-b14c-7438a3fd6a67";
        let mut path = exchange["path"].as_str().unwrap().to_owned();
        if path.contains("arena-ROOM") {
            path = path.replace("arena-ROOM", &self.maestro.api().rooms("arena")?[0].id);
        }
        if path.contains(CREATE_OPERATION) {
            let operations = self.maestro.api().operations("arena")?;
            let create = operations.iter().find(|one| one.definition_name == "create_scheduler").unwrap();
            path = path.replace(CREATE_OPERATION, &create.id);
        }
        for (recorded, answered) in &self.operations {
            path = path.replace(recorded, answered);
        }
        Ok(path)
    }
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }
}

fn compare(name: &str, exchange: &Value, reply: &Reply) {
    let recorded = exchange["status"].as_u64().unwrap();
    let status = exchange["expect"]["status"].as_u64().unwrap_or(recorded);
    assert_eq!(u64::from(reply.status), status, "{name}: {}", reply.text);
    assert_eq!(reply.headers["content-type"], exchange["contentType"].as_str().unwrap(), "{name}");
    let actual = reply.json();
    match name {
        "page two" => {
            let numbers = ["page", "pageSize", "total"].map(|key| actual[key].as_u64().unwrap());
            assert_eq!(numbers, [2, 1, 3]);
            assert_eq!(actual["operations"].as_array().unwrap().len(), 1);
        }
        _ if status != recorded => {
            let keys: Vec<_> = actual.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["code", "details", "message"], "{name}");
            if status == 405 {
                assert!(reply.headers.contains_key("allow"), "{name}");
            }
        }
        _ => same(name, "", &exchange["response"], &actual),
    }
    if name == "create: unknown field" {
        assert_eq!(reply.headers["warning"], r#"299 maestro "unknown field colour""#);
    }
}

fn same(name: &str, key: &str, recorded: &Value, actual: &Value) {
    let place = format!("{name}, {key}: recorded {recorded}, answered {actual}");
    match (recorded, actual) {
        (Value::Object(recorded), Value::Object(actual)) => {
            let keys = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(recorded), keys(actual), "{place}");
            for (key, value) in recorded {
                same(name, key, value, &actual[key]);
            }
        }
        (Value::Array(recorded), Value::Array(actual)) => {
            assert_eq!(recorded.len(), actual.len(), "{place}");
            let (recorded, actual) = (sorted(recorded), sorted(actual));
            for (recorded, actual) in recorded.iter().zip(&actual) {
                same(name, key, recorded, actual);
            }
        }
        _ => {
            let own = OWN_VALUES.iter().any(|(own, _)| *own == key)
                || OTHER_VALUES.iter().any(|(exchange, other, _)| *exchange == name && *other == key);
            let same_type = std::mem::discriminant(recorded) == std::mem::discriminant(actual);
            assert!(without_id(recorded) == without_id(actual) || own && same_type, "{place}");
        }
    }
    if key == "createdAt" {
        let text = actual.as_str().unwrap();
        assert!(text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok(), "{place}");
    }
}

/// An event of a history may end in the id of another operation.
fn without_id(value: &Value) -> Value {
    match value.as_str().and_then(|text| text.split_once(" with id: ")) {
        Some((text, _)) => text.into(),
        None => value.clone(),
    }
}

/// Lists of schedulers have no order in v10; all others come in the same one.
fn sorted(list: &[Value]) -> Vec<Value> {
    let mut list = list.to_vec();
    if list.iter().all(|item| item["game"].is_string()) {
        list.sort_by_key(|item| item["name"].to_string());
    }
    list
}
