//! Requests that cannot be meant: each gets an answer that says what is wrong, and changes nothing.

use anyhow::ensure;
use maestro_e2e::{Maestro, checks};
use serde_json::json;

#[test]
fn wrong_requests_are_told_what_is_wrong() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[("OPERATIONS_ROOMS_ADD_LIMIT", "10")])?;
    let good = maestro.recipe("arena", 2)?;
    maestro.api().create(&good.json())?.expect(200)?;
    maestro.until("the fleet", || checks::settled(&maestro, "arena", 2))?;

    let first_port = *good.ports.start();
    let with = |key: &str, value: serde_json::Value| {
        let mut recipe = maestro.recipe("other", 1).map(|recipe| recipe.json())?;
        recipe[key] = value;
        anyhow::Ok(recipe.to_string())
    };
    let create = "/schedulers";
    let (add, remove) = ("/schedulers/arena/add-rooms", "/schedulers/arena/remove-rooms");
    let no_ports = json!({"start": first_port + 1, "end": first_port});
    let cases: Vec<(&str, String, u16, &str)> = vec![
        (create, "{\"name\": ".into(), 400, "EOF"),
        (create, "[]".into(), 400, ""),
        (create, with("roomsReplicas", json!("many"))?, 400, "roomsReplicas"),
        (create, with("spec", json!(7))?, 400, "spec"),
        (create, with("name", json!("Not A Name!"))?, 400, "name: "),
        (create, with("name", json!("arena"))?, 409, "name already exists"),
        (create, with("portRange", no_ports)?, 400, "portRange"),
        (
            create,
            {
                let recipe = maestro.recipe("other", 3)?.with_ports(first_port..=first_port + 1);
                recipe.json().to_string()
            },
            400,
            "holds 2 ports, and 3 rooms with 1 of them each need 3",
        ),
        (add, "{\"amount\": \"three\"}".into(), 400, "amount"),
        (add, "{\"amount\": -1}".into(), 400, "amount must be at least 1"),
        (add, "{\"amount\": 0}".into(), 400, "amount must be at least 1"),
        (add, "{\"amount\": 11}".into(), 400, "limit of 10 (operations.rooms.add.limit)"),
        ("/schedulers/nobody/add-rooms", "{}".into(), 404, "scheduler nobody not found"),
        (remove, "{\"amount\": 1.5}".into(), 400, "amount"),
        (remove, "not json".into(), 400, ""),
    ];
    for (path, body, status, message) in cases {
        let answer = maestro.api().post(path, "ada", &body)?;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text);
        assert!(answer.message().contains(message), "{path} {body}: {}", answer.text);
    }
    for path in [
        "/schedulers/nobody",
        "/schedulers/nobody/rooms",
        "/schedulers/arena/rooms/nobody",
        "/schedulers/arena/operations/nothing",
        "/schedulers/arena/rooms/nobody/logs",
    ] {
        maestro.api().get(path)?.expect(404)?;
    }
    maestro.api().delete("/schedulers/nobody")?.expect(404)?;
    // Nothing of it had an effect.
    checks::settled(&maestro, "arena", 2)?;
    Ok(())
}

#[test]
fn more_rooms_than_there_are_can_be_removed_but_no_fewer_than_none_are_left() -> anyhow::Result<()> {
    let maestro = Maestro::started(&[])?;
    maestro.fleet("arena", 2)?;
    let removal = maestro.api().remove("arena", 5, "ada")?.expect(200)?.operation_id()?;
    maestro.until("an empty fleet", || checks::settled(&maestro, "arena", 0))?;
    let removal = maestro.until("the end of the removal", || {
        let removal = maestro.api().operation("arena", &removal)?;
        ensure!(removal.status == "finished", "it is {}", removal.status);
        Ok(removal)
    })?;
    assert!(removal.reason.contains("fleet size 2 → 0"), "{}", removal.reason);
    assert!(removal.story().contains("removed 2 rooms"), "{}", removal.story());
    maestro.api().add("arena", 1, "ada")?.expect(200)?;
    maestro.until("one room", || checks::settled(&maestro, "arena", 1))?;
    Ok(())
}

/// The command line says with its exit code what the server said with its status.
#[test]
fn exit_codes_against_a_live_server() -> anyhow::Result<()> {
    let mut maestro = Maestro::started(&[("OPERATIONS_ROOMS_ADD_LIMIT", "10")])?;
    let write = |name: &str, text: &str| {
        let file = maestro.home().join(name);
        std::fs::write(&file, text)?;
        anyhow::Ok(file.to_string_lossy().into_owned())
    };
    let good = write("good.json", &maestro.recipe("arena", 1)?.json().to_string())?;
    let broken = write("broken.json", "{\"name\": ")?;
    let nameless = write("nameless.json", "{\"name\": \"Not A Name!\"}")?;
    let wrong = maestro.recipe("wrong", 0)?.with_command(&["/nowhere/no-such-program"]);
    let wrong = write("wrong.json", &wrong.json().to_string())?;
    let cases: Vec<(Vec<&str>, i32, &str)> = vec![
        (vec!["scheduler", "create", "-f", &good, "--wait"], 0, ""),
        (vec!["scheduler", "create", "-f", &good], 4, "name already exists"),
        (vec!["scheduler", "create", "-f", &broken], 2, "broken.json"),
        (vec!["scheduler", "create", "-f", &nameless], 2, "name: "),
        (vec!["scheduler", "create", "-f", "no-such-file"], 2, "no-such-file"),
        (vec!["scheduler", "get", "nobody"], 3, "scheduler nobody not found"),
        (vec!["scheduler", "delete", "nobody"], 3, "nobody"),
        (vec!["room", "list", "nobody"], 3, "scheduler nobody not found"),
        (vec!["room", "get", "arena", "nobody"], 3, "nobody"),
        (vec!["room", "add", "arena", "11"], 2, "limit of 10"),
        (vec!["room", "add", "arena", "0"], 2, "0"),
        (vec!["room", "add", "nobody", "1"], 3, "nobody"),
        (vec!["room", "add", "arena", "1", "--wait"], 0, ""),
        (vec!["room", "remove", "arena", "1", "--wait"], 0, ""),
        (vec!["operation", "get", "arena", "nothing"], 3, "nothing"),
        (vec!["scheduler", "create", "-f", &wrong, "--wait"], 0, ""),
        (vec!["room", "add", "wrong", "1", "--wait"], 1, "no-such-program"),
        (vec!["scheduler", "fly", "arena"], 2, "fly"),
    ];
    for (arguments, code, message) in cases {
        let output = maestro.cli(&arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
    // What waits for an operation gives up before the operation does: the room goes when it is killed.
    let stubborn = maestro.recipe("stubborn", 1)?.with("ROOM_IGNORE_SIGTERM", 1);
    maestro.api().create(&stubborn.json())?.expect(200)?;
    maestro.until("a stubborn room", || checks::settled(&maestro, "stubborn", 1))?;
    let output = maestro.cli(&["room", "remove", "stubborn", "1", "--wait", "--timeout", "300ms"])?;
    assert_eq!(output.status.code(), Some(6), "it waits no longer");

    maestro.kill()?;
    let output = maestro.cli(&["scheduler", "list"])?;
    assert_eq!(output.status.code(), Some(5), "nobody answers");
    Ok(())
}
