//! The demo as a program, against a stand-in for Maestro: a script for the process, a thread for the API.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use maestro_testkit::http::{Reply, Request, listen, serve};
use maestro_testkit::{Lines, PATIENCE};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const FAKE_MAESTRO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-maestro");

struct RunningDemo {
    process: Child,
    lines: Lines,
}

impl RunningDemo {
    fn start(data_dir: &Path, script: &str) -> Self {
        fs::write(data_dir.join("fake"), script).expect("a script");
        let mut process = Command::new(env!("CARGO_BIN_EXE_maestro-demo"))
            .args(["--maestro", FAKE_MAESTRO, "--room", FAKE_MAESTRO, "--rooms", "3", "--players", "4"])
            .arg("--data-dir")
            .arg(data_dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the demo runs");
        let lines = Lines::of(process.stdout.take().expect("stdout is piped"));
        Self { process, lines }
    }

    fn wait_line(&self, is_it: impl Fn(&str) -> bool) -> String {
        self.lines.wait(is_it).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.process), Signal::INT).expect("the demo can be signalled");
    }

    fn wait_code(&mut self) -> Option<i32> {
        self.process.wait().expect("the demo can be waited for").code()
    }
}

impl Drop for RunningDemo {
    /// By a signal that lets it end its child as well.
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.interrupt();
            let _ = self.process.wait();
        }
    }
}

/// A room that always has a place for the players of allocation `a`.
fn welcome(mut stream: TcpStream) {
    let mut line = String::new();
    let _ = BufReader::new(&stream).read_line(&mut line);
    let reply = if line.starts_with("JOIN ") && line.ends_with(" a\n") { "OK 1\n" } else { "ERROR\n" };
    let _ = stream.write_all(reply.as_bytes());
}

/// The management API of a fleet of two rooms, of which one is free once. Requests with a body are passed on to the test.
struct FakeApi {
    room_port: u16,
    is_allocated: AtomicBool,
    create_code: u16,
    submitted: Sender<(String, Value)>,
}

impl FakeApi {
    fn respond(&self, request: Request) -> Reply {
        let (code, answer) = self.answer(&request.line);
        if !request.body.is_empty() {
            let body = serde_json::from_str(&request.body).expect("bodies are JSON");
            let _ = self.submitted.send((request.line, body));
        }
        Reply::json(code, &answer.to_string())
    }

    fn answer(&self, request: &str) -> (u16, Value) {
        let ports = json!([{ "name": "game", "protocol": "tcp", "port": self.room_port }]);
        let rooms = json!({ "rooms": [
            { "id": "example-1", "status": "ready" },
            { "id": "example-2", "status": "pending" },
        ]});
        match request {
            "POST /schedulers" => (self.create_code, json!({ "message": "name already exists" })),
            "GET /schedulers/example" => (200, json!({ "scheduler": { "roomsReplicas": 1 } })),
            "POST /schedulers/example" => (200, json!({ "operationId": "1" })),
            "GET /schedulers/example/rooms" => (200, rooms),
            "POST /schedulers/example/allocations" if self.is_allocated.swap(true, Ordering::Relaxed) => {
                (429, json!({ "code": 8, "message": "no ready rooms available for scheduler example" }))
            }
            "POST /schedulers/example/allocations" => {
                let room = json!({ "id": "a", "roomId": "example-1", "host": "127.0.0.1", "ports": ports });
                (200, json!({ "allocations": [room] }))
            }
            "GET /schedulers/example/operations?stage=active" => (200, json!({ "operations": [] })),
            "GET /schedulers/example/operations?stage=final&perPage=1" => {
                let operation = json!({ "definitionName": "add_rooms", "status": "finished" });
                (200, json!({ "operations": [operation] }))
            }
            _ => (404, json!({ "message": format!("no {request}") })),
        }
    }
}

/// A Maestro that serves until it is told to end.
fn start_serving(create_code: u16) -> (TempDir, RunningDemo, Receiver<(String, Value)>) {
    let (sender, submitted) = mpsc::channel();
    let room_port = listen(welcome).expect("there is a free port").port();
    let api = FakeApi { room_port, is_allocated: AtomicBool::new(false), create_code, submitted: sender };
    let api = serve(move |request| api.respond(request)).expect("there is a free port");
    let url = format!("http://{api}");
    let script = format!(
        r#"trap 'exit 0' TERM
        echo '{{"event":"serving","management":"{url}","rooms":"{url}","internal":"{url}"}}'
        while :; do sleep 0.05; done"#
    );
    let data_dir = tempfile::tempdir().expect("a directory");
    let demo = RunningDemo::start(data_dir.path(), &script);
    (data_dir, demo, submitted)
}

#[test]
fn from_the_first_player_to_the_end() {
    let (data_dir, mut demo, submitted) = start_serving(200);
    let (request, recipe) = submitted.recv_timeout(PATIENCE).unwrap();
    assert_eq!(request, "POST /schedulers");
    assert_eq!((&recipe["name"], &recipe["roomsReplicas"]), (&json!("example"), &json!(3)));
    let command = recipe["spec"]["containers"][0]["command"][0].as_str().unwrap();
    assert!(Path::new(command).is_absolute(), "{command}");
    assert_eq!(recipe["autoscaling"]["min"], 3);

    demo.wait_line(|line| line.starts_with("Scheduler example was created and will have 3 rooms, more"));
    let hint = demo.wait_line(|line| line.contains("scheduler apply -f "));
    let file = hint.split(" -f ").last().unwrap();
    let written: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(written, recipe, "the file to change is what runs");
    let status = "2 rooms: 1 ready, 1 pending | 1 player wanted | 1 match running | 1 player served | \
                  add_rooms finished";
    demo.wait_line(|line| line == status);

    // As a person would: with a slip of the hand first.
    let players = data_dir.path().join("players");
    for (text, told) in [("lots\n", "\"lots\" is not a number of players"), ("30\n", "| 30 players wanted |")]
    {
        fs::write(&players, text).unwrap();
        demo.wait_line(|line| line.contains(told));
    }

    demo.interrupt();
    demo.wait_line(|line| line.starts_with("maestro ended after"));
    assert_eq!(demo.wait_code(), Some(0));
}

#[test]
fn a_scheduler_of_an_earlier_run_gets_a_new_version() {
    let (_data_dir, demo, submitted) = start_serving(409);
    let requests: Vec<_> = submitted.iter().take(2).map(|(request, _)| request).collect();
    assert_eq!(requests, ["POST /schedulers", "POST /schedulers/example"]);
    demo.wait_line(|line| line.contains("rolls over to a new version"));
}

#[test]
fn a_maestro_that_dies_is_told_with_its_last_words() {
    let data_dir = tempfile::tempdir().unwrap();
    let mut demo = RunningDemo::start(data_dir.path(), "echo 'port 8080 is taken' >&2; exit 4");
    let line = demo.wait_line(|line| line.starts_with("maestro ended by itself"));
    assert!(line.contains("exit status: 4"), "{line}");
    demo.wait_line(|line| line == "port 8080 is taken");
    assert_eq!(demo.wait_code(), Some(1));
}
