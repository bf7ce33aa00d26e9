//! The management API over HTTP. Every way in which a request can go wrong ends as a [`Failure`] that says what
//! happened and whether the request may have been carried out.

use std::io::Read;
use std::time::Duration;

use ureq::http::{Method, Request, Response, StatusCode};
use ureq::{Agent, Body, Timeout};

use super::refusal::{excerpt, refusal};
use super::{Exit, Failure, Json, Resource, warn};

/// A server on a reachable machine accepts at once; longer means that nobody is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Room for a list of several hundred thousand rooms, and an end to an answer that never ends.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// What a server says about a path that it does not have.
const UNKNOWN_PATH: &str = "Not Found";

#[derive(Clone)]
pub(super) struct Client {
    agent: Agent,
    base_url: String,
    user: String,
    timeout: Duration,
}

impl Client {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, Failure> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_redirects(0)
            // A proxy for the web (HTTP_PROXY) is the wrong way to a server that is most often this machine.
            .proxy(None)
            .user_agent(concat!("maestro/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: config.new_agent(), base_url: base_url(url)?, user: user_at_host(), timeout })
    }

    /// The same server, given less (or more) time to answer.
    pub(super) fn within(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// An answer that holds at least this key.
    pub(super) fn get(&self, resource: &Resource, key: &str) -> Result<Json, Failure> {
        require(self.json(&Method::GET, &full(resource), None)?, key)
    }

    /// An answer that is a list.
    pub(super) fn get_list(&self, resource: &Resource) -> Result<Json, Failure> {
        match self.json(&Method::GET, &full(resource), None)? {
            list @ Json::Array(_) => Ok(list),
            _ => Err(Failure::failed("the server's answer is not a list; is this a Maestro management API?")),
        }
    }

    pub(super) fn post(&self, resource: &Resource, body: &Json) -> Result<Json, Failure> {
        self.json(&Method::POST, &full(resource), Some(body))
    }

    pub(super) fn put(&self, resource: &Resource, body: &Json) -> Result<Json, Failure> {
        self.json(&Method::PUT, &full(resource), Some(body))
    }

    pub(super) fn delete(&self, resource: &Resource) -> Result<Json, Failure> {
        self.json(&Method::DELETE, &full(resource), None)
    }

    /// A deletion that is answered without a body.
    pub(super) fn delete_silently(&self, resource: &Resource) -> Result<(), Failure> {
        self.send(&Method::DELETE, resource, None).map(drop)
    }

    /// An answer of plain text, a room's log.
    pub(super) fn get_text(&self, resource: &Resource) -> Result<String, Failure> {
        let bytes = self.send(&Method::GET, resource, None)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn json(&self, method: &Method, resource: &Resource, body: Option<&Json>) -> Result<Json, Failure> {
        let bytes = self.send(method, resource, body)?;
        Json::read(&bytes).map_err(|error| {
            let url = &self.base_url;
            let message = format!(
                "the answer from {url} is not JSON ({error}): {}; is this a Maestro management API?",
                excerpt(&bytes)
            );
            Failure::failed(message)
        })
    }

    /// Status and body of any answer, a refusal too.
    pub(super) fn get_whatever(&self, resource: &Resource) -> Result<(u16, Vec<u8>), Failure> {
        let (status, body) = self.exchange(&Method::GET, resource, None)?;
        Ok((status.as_u16(), body))
    }

    /// An answer that goes on as long as it is read. Only its beginning has a time limit.
    pub(super) fn open_stream(
        &self,
        resource: &Resource,
        last_event_id: Option<&str>,
    ) -> Result<impl Read + Send + use<>, Failure> {
        let method = Method::GET;
        let mut request = Request::builder()
            .uri(format!("{}{resource}", self.base_url))
            .header("Accept", "text/event-stream")
            .header("X-Maestro-User", &self.user);
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let request = request.body(()).map_err(|error| self.bad_request(&error))?;
        let request = self.agent.configure_request(request).timeout_recv_response(Some(self.timeout)).build();
        let mut answer = self.agent.run(request).map_err(|error| self.no_answer(&error, &method))?;
        if answer.status().is_success() {
            return Ok(answer.into_body().into_reader());
        }
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.broken_answer(&error, &method))?;
        Err(self.refused(&method, resource, answer.status(), &body))
    }

    /// Sends a request and returns the body of an answer that is a success.
    fn send(&self, method: &Method, resource: &Resource, body: Option<&Json>) -> Result<Vec<u8>, Failure> {
        let (status, body) = self.exchange(method, resource, body)?;
        if status.is_success() {
            return Ok(body);
        }
        Err(self.refused(method, resource, status, &body))
    }

    fn refused(&self, method: &Method, resource: &Resource, status: StatusCode, body: &[u8]) -> Failure {
        let refusal = refusal(status, body);
        if refusal.message == UNKNOWN_PATH { self.unknown_path(method, resource) } else { refusal }
    }

    fn exchange(
        &self,
        method: &Method,
        resource: &Resource,
        body: Option<&Json>,
    ) -> Result<(StatusCode, Vec<u8>), Failure> {
        let url = format!("{}{resource}", self.base_url);
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header("Accept", "application/json, text/plain")
            .header("X-Maestro-User", &self.user);
        let answer = match body {
            None => self.run(request.body(()).map_err(|error| self.bad_request(&error))?),
            Some(body) => {
                let body = serde_json::to_vec(body).map_err(|error| self.bad_request(&error))?;
                let request = request.header("Content-Type", "application/json").body(body);
                self.run(request.map_err(|error| self.bad_request(&error))?)
            }
        };
        let mut answer = answer.map_err(|error| self.no_answer(&error, method))?;
        for warning in warnings(&answer) {
            warn(&warning);
        }
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.broken_answer(&error, method))?;
        Ok((answer.status(), body))
    }

    fn run(&self, request: Request<impl ureq::AsSendBody>) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request).timeout_global(Some(self.timeout)).build();
        self.agent.run(request)
    }

    /// Another listener of Maestro, or another Maestro, does not know this path.
    fn unknown_path(&self, method: &Method, resource: &Resource) -> Failure {
        let url = &self.base_url;
        let wrong_port = |what: &str, key: &str| {
            Failure::invalid(format!(
                "{url} is {what} ({key}); --url must name the management API (managementApi.port, 8080 by default)"
            ))
        };
        // A path of rooms that takes no GET, and one that is always there.
        if self.probe("/scheduler/x/rooms/x/ping") == Some(StatusCode::METHOD_NOT_ALLOWED) {
            return wrong_port("the API that rooms talk to", "roomsApi.port");
        }
        if self.probe("/healthz") == Some(StatusCode::OK) {
            return wrong_port("the internal API for health checks and metrics", "internalApi.port");
        }
        let path = resource.to_string();
        let path = path.split('?').next().unwrap_or_default();
        let message = format!("{url} does not know {method} {path}; is it an older version of Maestro?");
        Failure::new(Exit::NotFound, message)
    }

    fn probe(&self, path: &str) -> Option<StatusCode> {
        let request = Request::builder().uri(format!("{}{path}", self.base_url));
        let request = request.header("X-Maestro-User", &self.user).body(()).ok()?;
        self.run(request).ok().map(|answer| answer.status())
    }

    fn bad_request(&self, error: &dyn std::error::Error) -> Failure {
        Failure::invalid(format!("{}: {error}", self.base_url))
    }

    fn no_answer(&self, error: &ureq::Error, method: &Method) -> Failure {
        let url = &self.base_url;
        let unreachable =
            |reason: &str| Failure::new(Exit::Unreachable, format!("cannot reach {url}: {reason}"));
        match error {
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                unreachable(&format!("no connection within {CONNECT_TIMEOUT:?}"))
            }
            ureq::Error::Timeout(_) => self.timed_out(method),
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                Failure::invalid(format!("{url}: not a valid URL"))
            }
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => Failure::failed(format!(
                "{url} does not speak HTTP ({error}); is this a Maestro management API?"
            )),
            ureq::Error::Io(io) if is_hang_up(io) => Failure::new(
                Exit::Unreachable,
                format!("{url} closed the connection without answering{}", perhaps_done(method)),
            ),
            ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => unreachable(
                "connection refused; is `maestro start` running there? (--url or MAESTRO_URL name another server)",
            ),
            ureq::Error::Io(io) => unreachable(&io.to_string()),
            other => unreachable(&other.to_string()),
        }
    }

    /// An answer began and did not end well.
    fn broken_answer(&self, error: &ureq::Error, method: &Method) -> Failure {
        let url = &self.base_url;
        match error {
            ureq::Error::Timeout(_) => self.timed_out(method),
            ureq::Error::BodyExceedsLimit(limit) => {
                Failure::failed(format!("the answer from {url} is larger than {limit} bytes"))
            }
            _ => Failure::failed(format!(
                "the answer from {url} was cut off ({error}){}",
                perhaps_done(method)
            )),
        }
    }

    fn timed_out(&self, method: &Method) -> Failure {
        let message =
            format!("no answer from {} within {:?}{}", self.base_url, self.timeout, perhaps_done(method));
        Failure::new(Exit::TimedOut, message)
    }
}

