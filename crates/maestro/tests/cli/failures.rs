//! Every way in which a server can fail the command line, and every exit code.

use std::io::Read;
use std::process::Stdio;

use expect_test::expect;

use crate::server::{Answer, Server, answer, json, ok, refusal};
use crate::{check, check_local, check_stdin, maestro};

#[test]
fn statuses() {
    for (status, expected) in [
        (
            400,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: what is wrong
                exit 2
            "#]],
        ),
        (
            404,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: what is wrong
                exit 3
            "#]],
        ),
        (
            405,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: what is wrong
                exit 2
            "#]],
        ),
        (
            409,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: what is wrong
                exit 4
            "#]],
        ),
        (
            413,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: what is wrong
                exit 2
            "#]],
        ),
        (
            500,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: the server failed (500 Internal Server Error): what is wrong
                exit 1
            "#]],
        ),
        (
            503,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: the server failed (503 Service Unavailable): what is wrong
                exit 5
            "#]],
        ),
        (
            504,
            expect![[r#"
                > GET /schedulers?view=full
                stderr: error: the server failed (504 Gateway Timeout): what is wrong
                exit 6
            "#]],
        ),
    ] {
        check(vec![refusal(status, "what is wrong")], "scheduler list", &expected);
    }
}

#[test]
fn several_violations_are_several_lines() {
    let message = "Validation Error:\nScheduler.Game: Game is a required field\nScheduler.RoomsReplicas: RoomsReplicas must be 0 or greater";
    check_stdin(
        vec![refusal(400, message)],
        "scheduler create -f -",
        "name: x",
        &expect![[r#"
            > POST /schedulers?view=full {"name":"x"}
            stderr: error: stdin: Scheduler.Game: Game is a required field
            stderr: stdin: Scheduler.RoomsReplicas: RoomsReplicas must be 0 or greater
            exit 2
        "#]],
    );
}

#[test]
fn answers_that_are_none() {
    check(
        vec![ok("<html>\n<h1>It works!</h1></html>")],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the answer from http://SERVER is not JSON (expected value at line 1 column 1): `<html> <h1>It works!</h1></html>`; is this a Maestro management API?
            exit 1
        "#]],
    );
    check(
        vec![ok("")],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the answer from http://SERVER is not JSON (EOF while parsing a value at line 1 column 0): (empty); is this a Maestro management API?
            exit 1
        "#]],
    );
    check(
        vec![ok(r#"{"schedulers": [{"name""#)],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the answer from http://SERVER is not JSON (EOF while parsing an object at line 1 column 23): `{"schedulers": [{"name"`; is this a Maestro management API?
            exit 1
        "#]],
    );
    check(
        vec![answer(502, "Content-Type: text/html", "<html>Bad Gateway</html>")],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the server answered 502 Bad Gateway: `<html>Bad Gateway</html>`
            exit 5
        "#]],
    );
    check(
        vec![json(500, "")],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the server answered 500 Internal Server Error: (empty)
            exit 1
        "#]],
    );
    check(
        vec![answer(302, "Location: http://elsewhere/", "")],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the server answered 302 Found: (empty)
            exit 1
        "#]],
    );
    check(
        vec![Answer::Whole("SSH-2.0-OpenSSH_9.9\r\n".to_owned())],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: http://SERVER does not speak HTTP (protocol: http parse fail: invalid HTTP version); is this a Maestro management API?
            exit 1
        "#]],
    );
    let Answer::Whole(whole) = ok(r#"{"schedulers":[]}"#) else {
        return;
    };
    check(
        vec![Answer::CutOff(whole)],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: the answer from http://SERVER was cut off (io: Peer disconnected)
            exit 1
        "#]],
    );
    check(
        vec![Answer::HangUp],
        "scheduler list",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: http://SERVER closed the connection without answering
            exit 5
        "#]],
    );
    // JSON of another program.
    check(
        vec![ok(r#"[1, {"a": null}]"#)],
        "room list arena",
        &expect![[r#"
            > GET /schedulers/arena/rooms?view=full
            stderr: error: the server's answer has no `rooms`; is this a Maestro management API?
            exit 1
        "#]],
    );
    check(
        vec![ok(r#"{"operation": 5}"#)],
        "operation get arena op-1",
        &expect![[r#"
            > GET /schedulers/arena/operations/op-1?view=full
            stderr: error: the server's answer has no `operation`; is this a Maestro management API?
            exit 1
        "#]],
    );
}

#[test]
fn silence_is_a_timeout() {
    check(
        vec![Answer::Silence],
        "scheduler list --request-timeout 300ms",
        &expect![[r#"
            > GET /schedulers?view=full
            stderr: error: no answer from http://SERVER within 300ms
            exit 6
        "#]],
    );
}

#[test]
fn nobody_there() {
    // Bound and closed again: nobody listens on it now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = maestro(&format!("--url http://127.0.0.1:{port} scheduler list")).output().unwrap();
    let told = crate::told(&output).replace(&port.to_string(), "PORT");
    expect![[r#"
        stderr: error: cannot reach http://127.0.0.1:PORT: connection refused; is `maestro start` running there? (--url or MAESTRO_URL name another server)
        exit 5
    "#]]
    .assert_eq(&told);

    // What a resolver says differs from machine to machine.
    let output = maestro("--url http://no-such-host.invalid scheduler list").output().unwrap();
    let told = crate::told(&output);
    assert!(told.starts_with("stderr: error: cannot reach http://no-such-host.invalid: "), "{told}");
    assert!(told.ends_with("exit 5\n"), "{told}");
}

#[test]
fn urls() {
    check_local(
        maestro("--url https://maestro.example scheduler list"),
        &expect![[r#"
            stderr: error: https://maestro.example: https is not supported yet; use http://, through a tunnel where the network is not trusted
            exit 2
        "#]],
    );
    check_local(
        maestro("--url maestro.example:8080 scheduler list"),
        &expect![[r#"
            stderr: error: maestro.example:8080: not a server's URL; write it as http://127.0.0.1:8080
            exit 2
        "#]],
    );
    check_local(
        maestro("--url http://[::1 scheduler list"),
        &expect![[r#"
            stderr: error: http://[::1: invalid authority
            exit 2
        "#]],
    );
}

#[test]
fn usage() {
    check_local(
        maestro("room add arena 0"),
        &expect![[r#"
            stderr: error: invalid value '0' for '<N>': amount must be at least 1
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check_local(
        maestro("room add arena 1 --wait --timeout 10"),
        &expect![[r#"
            stderr: error: invalid value '10' for '--timeout <DURATION>': a number needs a unit: 10s, 10ms, 10m or 10h
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check_local(
        maestro("room add arena 1 --timeout 10s"),
        &expect![[r#"
            stderr: error: the following required arguments were not provided:
            stderr:   --wait
            stderr: 
            stderr: Usage: maestro room add --wait --timeout <DURATION> <SCHEDULER> <N>
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check_local(
        maestro("scheduler create -f no-such-file.yaml"),
        &expect![[r#"
            stderr: error: no-such-file.yaml: cannot be read: No such file or directory (os error 2)
            exit 2
        "#]],
    );
    check_stdin(
        vec![],
        "scheduler create -f -",
        "name: [unclosed",
        &expect![[r#"
            stderr: error: stdin:1:7: not valid YAML: unclosed bracket '['
            exit 2
        "#]],
    );
    check_stdin(
        vec![],
        "scheduler create -f -",
        "",
        &expect![[r#"
            stderr: error: stdin: is empty; it must contain a scheduler's recipe
            exit 2
        "#]],
    );
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let schedulers: Vec<_> =
        (0..20_000).map(|i| serde_json::json!({"name": format!("scheduler-{i}")})).collect();
    let server = Server::start(vec![ok(&serde_json::json!({"schedulers": schedulers}).to_string())]);
    for arguments in ["scheduler list", "scheduler list -o yaml", "completion zsh", "--help"] {
        let mut command = maestro(arguments);
        command.env("MAESTRO_URL", &server.url).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{arguments}");
    }
}
