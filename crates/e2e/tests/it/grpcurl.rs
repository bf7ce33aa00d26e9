//! `grpcurl`, which knows nothing of the schema, against both ports: it lists, describes and calls, as people do who try
//! things out.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use maestro_e2e::Maestro;
use serde_json::{Value, json};

/// Where `make install-test-tools` puts it.
fn program() -> PathBuf {
    maestro_testkit::repository().join("target/test-tools/grpcurl")
}

/// What it prints, of a server whose schema it asks for.
fn grpcurl(port: u16, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(program());
    // Flags, then the address, then what is asked.
    let (data, asked) = match arguments {
        ["-d", data, asked @ ..] => (vec!["-d", *data], asked),
        asked => (Vec::new(), asked),
    };
    command.args(["-plaintext", "-max-time", "20"]).args(data).arg(format!("127.0.0.1:{port}")).args(asked);
    let output = command.output().context("running grpcurl: `make install-test-tools` installs it")?;
    let text = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.success(), "{command:?}: {text}");
    Ok(text)
}

fn call(port: u16, method: &str, request: &Value) -> anyhow::Result<Value> {
    let printed = grpcurl(port, &["-d", &request.to_string(), method])?;
    serde_json::from_str(&printed).with_context(|| printed)
}

#[test]
fn it_lists_describes_and_calls() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    let rooms = maestro.fleet("arena", 2)?;
    let [management, of_rooms, _] = maestro.api_ports();
    for (port, service, method) in [
        (management, "api.v1.SchedulersService", "GetScheduler"),
        (of_rooms, "api.v1.RoomsService", "UpdateRoomWithPing"),
    ] {
        let listed = grpcurl(port, &["list"])?;
        for service in [service, "maestro.api.v1.AllocationsService", "grpc.health.v1.Health"] {
            assert!(listed.lines().any(|line| line == service), "{listed}");
        }
        let methods = grpcurl(port, &["list", service])?;
        assert!(methods.contains(&format!("{service}.{method}")), "{methods}");
        let described = grpcurl(port, &["describe", service])?;
        assert!(described.contains(&format!("rpc {method} ( .api.v1.{method}Request )")), "{described}");
        let fields = grpcurl(port, &["describe", "maestro.api.v1.CreateAllocationsRequest"])?;
        assert!(fields.contains("request_id") && fields.contains("wait_millis"), "{fields}");
        let health = call(port, "grpc.health.v1.Health/Check", &json!({}))?;
        assert_eq!(health, json!({"status": "SERVING"}));
    }
    let got = call(management, "api.v1.SchedulersService/GetScheduler", &json!({"schedulerName": "arena"}))?;
    assert_eq!(got["scheduler"]["name"], "arena");
    let ping = json!({"schedulerName": "arena", "roomName": rooms[0].id, "status": "ready"});
    assert_eq!(call(of_rooms, "api.v1.RoomsService/UpdateRoomWithPing", &ping)?, json!({"success": true}));
    let create = "maestro.api.v1.AllocationsService/CreateAllocations";
    for port in [management, of_rooms] {
        let given = call(port, create, &json!({"schedulerName": "arena"}))?;
        assert_eq!(given["allocations"][0]["state"], "held", "{given}");
    }
    let refused =
        call(management, create, &json!({"schedulerName": "arena"})).map_err(|error| format!("{error:#}"));
    let refused = refused.err().unwrap_or_default();
    assert!(
        refused.contains("ResourceExhausted") && refused.contains("no ready rooms available"),
        "{refused}"
    );
    Ok(())
}
