//! A server that answers what a test tells it to, over real HTTP on loopback, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone)]
pub(crate) enum Answer {
    Whole(String),
    /// Half of it, then the connection is closed.
    CutOff(String),
    HangUp,
    /// Silence, for longer than any client of these tests waits.
    Silence,
}

/// A JSON answer of status 200.
pub(crate) fn ok(body: &str) -> Answer {
    json(200, body)
}

pub(crate) fn json(status: u16, body: &str) -> Answer {
    answer(status, "Content-Type: application/json", body)
}

/// Maestro's error body.
pub(crate) fn refusal(status: u16, message: &str) -> Answer {
    let body = serde_json::json!({"code": 0, "message": message, "details": []});
    json(status, &body.to_string())
}

pub(crate) fn text(body: &str) -> Answer {
    answer(200, "Content-Type: text/plain", body)
}

/// Any answer, with header lines between which stands `\r\n`.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Whole(format!(
        "HTTP/1.1 {status} Some Reason\r\n{headers}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Gives the answers in turn, the last one again and again.
    pub(crate) fn start(script: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        // Ends with the test's process.
        std::thread::spawn(move || {
            let last = script.last().cloned();
            let mut script = script.into_iter();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let Some(request) = read_request(&stream) else {
                    continue;
                };
                log.lock().unwrap().push(request);
                match script.next().or_else(|| last.clone()) {
                    Some(answer) => give(stream, answer),
                    None => drop(stream),
                }
            }
        });
        Self { url, requests }
    }

    /// Each request once, in order: repeated polls would depend on time.
    pub(crate) fn requests(&self) -> Vec<String> {
        let mut requests = self.requests.lock().unwrap().clone();
        requests.dedup();
        requests
    }
}

fn give(mut stream: TcpStream, answer: Answer) {
    match answer {
        Answer::Whole(text) => stream.write_all(text.as_bytes()).unwrap_or_default(),
        Answer::CutOff(text) => stream.write_all(&text.as_bytes()[..text.len() - 5]).unwrap_or_default(),
        Answer::HangUp => {}
        Answer::Silence => {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(60));
                drop(stream);
            });
        }
    }
}

/// Method, path and body of a request, and who sent it.
fn read_request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut request_line = String::new();
    reader.read_line(&mut request_line).ok()?;
    let (mut length, mut user) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "x-maestro-user" => user = value.to_owned(),
            _ => {}
        }
    }
    assert!(user.starts_with("ada@"), "sent by {user:?}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = request_line.trim_end().trim_end_matches(" HTTP/1.1");
    Some(format!("{request} {}", String::from_utf8_lossy(&body)).trim_end().to_owned())
}
