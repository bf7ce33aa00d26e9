//! The story is told to two servers, to one over HTTP and to the other over gRPC, and what only reads also both ways to
//! the first.

use prost_reflect::DynamicMessage;
use serde_json::{Value, json};

use super::{COMMAND, Reply, SETTLED, Story, same};
use crate::calls::{Call, Calls, message};

/// What no message can say, so that there is nothing to call.
const NO_CALLS: [&str; 6] = [
    "create: broken JSON",
    "create: wrong type",
    "ping broken JSON",
    // A method has one verb in HTTP, and none in gRPC.
    "ping with POST",
    "unknown path",
    "wrong method",
];

/// How often to read again if something changed between two looks.
const READS_MAX: usize = 50;

/// A server, and how its methods are called.
struct Told {
    story: Story,
    management: Calls,
    rooms: Calls,
}

impl Told {
    fn begin() -> anyhow::Result<Self> {
        let story = Story::begin()?;
        let [management, rooms, _] = story.maestro.api_ports();
        Ok(Self { management: Calls::connect(management)?, rooms: Calls::connect(rooms)?, story })
    }

    fn call_of(&self, exchange: &Value) -> anyhow::Result<Option<(&Calls, Call)>> {
        let calls = if exchange["api"] == "management" { &self.management } else { &self.rooms };
        let asked = self.story.asked(exchange)?;
        Ok(calls.of_http(&asked.method, &asked.path, &asked.body).map(|call| (calls, call)))
    }

    /// What is another in every server is written as it was recorded.
    fn as_recorded(&self, text: &str) -> anyhow::Result<String> {
        let mut text = text.replace(&self.story.command, COMMAND);
        for (recorded, answered) in &self.story.operations {
            text = text.replace(answered, recorded);
        }
        for room in self.story.maestro.api().rooms("arena").unwrap_or_default() {
            text = text.replace(&room.id, "arena-ROOM");
        }
        Ok(text)
    }
}

#[test]
fn the_recorded_story_over_grpc() -> anyhow::Result<()> {
    let (mut by_http, mut by_grpc) = (Told::begin()?, Told::begin()?);
    let mut not_called = Vec::new();
    for exchange in maestro_testkit::recorded("http-v10.jsonl") {
        let name = exchange["name"].as_str().unwrap();
        if SETTLED.contains(&name) {
            by_http.story.settle()?;
            by_grpc.story.settle()?;
        }
        let reply = by_http.story.tell(&by_http.story.asked(&exchange)?)?;
        let Some((calls, call)) = by_grpc.call_of(&exchange)? else {
            not_called.push(name.to_owned());
            continue;
        };
        let called = calls.call(&call);
        let http = outcome(&by_http, &call, &Answered::of_http(&reply, &call))?;
        let grpc = outcome(&by_grpc, &call, &Answered::of_grpc(called.as_ref()))?;
        same(name, "", &http, &grpc);
        for key in ["code", "message"] {
            assert_eq!(http.get(key), grpc.get(key), "{name}");
        }
        by_http.story.remember(&exchange, &reply.json());
        by_grpc.story.remember(&exchange, &grpc);
        if exchange["method"] == "GET" {
            reads_alike(&by_http, name, &exchange)?;
        }
    }
    assert_eq!(not_called, NO_CALLS, "everything else is called");
    Ok(())
}

/// What one server answers to the same question both ways, if nothing changes in between, is the same to the last digit.
fn reads_alike(told: &Told, name: &str, exchange: &Value) -> anyhow::Result<()> {
    for _ in 0..READS_MAX {
        let asked = told.story.asked(exchange)?;
        let before = told.story.tell(&asked)?;
        let Some((calls, call)) = told.call_of(exchange)? else { return Ok(()) };
        let called = calls.call(&call);
        let after = told.story.tell(&asked)?;
        if before.text == after.text {
            let http = outcome(told, &call, &Answered::of_http(&before, &call))?;
            assert_eq!(outcome(told, &call, &Answered::of_grpc(called.as_ref()))?, http, "{name}");
            return Ok(());
        }
    }
    anyhow::bail!("{name}: something changes all the time");
}

enum Answered {
    Message(DynamicMessage),
    Error { code: i64, message: String },
}

impl Answered {
    fn of_http(reply: &Reply, call: &Call) -> Self {
        let json = reply.json();
        if reply.status == 200 {
            let read = message(&call.method.output(), &json, true);
            return Self::Message(read.unwrap_or_else(|| panic!("not its message: {json}")));
        }
        let message = json["message"].as_str().unwrap().to_owned();
        Self::Error { code: json["code"].as_i64().unwrap(), message }
    }

    fn of_grpc(called: Result<&DynamicMessage, &tonic::Status>) -> Self {
        match called {
            Ok(message) => Self::Message(message.clone()),
            Err(status) => Self::Error { code: status.code() as i64, message: status.message().to_owned() },
        }
    }
}

/// An answer as JSON, with what is another in every server as it was recorded.
fn outcome(told: &Told, call: &Call, answered: &Answered) -> anyhow::Result<Value> {
    let json = match answered {
        Answered::Message(message) => serde_json::to_value(message)?,
        Answered::Error { code, message } => json!({"code": code, "message": message}),
    };
    // An id that is made with this answer is not known yet.
    let is_new = call.method.output().get_field_by_name("operation_id").is_some();
    if is_new && matches!(answered, Answered::Message(_)) {
        return Ok(json);
    }
    Ok(serde_json::from_str(&told.as_recorded(&json.to_string())?)?)
}
