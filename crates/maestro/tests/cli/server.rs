//! A server with a script, which remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

pub(crate) use maestro_testkit::http::Reply as Answer;
use maestro_testkit::http::{Request, serve};

/// A JSON answer of status 200.
pub(crate) fn ok(body: &str) -> Answer {
    json(200, body)
}

pub(crate) fn json(status: u16, body: &str) -> Answer {
    Answer::json(status, body)
}

/// Maestro's error body.
pub(crate) fn refusal(status: u16, message: &str) -> Answer {
    let body = serde_json::json!({"code": 0, "message": message, "details": []});
    json(status, &body.to_string())
}

pub(crate) fn text(body: &str) -> Answer {
    answer(200, "Content-Type: text/plain", body)
}

/// Any answer; several headers are separated by `\r\n`.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Answer {
    Answer::new(status, headers, body)
}

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Gives the answers in turn, the last one again and again.
    pub(crate) fn start(script: Vec<Answer>) -> Self {
        let script = Mutex::new(VecDeque::from(script));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let address = serve(move |request| {
            log.lock().unwrap().push(shown(&request));
            let mut script = script.lock().unwrap();
            let last = script.back().cloned();
            let next = if script.len() > 1 { script.pop_front() } else { last };
            next.unwrap_or(Answer::HangUp)
        });
        Self { url: format!("http://{}", address.unwrap()), requests }
    }

    /// Each request once, in order: repeated polls would depend on time.
    pub(crate) fn requests(&self) -> Vec<String> {
        let mut requests = self.requests.lock().unwrap().clone();
        requests.dedup();
        requests
    }
}

/// Method, path and body.
fn shown(request: &Request) -> String {
    let user = request.header("x-maestro-user").unwrap_or_default();
    assert!(user.starts_with("ada@"), "sent by {user:?}");
    format!("{} {}", request.line, request.body).trim_end().to_owned()
}