/// Refuses an answer that is not what was asked for: JSON of another program is JSON too.
pub(super) fn require(answer: Json, key: &str) -> Result<Json, Failure> {
    match answer.get(key) {
        Json::Object(_) | Json::Array(_) | Json::String(_) => Ok(answer),
        Json::Null | Json::Bool(_) | Json::Number(_) => {
            let message = format!("the server's answer has no `{key}`; is this a Maestro management API?");
            Err(Failure::failed(message))
        }
    }
}

/// What to keep in mind when a request that changes something got no answer.
fn perhaps_done(method: &Method) -> &'static str {
    if *method == Method::GET { "" } else { "; the request may have been carried out" }
}

/// Ours are the keys beyond v10's; without this a server shows v10's only.
fn full(resource: &Resource) -> Resource {
    resource.clone().query("view", "full")
}

fn base_url(url: &str) -> Result<String, Failure> {
    if url.starts_with("https://") {
        return Err(Failure::invalid(format!(
            "{url}: https is not supported yet; use http://, through a tunnel where the network is not trusted"
        )));
    }
    let host = url.strip_prefix("http://").unwrap_or_default();
    if host.is_empty() || host.starts_with('/') || url.contains(['?', '#']) {
        return Err(Failure::invalid(format!(
            "{url}: not a server's URL; write it as http://127.0.0.1:8080"
        )));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn is_hang_up(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
    )
}

/// The texts of all `Warning` headers: `299 maestro "unknown field colour", 299 maestro "…"`.
fn warnings(answer: &Response<Body>) -> Vec<String> {
    let headers = answer.headers().get_all("warning");
    let lines = headers.iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    lines.flat_map(|line| quoted_texts(&line)).collect()
}

fn quoted_texts(line: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut characters = line.chars();
    while characters.by_ref().any(|c| c == '"') {
        let mut text = String::new();
        while let Some(c) = characters.next() {
            match c {
                '"' => break,
                '\\' => text.extend(characters.next()),
                _ => text.push(c),
            }
        }
        texts.push(text);
    }
    texts
}

/// The user who runs a command, as the server records it: `user@host`.
fn user_at_host() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER")
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    header_value(&format!("{user}@{host}"))
}

