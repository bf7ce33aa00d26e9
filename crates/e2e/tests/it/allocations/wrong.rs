//! Requests for rooms that cannot be meant: the same clear answer over HTTP and gRPC, on both ports, and nothing changes.

use std::time::Duration;

use anyhow::{Context, ensure};
use maestro_e2e::{Answer, Client, Maestro};
use serde_json::{Value, json};
use tonic::Code;

use super::ALLOCATIONS;
use crate::calls::Calls;

/// One port of the server, and how it is called.
struct Port {
    client: Client,
    calls: Calls,
}

impl Port {
    fn ask(&self, verb: &str, path: &str, body: &Value) -> anyhow::Result<Answer> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.client.send(verb, path, "e2e", &body)?;
        self.calls.answer_like((verb, path, &body), &answer)?;
        Ok(answer)
    }

    fn refused(
        &self,
        verb: &str,
        path: &str,
        body: &Value,
        (status, words): (u16, &str),
    ) -> anyhow::Result<()> {
        let answer =
            self.ask(verb, path, body)?.expect(status).with_context(|| format!("{verb} {path} {body}"))?;
        ensure!(answer.message().contains(words), "{verb} {path} {body}: {}", answer.text);
        Ok(())
    }
}

#[test]
fn wrong_requests_for_rooms_are_told_what_is_wrong() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 3)?;
    let [management, of_rooms, _] = maestro.api_ports();
    let ports = [
        Port { client: maestro.api().clone(), calls: Calls::connect(management)? },
        Port { client: maestro.rooms_api(), calls: Calls::connect(of_rooms)? },
    ];
    let create = |request: Value| {
        let given = maestro.api().post(ALLOCATIONS, "e2e", &request.to_string())?.expect(200)?.json()?;
        given["allocations"][0]["id"].as_str().map(str::to_owned).context("an id")
    };
    let played = create(json!({"requestId": "played"}))?;
    let returned = create(json!({"requestId": "returned"}))?;
    let path = |id: &str| format!("{ALLOCATIONS}/{id}");
    let of_played = maestro.api().get(&path(&played))?.expect(200)?.json()?["allocation"]["roomId"].take();
    let room = rooms.iter().find(|room| of_played == room.id.as_str()).context("its room")?;
    ensure!(room.join_allocation(Duration::from_secs(60), &played)?, "the room has no place");
    maestro.until("the match to begin", || {
        let state = maestro.api().get(&path(&played))?.expect(200)?.json()?["allocation"]["state"].take();
        ensure!(state == "begun", "{state}");
        Ok(())
    })?;
    maestro.api().delete(&path(&returned))?.expect(204)?;
    let held = create(json!({"requestId": "held"}))?;

    let before = listed(&maestro)?;
    for port in &ports {
        for (body, words) in [
            (json!({"count": 0}), "count: 0 rooms cannot be asked for at once; ask for 1 to 100"),
            (json!({"count": 101}), "count: 101 rooms cannot be asked for at once"),
            (json!({"waitMillis": 30_001}), "waitMillis: 30001 is too long; wait at most 30000"),
            (json!({"wishes": [{"version": "two"}]}), "wishes[0].version"),
        ] {
            port.refused("POST", ALLOCATIONS, &body, (400, words))?;
        }
        // No message has a field that its schema does not have.
        let colour =
            port.client.post(ALLOCATIONS, "e2e", r#"{"wishes": [{"colour": "red"}]}"#)?.expect(400)?;
        ensure!(colour.message().contains("colour"), "{}", colour.text);

        let nowhere = "/schedulers/nowhere/allocations";
        port.refused("POST", nowhere, &json!({}), (404, "scheduler nowhere not found"))?;
        port.refused("GET", nowhere, &Value::Null, (404, "scheduler nowhere not found"))?;
        let unknown = path("0199f2d4-8f0e-7c62-9d4b-0f4a7a5d1c11");
        for verb in ["GET", "DELETE"] {
            port.refused(verb, &unknown, &Value::Null, (404, "not found in scheduler arena"))?;
        }
        port.refused(
            "POST",
            ALLOCATIONS,
            &json!({"requestId": "held", "count": 2}),
            (409, "with other count"),
        )?;
        port.refused("POST", ALLOCATIONS, &json!({"requestId": "returned"}), (409, "which is returned"))?;
        port.refused("DELETE", &path(&played), &Value::Null, (409, "its match has begun"))?;
        for _ in ["the second time", "the third time"] {
            port.ask("DELETE", &path(&returned), &Value::Null)?.expect(204)?;
        }
        too_long(port)?;
    }
    assert_eq!(listed(&maestro)?, before, "nothing changed");
    // Nor did a room of the fleet: the third one is free.
    let third = create(json!({"requestId": "third"}))?;
    assert_ne!(third, held);
    Ok(())
}

fn listed(maestro: &Maestro) -> anyhow::Result<Value> {
    maestro.api().get(&format!("{ALLOCATIONS}?perPage=100"))?.expect(200)?.json()
}

fn too_long(port: &Port) -> anyhow::Result<()> {
    let body = json!({"metadata": {"x": "x".repeat(10 << 20)}}).to_string();
    // The connection may be closed before all of it is sent.
    if let Ok(answer) = port.client.post(ALLOCATIONS, "e2e", &body) {
        answer.expect(413)?;
    }
    let call = port.calls.of_http("POST", ALLOCATIONS, &body).context("a call")?;
    let called = port.calls.call(&call);
    let code = called.as_ref().err().map(tonic::Status::code);
    assert_eq!(code, Some(Code::ResourceExhausted), "{called:?}");
    Ok(())
}
