//! As much of the management API as the demo needs.

use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::recipe::{SCHEDULER, is_current};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Api {
    agent: ureq::Agent,
    url: String,
}

/// What came of the wish to have the scheduler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    Created,
    AlreadyThere,
    /// There from an earlier run with another recipe: rolled over to this run's.
    NewVersion,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Room {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) pids: Vec<u32>,
    /// RFC 3339 in UTC, so that texts compare as times do.
    pub(crate) created_at: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// A room that is held for one match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Allocation {
    pub(crate) id: String,
    pub(crate) room_id: String,
    pub(crate) host: String,
    pub(crate) ports: Vec<Port>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Operation {
    pub(crate) definition_name: String,
    pub(crate) status: String,
}

#[derive(Deserialize)]
struct Rooms {
    rooms: Vec<Room>,
}

#[derive(Deserialize)]
struct Allocations {
    allocations: Vec<Allocation>,
}

#[derive(Deserialize)]
struct Operations {
    operations: Vec<Operation>,
}

#[derive(Deserialize)]
struct Scheduler {
    scheduler: Value,
}

impl Api {
    pub(crate) fn new(url: &str) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // The server is a child of this program: no proxy lies between.
            .proxy(None)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .build()
            .new_agent();
        Self { agent, url: url.trim_end_matches('/').to_owned() }
    }

    pub(crate) fn submit(&self, recipe: &Value) -> anyhow::Result<Submitted> {
        let (code, answer) = self.post("/schedulers", recipe)?;
        match code {
            200..300 => Ok(Submitted::Created),
            409 => {
                let there: Scheduler = self.get(&format!("/schedulers/{SCHEDULER}"))?;
                if is_current(&there.scheduler, recipe) {
                    return Ok(Submitted::AlreadyThere);
                }
                let (code, answer) = self.post(&format!("/schedulers/{SCHEDULER}"), recipe)?;
                if !(200..300).contains(&code) {
                    bail!("cannot change the scheduler of an earlier run: {}", message(code, &answer));
                }
                Ok(Submitted::NewVersion)
            }
            _ => bail!("cannot create the scheduler: {}", message(code, &answer)),
        }
    }

    pub(crate) fn rooms(&self) -> anyhow::Result<Vec<Room>> {
        let answer: Rooms = self.get(&format!("/schedulers/{SCHEDULER}/rooms"))?;
        Ok(answer.rooms)
    }

    /// A room for one match; none if there is none at present.
    pub(crate) fn allocate(&self) -> anyhow::Result<Option<Allocation>> {
        let (code, body) = self.post(&format!("/schedulers/{SCHEDULER}/allocations"), &json!({}))?;
        match code {
            200 => {
                let answer: Allocations =
                    serde_json::from_str(&body).context("allocating: unexpected answer")?;
                Ok(answer.allocations.into_iter().next())
            }
            429 => Ok(None),
            _ => bail!("cannot allocate a room: {}", message(code, &body)),
        }
    }

    /// What is over already need not be returned.
    pub(crate) fn return_allocation(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("/schedulers/{SCHEDULER}/allocations/{id}");
        let mut response = self.agent.delete(format!("{}{path}", self.url)).call()?;
        let code = response.status().as_u16();
        match code {
            204 | 404 | 409 => Ok(()),
            _ => bail!("DELETE {path}: {}", message(code, &response.body_mut().read_to_string()?)),
        }
    }

    /// What is being done, or else what was done last.
    pub(crate) fn latest_operation(&self) -> anyhow::Result<Option<Operation>> {
        for filter in ["stage=active", "stage=final&perPage=1"] {
            let answer: Operations = self.get(&format!("/schedulers/{SCHEDULER}/operations?{filter}"))?;
            if let Some(operation) = answer.operations.into_iter().next() {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let mut response = self.agent.get(format!("{}{path}", self.url)).call()?;
        let code = response.status().as_u16();
        let body = response.body_mut().read_to_string()?;
        if code != 200 {
            bail!("GET {path}: {}", message(code, &body));
        }
        serde_json::from_str(&body).with_context(|| format!("GET {path}: unexpected answer"))
    }

    fn post(&self, path: &str, body: &Value) -> anyhow::Result<(u16, String)> {
        let mut response = self.agent.post(format!("{}{path}", self.url)).send_json(body)?;
        Ok((response.status().as_u16(), response.body_mut().read_to_string()?))
    }
}

/// What a person should read of an error's body.
fn message(code: u16, body: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    match parsed.as_ref().and_then(|body| body["message"].as_str()) {
        Some(message) => format!("{message} ({code})"),
        None => format!("answer {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_read_whatever_else_they_have() {
        let body = r#"{"rooms":[
            {"id":"example-1","status":"ready","version":"v1.0.0","region":"local","host":"127.0.0.1",
             "ports":[{"name":"game","protocol":"tcp","port":20007}],"pids":[4711],"validation":false},
            {"id":"example-2","status":"pending"}
        ]}"#;
        let rooms = serde_json::from_str::<Rooms>(body).unwrap().rooms;
        assert_eq!((rooms[0].id.as_str(), rooms[0].status.as_str()), ("example-1", "ready"));
        assert_eq!((rooms[0].pids.as_slice(), rooms[1].pids.as_slice()), ([4711].as_slice(), [].as_slice()));
    }

    #[test]
    fn allocations_are_read_whatever_else_they_have() {
        let body = r#"{"allocations":[{"id":"a","roomId":"example-1","state":"held","host":"127.0.0.1",
            "ports":[{"name":"game","protocol":"tcp","port":20007}],"region":"local","metadata":{}}]}"#;
        let read = serde_json::from_str::<Allocations>(body).unwrap().allocations;
        assert_eq!((read[0].id.as_str(), read[0].room_id.as_str()), ("a", "example-1"));
        assert_eq!(read[0].ports, [Port { name: "game".to_owned(), port: 20007 }]);
    }

    #[test]
    fn errors_show_the_servers_words() {
        let body = r#"{"code":3,"message":"portRange: start is not below end","details":[]}"#;
        assert_eq!(message(400, body), "portRange: start is not below end (400)");
        assert_eq!(message(502, "<html>"), "answer 502");
    }
}