/// A header carries visible ASCII only; a name is not worth a refused request.
fn header_value(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_headers() {
        for (line, expected) in [
            (r#"299 maestro "unknown field colour""#, vec!["unknown field colour"]),
            (r#"299 maestro "a, b", 299 maestro "c \"d\"""#, vec!["a, b", "c \"d\""]),
            (r#"299 maestro "unfinished"#, vec!["unfinished"]),
            ("299 maestro", vec![]),
        ] {
            assert_eq!(quoted_texts(line), expected, "{line}");
        }
    }

    #[test]
    fn urls() {
        for (url, expected) in [
            ("http://127.0.0.1:8080", Ok("http://127.0.0.1:8080")),
            ("http://gateway/maestro/", Ok("http://gateway/maestro")),
            (
                "https://a",
                Err(
                    "https://a: https is not supported yet; use http://, through a tunnel where the network is not trusted",
                ),
            ),
            ("127.0.0.1:8080", Err("127.0.0.1:8080: not a server's URL; write it as http://127.0.0.1:8080")),
            ("http://", Err("http://: not a server's URL; write it as http://127.0.0.1:8080")),
            ("http://a?b=c", Err("http://a?b=c: not a server's URL; write it as http://127.0.0.1:8080")),
        ] {
            let outcome = base_url(url).map_err(|failure| failure.message);
            assert_eq!(outcome.as_deref().map_err(String::as_str), expected);
        }
    }

    #[test]
    fn only_what_a_header_may_carry() {
        assert_eq!(header_value("zoë@host\n1"), "zo?@host?1");
        assert!(user_at_host().contains('@'));
    }
}
